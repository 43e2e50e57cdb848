//! Which file a connection has: another process may have put one in its place, as a takeover in a fleet and `kiso restore` do, and a
//! conversation that outlives that would go on with what nobody else sees any more.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rusqlite::Connection;

use super::{StoreError, connect};

/// How often a file is opened that is replaced each time.
const TRIES: u32 = 8;

/// A file, whatever its name is. While somebody has it open, no other one has the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// Of what is at `path`, if something is.
    pub(super) fn of(path: &Path) -> Option<FileId> {
        let found = std::fs::metadata(path).ok()?;
        Some(FileId { device: found.dev(), inode: found.ino() })
    }
}

/// Opens what is at `path`, and says which file that is.
pub(super) fn connect_file(path: &Path) -> Result<(Connection, FileId), StoreError> {
    for _ in 0..TRIES {
        let before = FileId::of(path);
        let conn = connect(path)?;
        if let Some(file) = before.filter(|before| FileId::of(path) == Some(*before)) {
            return Ok((conn, file));
        }
    }
    let detail = "it is replaced again and again".to_owned();
    Err(StoreError::CannotOpen { path: path.to_path_buf(), detail })
}
