//! Permission bits of files, which WASI has no functions for.

use std::io;
use std::path::Path;

/// The permission bits of what stands at a path, or of the link itself unless it `follows`.
pub fn get(path: &Path, follows: bool) -> io::Result<u32> {
    system::get(path, follows)
}

/// Sets those of a file; a link is followed. The host has the last word: it can always read and write the file, and nobody else write it.
pub fn set(path: &Path, bits: u32) -> io::Result<()> {
    system::set(path, bits)
}

#[cfg(target_os = "wasi")]
mod system {
    use crate::spawn::{self, Errno};
    use std::io;
    use std::path::{Component, Path, PathBuf};

    pub fn get(path: &Path, follows: bool) -> io::Result<u32> {
        spawn::permissions(&absolute(path)?, follows).map_err(error)
    }

    pub fn set(path: &Path, bits: u32) -> io::Result<()> {
        spawn::set_permissions(&absolute(path)?, bits).map_err(error)
    }

    /// The host goes by the letters of a path, so what leads up is followed first.
    fn absolute(path: &Path) -> io::Result<String> {
        let path = std::path::absolute(path)?;
        let path = match (path.parent(), path.file_name()) {
            _ if !path.components().any(|part| part == Component::ParentDir) => path,
            (Some(parent), Some(name)) => std::fs::canonicalize(parent)?.join(name),
            _ => std::fs::canonicalize(&path)?,
        };
        PathBuf::into_os_string(path).into_string().map_err(|_| io::ErrorKind::InvalidFilename.into())
    }

    fn error(errno: Errno) -> io::Error {
        io::Error::from(match errno {
            Errno::NotFound => io::ErrorKind::NotFound,
            Errno::NotADirectory => io::ErrorKind::NotADirectory,
            Errno::ReadOnly => io::ErrorKind::ReadOnlyFilesystem,
            Errno::Denied | Errno::NotPlain => io::ErrorKind::PermissionDenied,
            Errno::NameTooLong | Errno::Invalid => io::ErrorKind::InvalidInput,
            _ => io::ErrorKind::Other,
        })
    }
}

/// Where commands are tested.
#[cfg(unix)]
mod system {
    use std::fs::{self, Permissions};
    use std::io;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    pub fn get(path: &Path, follows: bool) -> io::Result<u32> {
        let found = if follows { fs::metadata(path) } else { fs::symlink_metadata(path) };
        Ok(found?.permissions().mode() & 0o777)
    }

    pub fn set(path: &Path, bits: u32) -> io::Result<()> {
        fs::set_permissions(path, Permissions::from_mode(bits))
    }
}
