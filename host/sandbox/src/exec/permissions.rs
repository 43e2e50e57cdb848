//! Permission bits of files, which WASI does not have.

use super::channel::IoError;
use super::dirs::{Dirs, MountPoint};
use super::errno::Errno;
use crate::effect::label::{LabelCell, LabelId};
use crate::effect::overlay::GuestPath;
use crate::effect::sink::{MountSink, Permit};
use crate::skill::sandbox::{Quota, from_root};
use cap_std::fs::{Dir, Metadata, OpenOptions, OpenOptionsExt, PermissionsExt};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;

/// The permissions of every directory.
const OF_DIRECTORY: u32 = 0o755;

/// The permissions of every link.
const OF_LINK: u32 = 0o777;

/// Permissions that files may be given. The host itself must be able to read and write them, and nobody else may change them.
const SETTABLE: u32 = 0o755;
const ALWAYS: u32 = 0o600;

/// The write permissions.
const WRITE: u32 = 0o222;

impl Dirs {
    /// Returns the permission bits of the entry at an absolute path.
    pub(super) fn permissions(
        &self,
        (path, follows): (&str, bool),
        quota: &Quota,
        reader: &LabelCell,
    ) -> Result<u32, IoError> {
        let Some((mounted, mut relative)) = self.inside(path)? else { return Ok(OF_DIRECTORY) };
        let (mut follows, mut dir) = (follows, mounted.dir.try_clone()?);
        let mut look = quota.labels().map(|labels| (labels, labels.now()));
        if let Some(overlay) = &mounted.overlay {
            let mut label = overlay.label();
            let at = GuestPath { follows, ..from_root(&relative) };
            let slot = overlay.look(at, quota.labels().map(|labels| &**labels), &mut label);
            reader.join(label);
            let slot = slot?;
            (dir, relative, follows) = (Dir::from_std_file(slot.dir.into()), slot.name.into(), false);
        }
        let base = dir.try_clone()?.into_std_file();
        let found = match follows {
            true => dir.metadata(&relative),
            false => dir.symlink_metadata(&relative),
        };
        let published = self.published().of_entry(&base, &relative.to_string_lossy());
        reader.join(published.join(LabelId::session()));
        if let Some((labels, moment)) = &mut look {
            reader.join(labels.of_entry(&base, relative.as_os_str(), follows).join(labels.since(moment)));
        }
        Ok(bits(&found?, mounted))
    }

    /// Sets the permission bits of a file.
    pub(super) fn set_permissions(
        &self,
        (path, bits): (&str, u32),
        quota: &Arc<Quota>,
        (writer, permit): (&LabelCell, &Permit),
    ) -> Result<(), IoError> {
        // A process that changes a file learns that it exists.
        self.permissions((path, true), quota, writer)?;
        let Some((mounted, mut relative)) = self.inside(path)? else { return Ok(()) };
        if !mounted.write {
            return Err(Errno::ReadOnly.into());
        }
        let mut dir = mounted.dir.try_clone()?;
        if let Some(overlay) = &mounted.overlay {
            let mut label = overlay.label();
            let slot = overlay.change(from_root(&relative), quota, &mut label);
            writer.join(label);
            let slot = slot.map_err(|error| IoError::of_overlay(error, quota))?;
            (dir, relative) = (Dir::from_std_file(slot.dir.into()), slot.name.into());
        }
        // `NONBLOCK`: a pipe that a person left there would block the call.
        let nonblock = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0);
        let file = dir.open_with(&relative, OpenOptions::new().read(true).custom_flags(nonblock))?.into_std();
        let found = file.metadata()?;
        if found.is_dir() {
            return Ok(());
        }
        if !found.is_file() {
            return Err(Errno::NotPlain.into());
        }
        let label = writer.get();
        let machine = mounted.is_of_machine().then(|| MountSink::new(&mounted.at, permit.clone()));
        if machine.is_some_and(|machine| !machine.admits(label)) {
            return Err(Errno::Denied.into());
        }
        if let Some(labels) = quota.labels() {
            labels.attributing(&file, label)?;
        }
        if let Some(work) = quota.transaction() {
            work.permitting(&file).map_err(|refusal| IoError::of_undo(refusal, quota))?;
        }
        Ok(file.set_permissions(Permissions::from_mode(bits & SETTABLE | ALWAYS))?)
    }

    /// The directory that has a path, with the path below it; `None` for one of these directories itself.
    fn inside(&self, path: &str) -> Result<Option<(&MountPoint, PathBuf)>, IoError> {
        match self.find(path) {
            Err(IoError::Errno(Errno::IsADirectory)) => Ok(None),
            found => found.map(Some),
        }
    }
}

fn bits(found: &Metadata, mounted: &MountPoint) -> u32 {
    let bits = match found.file_type() {
        kind if kind.is_symlink() => return OF_LINK,
        kind if kind.is_dir() => OF_DIRECTORY,
        _ => found.permissions().mode() & 0o777,
    };
    if mounted.write { bits } else { bits & !WRITE }
}
