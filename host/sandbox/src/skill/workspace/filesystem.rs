//! `wasi:filesystem` as guests have it: with a quota, undo and labels.
//!
//! What is done is wasmtime's. Each function first keeps what is there ([`undoable`](super::undoable)), takes down whose work it is
//! ([`labelled`](super::labelled)), charges the quota, and then delegates. A function that wasmtime adds is a compiler's error here.

use super::asked::{allow, fits, is_plain, is_there, of_slash, settle};
use super::directory_use::{READ, WRITE};
use super::files::{ChargedFiles, Filesystem, control, note};
use super::labelled::{LabelledReads, LabelledWrites};
use super::stream::ChargedStream;
use super::structure::EntryPath;
use crate::effect::files::OpenMode;
use crate::effect::undo::Opening;
use crate::engine::limits::MAX_LISTINGS;
use std::marker::PhantomData;
use wasmtime::component::{HasData, Linker, Resource};
use wasmtime_wasi::filesystem::Descriptor;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    self, Advice, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntry, DirectoryEntryStream, ErrorCode,
    Filesize, Host, HostDescriptor, HostDirectoryEntryStream, MetadataHashValue, NewTimestamp, OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, FsError, FsResult};

struct HasFilesystem<T>(PhantomData<fn() -> T>);

impl<T: ChargedFiles> HasData for HasFilesystem<T> {
    type Data<'a> = Filesystem<'a, T>;
}

/// Takes the place of wasmtime's own, which was added with the rest of WASI.
pub(crate) fn add_to_linker<T: ChargedFiles>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    types::add_to_linker::<T, HasFilesystem<T>>(linker, |ctx| Filesystem(ctx))?;
    linker.allow_shadowing(false);
    Ok(())
}

type Fd = Resource<Descriptor>;

/// A second handle for the same descriptor, because delegating consumes the first.
fn again(fd: &Fd) -> Fd {
    Resource::new_borrow(fd.rep())
}

/// Bytes of every directory, as guests are told. How much it really is would tell how many names it ever had.
const DIRECTORY_BYTES: u64 = 4 << 10;

/// What is told of a file or directory.
fn told(mut stat: DescriptorStat) -> DescriptorStat {
    if stat.type_ == DescriptorType::Directory {
        (stat.size, stat.link_count) = (DIRECTORY_BYTES, 1);
    }
    stat
}

impl<T: ChargedFiles> Filesystem<'_, T> {
    /// Charges the quota for a new entry.
    fn entry(&self) -> FsResult<super::quota::Charge> {
        self.0.quota().entry().map_err(FsError::trap)
    }

    /// Charges the quota for bytes that are about to be written.
    fn bytes(&self, bytes: u64) -> FsResult<super::quota::Charge> {
        self.0.quota().write(bytes).map_err(FsError::trap)
    }

    /// The file's length; 0 where it cannot be told, which charges more, never less.
    fn size(&mut self, fd: &Fd) -> u64 {
        let file = self.file(fd).ok().flatten();
        file.and_then(|file| file.metadata().ok()).map_or(0, |found| found.len())
    }

    /// Nobody else changes an entry meanwhile.
    async fn alone(&mut self) -> tokio::sync::OwnedMutexGuard<()> {
        self.0.quota().structure().lock_owned().await
    }

    /// Wraps the stream that a delegate opened in one that charges the quota, with the bytes that it skips first.
    fn charged(
        &mut self,
        stream: Resource<DynOutputStream>,
        hole: u64,
        labelled: Option<LabelledWrites>,
    ) -> FsResult<Resource<DynOutputStream>> {
        let inner = self.0.ctx().table.delete(stream)?;
        let charged: DynOutputStream = Box::new(ChargedStream::new(inner, self.0.quota().clone(), hole, labelled));
        Ok(self.0.ctx().table.push(charged)?)
    }
}

impl<T: ChargedFiles> Host for Filesystem<'_, T> {
    fn convert_error_code(&mut self, error: FsError) -> wasmtime::Result<ErrorCode> {
        error.downcast()
    }

    fn filesystem_error_code(&mut self, error: Resource<wasmtime::Error>) -> wasmtime::Result<Option<ErrorCode>> {
        self.wasi().filesystem_error_code(error)
    }
}

impl<T: ChargedFiles> HostDescriptor for Filesystem<'_, T> {
    fn read_via_stream(&mut self, fd: Fd, offset: Filesize) -> FsResult<Resource<DynInputStream>> {
        if let Some(control) = control(self.0, &fd).map_err(FsError::trap)? {
            let answer = control.reads();
            return Ok(self.0.ctx().table.push(answer)?);
        }
        let stream = self.wasi().read_via_stream(again(&fd), offset)?;
        LabelledReads::wrap(self, &fd, stream)
    }

    async fn read(&mut self, fd: Fd, length: Filesize, offset: Filesize) -> FsResult<(Vec<u8>, bool)> {
        let look = self.look(&fd)?;
        let read = self.wasi().read(fd, length, offset).await;
        self.saw(look, |labels, at| labels.of(at));
        read
    }

    fn write_via_stream(&mut self, fd: Fd, offset: Filesize) -> FsResult<Resource<DynOutputStream>> {
        if let Some(control) = control(self.0, &fd).map_err(FsError::trap)? {
            let request = control.writes();
            return Ok(self.0.ctx().table.push(request)?);
        }
        self.keep_bytes(&fd, false)?;
        // A stream that starts behind the end of the file leaves a hole, which counts like bytes.
        let hole = if offset == 0 { 0 } else { offset.saturating_sub(self.size(&fd)) };
        let labelled = LabelledWrites::of(self, &fd)?;
        let stream = self.wasi().write_via_stream(fd, offset)?;
        self.charged(stream, hole, labelled)
    }

    fn append_via_stream(&mut self, fd: Fd) -> FsResult<Resource<DynOutputStream>> {
        self.keep_bytes(&fd, true)?;
        let labelled = LabelledWrites::of(self, &fd)?;
        let stream = self.wasi().append_via_stream(fd)?;
        self.charged(stream, 0, labelled)
    }

    async fn write(&mut self, fd: Fd, bytes: Vec<u8>, offset: Filesize) -> FsResult<Filesize> {
        self.keep_bytes(&fd, false)?;
        let _tainted = self.tainting(&fd)?;
        self.writing(&fd)?;
        let hole = offset.saturating_sub(self.size(&fd));
        let charge = self.bytes(hole.saturating_add(bytes.len() as u64))?;
        let written = self.wasi().write(fd, bytes, offset).await;
        drop(charge);
        written
    }

    async fn advise(&mut self, fd: Fd, offset: Filesize, length: Filesize, advice: Advice) -> FsResult<()> {
        self.wasi().advise(fd, offset, length, advice).await
    }

    async fn sync(&mut self, fd: Fd) -> FsResult<()> {
        if let Some(control) = control(self.0, &fd).map_err(FsError::trap)? {
            return control.answer().await.map_err(FsError::trap);
        }
        self.wasi().sync(fd).await
    }

    async fn sync_data(&mut self, fd: Fd) -> FsResult<()> {
        self.wasi().sync_data(fd).await
    }

    async fn get_flags(&mut self, fd: Fd) -> FsResult<DescriptorFlags> {
        self.wasi().get_flags(fd).await
    }

    async fn get_type(&mut self, fd: Fd) -> FsResult<DescriptorType> {
        self.wasi().get_type(fd).await
    }

    async fn is_same_object(&mut self, one: Fd, other: Fd) -> wasmtime::Result<bool> {
        self.wasi().is_same_object(one, other).await
    }

    async fn metadata_hash(&mut self, fd: Fd) -> FsResult<MetadataHashValue> {
        self.wasi().metadata_hash(fd).await
    }

    async fn set_size(&mut self, fd: Fd, new: Filesize) -> FsResult<()> {
        self.keep_bytes(&fd, false)?;
        self.writing(&fd)?;
        let longer = new.saturating_sub(self.size(&fd));
        let charge = self.bytes(longer)?;
        let set = self.wasi().set_size(fd, new).await;
        drop(charge);
        set
    }

    async fn set_times(&mut self, fd: Fd, accessed: NewTimestamp, modified: NewTimestamp) -> FsResult<()> {
        self.may_change(&fd)?;
        self.timing(&fd)?;
        self.wasi().set_times(fd, accessed, modified).await
    }

    async fn set_times_at(
        &mut self,
        fd: Fd,
        follow: PathFlags,
        path: String,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> FsResult<()> {
        self.may_change(&fd)?;
        let _alone = self.alone().await;
        let follow = follow | of_slash(&path);
        self.learn_way(&fd, &path, follow)?;
        self.timing_at(&fd, &path, follow)?;
        self.wasi().set_times_at(fd, follow, path, accessed, modified).await
    }

    async fn stat(&mut self, fd: Fd) -> FsResult<DescriptorStat> {
        let look = self.look(&fd)?;
        let stat = self.wasi().stat(fd).await;
        self.saw(look, |labels, at| labels.of_attributes(at));
        Ok(told(stat?))
    }

    async fn stat_at(&mut self, fd: Fd, follow: PathFlags, path: String) -> FsResult<DescriptorStat> {
        note(self.0, &fd, &path, READ, false);
        let (look, follow) = (self.look(&fd)?, follow | of_slash(&path));
        let stat = self.wasi().stat_at(fd, follow, path.clone()).await;
        self.saw_entry(look, &path, follow);
        Ok(told(stat?))
    }

    async fn metadata_hash_at(&mut self, fd: Fd, follow: PathFlags, path: String) -> FsResult<MetadataHashValue> {
        let look = self.look(&fd)?;
        // wasi-libc makes a file's number of this, and asks about the link where a program asked about the file, which `cp` then took
        // for two files and emptied. So a link has the number of what it leads to.
        let of_file = PathFlags::SYMLINK_FOLLOW;
        let hash = match self.wasi().metadata_hash_at(again(&fd), of_file, path.clone()).await {
            Err(_) => self.wasi().metadata_hash_at(fd, follow, path.clone()).await,
            hash => hash,
        };
        self.saw_entry(look, &path, of_file);
        hash
    }

    async fn readlink_at(&mut self, fd: Fd, path: String) -> FsResult<String> {
        let look = self.look(&fd)?;
        let target = self.wasi().readlink_at(fd, path.clone()).await;
        self.saw_entry(look, &path, PathFlags::empty());
        target
    }

    async fn read_directory(&mut self, fd: Fd) -> FsResult<Resource<DirectoryEntryStream>> {
        // A listing holds all its names in the host's memory until it is dropped.
        let mut open = std::mem::take(self.0.listings());
        let table = self.0.ctx().table;
        open.retain(|rep| table.get(&Listing::handle(*rep)).is_ok());
        let full = open.len() >= MAX_LISTINGS;
        *self.0.listings() = open;
        if full {
            return Err(FsError::trap(self.0.listings_hit()));
        }
        note(self.0, &fd, ".", READ, true);
        let look = self.look(&fd)?;
        let stream = self.wasi().read_directory(fd).await;
        self.saw_names(look);
        let stream = self.0.ctx().table.delete(stream?)?;
        let listing = self.0.ctx().table.push(Listing::of(stream.into_iter().collect()))?;
        self.0.listings().push(listing.rep());
        Ok(Resource::new_own(listing.rep()))
    }

    async fn open_at(
        &mut self,
        fd: Fd,
        follow: PathFlags,
        path: String,
        open: OpenFlags,
        flags: DescriptorFlags,
    ) -> FsResult<Fd> {
        let follow = follow | of_slash(&path);
        let changes = open.intersects(OpenFlags::CREATE | OpenFlags::TRUNCATE);
        let writes = flags.contains(DescriptorFlags::WRITE) || changes;
        let mode = OpenMode {
            makes: open.contains(OpenFlags::CREATE),
            is_first: open.contains(OpenFlags::EXCLUSIVE),
            empties: open.contains(OpenFlags::TRUNCATE),
        };
        let _alone = if changes { Some(self.alone().await) } else { None };
        let labelled = self.opening(&fd, &path, follow, mode)?;
        let there = self.wasi().stat_at(again(&fd), follow, path.clone()).await;
        // Opening a pipe or a device that a person left there could block a thread for ever.
        if there.as_ref().is_ok_and(|stat| !is_plain(stat.type_)) {
            self.not_opened(labelled);
            return Err(ErrorCode::NotPermitted.into());
        }
        if writes {
            self.may_change(&fd)?;
        }
        let is_dir = there.as_ref().is_ok_and(|stat| stat.type_ == DescriptorType::Directory);
        let mut new = there.is_err() && mode.makes;
        let charge = if new { Some(self.entry()?) } else { None };
        let kept = match self.keep_opening(&fd, (&path, follow.contains(PathFlags::SYMLINK_FOLLOW), open)) {
            Ok(kept) => kept,
            refused => {
                settle(charge, &refused);
                return refused.map(|_| fd);
            }
        };
        note(self.0, &fd, &path, READ, is_dir);
        let (base, name) = (again(&fd), path.clone());
        // Only a file that was not there in the moment of opening is nobody else's.
        let first = if new { open | OpenFlags::EXCLUSIVE } else { open };
        let opened = match self.wasi().open_at(again(&fd), follow, path.clone(), first, flags).await {
            Err(error) if new && !mode.is_first && is_there(&error) => {
                new = false;
                self.wasi().open_at(fd, follow, path, open, flags).await
            }
            opened => opened,
        };
        settle(charge, &opened);
        let opened = match opened {
            Ok(opened) => opened,
            Err(error) => {
                self.not_opened(labelled);
                return Err(error);
            }
        };
        if writes && !is_dir {
            note(self.0, &base, &name, WRITE, false);
        }
        if let Opening::Fresh = kept {
            self.keep_made(&opened);
        }
        self.opened(&opened, labelled, (&base, &name, follow), (new, mode.empties))?;
        Ok(opened)
    }

    async fn create_directory_at(&mut self, fd: Fd, path: String) -> FsResult<()> {
        let _alone = self.alone().await;
        self.may_change(&fd)?;
        self.learn_way(&fd, &path, PathFlags::empty())?;
        let place = self.place(&fd, &path)?;
        allow(self.0, fits(&place, EntryPath::takes_directory))?;
        self.keep_making(&fd, place.as_ref().ok())?;
        let charge = self.entry()?;
        note(self.0, &fd, &path, WRITE, false);
        let change = self.naming(place.as_ref().ok())?;
        let made = self.wasi().create_directory_at(fd, path).await;
        settle(Some(charge), &made);
        made?;
        self.made(place.as_ref().ok(), change)
    }

    async fn symlink_at(&mut self, fd: Fd, old: String, new: String) -> FsResult<()> {
        let _alone = self.alone().await;
        self.may_change(&fd)?;
        self.learn_way(&fd, &new, PathFlags::empty())?;
        let place = self.place(&fd, &new)?;
        let old = place.as_ref().map_or(old.clone(), |place| place.kept_target(&old));
        allow(self.0, fits(&place, |place| place.takes_link(&old)))?;
        self.keep_making(&fd, place.as_ref().ok())?;
        let charge = self.entry()?;
        note(self.0, &fd, &new, WRITE, false);
        let change = self.naming(place.as_ref().ok())?;
        let made = self.wasi().symlink_at(fd, old, new).await;
        settle(Some(charge), &made);
        made?;
        self.made(place.as_ref().ok(), change)
    }

    async fn link_at(&mut self, fd: Fd, follow: PathFlags, old: String, to: Fd, new: String) -> FsResult<()> {
        let _alone = self.alone().await;
        self.may_change(&to)?;
        self.stays(&fd, &to)?;
        self.learn_way(&fd, &old, follow)?;
        self.learn_way(&to, &new, PathFlags::empty())?;
        // A second name of a link is a link, and may lead elsewhere from there.
        let (from, place) = (self.place(&fd, &old)?, self.place(&to, &new)?);
        allow(self.0, fits(&from, |from| fits(&place, |place| place.takes(from))))?;
        self.keep_linking(&to, (from.as_ref().ok(), place.as_ref().ok()))?;
        note(self.0, &to, &new, WRITE, false);
        let (charge, moving) = (self.entry()?, self.0.quota().moving());
        let change = self.linking(from.as_ref().ok(), place.as_ref().ok())?;
        let made = self.wasi().link_at(fd, follow, old, to, new).await;
        drop(moving);
        settle(Some(charge), &made);
        made?;
        self.changed(change)
    }

    async fn rename_at(&mut self, fd: Fd, old: String, to: Fd, new: String) -> FsResult<()> {
        self.may_change(&fd)?;
        self.may_change(&to)?;
        self.stays(&fd, &to)?;
        let _alone = self.alone().await;
        self.learn_way(&fd, &old, PathFlags::empty())?;
        self.learn_place(&to, &new)?;
        let (from, place) = (self.place(&fd, &old)?, self.place(&to, &new)?);
        allow(self.0, fits(&from, |from| fits(&place, |place| place.takes(from))))?;
        self.keep_moving((&fd, &to), (from.as_ref().ok(), place.as_ref().ok()))?;
        note(self.0, &fd, &old, WRITE, false);
        note(self.0, &to, &new, WRITE, false);
        let change = self.moving(from.as_ref().ok(), place.as_ref().ok())?;
        let moving = self.0.quota().moving();
        let moved = self.wasi().rename_at(fd, old, to, new).await;
        drop(moving);
        moved?;
        self.changed(change)
    }

    async fn unlink_file_at(&mut self, fd: Fd, path: String) -> FsResult<()> {
        self.may_change(&fd)?;
        // Nothing takes the file's place between the look at it and its end.
        let _alone = self.alone().await;
        self.learn_way(&fd, &path, PathFlags::empty())?;
        self.0.quota().settle();
        let place = self.place(&fd, &path)?.ok();
        note(self.0, &fd, &path, WRITE, false);
        let bytes = place.as_ref().and_then(EntryPath::file_bytes);
        let change = self.unnaming(place.as_ref())?;
        if !self.keep_removing(&fd, (&path, place.as_ref()))? {
            self.wasi().unlink_file_at(fd, path).await?;
        }
        self.changed(change)?;
        if let Some(bytes) = bytes {
            self.0.quota().credit_entry(bytes);
        }
        Ok(())
    }

    async fn remove_directory_at(&mut self, fd: Fd, path: String) -> FsResult<()> {
        self.may_change(&fd)?;
        let _alone = self.alone().await;
        self.learn_place(&fd, &path)?;
        self.learn_way(&fd, &path, PathFlags::empty())?;
        self.0.quota().settle();
        let place = self.place(&fd, &path)?.ok();
        self.keep_removing_dir(&fd, place.as_ref())?;
        note(self.0, &fd, &path, WRITE, false);
        let change = self.unnaming(place.as_ref())?;
        self.wasi().remove_directory_at(fd, path).await?;
        self.changed(change)?;
        self.0.quota().credit_entry(0);
        Ok(())
    }

    fn drop(&mut self, fd: Fd) -> wasmtime::Result<()> {
        HostDescriptor::drop(&mut self.wasi(), fd)
    }
}

/// The names in a directory as they are told: in their order, since that in the directory tells what was in it before.
struct Listing(std::vec::IntoIter<FsResult<DirectoryEntry>>);

impl Listing {
    fn of(mut entries: Vec<FsResult<DirectoryEntry>>) -> Self {
        entries.sort_by(|one, other| match (one, other) {
            (Ok(one), Ok(other)) => one.name.cmp(&other.name),
            (one, other) => one.is_err().cmp(&other.is_err()),
        });
        Self(entries.into_iter())
    }

    /// It is in the table in the place of wasmtime's own stream.
    fn handle(rep: u32) -> Resource<Self> {
        Resource::new_borrow(rep)
    }
}

impl<T: ChargedFiles> HostDirectoryEntryStream for Filesystem<'_, T> {
    async fn read_directory_entry(
        &mut self,
        stream: Resource<DirectoryEntryStream>,
    ) -> FsResult<Option<DirectoryEntry>> {
        self.0.ctx().table.get_mut(&Listing::handle(stream.rep()))?.0.next().transpose()
    }

    fn drop(&mut self, stream: Resource<DirectoryEntryStream>) -> wasmtime::Result<()> {
        self.0.ctx().table.delete(Resource::<Listing>::new_own(stream.rep()))?;
        Ok(())
    }
}
