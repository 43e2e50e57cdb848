//! What of the workspace is about to change is kept first, if a run is at work that can be undone.

use super::files::ChargedFiles;
use super::structure::EntryPath;
use crate::effect::undo::{Opening, RemovedEntry, Transaction, UndoRefusal};
use cap_std::fs::Dir;
use rustix::fs::readlinkat;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::Arc;
use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::Descriptor;
use wasmtime_wasi::p2::bindings::filesystem::types::{ErrorCode, OpenFlags};

/// What a guest is told; the outer error ends it.
type Before<T> = wasmtime::Result<Result<T, ErrorCode>>;

/// Links that a path may lead through.
const MAX_LINKS: usize = 16;

/// The transaction that what this guest does is a part of.
fn work<T: ChargedFiles>(ctx: &T) -> Option<Arc<Transaction>> {
    ctx.quota().transaction().cloned()
}

/// A directory of the guest's that it may change.
fn writable<T: ChargedFiles>(ctx: &mut T, fd: &Resource<Descriptor>) -> wasmtime::Result<Option<Arc<File>>> {
    Ok(match ctx.ctx().table.get(fd)? {
        Descriptor::Dir(dir) if !dir.perms.write_not_permitted() => Some(dir.dir.clone()),
        _ => None,
    })
}

/// Bytes are about to be written: anywhere in the file, or at its end.
pub(super) fn writing<T: ChargedFiles>(ctx: &mut T, fd: &Resource<Descriptor>, adds: bool) -> Before<()> {
    let Some(work) = work(ctx) else { return Ok(Ok(())) };
    let file = match ctx.ctx().table.get(fd)? {
        Descriptor::File(file) if !file.perms.write_not_permitted() => file.file.clone(),
        _ => return Ok(Ok(())),
    };
    // Its position, which only its end can tell.
    told(ctx, work.writing_behind(&file, adds))
}

/// A file is about to be opened, and perhaps made or emptied.
pub(super) fn opening<T: ChargedFiles>(
    ctx: &mut T,
    fd: &Resource<Descriptor>,
    (path, follows, open): (&str, bool, OpenFlags),
) -> Before<Opening> {
    let plain = Ok(Ok(Opening::Plain));
    if !open.intersects(OpenFlags::CREATE | OpenFlags::TRUNCATE) {
        return plain;
    }
    let Some(work) = work(ctx) else { return plain };
    let Some(dir) = writable(ctx, fd)? else { return plain };
    work.busy(&dir);
    match target(&dir, path, follows) {
        Some((dir, name)) => {
            let opening = work.opening(&dir, &name, open.contains(OpenFlags::TRUNCATE));
            told(ctx, opening)
        }
        // Whoever opens it finds the same error.
        None => plain,
    }
}

/// It was opened, and there was no such file before.
pub(super) fn opened<T: ChargedFiles>(ctx: &mut T, fd: &Resource<Descriptor>) {
    let Some(work) = work(ctx) else { return };
    if let Ok(Descriptor::File(file)) = ctx.ctx().table.get(fd) {
        work.opened(&file.file);
    }
}

/// A directory or a link is about to be made.
pub(super) fn making<T: ChargedFiles>(ctx: &mut T, fd: &Resource<Descriptor>, at: Option<&EntryPath>) -> Before<()> {
    let (Some(work), Some(at), Some(dir)) = (work(ctx), at, writable(ctx, fd)?) else { return Ok(Ok(())) };
    work.busy(&dir);
    let (dir, name) = at.slot();
    told(ctx, work.making(dir, name))
}

/// A file is about to get a further name.
pub(super) fn linking<T: ChargedFiles>(
    ctx: &mut T,
    fd: &Resource<Descriptor>,
    (from, to): (Option<&EntryPath>, Option<&EntryPath>),
) -> Before<()> {
    let (Some(work), Some(from), Some(to)) = (work(ctx), from, to) else { return Ok(Ok(())) };
    let Some(dir) = writable(ctx, fd)? else { return Ok(Ok(())) };
    work.busy(&dir);
    told(ctx, work.linking(from.slot().0, to.slot()))
}

/// Something is about to be moved.
pub(super) fn moving<T: ChargedFiles>(
    ctx: &mut T,
    (from_fd, to_fd): (&Resource<Descriptor>, &Resource<Descriptor>),
    (from, to): (Option<&EntryPath>, Option<&EntryPath>),
) -> Before<()> {
    let (Some(work), Some(from), Some(to)) = (work(ctx), from, to) else { return Ok(Ok(())) };
    let (Some(old), Some(_)) = (writable(ctx, from_fd)?, writable(ctx, to_fd)?) else { return Ok(Ok(())) };
    work.busy(&old);
    told(ctx, work.moving(from.slot(), to.slot()))
}

/// A file or a link is about to be deleted; whether it is gone already.
pub(super) fn removing<T: ChargedFiles>(
    ctx: &mut T,
    fd: &Resource<Descriptor>,
    (path, at): (&str, Option<&EntryPath>),
) -> Before<bool> {
    let (Some(work), Some(at), Some(dir)) = (work(ctx), at, writable(ctx, fd)?) else { return Ok(Ok(false)) };
    // As a directory, it is not deleted.
    if path.ends_with('/') || path.ends_with("/.") {
        return Ok(Ok(false));
    }
    work.busy(&dir);
    let (dir, name) = at.slot();
    let removal = work.removing(dir, name);
    Ok(told(ctx, removal)?.map(|removal| removal == RemovedEntry::Done))
}

/// A directory is about to be deleted, if it is empty.
pub(super) fn removing_dir<T: ChargedFiles>(
    ctx: &mut T,
    fd: &Resource<Descriptor>,
    at: Option<&EntryPath>,
) -> Before<()> {
    let (Some(work), Some(at), Some(dir)) = (work(ctx), at, writable(ctx, fd)?) else { return Ok(Ok(())) };
    work.busy(&dir);
    let (dir, name) = at.slot();
    told(ctx, work.removing_dir(dir, name))
}

/// The directory that a file is opened or made in, with its name there; `None` where it cannot be told.
pub(crate) fn target(dir: &File, path: impl AsRef<Path>, follows: bool) -> Option<(Dir, OsString)> {
    let base = Dir::from_std_file(dir.try_clone().ok()?);
    let mut path = path.as_ref().as_os_str().as_bytes().to_vec();
    for _ in 0..MAX_LINKS {
        let (parent, name) = match path.iter().rposition(|byte| *byte == b'/') {
            Some(slash) => (&path[..slash], &path[slash + 1..]),
            None => (&[][..], &path[..]),
        };
        if matches!(name, b"" | b"." | b"..") {
            return None;
        }
        let name = OsString::from_vec(name.to_vec());
        let within = match parent.is_empty() {
            true => base.try_clone().ok()?,
            false => base.open_dir(OsStr::from_bytes(parent)).ok()?,
        };
        let link = if follows { readlinkat(&within, &name, Vec::new()).ok() } else { None };
        let Some(link) = link else { return Some((within, name)) };
        let mut next = parent.to_vec();
        if !next.is_empty() {
            next.push(b'/');
        }
        next.extend_from_slice(link.as_bytes());
        path = next;
    }
    None
}

/// What a guest hears of what must not be changed.
fn told<T: ChargedFiles, V>(ctx: &T, kept: Result<V, UndoRefusal>) -> Before<V> {
    match kept {
        Ok(value) => Ok(Ok(value)),
        Err(UndoRefusal::TooLarge(why)) => Err(ctx.quota().not_undoable(&why).into()),
        Err(UndoRefusal::Across) => Ok(Err(ErrorCode::CrossDevice)),
        Err(UndoRefusal::Io(error)) => Ok(Err(code(&error))),
    }
}

fn code(error: &io::Error) -> ErrorCode {
    use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied, QuotaExceeded, StorageFull};
    match error.kind() {
        NotFound => ErrorCode::NoEntry,
        NotADirectory => ErrorCode::NotDirectory,
        PermissionDenied => ErrorCode::Access,
        StorageFull | QuotaExceeded => ErrorCode::InsufficientSpace,
        _ => {
            tracing::warn!(%error, "what is to be changed cannot be kept");
            ErrorCode::Io
        }
    }
}
