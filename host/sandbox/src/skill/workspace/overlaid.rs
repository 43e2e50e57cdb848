//! The same operations in a person's folder: each path is looked up in both layers, and the operation is done in the layer that
//! has the entry.

use super::asked::again;
use super::files::{ChargedFiles, Filesystem};
use super::listing::DirectoryListing;
use super::quota::{Charge, Quota};
use crate::effect::files::FileLabels;
use crate::effect::label::LabelId;
use crate::effect::overlay::{FileAccess, GuestPath, LayerWriter, OverlayDir, PendingEntry, PendingOpen};
use crate::effect::undo::{Transaction, UndoRefusal};
use crate::engine::limits::LimitHit;
use rustix::fs::{FileType, readlinkat};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use wasmtime::component::Resource;
use wasmtime_wasi::FsPerms;
use wasmtime_wasi::filesystem::{Descriptor, Dir, OpenMode};
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DescriptorFlags, DescriptorType, DirectoryEntry, ErrorCode, NewTimestamp, OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{FsError, FsResult};

type Fd = Resource<Descriptor>;

/// The reason why the upper layer of a folder was not changed.
#[derive(Debug)]
pub(crate) enum OverlayError {
    Io(io::Error),
    Undo(UndoRefusal),
    Limit(LimitHit),
}

impl From<io::Error> for OverlayError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<UndoRefusal> for OverlayError {
    fn from(refusal: UndoRefusal) -> Self {
        match refusal {
            UndoRefusal::Io(error) => Self::Io(error),
            other => Self::Undo(other),
        }
    }
}

impl LayerWriter for Arc<Quota> {
    type Error = OverlayError;
    type Charge = Charge;

    fn charge(&self, bytes: u64) -> Result<Charge, OverlayError> {
        let mut charge = self.entry().map_err(OverlayError::Limit)?;
        if bytes > 0 {
            charge.join(self.write(bytes).map_err(OverlayError::Limit)?);
        }
        Ok(charge)
    }

    fn transaction(&self) -> Option<&Arc<Transaction>> {
        Quota::transaction(self)
    }

    fn labels(&self) -> Option<&Arc<FileLabels>> {
        Quota::labels(self)
    }
}

fn follows(follow: PathFlags) -> bool {
    follow.contains(PathFlags::SYMLINK_FOLLOW)
}

fn guest_path<'a>(dir: &'a OverlayDir, path: &'a str, follows: bool) -> GuestPath<'a> {
    GuestPath { base: &dir.base, path: OsStr::new(path), follows }
}

/// Converts a name from a guest or a directory: guests' names are UTF-8.
fn text(name: OsString) -> FsResult<String> {
    name.into_string().map_err(|_| ErrorCode::IllegalByteSequence.into())
}

impl<T: ChargedFiles> Filesystem<'_, T> {
    /// The folder that contains the open directory.
    pub(super) fn overlaid(&mut self, fd: &Fd) -> FsResult<Option<OverlayDir>> {
        let Some(overlays) = self.0.overlays().filter(|overlays| !overlays.is_empty()).cloned() else {
            return Ok(None);
        };
        // A directory does not move into a folder or out of one, so one check is enough.
        if self.0.plain_dirs().contains(&fd.rep()) {
            return Ok(None);
        }
        let found = match self.0.filesystem().table.get(fd)? {
            Descriptor::Dir(dir) => overlays.find(&*dir.dir),
            Descriptor::File(_) => return Ok(None),
        };
        if found.is_none() {
            self.0.plain_dirs().insert(fd.rep());
        }
        Ok(found)
    }

    /// The folders of both directories of a link or a move. Both must be in the same folder, or in none.
    pub(super) fn both_overlaid(&mut self, from: &Fd, to: &Fd) -> FsResult<Option<(OverlayDir, OverlayDir)>> {
        match (self.overlaid(from)?, self.overlaid(to)?) {
            (None, None) => Ok(None),
            (Some(from), Some(to)) if Arc::ptr_eq(&from.overlay, &to.overlay) => Ok(Some((from, to))),
            _ => Err(ErrorCode::CrossDevice.into()),
        }
    }

    /// The same for a change.
    fn change_folder<V>(
        &mut self,
        dir: &OverlayDir,
        change: impl FnOnce(&Arc<Quota>, &mut LabelId) -> Result<V, OverlayError>,
    ) -> FsResult<V> {
        match dir.is_writable {
            true => self.in_folder(dir, change),
            false => Err(ErrorCode::ReadOnly.into()),
        }
    }

    /// Runs an operation in a folder, and joins the labels of what the guest has learned.
    fn in_folder<V, E>(
        &mut self,
        dir: &OverlayDir,
        operation: impl FnOnce(&Arc<Quota>, &mut LabelId) -> Result<V, E>,
    ) -> FsResult<V>
    where
        OverlayError: From<E>,
    {
        let quota = self.0.quota().clone();
        let mut moment = quota.labels().map(|labels| labels.now());
        let mut label = dir.overlay.label();
        let done = operation(&quota, &mut label);
        if dir.overlay.is_shared()
            && let Some(labels) = quota.labels()
        {
            labels.refresh_shared();
        }
        if let (Some(labels), Some(moment)) = (quota.labels(), &mut moment) {
            label = label.join(labels.since(moment));
        }
        self.0.label().join(label);
        done.map_err(|error| match OverlayError::from(error) {
            OverlayError::Io(error) => ErrorCode::from(error).into(),
            OverlayError::Undo(refusal) => self.refusal(refusal),
            OverlayError::Limit(hit) => FsError::trap(hit),
        })
    }

    /// A handle for an operation in one of the layers, until it is [left](Self::leave).
    fn handle(&mut self, dir: OwnedFd, is_upper: bool) -> FsResult<Fd> {
        let (perms, mode) = match is_upper {
            true => (FsPerms::ReadWrite, OpenMode::READ | OpenMode::WRITE),
            false => (FsPerms::ReadOnly, OpenMode::READ),
        };
        let dir = Dir::new(File::from(dir), perms, mode, self.0.blocks());
        Ok(self.0.filesystem().table.push(Descriptor::Dir(dir))?)
    }

    /// Drops such a handle, and returns the result of the operation.
    pub(super) fn leave<V>(&mut self, fd: Fd, done: FsResult<V>) -> FsResult<V> {
        self.0.plain_dirs().remove(&fd.rep());
        self.0.filesystem().table.delete(fd)?;
        done
    }

    /// The place of an entry for reading.
    pub(super) fn look_overlaid(&mut self, dir: &OverlayDir, path: &str, follow: PathFlags) -> FsResult<(Fd, String)> {
        let at = guest_path(dir, path, follows(follow));
        let slot =
            self.in_folder(dir, |quota, label| dir.overlay.look(at, Quota::labels(quota).map(Arc::as_ref), label))?;
        let name = text(slot.name)?;
        Ok((self.handle(slot.dir, slot.is_upper)?, name))
    }

    /// The target of a link, which may be anything in a person's folder.
    pub(super) fn readlink_overlaid(&mut self, dir: &OverlayDir, path: &str) -> FsResult<String> {
        let at = guest_path(dir, path, false);
        let target = self.in_folder(dir, |quota, label| {
            let labels = Quota::labels(quota).map(Arc::as_ref);
            let slot = dir.overlay.look(at, labels, label)?;
            *label = label.join(LabelId::session());
            if let Some(labels) = labels {
                *label = label.join(labels.of_entry(&slot.dir, &slot.name, false));
            }
            Ok::<_, io::Error>(readlinkat(&slot.dir, &slot.name, Vec::new())?)
        })?;
        target.into_string().map_err(|_| ErrorCode::IllegalByteSequence.into())
    }

    pub(super) fn names_overlaid(&mut self, dir: &OverlayDir) -> FsResult<DirectoryListing> {
        let names = self.in_folder(dir, |quota, label| {
            let names = dir.overlay.names(&dir.base);
            *label = label.join(LabelId::session());
            if let Some(labels) = Quota::labels(quota).filter(|labels| !labels.is_empty()) {
                *label = label.join(dir.overlay.label_of_names(&dir.base, labels)?);
            }
            names
        })?;
        let entry = |(name, kind): (OsString, FileType)| {
            // A guest cannot get a name that is not UTF-8.
            let name = name.into_string().ok()?;
            let type_ = match kind {
                FileType::Directory => DescriptorType::Directory,
                FileType::RegularFile => DescriptorType::RegularFile,
                FileType::Symlink => DescriptorType::SymbolicLink,
                FileType::Socket => DescriptorType::Socket,
                FileType::Fifo => DescriptorType::Fifo,
                FileType::BlockDevice => DescriptorType::BlockDevice,
                FileType::CharacterDevice => DescriptorType::CharacterDevice,
                _ => DescriptorType::Unknown,
            };
            Some(Ok(DirectoryEntry { type_, name }))
        };
        Ok(DirectoryListing::new(names.into_iter().filter_map(entry).collect()))
    }

    pub(super) async fn open_overlaid(
        &mut self,
        dir: &OverlayDir,
        (path, follow): (&str, PathFlags),
        open: OpenFlags,
        flags: DescriptorFlags,
    ) -> FsResult<Fd> {
        let at = guest_path(dir, path, follows(follow));
        let access = FileAccess {
            writes: flags.contains(DescriptorFlags::WRITE) || open.contains(OpenFlags::TRUNCATE),
            makes: open.contains(OpenFlags::CREATE),
            is_first: open.contains(OpenFlags::EXCLUSIVE),
            empties: open.contains(OpenFlags::TRUNCATE),
        };
        if (access.writes || access.makes) && !dir.is_writable {
            return Err(ErrorCode::ReadOnly.into());
        }
        let slot = self.in_folder(dir, |quota, label| dir.overlay.open_entry(at, access, quota, label))?;
        let none = PathFlags::empty();
        match slot {
            PendingOpen::Read(slot) => {
                // Only the folder has this directory; changes in it go to the upper layer.
                let flags = if slot.is_upper { flags } else { flags & DescriptorFlags::READ };
                let (fd, name) = (self.handle(slot.dir, slot.is_upper)?, text(slot.name)?);
                let opened = self
                    .open_here(again(&fd), none, name, open & (OpenFlags::DIRECTORY | OpenFlags::EXCLUSIVE), flags)
                    .await;
                self.leave(fd, opened)
            }
            PendingOpen::Write(entry) => {
                let (fd, name) = self.entry_handle(&entry)?;
                let opened = self.open_here(again(&fd), none, name, open, flags).await;
                self.in_folder(dir, |_, _| entry.finish(opened.is_ok()))?;
                self.leave(fd, opened)
            }
        }
    }

    /// A handle for the directory of an entry that is about to be made, and its name there.
    fn entry_handle(&mut self, entry: &PendingEntry<Arc<Quota>>) -> FsResult<(Fd, String)> {
        let name = text(entry.name().to_owned())?;
        Ok((self.handle(entry.dir().map_err(ErrorCode::from)?, true)?, name))
    }

    pub(super) async fn create_dir_overlaid(&mut self, dir: &OverlayDir, path: &str) -> FsResult<()> {
        let at = guest_path(dir, path, false);
        let entry = self.change_folder(dir, |quota, label| dir.overlay.make(at, quota, label))?;
        let (fd, name) = self.entry_handle(&entry)?;
        let made = self.create_dir_here(again(&fd), name).await;
        let finished = self.in_folder(dir, |_, _| entry.finish(made.is_ok()));
        self.leave(fd, made.and(finished))
    }

    pub(super) async fn symlink_overlaid(&mut self, dir: &OverlayDir, old: String, new: &str) -> FsResult<()> {
        let at = guest_path(dir, new, false);
        let entry = self.change_folder(dir, |quota, label| dir.overlay.make(at, quota, label))?;
        let (fd, name) = self.entry_handle(&entry)?;
        let made = self.symlink_here(again(&fd), old, name).await;
        let finished = self.in_folder(dir, |_, _| entry.finish(made.is_ok()));
        self.leave(fd, made.and(finished))
    }

    pub(super) async fn link_overlaid(
        &mut self,
        (from, old, follow): (&OverlayDir, &str, PathFlags),
        (to, new): (&OverlayDir, &str),
    ) -> FsResult<()> {
        let source = guest_path(from, old, follows(follow));
        let source = self.change_folder(from, |quota, label| from.overlay.link_from(source, quota, label))?;
        let at = guest_path(to, new, false);
        let entry = self.change_folder(to, |quota, label| to.overlay.make(at, quota, label))?;
        let old = text(source.name)?;
        let (to_fd, new) = self.entry_handle(&entry)?;
        let fd = self.handle(source.dir, true)?;
        let made = self.link_here(again(&fd), PathFlags::empty(), old, again(&to_fd), new).await;
        let finished = self.in_folder(to, |_, _| entry.finish(made.is_ok()));
        let done = self.leave(fd, made.and(finished));
        self.leave(to_fd, done)
    }

    pub(super) async fn rename_overlaid(
        &mut self,
        (from, old): (&OverlayDir, &str),
        (to, new): (&OverlayDir, &str),
    ) -> FsResult<()> {
        let (source, target) = (guest_path(from, old, false), guest_path(to, new, false));
        let pending = self.change_folder(from, |quota, label| from.overlay.move_to(source, target, quota, label))?;
        let Some(pending) = pending else { return Ok(()) };
        let ((source, old), (target, new)) =
            (pending.from().map_err(ErrorCode::from)?, pending.to().map_err(ErrorCode::from)?);
        let (old, new) = (text(old)?, text(new)?);
        let (fd, to_fd) = (self.handle(source, true)?, self.handle(target, true)?);
        let moved = self.rename_here(again(&fd), old, again(&to_fd), new).await;
        let finished = self.in_folder(from, |_, _| pending.finish(moved.is_ok()));
        let done = self.leave(fd, moved.and(finished));
        self.leave(to_fd, done)
    }

    pub(super) async fn unlink_overlaid(&mut self, dir: &OverlayDir, path: &str) -> FsResult<()> {
        let is_dir = path.ends_with('/') || path.ends_with("/.");
        if is_dir {
            return Err(ErrorCode::NotDirectory.into());
        }
        let at = guest_path(dir, path, false);
        let slot = self.change_folder(dir, |quota, label| dir.overlay.unlink(at, quota, label))?;
        let (fd, name) = (self.handle(slot.dir.try_clone().map_err(ErrorCode::from)?, true)?, text(slot.name.clone())?);
        let gone = self.unlink_here(again(&fd), name, slot.is_upper).await;
        let finished = match gone {
            Ok(()) => self.in_folder(dir, |quota, _| dir.overlay.removed(&slot, quota)),
            failed => failed,
        };
        self.leave(fd, finished)
    }

    pub(super) async fn remove_dir_overlaid(&mut self, dir: &OverlayDir, path: &str) -> FsResult<()> {
        let path = path.trim_end_matches('/');
        let at = guest_path(dir, path, false);
        let slot = self.change_folder(dir, |quota, label| dir.overlay.remove_dir(at, quota, label))?;
        let (fd, name) = (self.handle(slot.dir.try_clone().map_err(ErrorCode::from)?, true)?, text(slot.name.clone())?);
        let gone = self.remove_dir_here(again(&fd), name, slot.is_upper).await;
        let finished = match gone {
            Ok(()) => self.in_folder(dir, |quota, _| dir.overlay.removed(&slot, quota)),
            failed => failed,
        };
        self.leave(fd, finished)
    }

    pub(super) async fn set_times_overlaid(
        &mut self,
        dir: &OverlayDir,
        follow: PathFlags,
        path: String,
        (accessed, modified): (NewTimestamp, NewTimestamp),
    ) -> FsResult<()> {
        let at = guest_path(dir, &path, follows(follow));
        let slot = self.change_folder(dir, |quota, label| dir.overlay.change(at, quota, label))?;
        let (fd, name) = (self.handle(slot.dir, true)?, text(slot.name)?);
        let set = self.set_times_here(again(&fd), PathFlags::empty(), name, accessed, modified).await;
        self.leave(fd, set)
    }
}

/// A path from the root of the merged tree.
pub(crate) fn from_root(path: &Path) -> GuestPath<'_> {
    GuestPath { base: Path::new(""), path: path.as_os_str(), follows: true }
}
