//! Helpers of the file system functions: resolving a guest's path, checking it, and converting results.

use super::files::ChargedFiles;
use super::quota::Charge;
use super::structure::{EntryPath, PlaceError};
use crate::engine::limits::LimitHit;
use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::{Descriptor, WasiFilesystemView};
use wasmtime_wasi::p2::bindings::filesystem::types::{DescriptorType, ErrorCode, HostDescriptor, PathFlags};
use wasmtime_wasi::p2::{FsError, FsResult};

/// Returns whether a guest may open this kind of file: it must never block.
pub(super) fn is_plain(kind: DescriptorType) -> bool {
    matches!(kind, DescriptorType::RegularFile | DescriptorType::Directory | DescriptorType::SymbolicLink)
}

/// A slash at the end asks for what a link leads to, and so does a dot behind it.
pub(super) fn of_slash(path: &str) -> PathFlags {
    if path.ends_with('/') || path.ends_with("/.") { PathFlags::SYMLINK_FOLLOW } else { PathFlags::empty() }
}

/// Whether something is there that was not to be.
pub(super) fn is_there(error: &FsError) -> bool {
    error.downcast_ref().is_some_and(|code| *code == ErrorCode::Exist)
}

/// Where a path leads to; the outer error ends the call.
pub(super) fn place<T: ChargedFiles>(
    ctx: &mut T,
    fd: &Resource<Descriptor>,
    path: &str,
) -> wasmtime::Result<Result<EntryPath, PlaceError>> {
    let Descriptor::Dir(dir) = ctx.ctx().table.get(fd)? else { return Ok(Err(PlaceError::Io)) };
    let dir = dir.dir.clone();
    Ok(EntryPath::find(&dir, path, ctx.roots()))
}

/// Runs a check on a resolved place, or returns the error that kept it from being resolved.
pub(super) fn fits(
    place: &Result<EntryPath, PlaceError>,
    takes: impl FnOnce(&EntryPath) -> Result<(), PlaceError>,
) -> Result<(), PlaceError> {
    match place {
        Ok(place) => takes(place),
        Err(error) => Err(*error),
    }
}

/// Returns the error for the guest if a place is not allowed. `None` if it is, or if the operation itself will fail with the error.
pub(super) fn refused<T: ChargedFiles>(ctx: &T, fits: Result<(), PlaceError>) -> Result<Option<ErrorCode>, LimitHit> {
    match fits {
        Ok(()) | Err(PlaceError::Io) => Ok(None),
        Err(PlaceError::Outside) => Ok(Some(ErrorCode::NotPermitted)),
        Err(PlaceError::TooDeep) => Err(ctx.quota().too_deep()),
    }
}

/// Settles the charge for an entry by whether it was made.
pub(super) fn made<V>(charge: Option<Charge>, result: &FsResult<V>) {
    match (charge, result) {
        (Some(charge), Err(_)) => charge.give_back(),
        (charge, _) => drop(charge),
    }
}

/// A second handle for the same descriptor, because delegating consumes the first.
pub(super) fn fd_of(fd: &Resource<Descriptor>) -> Resource<Descriptor> {
    Resource::new_borrow(fd.rep())
}

/// Turns an error for the guest into a value, and leaves an error that ends the call an error.
pub(super) fn answer<T>(result: FsResult<T>) -> wasmtime::Result<(Result<T, ErrorCode>,)> {
    match result {
        Ok(value) => Ok((Ok(value),)),
        Err(error) => Ok((Err(error.downcast()?),)),
    }
}

/// The file's length; 0 where it cannot be told, which charges more, never less.
pub(super) async fn size<T: ChargedFiles>(ctx: &mut T, fd: &Resource<Descriptor>) -> u64 {
    ctx.filesystem().stat(fd_of(fd)).await.map_or(0, |stat| stat.size)
}
