//! The steps of an acceptance.

use super::super::base::FileState;
use crate::effect::undo::SessionPath;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;

/// A step in the folder. The numbers are names in the staging directory, which is on the folder's file system.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum AcceptStep {
    /// Moves an entry from its old place to the staging directory.
    TakeOut {
        from: SessionPath,
        staged: u64,
        before: FileState,
    },
    /// Moves an entry from the staging directory to its new place.
    Place {
        staged: u64,
        path: SessionPath,
        inode: u64,
    },
    /// Moves an entry that is deleted to the staging directory, where it is kept.
    Remove {
        path: SessionPath,
        kept: u64,
        before: FileState,
    },
    MakeDir {
        path: SessionPath,
        mode: u32,
    },
    /// Puts a staged file or link in the place of the present one, which is kept.
    Put {
        path: SessionPath,
        new: u64,
        inode: u64,
        kept: u64,
        before: Option<FileState>,
        /// Whether it has only a part of the changes; then the upper layer keeps the file.
        #[serde(default)]
        is_part: bool,
    },
}

impl AcceptStep {
    /// The entry of the folder that it changes.
    pub(super) fn path(&self) -> &SessionPath {
        match self {
            Self::TakeOut { from: path, .. }
            | Self::Place { path, .. }
            | Self::Remove { path, .. }
            | Self::MakeDir { path, .. }
            | Self::Put { path, .. } => path,
        }
    }
}

impl AcceptStep {
    /// The state of the entry that the step needs. `None` if it needs that there is none.
    pub(super) fn before(&self) -> Option<FileState> {
        match self {
            Self::TakeOut { before, .. } | Self::Remove { before, .. } => Some(*before),
            Self::Put { before, .. } => *before,
            Self::Place { .. } | Self::MakeDir { .. } => None,
        }
    }
}

/// A number as a name in the staging directory.
pub(super) fn staged_name(number: u64) -> OsString {
    number.to_string().into()
}
