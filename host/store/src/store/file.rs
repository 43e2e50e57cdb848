//! Identifies a connection's file: another process may have replaced the file, such as a takeover in a fleet or `kiso restore`,
//! and an older connection would continue with a file that nobody else sees.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rusqlite::Connection;

use super::{StoreError, connect};

/// Maximum attempts to open a file that is replaced each time.
const TRIES: u32 = 8;

/// Identifies a file independently of its name. It is unique while the file is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// Returns the id of the file at `path`, if there is one.
    pub(super) fn from_path(path: &Path) -> Option<FileId> {
        let found = std::fs::metadata(path).ok()?;
        Some(FileId { device: found.dev(), inode: found.ino() })
    }
}

/// Opens the file at `path`, and returns the connection with the file's id.
pub(super) fn connect_file(path: &Path) -> Result<(Connection, FileId), StoreError> {
    for _ in 0..TRIES {
        let before = FileId::from_path(path);
        let conn = connect(path)?;
        if let Some(file) = before.filter(|before| FileId::from_path(path) == Some(*before)) {
            return Ok((conn, file));
        }
    }
    let detail = "it is replaced again and again".to_owned();
    Err(StoreError::CannotOpen { path: path.to_path_buf(), detail })
}
