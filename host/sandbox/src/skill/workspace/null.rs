//! `/dev/null`, the only device that every guest can open. Its writes go nowhere, so they are not charged, kept or labelled.

use super::files::{ChargedFiles, Filesystem};
use super::structure::DirId;
use std::fs::{File, OpenOptions};
use std::sync::{Arc, LazyLock};
use wasmtime::component::Resource;
use wasmtime_wasi::FsPerms;
use wasmtime_wasi::filesystem::{self, Descriptor, OpenMode};
use wasmtime_wasi::p2::FsResult;

/// The machine's own device, opened once for all guests; `None` on a machine that lacks it.
static NULL: LazyLock<Option<filesystem::File>> = LazyLock::new(|| {
    let file = OpenOptions::new().read(true).write(true).open("/dev/null").ok()?;
    // It never blocks.
    Some(filesystem::File::new(file, FsPerms::ReadWrite, OpenMode::READ | OpenMode::WRITE, true))
});

/// Whether this open file is the device.
pub(super) fn is_null(file: &Arc<File>) -> bool {
    NULL.as_ref().is_some_and(|null| Arc::ptr_eq(&null.file, file))
}

impl<T: ChargedFiles> Filesystem<'_, T> {
    /// Whether a descriptor is the device.
    pub(super) fn is_null(&mut self, fd: &Resource<Descriptor>) -> FsResult<bool> {
        Ok(matches!(self.0.filesystem().table.get(fd)?, Descriptor::File(file) if is_null(&file.file)))
    }

    /// Opens the device, if a path from one of the guest's directories leads to it.
    pub(super) fn open_null(
        &mut self,
        fd: &Resource<Descriptor>,
        path: &str,
    ) -> FsResult<Option<Resource<Descriptor>>> {
        let at = match path {
            "dev/null" => "/",
            "null" => "/dev",
            _ => return Ok(None),
        };
        let Descriptor::Dir(dir) = self.0.filesystem().table.get(fd)? else { return Ok(None) };
        let id = DirId::from_fd(&*dir.dir)?;
        if !self.0.roots().iter().any(|root| root.at == at && root.id == id) {
            return Ok(None);
        }
        let Some(null) = NULL.as_ref() else { return Ok(None) };
        Ok(Some(self.0.filesystem().table.push(Descriptor::File(null.clone()))?))
    }
}
