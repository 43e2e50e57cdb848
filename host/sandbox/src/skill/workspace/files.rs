//! The data that a guest's store must have so that it can write to a workspace.

use super::control::ControlFile;
use super::directory_use::DirectoryUse;
use super::open_listings::Listings;
use super::quota::Quota;
use super::running::RunningOperations;
use super::structure::Roots;
use crate::effect::label::LabelCell;
use crate::effect::overlay::Overlays;
use crate::effect::published::PublishedFiles;
use crate::effect::sink::MountSink;
use crate::engine::limits::{Budget, HitCell, LimitHit};
use std::collections::HashSet;
use std::fs::File;
use std::sync::{Arc, Mutex, PoisonError};
use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::{Descriptor, WasiFilesystemCtxView, WasiFilesystemView};

/// A store's data whose file access is charged to a quota.
pub trait ChargedFiles: WasiFilesystemView + 'static {
    /// The quota for writes.
    fn quota(&self) -> &Arc<Quota>;

    /// The label of everything that the guest has read.
    fn label(&self) -> &LabelCell;

    /// The directory listings that are open.
    fn listings(&self) -> &Listings;

    /// Handles of directories that are outside of all folders.
    fn plain_dirs(&mut self) -> &mut HashSet<u32>;

    /// Records that the limit of directories that are listed at once was reached.
    fn listings_hit(&self) -> LimitHit;

    /// Whether the guest may change a directory or a file outside of the session, given the data that it has read.
    fn may_change(&self, _at: &File) -> bool {
        true
    }

    /// The mount of a file outside of the session.
    fn machine(&self, _at: &File) -> Option<MountSink> {
        None
    }

    /// The labels of Agent Skills' files; `None` if the guest does not see them.
    fn published(&self) -> Option<&PublishedFiles> {
        None
    }

    /// The folders among the guest's directories. Their changes are kept separately.
    fn overlays(&self) -> Option<&Overlays> {
        None
    }

    /// Whether file operations may block the thread of the guest.
    fn blocks(&self) -> bool {
        false
    }

    /// The directories that the guest sees.
    fn roots(&self) -> &Roots;

    /// The file through which the guest requests commands; `None` if it cannot, or has another way.
    fn control(&mut self) -> Option<&mut ControlFile> {
        None
    }

    /// The record of the directories that the guest uses; `None` if it is not needed.
    fn touched(&self) -> Option<&Arc<Mutex<DirectoryUse>>> {
        None
    }
}

/// A store's data whose file operations can run apart from the store, as those of WASI 0.3 do. For these,
/// [`ChargedFiles::may_change`] and [`ChargedFiles::machine`] are the defaults: such a guest sees no directory outside of the session.
pub trait DetachedFiles: ChargedFiles {
    /// The limits of the guest, and where a limit that was reached is recorded.
    fn limits(&self) -> (&Budget, &HitCell);

    /// The operations on files that are under way.
    fn operations(&self) -> &RunningOperations;

    /// Takes the file through which the guest requests commands, until it is put back.
    fn take_control(&mut self) -> Option<ControlFile>;

    fn put_control(&mut self, control: Option<ControlFile>);
}

/// The host's side of `wasi:filesystem/types` for the guest with this data.
pub(super) struct Filesystem<'a, T>(pub &'a mut T);

impl<T: ChargedFiles> Filesystem<'_, T> {
    /// wasmtime's own implementation.
    pub(super) fn wasi(&mut self) -> WasiFilesystemCtxView<'_> {
        self.0.filesystem()
    }
}

/// Records a guest's operation at a path that begins in one of its directories, if a record is kept.
pub(super) fn note<T: ChargedFiles>(ctx: &mut T, fd: &Resource<Descriptor>, path: &str, how: &str, is_dir: bool) {
    let Some(touched) = ctx.touched().cloned() else { return };
    let Ok(Descriptor::Dir(dir)) = ctx.filesystem().table.get(fd) else { return };
    touched.lock().unwrap_or_else(PoisonError::into_inner).note(&dir.dir, path, how, is_dir);
}

/// The guest's control file, if this handle is one.
pub(super) fn control<'a, T: ChargedFiles>(
    ctx: &'a mut T,
    fd: &Resource<Descriptor>,
) -> wasmtime::Result<Option<&'a mut ControlFile>> {
    if ctx.control().is_none() {
        return Ok(None);
    }
    let Descriptor::File(file) = ctx.filesystem().table.get(fd)? else { return Ok(None) };
    let file = file.file.clone();
    Ok(ctx.control().filter(|control| control.is(&file)))
}
