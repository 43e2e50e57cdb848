//! A path that an undo changes, in words for people.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The change of a path by an undo.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum UndoVerb {
    /// It is deleted.
    Delete,
    /// It is there again.
    Create,
    /// It has its content again.
    Restore,
}

impl UndoVerb {
    pub fn name(self) -> &'static str {
        match self {
            Self::Delete => "delete",
            Self::Create => "create",
            Self::Restore => "restore",
        }
    }

    pub(super) fn opposite(self) -> Self {
        match self {
            Self::Delete => Self::Create,
            Self::Create => Self::Delete,
            Self::Restore => Self::Restore,
        }
    }
}

/// A path that would change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangeLine {
    /// Below the workspace, or in an opened folder or the shared files as tasks see it.
    pub path: String,
    pub change: UndoVerb,
}
