//! The entries of a log: the work that it belongs to, each change before it is made, and the state at its end. Each is a line of
//! JSON.

use super::bytes::SessionPath;
use super::line::ChangeLine;
use kiso_plan::label::Label;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The way in which the changes of a log are taken back: an undo, or a redo.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum UndoKind {
    Undo,
    Redo,
}

impl UndoKind {
    pub fn opposite(self) -> Self {
        match self {
            Self::Undo => Self::Redo,
            Self::Redo => Self::Undo,
        }
    }

    pub fn participle(self) -> &'static str {
        match self {
            Self::Undo => "undone",
            Self::Redo => "redone",
        }
    }
}

impl fmt::Display for UndoKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Undo => "undo",
            Self::Redo => "redo",
        })
    }
}

/// The work that a log belongs to: a task of a run, or one of its calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    pub run: String,
    /// The number of the task, counted from 1 in the order of execution.
    pub task: usize,
    /// The last event before it.
    pub seq: u32,
    /// The number of the call among those that are made together.
    pub place: usize,
}

/// The first line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Whether the log can be used for an undo or a redo.
    pub kind: UndoKind,
    /// One origin, or all that an undo took back.
    pub of: Vec<Origin>,
    /// Milliseconds since 1970.
    pub at_ms: i64,
    /// For an undo, the logs that it takes back. They are not needed after its end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<u64>,
}

impl Header {
    pub fn of_work(origin: Origin) -> Self {
        Self { kind: UndoKind::Undo, of: vec![origin], at_ms: kiso_base::clock::now_ms(), targets: Vec::new() }
    }

    pub fn of_undo(kind: UndoKind, of: Vec<Origin>, targets: Vec<u64>) -> Self {
        Self { kind, of, at_ms: kiso_base::clock::now_ms(), targets }
    }
}

/// The state of a path before a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FileChange {
    /// Nothing was here.
    Made { at: SessionPath },
    /// A file or a link was here, which is kept.
    Removed { at: SessionPath, kept: SessionPath },
    /// An empty directory was here.
    RemovedDir { at: SessionPath, mode: u32 },
    /// The earlier entry is now at `to`.
    Moved { from: SessionPath, to: SessionPath },
    /// Nothing was here; an undo put a kept entry here.
    Returned { at: SessionPath, from: SessionPath },
    /// This file had the kept content.
    Wrote { at: SessionPath, inode: u64, kept: SessionPath },
    /// This file had this length, and data was added. Its last change was then, in nanoseconds since 1970. The label is that of
    /// the earlier data, if it is not the session's own.
    Grew {
        at: SessionPath,
        inode: u64,
        length: u64,
        modified: i64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        label: Option<Label>,
    },
    /// This file had these permissions.
    Permitted { at: SessionPath, inode: u64, mode: u32 },
    /// Changes to shared files that were accepted, or taken back. The paths are in the words of an undo.
    Shared { number: u64, accepted: bool, paths: Vec<ChangeLine> },
}

impl FileChange {
    /// The paths of the change, in the workspace.
    pub(super) fn paths(&self) -> impl Iterator<Item = &SessionPath> {
        let (one, two) = match self {
            Self::Shared { .. } => (None, None),
            Self::Moved { from, to } => (Some(from), Some(to)),
            Self::Made { at }
            | Self::Removed { at, .. }
            | Self::RemovedDir { at, .. }
            | Self::Returned { at, .. }
            | Self::Wrote { at, .. }
            | Self::Grew { at, .. }
            | Self::Permitted { at, .. } => (Some(at), None),
        };
        one.into_iter().chain(two).filter(|path| path.is_work())
    }
}

/// The state of a path, from its metadata.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Look {
    Nothing,
    File {
        inode: u64,
        bytes: u64,
        /// Nanoseconds since 1970.
        modified: i64,
        mode: u32,
        /// The number of its names. Another name may come or go without a change of this one.
        #[serde(skip)]
        links: u64,
    },
    /// A link, or an entry that is neither file nor directory.
    Other {
        inode: u64,
    },
    Dir {
        inode: u64,
        mode: u32,
    },
}

/// The labels of an entry before a change, if they were not the session's own: the change's own entry, or one above it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryLabels {
    pub at: SessionPath,
    pub label: Label,
    /// The label of those who had replaced earlier entries.
    #[serde(default, skip_serializing_if = "Label::is_default")]
    pub displaced: Label,
}

/// A change, with the labels of the entries before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LabelledChange {
    pub change: FileChange,
    pub entries: Vec<EntryLabels>,
}

/// A changed file of which nothing is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostFile {
    pub at: SessionPath,
    pub why: String,
}

/// A line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum UndoRecord {
    Begin(Header),
    /// The labels for the next change.
    Entries(Vec<EntryLabels>),
    FileChange(FileChange),
    /// The work is about to reach something outside of the sandbox.
    Left(String),
    Lost(LostFile),
    /// The change of this number and all later ones are taken back.
    Reverted(usize),
    /// The states at the end.
    After(Vec<(SessionPath, Look)>),
    /// The last line, which is short: the totals of the log.
    End(Total),
}

/// The totals of a log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Total {
    pub changes: usize,
    pub lost: usize,
    /// The bytes that are kept.
    pub bytes: u64,
}
