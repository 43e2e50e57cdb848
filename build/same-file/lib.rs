//! The part of `same-file` that `walkdir` and `ignore` use.

use std::fs::File;
use std::hash::{Hash, Hasher};
use std::io;
use std::path::Path;

use rustix::fs::{Stat, fstat, stat};

/// A file that is open, by its device and its number there.
#[derive(Debug)]
pub struct Handle {
    file: File,
    id: (u64, u64),
}

impl PartialEq for Handle {
    fn eq(&self, other: &Handle) -> bool {
        self.id == other.id
    }
}

impl Eq for Handle {}

impl Hash for Handle {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

impl Handle {
    /// The file that a path leads to, through links.
    pub fn from_path(path: impl AsRef<Path>) -> io::Result<Handle> {
        Handle::from_file(File::open(path)?)
    }

    pub fn from_file(file: File) -> io::Result<Handle> {
        let id = id(&fstat(&file)?);
        Ok(Handle { file, id })
    }

    /// A handle owns its file, and WASI makes no second one of a standard stream.
    pub fn stdin() -> io::Result<Handle> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub fn stdout() -> io::Result<Handle> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub fn stderr() -> io::Result<Handle> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub fn as_file(&self) -> &File {
        &self.file
    }

    pub fn dev(&self) -> u64 {
        self.id.0
    }

    pub fn ino(&self) -> u64 {
        self.id.1
    }
}

// Of other widths on other systems.
#[allow(clippy::unnecessary_cast)]
fn id(found: &Stat) -> (u64, u64) {
    (found.st_dev as u64, found.st_ino as u64)
}

/// Whether two paths lead to the same file.
pub fn is_same_file(one: impl AsRef<Path>, other: impl AsRef<Path>) -> io::Result<bool> {
    Ok(id(&stat(one.as_ref())?) == id(&stat(other.as_ref())?))
}
