//! The directories of a session's folders, for its quota.

use super::UPPER;
use super::accept::ACCEPTED;
use std::path::{Path, PathBuf};

/// The directories of one folder.
#[derive(Debug)]
pub(crate) struct FolderDirs {
    /// Guests write to it.
    pub(crate) upper: PathBuf,
    /// Files of the person that were replaced or deleted, which no guest sees.
    pub(crate) accepted: PathBuf,
}

impl FolderDirs {
    /// The directories of all folders of a session, which are in this directory. `None` if it is missing.
    pub(crate) fn all(folders: &Path) -> Vec<Self> {
        let entries = std::fs::read_dir(folders).into_iter().flatten().flatten();
        entries
            .map(|entry| FolderDirs { upper: entry.path().join(UPPER), accepted: entry.path().join(ACCEPTED) })
            .collect()
    }
}
