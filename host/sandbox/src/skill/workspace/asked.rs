//! The checks of a path before a file system function delegates, and the end of a charge after it.

use super::files::{ChargedFiles, Filesystem};
use super::quota::Charge;
use super::structure::{EntryPath, PlaceError};
use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::Descriptor;
use wasmtime_wasi::p2::bindings::filesystem::types::{DescriptorStat, DescriptorType, ErrorCode, PathFlags};
use wasmtime_wasi::p2::{FsError, FsResult};

/// Returns whether a guest may open this kind of file: it must never block.
pub(super) fn is_plain(kind: DescriptorType) -> bool {
    matches!(kind, DescriptorType::RegularFile | DescriptorType::Directory | DescriptorType::SymbolicLink)
}

/// A slash at the end means the target of a link, and so does a dot after the slash.
pub(super) fn of_slash(path: &str) -> PathFlags {
    if path.ends_with('/') || path.ends_with("/.") { PathFlags::SYMLINK_FOLLOW } else { PathFlags::empty() }
}

/// Whether the error says that an entry exists that must not.
pub(super) fn is_there(error: &FsError) -> bool {
    error.downcast_ref().is_some_and(|code| *code == ErrorCode::Exist)
}

impl<T: ChargedFiles> Filesystem<'_, T> {
    /// The target of a path.
    pub(super) fn place(&mut self, fd: &Resource<Descriptor>, path: &str) -> FsResult<Result<EntryPath, PlaceError>> {
        let Descriptor::Dir(dir) = self.0.filesystem().table.get(fd)? else { return Ok(Err(PlaceError::Io)) };
        let dir = dir.dir.clone();
        Ok(EntryPath::find(&dir, path, self.0.roots()))
    }
}

/// Runs a check on a resolved place, or returns the error of resolving it.
pub(super) fn fits(
    place: &Result<EntryPath, PlaceError>,
    takes: impl FnOnce(&EntryPath) -> Result<(), PlaceError>,
) -> Result<(), PlaceError> {
    match place {
        Ok(place) => takes(place),
        Err(error) => Err(*error),
    }
}

/// Fails if a place is not allowed. Passes if the operation itself will fail with the error.
pub(super) fn allow<T: ChargedFiles>(ctx: &T, fits: Result<(), PlaceError>) -> FsResult<()> {
    match fits {
        Ok(()) | Err(PlaceError::Io) => Ok(()),
        Err(PlaceError::Outside) => Err(ErrorCode::NotPermitted.into()),
        Err(PlaceError::TooDeep) => Err(FsError::trap(ctx.quota().too_deep())),
    }
}

/// Settles the charge for an entry, depending on whether it was made.
pub(super) fn settle<V>(charge: Option<Charge>, result: &FsResult<V>) {
    match (charge, result) {
        (Some(charge), Err(_)) => charge.give_back(),
        (charge, _) => drop(charge),
    }
}

/// A second handle for the same descriptor, because delegating consumes the first.
pub(super) fn again(fd: &Resource<Descriptor>) -> Resource<Descriptor> {
    Resource::new_borrow(fd.rep())
}

/// The size of every directory, for guests. The real size would show how many names it ever had.
const DIRECTORY_BYTES: u64 = 4 << 10;

/// The attributes of a file or directory as guests see them.
pub(super) fn fixed_attributes(mut stat: DescriptorStat) -> DescriptorStat {
    if stat.type_ == DescriptorType::Directory {
        (stat.size, stat.link_count) = (DIRECTORY_BYTES, 1);
    }
    stat
}
