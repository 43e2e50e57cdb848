//! `wasi:filesystem` with a quota.
//!
//! The implementation is wasmtime's. The functions that change a workspace are shadowed by ones that keep what is there
//! ([`undoable`]), charge the call's quota, and then delegate.

use super::asked::{answer, fd_of, fits, is_plain, is_there, made, of_slash, place, refused, size};
use super::directory_use::{READ, WRITE};
use super::files::{ChargedFiles, control, note};
use super::labelled::{self, LabelledReads, LabelledWrites};
use super::stream::ChargedStream;
use super::structure::EntryPath;
use super::undoable::{self, linking, making, moving, opening, removing, removing_dir, writing};
use crate::effect::undo::Opening;
use crate::engine::limits::MAX_LISTINGS;
use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource};
use wasmtime_wasi::filesystem::{Descriptor, WasiFilesystemView};
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DescriptorFlags, DescriptorType, ErrorCode, HostDescriptor, NewTimestamp, OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{DynOutputStream, FsResult, ReaddirIterator};

/// The version that wasmtime's own functions are defined under.
const TYPES: &str = "wasi:filesystem/types@0.2.12";

/// Leaves the host function with what the guest is told, where something is not to be done.
macro_rules! unless_refused {
    ($before:expr) => {
        match $before? {
            Ok(value) => value,
            Err(code) => return Ok((Err(code),)),
        }
    };
}

/// Shadows everything that changes a file or a directory, or tells what is in one.
pub(crate) fn add_to_linker<T: ChargedFiles>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    let mut types = linker.instance(TYPES)?;

    types.func_wrap(
        "[method]descriptor.read-via-stream",
        |mut store: StoreContextMut<'_, T>, (fd, offset): (Resource<Descriptor>, u64)| {
            let ctx = store.data_mut();
            if let Some(control) = control(ctx, &fd)? {
                let answer = control.reads();
                return Ok((Ok(ctx.ctx().table.push(answer)?),));
            }
            let read = fd_of(&fd);
            match ctx.filesystem().read_via_stream(fd, offset) {
                Ok(stream) => Ok((Ok(LabelledReads::wrap(ctx, &read, stream)?),)),
                refused => answer(refused),
            }
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.read",
        |mut store: StoreContextMut<'_, T>, (fd, length, offset): (Resource<Descriptor>, u64, u64)| {
            Box::new(async move {
                let ctx = store.data_mut();
                let of = fd_of(&fd);
                let read = ctx.filesystem().read(fd, length, offset).await;
                labelled::read(ctx, &of)?;
                answer(read)
            })
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.write-via-stream",
        |mut store: StoreContextMut<'_, T>, (fd, offset): (Resource<Descriptor>, u64)| {
            Box::new(async move {
                let ctx = store.data_mut();
                if let Some(control) = control(ctx, &fd)? {
                    let request = control.writes();
                    return Ok((Ok(ctx.ctx().table.push(request)?),));
                }
                unless_refused!(writing(ctx, &fd, false));
                // A stream that starts behind the end of the file leaves a hole, which counts like bytes.
                let hole = if offset == 0 { 0 } else { offset.saturating_sub(size(ctx, &fd).await) };
                let labelled = LabelledWrites::of(ctx, &fd)?;
                let stream = ctx.filesystem().write_via_stream(fd, offset);
                Ok((charged(ctx, stream, hole, labelled)?,))
            })
        },
    )?;
    types.func_wrap(
        "[method]descriptor.append-via-stream",
        |mut store: StoreContextMut<'_, T>, (fd,): (Resource<Descriptor>,)| {
            let ctx = store.data_mut();
            unless_refused!(writing(ctx, &fd, true));
            let labelled = LabelledWrites::of(ctx, &fd)?;
            let stream = ctx.filesystem().append_via_stream(fd);
            Ok((charged(ctx, stream, 0, labelled)?,))
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.write",
        |mut store: StoreContextMut<'_, T>, (fd, bytes, offset): (Resource<Descriptor>, Vec<u8>, u64)| {
            Box::new(async move {
                let ctx = store.data_mut();
                unless_refused!(writing(ctx, &fd, false));
                let _tainted = labelled::tainting(ctx, &fd)?;
                unless_refused!(labelled::writing(ctx, &fd));
                let hole = offset.saturating_sub(size(ctx, &fd).await);
                let charge = ctx.quota().write(hole.saturating_add(bytes.len() as u64))?;
                let written = ctx.filesystem().write(fd, bytes, offset).await;
                drop(charge);
                answer(written)
            })
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.sync",
        |mut store: StoreContextMut<'_, T>, (fd,): (Resource<Descriptor>,)| {
            Box::new(async move {
                let ctx = store.data_mut();
                if let Some(control) = control(ctx, &fd)? {
                    return Ok((Ok(control.answer().await?),));
                }
                answer(ctx.filesystem().sync(fd).await)
            })
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.set-size",
        |mut store: StoreContextMut<'_, T>, (fd, new): (Resource<Descriptor>, u64)| {
            Box::new(async move {
                let ctx = store.data_mut();
                unless_refused!(writing(ctx, &fd, false));
                unless_refused!(labelled::writing(ctx, &fd));
                let longer = new.saturating_sub(size(ctx, &fd).await);
                let charge = ctx.quota().write(longer)?;
                let set = ctx.filesystem().set_size(fd, new).await;
                drop(charge);
                answer(set)
            })
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.open-at",
        |mut store: StoreContextMut<'_, T>,
         (fd, follow, path, open, flags): (Resource<Descriptor>, PathFlags, String, OpenFlags, DescriptorFlags)| {
            Box::new(async move {
                let ctx = store.data_mut();
                let follow = follow | of_slash(&path);
                let there = ctx.filesystem().stat_at(fd_of(&fd), follow, path.clone()).await;
                // Opening a pipe or a device that a person left there could block a thread for ever.
                if there.as_ref().is_ok_and(|stat| !is_plain(stat.type_)) {
                    return Ok((Err(ErrorCode::NotPermitted),));
                }
                if flags.contains(DescriptorFlags::WRITE) || open.intersects(OpenFlags::CREATE | OpenFlags::TRUNCATE) {
                    unless_refused!(labelled::changing(ctx, &fd));
                }
                let mut new = there.is_err() && open.contains(OpenFlags::CREATE);
                let charge = if new { Some(ctx.quota().entry()?) } else { None };
                let follows = follow.contains(PathFlags::SYMLINK_FOLLOW);
                let before = opening(ctx, &fd, (&path, follows, open))?;
                let is_dir = there.as_ref().is_ok_and(|stat| stat.type_ == DescriptorType::Directory);
                note(ctx, &fd, &path, READ, is_dir);
                let writes = flags.contains(DescriptorFlags::WRITE) || open.intersects(OpenFlags::CREATE | OpenFlags::TRUNCATE);
                let emptied = open.contains(OpenFlags::TRUNCATE);
                let (base, name) = (fd_of(&fd), if writes { path.clone() } else { String::new() });
                let opened = match &before {
                    Err(code) => Err((*code).into()),
                    Ok(_) if new => {
                        // Only a file that was not there in the moment of opening is nobody else's.
                        let (fd, again) = ((fd_of(&fd), path.clone()), fd);
                        let first = open | OpenFlags::EXCLUSIVE;
                        match ctx.filesystem().open_at(fd.0, follow, path, first, flags).await {
                            Err(error) if !open.contains(OpenFlags::EXCLUSIVE) && is_there(&error) => {
                                new = false;
                                ctx.filesystem().open_at(again, follow, fd.1, open, flags).await
                            }
                            opened => opened,
                        }
                    }
                    Ok(_) => ctx.filesystem().open_at(fd, follow, path, open, flags).await,
                };
                made(charge, &opened);
                if writes && !is_dir && opened.is_ok() {
                    note(ctx, &base, &name, WRITE, false);
                }
                if let (Ok(Opening::Fresh), Ok(file)) = (before, &opened) {
                    undoable::opened(ctx, file);
                }
                if let Ok(file) = &opened {
                    unless_refused!(labelled::opened(ctx, file, (new, emptied)));
                }
                answer(opened)
            })
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.create-directory-at",
        |mut store: StoreContextMut<'_, T>, (fd, path): (Resource<Descriptor>, String)| {
            Box::new(async move {
                let ctx = store.data_mut();
                let _still = ctx.quota().structure().lock_owned().await;
                unless_refused!(labelled::changing(ctx, &fd));
                let place = place(ctx, &fd, &path)?;
                if let Some(code) = refused(ctx, fits(&place, EntryPath::takes_directory))? {
                    return Ok((Err(code),));
                }
                unless_refused!(making(ctx, &fd, place.as_ref().ok()));
                let charge = ctx.quota().entry()?;
                note(ctx, &fd, &path, WRITE, false);
                let result = ctx.filesystem().create_directory_at(fd, path).await;
                made(Some(charge), &result);
                labelled::taken(ctx, &result, place.as_ref().ok(), labelled::made)?;
                answer(result)
            })
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.symlink-at",
        |mut store: StoreContextMut<'_, T>, (fd, old, new): (Resource<Descriptor>, String, String)| {
            Box::new(async move {
                let ctx = store.data_mut();
                let _still = ctx.quota().structure().lock_owned().await;
                unless_refused!(labelled::changing(ctx, &fd));
                let place = place(ctx, &fd, &new)?;
                let old = place.as_ref().map_or(old.clone(), |place| place.kept_target(&old));
                if let Some(code) = refused(ctx, fits(&place, |place| place.takes_link(&old)))? {
                    return Ok((Err(code),));
                }
                unless_refused!(making(ctx, &fd, place.as_ref().ok()));
                let charge = ctx.quota().entry()?;
                note(ctx, &fd, &new, WRITE, false);
                let result = ctx.filesystem().symlink_at(fd, old, new).await;
                made(Some(charge), &result);
                labelled::taken(ctx, &result, place.as_ref().ok(), labelled::made)?;
                answer(result)
            })
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.link-at",
        |mut store: StoreContextMut<'_, T>,
         (fd, follow, old, to, new): (Resource<Descriptor>, PathFlags, String, Resource<Descriptor>, String)| {
            Box::new(async move {
                let ctx = store.data_mut();
                let _still = ctx.quota().structure().lock_owned().await;
                unless_refused!(labelled::changing(ctx, &to));
                unless_refused!(labelled::naming(ctx, &fd, &to));
                // A second name of a link is a link, and may lead elsewhere from there.
                let (from, place) = (place(ctx, &fd, &old)?, place(ctx, &to, &new)?);
                let takes = fits(&from, |from| fits(&place, |place| place.takes(from)));
                if let Some(code) = refused(ctx, takes)? {
                    return Ok((Err(code),));
                }
                unless_refused!(linking(ctx, &to, (from.as_ref().ok(), place.as_ref().ok())));
                note(ctx, &to, &new, WRITE, false);
                let (charge, moving) = (ctx.quota().entry()?, ctx.quota().moving());
                let result = ctx.filesystem().link_at(fd, follow, old, to, new).await;
                drop(moving);
                made(Some(charge), &result);
                labelled::taken(ctx, &result, place.as_ref().ok(), labelled::named)?;
                answer(result)
            })
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.rename-at",
        |mut store: StoreContextMut<'_, T>,
         (fd, old, to, new): (Resource<Descriptor>, String, Resource<Descriptor>, String)| {
            Box::new(async move {
                let ctx = store.data_mut();
                unless_refused!(labelled::changing(ctx, &fd));
                unless_refused!(labelled::changing(ctx, &to));
                unless_refused!(labelled::naming(ctx, &fd, &to));
                let _still = ctx.quota().structure().lock_owned().await;
                let (from, place) = (place(ctx, &fd, &old)?, place(ctx, &to, &new)?);
                let takes = fits(&from, |from| fits(&place, |place| place.takes(from)));
                if let Some(code) = refused(ctx, takes)? {
                    return Ok((Err(code),));
                }
                unless_refused!(moving(ctx, (&fd, &to), (from.as_ref().ok(), place.as_ref().ok())));
                note(ctx, &fd, &old, WRITE, false);
                note(ctx, &to, &new, WRITE, false);
                let moving = ctx.quota().moving();
                let moved = ctx.filesystem().rename_at(fd, old, to, new).await;
                drop(moving);
                labelled::taken(ctx, &moved, from.as_ref().ok(), labelled::unnaming)?;
                labelled::taken(ctx, &moved, place.as_ref().ok(), labelled::named)?;
                answer(moved)
            })
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.unlink-file-at",
        |mut store: StoreContextMut<'_, T>, (fd, path): (Resource<Descriptor>, String)| {
            Box::new(async move {
                let ctx = store.data_mut();
                unless_refused!(labelled::changing(ctx, &fd));
                // Nothing takes the file's place between the look at it and its end.
                let _still = ctx.quota().structure().lock_owned().await;
                ctx.quota().settle();
                let place = place(ctx, &fd, &path)?.ok();
                note(ctx, &fd, &path, WRITE, false);
                let bytes = place.as_ref().and_then(EntryPath::file_bytes);
                let gone = match unless_refused!(removing(ctx, &fd, (&path, place.as_ref()))) {
                    true => Ok(()),
                    false => ctx.filesystem().unlink_file_at(fd, path).await,
                };
                labelled::taken(ctx, &gone, place.as_ref(), labelled::unnaming)?;
                if let (Ok(()), Some(bytes)) = (&gone, bytes) {
                    ctx.quota().credit_entry(bytes);
                }
                answer(gone)
            })
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.remove-directory-at",
        |mut store: StoreContextMut<'_, T>, (fd, path): (Resource<Descriptor>, String)| {
            Box::new(async move {
                let ctx = store.data_mut();
                unless_refused!(labelled::changing(ctx, &fd));
                let _still = ctx.quota().structure().lock_owned().await;
                ctx.quota().settle();
                let place = place(ctx, &fd, &path)?.ok();
                unless_refused!(removing_dir(ctx, &fd, place.as_ref()));
                note(ctx, &fd, &path, WRITE, false);
                let gone = ctx.filesystem().remove_directory_at(fd, path).await;
                labelled::taken(ctx, &gone, place.as_ref(), labelled::unnaming)?;
                if gone.is_ok() {
                    ctx.quota().credit_entry(0);
                }
                answer(gone)
            })
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.read-directory",
        |mut store: StoreContextMut<'_, T>, (fd,): (Resource<Descriptor>,)| {
            Box::new(async move {
                let ctx = store.data_mut();
                // A listing holds all its names in the host's memory until it is dropped.
                let mut open = std::mem::take(ctx.listings());
                let table = ctx.ctx().table;
                open.retain(|rep| table.get::<ReaddirIterator>(&Resource::new_borrow(*rep)).is_ok());
                let full = open.len() >= MAX_LISTINGS;
                *ctx.listings() = open;
                if full {
                    return Err(ctx.listings_hit().into());
                }
                note(ctx, &fd, ".", READ, true);
                labelled::listed(ctx, &fd)?;
                let listing = ctx.filesystem().read_directory(fd).await;
                if let Ok(listing) = &listing {
                    ctx.listings().push(listing.rep());
                }
                answer(listing)
            })
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.stat-at",
        |mut store: StoreContextMut<'_, T>, (fd, follow, path): (Resource<Descriptor>, PathFlags, String)| {
            Box::new(async move {
                let ctx = store.data_mut();
                note(ctx, &fd, &path, READ, false);
                labelled::looked(ctx, &fd, &path)?;
                let follow = follow | of_slash(&path);
                answer(ctx.filesystem().stat_at(fd, follow, path).await)
            })
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.metadata-hash-at",
        |mut store: StoreContextMut<'_, T>, (fd, follow, path): (Resource<Descriptor>, PathFlags, String)| {
            Box::new(async move {
                let ctx = store.data_mut();
                labelled::looked(ctx, &fd, &path)?;
                // wasi-libc makes a file's number of this, and asks about the link where a program asked about the file, which `cp` then took
                // for two files and emptied. So a link has the number of what it leads to.
                let file = ctx.filesystem().metadata_hash_at(fd_of(&fd), PathFlags::SYMLINK_FOLLOW, path.clone()).await;
                answer(match file {
                    Ok(hash) => Ok(hash),
                    Err(_) => ctx.filesystem().metadata_hash_at(fd, follow, path).await,
                })
            })
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.readlink-at",
        |mut store: StoreContextMut<'_, T>, (fd, path): (Resource<Descriptor>, String)| {
            Box::new(async move {
                let ctx = store.data_mut();
                labelled::looked(ctx, &fd, &path)?;
                answer(ctx.filesystem().readlink_at(fd, path).await)
            })
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.set-times",
        |mut store: StoreContextMut<'_, T>,
         (fd, accessed, modified): (Resource<Descriptor>, NewTimestamp, NewTimestamp)| {
            Box::new(async move {
                let ctx = store.data_mut();
                unless_refused!(labelled::writing(ctx, &fd));
                answer(ctx.filesystem().set_times(fd, accessed, modified).await)
            })
        },
    )?;
    types.func_wrap_async(
        "[method]descriptor.set-times-at",
        |mut store: StoreContextMut<'_, T>,
         (fd, follow, path, accessed, modified): (
            Resource<Descriptor>,
            PathFlags,
            String,
            NewTimestamp,
            NewTimestamp,
        )| {
            Box::new(async move {
                let ctx = store.data_mut();
                unless_refused!(labelled::changing(ctx, &fd));
                let place = place(ctx, &fd, &path)?.ok();
                let follow = follow | of_slash(&path);
                let set = ctx.filesystem().set_times_at(fd, follow, path, accessed, modified).await;
                labelled::taken(ctx, &set, place.as_ref(), labelled::named)?;
                answer(set)
            })
        },
    )?;
    linker.allow_shadowing(false);
    Ok(())
}

/// Wraps the stream that a delegate opened in one that charges the quota, with the bytes that it skips first.
fn charged<T: ChargedFiles>(
    ctx: &mut T,
    stream: FsResult<Resource<DynOutputStream>>,
    hole: u64,
    labelled: Option<LabelledWrites>,
) -> wasmtime::Result<Result<Resource<DynOutputStream>, ErrorCode>> {
    let stream = match stream {
        Ok(stream) => stream,
        Err(error) => return Ok(Err(error.downcast()?)),
    };
    let inner = ctx.ctx().table.delete(stream)?;
    let charged: DynOutputStream = Box::new(ChargedStream::new(inner, ctx.quota().clone(), hole, labelled));
    Ok(Ok(ctx.ctx().table.push(charged)?))
}
