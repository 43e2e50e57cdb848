//! The difference between a folder and what a session has made of it.

use super::lower::kind;
use kiso_plan::label::Label;
use kiso_plan::report::size;
use rustix::fs::{FileType, Stat};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

/// All that a session has changed in a folder, by path.
#[derive(Debug, Clone, Default)]
pub struct FolderDifference {
    pub changes: Vec<FolderChange>,
    /// Files of the upper layer that are as in the folder, by inode, and where the folder has them. A new file may be a further name of one.
    pub(super) unchanged: BTreeMap<u64, PathBuf>,
}

/// The changes that are meant.
#[derive(Debug, Clone, Default)]
pub enum FolderSelection {
    #[default]
    All,
    /// These paths below the folder, with everything in them.
    Paths(Vec<PathBuf>),
    /// The changes of these paths alone.
    Exact(BTreeSet<PathBuf>),
}

impl FolderSelection {
    pub fn contains(&self, change: &FolderChange) -> bool {
        match self {
            Self::All => true,
            Self::Exact(paths) => paths.contains(&change.path),
            Self::Paths(paths) => paths.iter().any(|path| {
                change.path.starts_with(path) || change.moved_from().is_some_and(|from| from.starts_with(path))
            }),
        }
    }
}

/// Deleted files that need no look at them.
const FEW_DELETIONS: u64 = 10;

impl FolderDifference {
    /// The changes that nobody need look at: no collision, no text from outside, and no deletions if these are more than a few files. `None`
    /// if there are none.
    pub fn harmless(&self) -> Option<FolderSelection> {
        let deleted: u64 = self.changes.iter().map(|change| change.files).sum();
        let colliding: Vec<&PathBuf> =
            self.changes.iter().filter(|change| change.collision.is_some()).map(|change| &change.path).collect();
        let is_harmless = |change: &&FolderChange| {
            let is_deletion = change.is_deletion() && (deleted > FEW_DELETIONS || change.is_secret);
            !colliding.iter().any(|path| change.path.starts_with(path)) && !change.is_marked() && !is_deletion
        };
        let paths: BTreeSet<PathBuf> =
            self.changes.iter().filter(is_harmless).map(|change| change.path.clone()).collect();
        match paths.len() {
            0 => None,
            count if count == self.changes.len() => Some(FolderSelection::All),
            _ => Some(FolderSelection::Exact(paths)),
        }
    }
}

/// A change of one entry.
#[derive(Debug, Clone)]
pub struct FolderChange {
    /// Below the folder.
    pub path: PathBuf,
    pub kind: FolderChangeKind,
    /// The entry of the folder, and that of the session.
    pub before: Option<EntryLook>,
    pub after: Option<EntryLook>,
    /// Files that go with a directory that is deleted.
    pub files: u64,
    /// Who decided on it, and whose words are in it.
    pub label: Label,
    /// Whether credentials are kept in it, so that its content is not shown.
    pub is_secret: bool,
    /// The entry of the folder: in a directory that was moved, another path than the change's own.
    pub(super) lower: Option<PathBuf>,
    /// Why it cannot be accepted: the folder has changed since.
    pub collision: Option<&'static str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FolderChangeKind {
    Added,
    /// Its content or its permissions.
    Changed,
    Deleted,
    /// From this path of the folder, with everything in it.
    Moved(PathBuf),
}

/// The attributes of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryLook {
    pub kind: EntryKind,
    /// 0 for a directory.
    pub bytes: u64,
    pub mode: u32,
    pub(super) inode: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    File,
    Directory,
    Link,
}

impl EntryLook {
    // Of other types on other systems.
    #[allow(clippy::useless_conversion, clippy::unnecessary_cast)]
    pub(super) fn from_stat(stat: &Stat) -> Self {
        let kind = match kind(stat) {
            FileType::Directory => EntryKind::Directory,
            FileType::Symlink => EntryKind::Link,
            _ => EntryKind::File,
        };
        let bytes = if kind == EntryKind::Directory { 0 } else { u64::try_from(stat.st_size).unwrap_or(0) };
        Self { kind, bytes, mode: u32::from(stat.st_mode) & 0o7777, inode: stat.st_ino as u64 }
    }

    pub fn is_dir(&self) -> bool {
        self.kind == EntryKind::Directory
    }
}

/// A letter as git has it, the path, and what else there is to know.
impl fmt::Display for FolderChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_dir = self.after.or(self.before).is_some_and(|look| look.is_dir());
        let path = format!("{}{}", self.path.display(), if is_dir { "/" } else { "" });
        let size_of =
            |look: Option<EntryLook>| look.filter(|look| look.kind == EntryKind::File).map(|look| size(look.bytes));
        let mut notes = Vec::new();
        match (&self.kind, size_of(self.before), size_of(self.after)) {
            (FolderChangeKind::Changed, Some(before), Some(after)) if before != after => {
                notes.push(format!("{before} → {after}"));
            }
            (FolderChangeKind::Added, _, Some(after)) => notes.push(after),
            (FolderChangeKind::Deleted, ..) if is_dir && self.files == 1 => notes.push("1 file".to_owned()),
            (FolderChangeKind::Deleted, ..) if is_dir => notes.push(format!("{} files", self.files)),
            (FolderChangeKind::Deleted, Some(before), _) => notes.push(before),
            _ => {}
        }
        if let (Some(before), Some(after)) = (self.before, self.after)
            && self.kind == FolderChangeKind::Changed
            && before.kind == EntryKind::File
            && before.mode | 0o600 != after.mode | 0o600
        {
            notes.push(format!("mode {:o} → {:o}", before.mode, after.mode));
        }
        if self.is_marked() {
            notes.push("decided by, or with, text from outside".to_owned());
        }
        notes.extend(self.collision.map(|collision| format!("CANNOT BE ACCEPTED: {collision}")));
        match &self.kind {
            FolderChangeKind::Added => write!(f, "A  {path}")?,
            FolderChangeKind::Changed => write!(f, "M  {path}")?,
            FolderChangeKind::Deleted => write!(f, "D  {path}")?,
            FolderChangeKind::Moved(from) => write!(f, "R  {} → {path}", from.display())?,
        }
        if notes.is_empty() { Ok(()) } else { write!(f, "  ({})", notes.join("; ")) }
    }
}

impl FolderChange {
    /// Whether text from outside decided on it, or is in it.
    pub fn is_marked(&self) -> bool {
        !self.label.is_ordinary() && self.label.integrity > Label::attached().integrity
    }

    pub fn is_deletion(&self) -> bool {
        self.kind == FolderChangeKind::Deleted
    }
}

impl FolderChange {
    pub fn moved_from(&self) -> Option<&Path> {
        match &self.kind {
            FolderChangeKind::Moved(from) => Some(from),
            _ => None,
        }
    }
}
