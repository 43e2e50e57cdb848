//! `wasi:filesystem` of WASI 0.3, as a view of that of 0.2: each function converts its arguments, calls the function of 0.2 in
//! [`filesystem`](super::filesystem), and converts the result. There is no rule here.

mod convert;
mod listing;

use self::convert::{advice, code, descriptor_flags, flags, kind, open_flags, path_flags, stat, time, trappable};
use self::listing::ListingSource;
use super::detached::DetachedOperation;
use super::files::{DetachedFiles, Filesystem};
use super::filesystem::{HasFilesystem, check_path};
use super::running::RunningChange;
use crate::engine::stream::{end, readable, unreadable, unwritable, written};
use std::sync::Arc;
use tokio::sync::oneshot;
use wasmtime::component::{Access, Accessor, FutureReader, Linker, Resource, StreamReader};
use wasmtime_wasi::filesystem::{Descriptor, WasiFilesystem};
use wasmtime_wasi::p2::bindings::filesystem::types as earlier;
use wasmtime_wasi::p2::bindings::filesystem::types::HostDescriptor as _;
use wasmtime_wasi::p2::{FsError, FsResult};
use wasmtime_wasi::p3::bindings::filesystem::preopens;
use wasmtime_wasi::p3::bindings::filesystem::types::{
    self, Advice, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntry, ErrorCode, Filesize,
    MetadataHashValue, NewTimestamp, OpenFlags, PathFlags,
};
use wasmtime_wasi::p3::filesystem::{FilesystemError, FilesystemResult};

/// Replaces wasmtime's own functions, which were added with the rest of WASI 0.3.
pub(crate) fn add_to_linker<T: DetachedFiles>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    types::add_to_linker::<T, HasFilesystem<T>>(linker, |ctx| Filesystem(ctx))?;
    preopens::add_to_linker::<T, WasiFilesystem>(linker, T::filesystem)?;
    linker.allow_shadowing(false);
    Ok(())
}

type Fd = Resource<Descriptor>;
type Guest<T> = Accessor<T, HasFilesystem<T>>;
type Ended = FutureReader<Result<(), ErrorCode>>;

/// An operation on descriptors of the guest. The paths are checked first, because hundreds of operations may wait with theirs.
async fn detach<T: DetachedFiles, const N: usize, const P: usize>(
    guest: &Guest<T>,
    fds: [&Fd; N],
    paths: [&str; P],
) -> FilesystemResult<(DetachedOperation, [Fd; N])> {
    paths.into_iter().try_for_each(check_path).map_err(code)?;
    let operations = guest.with(|mut access| access.get().0.operations().clone());
    let place = operations.place().await.map_err(FilesystemError::trap)?;
    let (operation, fds) =
        guest.with(|mut access| DetachedOperation::new(access.get().0, fds)).map_err(FilesystemError::trap)?;
    Ok((operation.with_place(place), fds))
}

/// Runs an operation that changes something to its end, even if the guest cancels its call: what is written about a change in the record
/// of undo and in the labels is written around it.
async fn change<V: Send + 'static>(
    running: Option<RunningChange>,
    operation: impl Future<Output = FsResult<V>> + Send + 'static,
) -> FilesystemResult<V> {
    let Some(running) = running else { return Err(FilesystemError::trap(wasmtime::format_err!("the call has ended"))) };
    let change = tokio::spawn(async move {
        let _running = running;
        operation.await
    });
    match change.await {
        Ok(done) => done.map_err(trappable),
        Err(panic) => Err(FilesystemError::trap(wasmtime::format_err!("an operation on files failed: {panic}"))),
    }
}

/// The stream that a function of 0.2 has opened.
fn opened<T: DetachedFiles, S: 'static>(
    filesystem: &mut Filesystem<'_, T>,
    stream: FsResult<Resource<S>>,
) -> wasmtime::Result<Result<S, ErrorCode>> {
    let stream = stream.and_then(|stream| Ok(filesystem.wasi().table.delete(stream)?));
    match stream {
        Ok(stream) => Ok(Ok(stream)),
        Err(error) => Ok(Err(code(error.downcast()?))),
    }
}

impl<T: DetachedFiles> types::Host for Filesystem<'_, T> {
    fn convert_error_code(&mut self, error: FilesystemError) -> wasmtime::Result<ErrorCode> {
        error.downcast()
    }
}

impl<T: DetachedFiles> types::HostDescriptor for Filesystem<'_, T> {
    fn drop(&mut self, fd: Fd) -> wasmtime::Result<()> {
        earlier::HostDescriptor::drop(self, fd)
    }
}

impl<T: DetachedFiles> types::HostDescriptorWithStore<T> for HasFilesystem<T> {
    fn read_via_stream(
        mut store: Access<'_, T, Self>,
        fd: Fd,
        offset: Filesize,
    ) -> wasmtime::Result<(StreamReader<u8>, Ended)> {
        let mut filesystem = store.get();
        let (stream, operations) = (filesystem.read_via_stream(fd, offset), filesystem.0.operations().clone());
        match opened(&mut filesystem, stream)? {
            Ok(stream) => readable(&mut store, stream, Some(Arc::new(operations))),
            Err(error) => unreadable(&mut store, error),
        }
    }

    fn write_via_stream(
        mut store: Access<'_, T, Self>,
        fd: Fd,
        data: StreamReader<u8>,
        offset: Filesize,
    ) -> wasmtime::Result<Ended> {
        let mut filesystem = store.get();
        let (stream, operations) = (filesystem.write_via_stream(fd, offset), filesystem.0.operations().clone());
        match opened(&mut filesystem, stream)? {
            Ok(stream) => written(&mut store, data, stream, Some(Arc::new(operations))),
            Err(error) => unwritable(&mut store, data, error),
        }
    }

    fn append_via_stream(mut store: Access<'_, T, Self>, fd: Fd, data: StreamReader<u8>) -> wasmtime::Result<Ended> {
        let mut filesystem = store.get();
        let (stream, operations) = (filesystem.append_via_stream(fd), filesystem.0.operations().clone());
        match opened(&mut filesystem, stream)? {
            Ok(stream) => written(&mut store, data, stream, Some(Arc::new(operations))),
            Err(error) => unwritable(&mut store, data, error),
        }
    }

    fn read_directory(
        mut store: Access<'_, T, Self>,
        fd: Fd,
    ) -> wasmtime::Result<(StreamReader<DirectoryEntry>, Ended)> {
        let (operation, [fd]) = DetachedOperation::new(store.get().0, [&fd])?;
        let (sender, receiver) = oneshot::channel();
        let source = ListingSource::new(operation, fd, sender);
        Ok((StreamReader::new(&mut store, source)?, end(&mut store, receiver)?))
    }

    async fn advise(
        guest: &Guest<T>,
        fd: Fd,
        offset: Filesize,
        length: Filesize,
        wanted: Advice,
    ) -> FilesystemResult<()> {
        let (mut operation, [fd]) = detach(guest, [&fd], []).await?;
        operation.filesystem().advise(fd, offset, length, advice(wanted)).await.map_err(trappable)
    }

    async fn sync_data(guest: &Guest<T>, fd: Fd) -> FilesystemResult<()> {
        let (mut operation, [fd]) = detach(guest, [&fd], []).await?;
        operation.filesystem().sync_data(fd).await.map_err(trappable)
    }

    async fn sync(guest: &Guest<T>, fd: Fd) -> FilesystemResult<()> {
        let (mut operation, [fd]) = detach(guest, [&fd], []).await?;
        operation.control = guest.with(|mut access| access.get().0.take_control());
        let done = operation.filesystem().sync(fd).await;
        let control = operation.control.take();
        if control.is_some() {
            guest.with(|mut access| access.get().0.put_control(control));
        }
        done.map_err(trappable)
    }

    async fn get_flags(guest: &Guest<T>, fd: Fd) -> FilesystemResult<DescriptorFlags> {
        let (mut operation, [fd]) = detach(guest, [&fd], []).await?;
        operation.filesystem().get_flags(fd).await.map(flags).map_err(trappable)
    }

    async fn get_type(guest: &Guest<T>, fd: Fd) -> FilesystemResult<DescriptorType> {
        let (mut operation, [fd]) = detach(guest, [&fd], []).await?;
        operation.filesystem().get_type(fd).await.map(kind).map_err(trappable)
    }

    async fn set_size(guest: &Guest<T>, fd: Fd, size: Filesize) -> FilesystemResult<()> {
        let (mut operation, [fd]) = detach(guest, [&fd], []).await?;
        change(operation.begin(), async move { operation.filesystem().set_size(fd, size).await }).await
    }

    async fn set_times(
        guest: &Guest<T>,
        fd: Fd,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> FilesystemResult<()> {
        let (mut operation, [fd]) = detach(guest, [&fd], []).await?;
        let (accessed, modified) = (time(accessed)?, time(modified)?);
        change(operation.begin(), async move { operation.filesystem().set_times(fd, accessed, modified).await }).await
    }

    async fn create_directory_at(guest: &Guest<T>, fd: Fd, path: String) -> FilesystemResult<()> {
        let (mut operation, [fd]) = detach(guest, [&fd], [&path]).await?;
        change(operation.begin(), async move { operation.filesystem().create_directory_at(fd, path).await }).await
    }

    async fn stat(guest: &Guest<T>, fd: Fd) -> FilesystemResult<DescriptorStat> {
        let (mut operation, [fd]) = detach(guest, [&fd], []).await?;
        operation.filesystem().stat(fd).await.map(stat).map_err(trappable)
    }

    async fn stat_at(guest: &Guest<T>, fd: Fd, follow: PathFlags, path: String) -> FilesystemResult<DescriptorStat> {
        let (mut operation, [fd]) = detach(guest, [&fd], [&path]).await?;
        operation.filesystem().stat_at(fd, path_flags(follow), path).await.map(stat).map_err(trappable)
    }

    async fn set_times_at(
        guest: &Guest<T>,
        fd: Fd,
        follow: PathFlags,
        path: String,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> FilesystemResult<()> {
        let (mut operation, [fd]) = detach(guest, [&fd], [&path]).await?;
        let (accessed, modified) = (time(accessed)?, time(modified)?);
        let follow = path_flags(follow);
        change(operation.begin(), async move {
            operation.filesystem().set_times_at(fd, follow, path, accessed, modified).await
        })
        .await
    }

    async fn link_at(
        guest: &Guest<T>,
        fd: Fd,
        follow: PathFlags,
        old: String,
        to: Fd,
        new: String,
    ) -> FilesystemResult<()> {
        let (mut operation, [fd, to]) = detach(guest, [&fd, &to], [&old, &new]).await?;
        change(
            operation.begin(),
            async move { operation.filesystem().link_at(fd, path_flags(follow), old, to, new).await },
        )
        .await
    }

    async fn open_at(
        guest: &Guest<T>,
        fd: Fd,
        follow: PathFlags,
        path: String,
        open: OpenFlags,
        flags: DescriptorFlags,
    ) -> FilesystemResult<Fd> {
        let (mut operation, [fd]) = detach(guest, [&fd], [&path]).await?;
        let (follow, open, flags) = (path_flags(follow), open_flags(open), descriptor_flags(flags));
        let opened = change(operation.begin(), async move {
            let opened = operation.filesystem().open_at(fd, follow, path, open, flags).await?;
            operation.take(opened).map_err(FsError::trap)
        });
        let opened = opened.await?;
        Ok(guest.with(|mut access| access.get().wasi().table.push(opened))?)
    }

    async fn readlink_at(guest: &Guest<T>, fd: Fd, path: String) -> FilesystemResult<String> {
        let (mut operation, [fd]) = detach(guest, [&fd], [&path]).await?;
        operation.filesystem().readlink_at(fd, path).await.map_err(trappable)
    }

    async fn remove_directory_at(guest: &Guest<T>, fd: Fd, path: String) -> FilesystemResult<()> {
        let (mut operation, [fd]) = detach(guest, [&fd], [&path]).await?;
        change(operation.begin(), async move { operation.filesystem().remove_directory_at(fd, path).await }).await
    }

    async fn rename_at(guest: &Guest<T>, fd: Fd, old: String, to: Fd, new: String) -> FilesystemResult<()> {
        let (mut operation, [fd, to]) = detach(guest, [&fd, &to], [&old, &new]).await?;
        change(operation.begin(), async move { operation.filesystem().rename_at(fd, old, to, new).await }).await
    }

    async fn symlink_at(guest: &Guest<T>, fd: Fd, old: String, new: String) -> FilesystemResult<()> {
        let (mut operation, [fd]) = detach(guest, [&fd], [&old, &new]).await?;
        change(operation.begin(), async move { operation.filesystem().symlink_at(fd, old, new).await }).await
    }

    async fn unlink_file_at(guest: &Guest<T>, fd: Fd, path: String) -> FilesystemResult<()> {
        let (mut operation, [fd]) = detach(guest, [&fd], [&path]).await?;
        change(operation.begin(), async move { operation.filesystem().unlink_file_at(fd, path).await }).await
    }

    async fn is_same_object(guest: &Guest<T>, fd: Fd, other: Fd) -> wasmtime::Result<bool> {
        let operation = guest.with(|mut access| DetachedOperation::new(access.get().0, [&fd, &other]));
        let (mut operation, [fd, other]) = operation?;
        operation.filesystem().is_same_object(fd, other).await
    }

    async fn metadata_hash(guest: &Guest<T>, fd: Fd) -> FilesystemResult<MetadataHashValue> {
        let (mut operation, [fd]) = detach(guest, [&fd], []).await?;
        let hash = operation.filesystem().metadata_hash(fd).await.map_err(trappable)?;
        Ok(MetadataHashValue { lower: hash.lower, upper: hash.upper })
    }

    async fn metadata_hash_at(
        guest: &Guest<T>,
        fd: Fd,
        follow: PathFlags,
        path: String,
    ) -> FilesystemResult<MetadataHashValue> {
        let (mut operation, [fd]) = detach(guest, [&fd], [&path]).await?;
        let hash = operation.filesystem().metadata_hash_at(fd, path_flags(follow), path).await.map_err(trappable)?;
        Ok(MetadataHashValue { lower: hash.lower, upper: hash.upper })
    }
}
