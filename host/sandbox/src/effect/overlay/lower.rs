//! The folder itself, opened only for reading. No path leads out of it, and no path leads through a link.

use kiso_base::system::{open_beneath, path_of};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, readlinkat, statat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

/// The flags for opening directories. A link is an error.
pub(super) const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A person's folder.
#[derive(Debug)]
pub(super) struct Lower {
    root: OwnedFd,
    /// Without links, as the system names it.
    path: PathBuf,
}

impl Lower {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let root = rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let path = path_of(&root)?;
        Ok(Self { root, path })
    }

    pub(super) fn root(&self) -> &OwnedFd {
        &self.root
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a directory of the folder.
    pub(super) fn open_dir(&self, path: &Path) -> io::Result<OwnedFd> {
        if path.as_os_str().is_empty() {
            return self.root.try_clone();
        }
        open_beneath(&self.root, path, DIRECTORY)
    }

    /// The attributes of an entry of the folder.
    pub(super) fn stat(&self, path: &Path) -> io::Result<Option<Stat>> {
        let (parent, Some(name)) = (path.parent().unwrap_or(Path::new("")), path.file_name()) else {
            return Ok(Some(rustix::fs::fstat(&self.root)?));
        };
        match self.open_dir(parent) {
            Ok(dir) => stat_at(&dir, name),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens a regular file of the folder for reading.
    pub(super) fn open_file(&self, path: &Path) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(open_beneath(&self.root, path, flags)?);
        match file.metadata()?.is_file() {
            true => Ok(file),
            false => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// The target of a link of the folder.
    pub(super) fn read_link(&self, path: &Path) -> io::Result<Vec<u8>> {
        let dir = self.open_dir(path.parent().unwrap_or(Path::new("")))?;
        Ok(readlinkat(dir, path.file_name().unwrap_or_default(), Vec::new())?.into_bytes())
    }
}

/// The attributes of an entry. `None` if there is none.
pub(super) fn stat_at(dir: impl AsFd, name: &OsStr) -> io::Result<Option<Stat>> {
    match statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => Ok(Some(found)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Whether an error says that nothing is at a path that contains no link.
pub(super) fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        || matches!(Errno::from_io_error(error), Some(Errno::LOOP | Errno::NAMETOOLONG))
}

pub(super) fn kind(found: &Stat) -> FileType {
    FileType::from_raw_mode(found.st_mode)
}

pub(super) fn is_dir(found: &Stat) -> bool {
    kind(found) == FileType::Directory
}

/// The error for an entry that does not exist.
pub(super) fn missing() -> io::Error {
    io::ErrorKind::NotFound.into()
}
