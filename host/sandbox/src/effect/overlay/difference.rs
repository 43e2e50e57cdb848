//! The difference between a folder and a session's version of it.

mod listing;
mod repository;

pub use self::listing::{ChangeGroup, EndingCount, ListedChange};
pub(super) use self::repository::find_repositories;
pub use self::repository::{NewCommit, RepositoryChange};

use super::lower::kind;
use kiso_plan::label::Label;
use kiso_plan::report::size;
use rustix::fs::{FileType, Stat};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// All that a session has changed in a folder, by path.
#[derive(Debug, Clone, Default)]
pub struct FolderDifference {
    pub changes: Vec<FolderChange>,
    /// The changes of git repositories, by path.
    pub repositories: Vec<RepositoryChange>,
    /// Unchanged files of the upper layer, by inode, with their paths in the folder. A new file may be another name of one.
    pub(super) unchanged: BTreeMap<u64, PathBuf>,
}

/// The chosen changes.
#[derive(Debug, Clone, Default)]
pub enum FolderSelection {
    #[default]
    All,
    /// These paths below the folder, with everything in them. A path in a repository's `.git` directory means that directory.
    Paths(Vec<PathBuf>),
    /// The changes of these paths alone; a repository's `.git` directory as a whole.
    Exact(BTreeSet<PathBuf>),
}

impl FolderSelection {
    pub fn contains(&self, change: &FolderChange) -> bool {
        match (self, &change.repository) {
            (Self::All, _) => true,
            (Self::Exact(paths), Some(repository)) => paths.contains(repository),
            (Self::Exact(paths), None) => paths.contains(&change.path),
            (Self::Paths(paths), Some(repository)) => {
                paths.iter().any(|path| repository.starts_with(path) || path.starts_with(repository))
            }
            (Self::Paths(paths), None) => paths.iter().any(|path| {
                change.path.starts_with(path) || change.moved_from().is_some_and(|from| from.starts_with(path))
            }),
        }
    }
}

/// Deleted files that need no review.
const FEW_DELETIONS: u64 = 10;

impl FolderDifference {
    /// The changes that need no review: without conflicts, text from outside, more than a few deletions, and repositories that
    /// lose a branch or get something that git runs. `None` if there are none.
    pub fn harmless(&self) -> Option<FolderSelection> {
        let plain = || self.changes.iter().filter(|change| change.repository.is_none());
        let deleted: u64 = plain().map(|change| change.files).sum();
        let colliding: Vec<&PathBuf> =
            self.changes.iter().filter(|change| change.collision.is_some()).map(|change| &change.path).collect();
        let is_harmless = |change: &&FolderChange| {
            let is_deletion = change.is_deletion() && (deleted > FEW_DELETIONS || change.is_secret);
            !colliding.iter().any(|path| change.path.starts_with(path)) && !change.is_marked() && !is_deletion
        };
        let is_ordinary = |repository: &&RepositoryChange| {
            let is_below = colliding.iter().any(|path| repository.path.starts_with(path));
            !is_below && repository.collision.is_none() && !repository.is_marked && !repository.needs_review
        };
        let mut paths: BTreeSet<PathBuf> = plain().filter(is_harmless).map(|change| change.path.clone()).collect();
        let harmless = plain().filter(is_harmless).count();
        let repositories: Vec<&RepositoryChange> = self.repositories.iter().filter(is_ordinary).collect();
        paths.extend(repositories.iter().map(|repository| repository.path.clone()));
        match paths.len() {
            0 => None,
            _ if harmless == plain().count() && repositories.len() == self.repositories.len() => {
                Some(FolderSelection::All)
            }
            _ => Some(FolderSelection::Exact(paths)),
        }
    }

    /// The number of chosen changes: a repository is one.
    pub fn count(&self, selection: &FolderSelection) -> usize {
        let chosen = self.changes.iter().filter(|change| selection.contains(change));
        count(chosen)
    }

    /// The number of changes that contain text from outside, or were decided by it.
    pub fn count_marked(&self) -> usize {
        count(self.changes.iter().filter(|change| change.is_marked()))
    }

    /// The files that are deleted with the chosen changes, without those in repositories.
    pub fn deleted_files(&self, selection: &FolderSelection) -> u64 {
        let chosen = self.changes.iter().filter(|change| selection.contains(change) && change.repository.is_none());
        chosen.map(|change| change.files).sum()
    }
}

/// The number of these changes: a repository is one.
pub(super) fn count<'a>(changes: impl Iterator<Item = &'a FolderChange>) -> usize {
    let (mut plain, mut repositories) = (0, BTreeSet::new());
    for change in changes {
        match &change.repository {
            Some(repository) => drop(repositories.insert(repository)),
            None => plain += 1,
        }
    }
    plain + repositories.len()
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
    /// The label of the decision and of the content.
    pub label: Label,
    /// Whether it contains credentials, so that its content is not shown.
    pub is_secret: bool,
    /// The entry of the folder: in a directory that was moved, another path than the change's own.
    pub(super) lower: Option<PathBuf>,
    /// The reason why it cannot be accepted: the folder has changed since.
    pub collision: Option<&'static str>,
    /// The `.git` directory that it belongs to, which is accepted or discarded as a whole.
    pub repository: Option<PathBuf>,
    /// The text that the folder's file gets if only some hunks are accepted.
    pub(super) part: Option<Arc<str>>,
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
    // The types differ between systems.
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

/// A letter as in git, the path, and details.
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
    /// Whether it contains text from outside, or was decided by it.
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
