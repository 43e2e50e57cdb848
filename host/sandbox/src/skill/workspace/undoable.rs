//! Keeps the old state of the workspace before a change, if the work can be undone.

use super::files::{ChargedFiles, Filesystem};
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
use wasmtime_wasi::p2::{FsError, FsResult};

/// Links that a path may lead through.
const MAX_LINKS: usize = 16;

type Fd = Resource<Descriptor>;

impl<T: ChargedFiles> Filesystem<'_, T> {
    /// The transaction of this guest's work.
    fn work(&self) -> Option<Arc<Transaction>> {
        self.0.quota().transaction().cloned()
    }

    /// A directory of the guest that it may change.
    fn writable(&mut self, fd: &Fd) -> FsResult<Option<Arc<File>>> {
        Ok(match self.0.filesystem().table.get(fd)? {
            Descriptor::Dir(dir) if !dir.perms.write_not_permitted() => Some(dir.dir.clone()),
            _ => None,
        })
    }

    /// Records that bytes are about to be written: anywhere in the file, or at its end.
    pub(super) fn keep_bytes(&mut self, fd: &Fd, adds: bool) -> FsResult<()> {
        let Some(work) = self.work() else { return Ok(()) };
        let file = match self.0.filesystem().table.get(fd)? {
            Descriptor::File(file) if !file.perms.write_not_permitted() => file.file.clone(),
            _ => return Ok(()),
        };
        // Its position, which only its end can tell.
        self.kept(work.writing_behind(&file, adds))
    }

    /// Records that a file is about to be opened, and perhaps made or emptied.
    pub(super) fn keep_opening(
        &mut self,
        fd: &Fd,
        (path, follows, open): (&str, bool, OpenFlags),
    ) -> FsResult<Opening> {
        if !open.intersects(OpenFlags::CREATE | OpenFlags::TRUNCATE) {
            return Ok(Opening::Plain);
        }
        let (Some(work), Some(dir)) = (self.work(), self.writable(fd)?) else { return Ok(Opening::Plain) };
        work.busy(&dir);
        match target(&dir, path, follows) {
            Some((dir, name)) => {
                let opening = work.opening(&dir, &name, open.contains(OpenFlags::TRUNCATE));
                self.kept(opening)
            }
            // The later call that opens it returns the same error.
            None => Ok(Opening::Plain),
        }
    }

    /// Records that the file was opened and is new.
    pub(super) fn keep_made(&mut self, fd: &Fd) {
        let Some(work) = self.work() else { return };
        if let Ok(Descriptor::File(file)) = self.0.filesystem().table.get(fd) {
            work.opened(&file.file);
        }
    }

    /// Records that a directory or a link is about to be made.
    pub(super) fn keep_making(&mut self, fd: &Fd, at: Option<&EntryPath>) -> FsResult<()> {
        let (Some(work), Some(at), Some(dir)) = (self.work(), at, self.writable(fd)?) else { return Ok(()) };
        work.busy(&dir);
        let (dir, name) = at.slot();
        self.kept(work.making(dir, name))
    }

    /// Records that a file is about to get a further name.
    pub(super) fn keep_linking(
        &mut self,
        fd: &Fd,
        (from, to): (Option<&EntryPath>, Option<&EntryPath>),
    ) -> FsResult<()> {
        let (Some(work), Some(from), Some(to)) = (self.work(), from, to) else { return Ok(()) };
        let Some(dir) = self.writable(fd)? else { return Ok(()) };
        work.busy(&dir);
        self.kept(work.linking(from.slot().0, to.slot()))
    }

    /// Records that an entry is about to be moved.
    pub(super) fn keep_moving(
        &mut self,
        (from_fd, to_fd): (&Fd, &Fd),
        (from, to): (Option<&EntryPath>, Option<&EntryPath>),
    ) -> FsResult<()> {
        let (Some(work), Some(from), Some(to)) = (self.work(), from, to) else { return Ok(()) };
        let (Some(old), Some(_)) = (self.writable(from_fd)?, self.writable(to_fd)?) else { return Ok(()) };
        work.busy(&old);
        self.kept(work.moving(from.slot(), to.slot()))
    }

    /// Records that a file or a link is about to be deleted. Returns whether it is gone already.
    pub(super) fn keep_removing(&mut self, fd: &Fd, (path, at): (&str, Option<&EntryPath>)) -> FsResult<bool> {
        let (Some(work), Some(at), Some(dir)) = (self.work(), at, self.writable(fd)?) else { return Ok(false) };
        // A path of this form names a directory, so nothing is deleted.
        if path.ends_with('/') || path.ends_with("/.") {
            return Ok(false);
        }
        work.busy(&dir);
        let (dir, name) = at.slot();
        Ok(self.kept(work.removing(dir, name))? == RemovedEntry::Done)
    }

    /// Records that a directory is about to be deleted, if it is empty.
    pub(super) fn keep_removing_dir(&mut self, fd: &Fd, at: Option<&EntryPath>) -> FsResult<()> {
        let (Some(work), Some(at), Some(dir)) = (self.work(), at, self.writable(fd)?) else { return Ok(()) };
        work.busy(&dir);
        let (dir, name) = at.slot();
        self.kept(work.removing_dir(dir, name))
    }

    /// Converts the refusal of a change to an error for the guest.
    fn kept<V>(&self, kept: Result<V, UndoRefusal>) -> FsResult<V> {
        kept.map_err(|refusal| self.refusal(refusal))
    }

    pub(super) fn refusal(&self, refusal: UndoRefusal) -> FsError {
        match refusal {
            UndoRefusal::TooLarge(why) => FsError::trap(self.0.quota().not_undoable(&why)),
            UndoRefusal::Across => ErrorCode::CrossDevice.into(),
            UndoRefusal::Io(error) => code(&error).into(),
        }
    }
}

/// The directory in which a file is opened or made, with its name there; `None` if it is not known.
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
