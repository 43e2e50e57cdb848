//! `wasi:filesystem` as guests have it: with a quota, undo and labels.
//!
//! Each function first keeps the old state ([`undoable`](super::undoable)), records whose work it is
//! ([`labelled`](super::labelled)), charges the quota, and then delegates to wasmtime. If wasmtime adds a function, this file
//! does not compile.

use super::asked::{again, fixed_attributes, of_slash};
use super::directory_use::READ;
use super::files::{ChargedFiles, Filesystem, control, note};
use super::labelled::{LabelledReads, LabelledWrites};
use super::listing::DirectoryListing;
use super::stream::{ChargedStream, LastingStream};
use std::marker::PhantomData;
use wasmtime::component::{HasData, Linker, Resource};
use wasmtime_wasi::filesystem::Descriptor;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    self, Advice, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntryStream, ErrorCode, Filesize, Host,
    HostDescriptor, MetadataHashValue, NewTimestamp, OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, FsError, FsResult};

pub(super) struct HasFilesystem<T>(PhantomData<fn() -> T>);

impl<T: ChargedFiles> HasData for HasFilesystem<T> {
    type Data<'a> = Filesystem<'a, T>;
}

/// Replaces wasmtime's own functions, which were added with the rest of WASI.
pub(crate) fn add_to_linker<T: ChargedFiles>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    types::add_to_linker::<T, HasFilesystem<T>>(linker, |ctx| Filesystem(ctx))?;
    linker.allow_shadowing(false);
    Ok(())
}

type Fd = Resource<Descriptor>;

/// Longest path in bytes, as in Linux. The engine lets a guest pass far longer ones.
const MAX_PATH: usize = 4_095;

/// Refuses a path that the system would refuse, before anything is made of it.
pub(super) fn check_path(path: &str) -> Result<(), ErrorCode> {
    if path.len() > MAX_PATH { Err(ErrorCode::NameTooLong) } else { Ok(()) }
}

impl<T: ChargedFiles> Filesystem<'_, T> {
    /// Charges the quota for a new entry.
    pub(super) fn entry(&self) -> FsResult<super::quota::Charge> {
        self.0.quota().entry().map_err(FsError::trap)
    }

    /// Charges the quota for bytes that are about to be written.
    fn bytes(&self, bytes: u64) -> FsResult<super::quota::Charge> {
        self.0.quota().write(bytes).map_err(FsError::trap)
    }

    /// The file's length; 0 if it is not known, which charges more, never less.
    fn size(&mut self, fd: &Fd) -> u64 {
        let file = self.file(fd).ok().flatten();
        file.and_then(|file| file.metadata().ok()).map_or(0, |found| found.len())
    }

    /// Locks all entries against changes by others.
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
        let inner = self.0.filesystem().table.delete(stream)?;
        let charged: DynOutputStream = Box::new(ChargedStream::new(inner, self.0.quota().clone(), hole, labelled));
        Ok(self.0.filesystem().table.push(charged)?)
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
            return Ok(self.0.filesystem().table.push(answer)?);
        }
        let stream = self.wasi().read_via_stream(again(&fd), offset)?;
        let inner = self.0.filesystem().table.delete(stream)?;
        let lasting: DynInputStream = Box::new(LastingStream(inner));
        let stream = self.0.filesystem().table.push(lasting)?;
        LabelledReads::wrap(self, &fd, stream)
    }

    async fn read(&mut self, fd: Fd, length: Filesize, offset: Filesize) -> FsResult<(Vec<u8>, bool)> {
        let look = self.look(&fd)?;
        let read = self.wasi().read(fd, length, offset).await;
        self.saw(look, |labels, at| labels.label_of(at));
        read
    }

    fn write_via_stream(&mut self, fd: Fd, offset: Filesize) -> FsResult<Resource<DynOutputStream>> {
        if let Some(control) = control(self.0, &fd).map_err(FsError::trap)? {
            let request = control.writes();
            return Ok(self.0.filesystem().table.push(request)?);
        }
        if self.is_null(&fd)? {
            return self.wasi().write_via_stream(fd, offset);
        }
        self.keep_bytes(&fd, false)?;
        // A stream that starts beyond the end of the file leaves a hole, which counts as bytes.
        let hole = if offset == 0 { 0 } else { offset.saturating_sub(self.size(&fd)) };
        let labelled = LabelledWrites::from_fd(self, &fd)?;
        let stream = self.wasi().write_via_stream(fd, offset)?;
        self.charged(stream, hole, labelled)
    }

    fn append_via_stream(&mut self, fd: Fd) -> FsResult<Resource<DynOutputStream>> {
        if self.is_null(&fd)? {
            return self.wasi().append_via_stream(fd);
        }
        self.keep_bytes(&fd, true)?;
        let labelled = LabelledWrites::from_fd(self, &fd)?;
        let stream = self.wasi().append_via_stream(fd)?;
        self.charged(stream, 0, labelled)
    }

    async fn write(&mut self, fd: Fd, bytes: Vec<u8>, offset: Filesize) -> FsResult<Filesize> {
        if self.is_null(&fd)? {
            return self.wasi().write(fd, bytes, offset).await;
        }
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
        if self.is_null(&fd)? {
            return Ok(());
        }
        self.keep_bytes(&fd, false)?;
        self.writing(&fd)?;
        let longer = new.saturating_sub(self.size(&fd));
        let charge = self.bytes(longer)?;
        let set = self.wasi().set_size(fd, new).await;
        drop(charge);
        set
    }

    async fn set_times(&mut self, fd: Fd, accessed: NewTimestamp, modified: NewTimestamp) -> FsResult<()> {
        if let Some(dir) = self.overlaid(&fd)?.filter(|dir| !dir.is_upper) {
            let _alone = self.alone().await;
            return self.set_times_overlaid(&dir, PathFlags::empty(), ".".to_owned(), (accessed, modified)).await;
        }
        if self.is_null(&fd)? {
            return Ok(());
        }
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
        check_path(&path)?;
        let _alone = self.alone().await;
        let follow = follow | of_slash(&path);
        match self.overlaid(&fd)? {
            Some(dir) => self.set_times_overlaid(&dir, follow, path, (accessed, modified)).await,
            None => self.set_times_here(fd, follow, path, accessed, modified).await,
        }
    }

    async fn stat(&mut self, fd: Fd) -> FsResult<DescriptorStat> {
        let look = self.look(&fd)?;
        let stat = self.wasi().stat(again(&fd)).await;
        match self.file(&fd)? {
            // For a directory, guests only learn that it is one.
            None => self.saw(look, |labels, at| labels.of_attributes(at)),
            Some(_) => self.saw_of_session(look, |labels, at| labels.of_attributes(at)),
        }
        Ok(fixed_attributes(stat?))
    }

    async fn stat_at(&mut self, fd: Fd, follow: PathFlags, path: String) -> FsResult<DescriptorStat> {
        check_path(&path)?;
        if let Some(null) = self.open_null(&fd, &path)? {
            let stat = self.stat(again(&null)).await;
            return self.leave(null, stat);
        }
        let follow = follow | of_slash(&path);
        match self.overlaid(&fd)? {
            Some(dir) => {
                let (fd, path) = self.look_overlaid(&dir, &path, follow)?;
                let stat = self.stat_here(again(&fd), PathFlags::empty(), path).await;
                self.leave(fd, stat)
            }
            None => self.stat_here(fd, follow, path).await,
        }
    }

    async fn metadata_hash_at(&mut self, fd: Fd, follow: PathFlags, path: String) -> FsResult<MetadataHashValue> {
        check_path(&path)?;
        match self.overlaid(&fd)? {
            Some(dir) => {
                let found = match self.look_overlaid(&dir, &path, PathFlags::SYMLINK_FOLLOW) {
                    Err(_) => self.look_overlaid(&dir, &path, follow),
                    found => found,
                };
                let (fd, path) = found?;
                let hash = self.metadata_hash_here(again(&fd), PathFlags::empty(), path).await;
                self.leave(fd, hash)
            }
            None => self.metadata_hash_here(fd, follow, path).await,
        }
    }

    async fn readlink_at(&mut self, fd: Fd, path: String) -> FsResult<String> {
        check_path(&path)?;
        match self.overlaid(&fd)? {
            Some(dir) => self.readlink_overlaid(&dir, &path),
            None => self.readlink_here(fd, path).await,
        }
    }

    async fn read_directory(&mut self, fd: Fd) -> FsResult<Resource<DirectoryEntryStream>> {
        // A listing holds all its names in the host's memory until it is dropped.
        let Some(slot) = self.0.listings().open() else { return Err(FsError::trap(self.0.listings_hit())) };
        note(self.0, &fd, ".", READ, true);
        let listing = match self.overlaid(&fd)? {
            Some(dir) => self.names_overlaid(&dir)?,
            None => {
                let look = self.look(&fd)?;
                let stream = self.wasi().read_directory(fd).await;
                self.saw_names(look);
                let stream = self.0.filesystem().table.delete(stream?)?;
                DirectoryListing::new(stream.into_iter().collect())
            }
        };
        let listing = self.0.filesystem().table.push(listing.with_slot(slot))?;
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
        check_path(&path)?;
        if let Some(null) = self.open_null(&fd, &path)? {
            return Ok(null);
        }
        let follow = follow | of_slash(&path);
        let changes = open.intersects(OpenFlags::CREATE | OpenFlags::TRUNCATE);
        let overlaid = self.overlaid(&fd)?;
        // Writing to a file of a folder copies it first.
        let copies = overlaid.is_some() && flags.contains(DescriptorFlags::WRITE);
        let _alone = if changes || copies { Some(self.alone().await) } else { None };
        match overlaid {
            Some(dir) => self.open_overlaid(&dir, (&path, follow), open, flags).await,
            None => self.open_here(fd, follow, path, open, flags).await,
        }
    }

    async fn create_directory_at(&mut self, fd: Fd, path: String) -> FsResult<()> {
        check_path(&path)?;
        let _alone = self.alone().await;
        match self.overlaid(&fd)? {
            Some(dir) => self.create_dir_overlaid(&dir, &path).await,
            None => self.create_dir_here(fd, path).await,
        }
    }

    async fn symlink_at(&mut self, fd: Fd, old: String, new: String) -> FsResult<()> {
        check_path(&old)?;
        check_path(&new)?;
        let _alone = self.alone().await;
        match self.overlaid(&fd)? {
            Some(dir) => self.symlink_overlaid(&dir, old, &new).await,
            None => self.symlink_here(fd, old, new).await,
        }
    }

    async fn link_at(&mut self, fd: Fd, follow: PathFlags, old: String, to: Fd, new: String) -> FsResult<()> {
        check_path(&old)?;
        check_path(&new)?;
        let _alone = self.alone().await;
        match self.both_overlaid(&fd, &to)? {
            Some((from, to)) => self.link_overlaid((&from, &old, follow), (&to, &new)).await,
            None => self.link_here(fd, follow, old, to, new).await,
        }
    }

    async fn rename_at(&mut self, fd: Fd, old: String, to: Fd, new: String) -> FsResult<()> {
        check_path(&old)?;
        check_path(&new)?;
        let _alone = self.alone().await;
        match self.both_overlaid(&fd, &to)? {
            Some((from, to)) => self.rename_overlaid((&from, &old), (&to, &new)).await,
            None => self.rename_here(fd, old, to, new).await,
        }
    }

    async fn unlink_file_at(&mut self, fd: Fd, path: String) -> FsResult<()> {
        check_path(&path)?;
        // Nobody replaces the file during the whole operation.
        let _alone = self.alone().await;
        match self.overlaid(&fd)? {
            Some(dir) => self.unlink_overlaid(&dir, &path).await,
            None => self.unlink_here(fd, path, true).await,
        }
    }

    async fn remove_directory_at(&mut self, fd: Fd, path: String) -> FsResult<()> {
        check_path(&path)?;
        let _alone = self.alone().await;
        match self.overlaid(&fd)? {
            Some(dir) => self.remove_dir_overlaid(&dir, &path).await,
            None => self.remove_dir_here(fd, path, true).await,
        }
    }

    fn drop(&mut self, fd: Fd) -> wasmtime::Result<()> {
        self.0.plain_dirs().remove(&fd.rep());
        HostDescriptor::drop(&mut self.wasi(), fd)
    }
}
