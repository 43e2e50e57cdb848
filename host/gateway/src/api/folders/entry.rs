//! The folders and changes of a session on the wire.

use kiso_agent::drive::FolderView;
use kiso_sandbox::effect::overlay::{
    ChangeGroup, EntryKind, EntryLook, FolderChange, FolderChangeKind, FolderSelection, ListedChange, RepositoryChange,
    TextHunk,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Lines of a folder's changes that are listed.
const MAX_LISTED: usize = 1_000;

/// Endings of a group that are listed.
const MAX_ENDINGS: usize = 8;

/// Settings of a repository that are listed.
const MAX_SETTINGS: usize = 20;

/// How changes are listed.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::api) struct FolderListQuery {
    /// Whether each change is listed, also where many are alike.
    #[serde(default)]
    pub(super) all: bool,
}

/// The folders that a session has open.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::api) struct FolderList {
    pub(super) items: Vec<OpenFolder>,
    /// Whether a run works in the session: then none is listed.
    pub(super) at_work: bool,
}

/// A folder that a session has open.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::api) struct OpenFolder {
    /// Where tasks see it, such as "/project".
    at: String,
    /// On the machine.
    path: String,
    /// Whether tasks can change their copy of it.
    write: bool,
    /// How many changes wait. The changes of a git repository count as one.
    count: usize,
    /// Files that are deleted with them.
    deleted: u64,
    /// How many of them text from outside decided on, or is in.
    from_outside: usize,
    changes: Vec<ChangedEntry>,
    /// Entries that are not listed.
    more: usize,
}

/// A change that waits, or many that are alike.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::api) struct ChangedEntry {
    /// Below the folder. Of a group, the directory that its files are in.
    path: String,
    change: EntryChangeKind,
    /// Of a move: its old path. Of a group of moves, the directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    is_directory: bool,
    /// Bytes before and after, of files.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_before: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_after: Option<u64>,
    /// Files that are deleted with it.
    files: u64,
    /// Whether text from outside decided on it, or is in it.
    from_outside: bool,
    /// Why it cannot be accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    collision: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<GroupedChanges>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repository: Option<RepositoryChanges>,
}

/// The kind of a change.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(in crate::api) enum EntryChangeKind {
    Added,
    Changed,
    Deleted,
    Moved,
    /// Of a git repository: everything below its `.git` directory, which is accepted or discarded as a whole.
    Repository,
}

/// Many changes of one kind in one directory, or everything in a new directory.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::api) struct GroupedChanges {
    /// Names the group in a request to accept or discard it.
    id: String,
    files: usize,
    /// Of all files.
    bytes: u64,
    /// The names of the first files.
    first: Vec<String>,
    /// The most frequent endings of the names.
    endings: Vec<NamedEnding>,
}

/// An ending of file names.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::api) struct NamedEnding {
    /// Without the dot; empty for names that have none.
    ending: String,
    files: usize,
}

/// The changes of a git repository.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::api) struct RepositoryChanges {
    /// The changes in a few words, such as "3 commits on branch fix".
    summary: String,
    /// New commits; null if they cannot be counted.
    commits: Option<u64>,
    /// The newest of them, up to ten.
    newest: Vec<RepositoryCommit>,
    /// Entries below the `.git` directory that changed.
    files: usize,
    /// Paths of those that git runs or obeys, such as hooks.
    settings: Vec<String>,
}

/// A new commit.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::api) struct RepositoryCommit {
    id: String,
    /// The first line of its message.
    subject: String,
}

/// A change of a folder.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::api) struct ChangePart {
    /// The folder.
    pub(super) at: String,
    /// Below it.
    pub(super) path: String,
}

/// A side of a change.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::api) struct SidePart {
    /// The folder.
    pub(super) at: String,
    /// Below it.
    pub(super) path: String,
    pub(super) side: SideName,
}

/// The folder's side of a change, or the session's.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(in crate::api) enum SideName {
    Before,
    After,
}

/// Both sides of a file; null for a side that is missing, long, or not a text.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::api) struct FileSides {
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
    /// Null for a side that is missing, or is not shown.
    pub(super) before_kind: Option<FileSideKind>,
    pub(super) after_kind: Option<FileSideKind>,
    /// The runs of lines that differ, if both sides are texts or one is missing.
    pub(super) hunks: Vec<HunkText>,
    /// Names this list of hunks in a request to accept some of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) revision: Option<String>,
}

/// How a file can be shown.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(in crate::api) enum FileSideKind {
    Text,
    /// PNG, JPEG, GIF or WebP.
    Picture,
    Binary,
}

/// A run of lines that differ, with some around them.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::api) struct HunkText {
    /// As in a unified diff, such as "@@ -1,4 +1,5 @@".
    header: String,
    /// Each begins with "+", "-" or a space.
    lines: Vec<String>,
}

/// Changes of a folder.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::api) struct ChangesRequest {
    /// The folder.
    pub(super) at: String,
    /// Files and directories below it; all changes without it.
    #[serde(default)]
    pub(super) paths: Option<Vec<String>>,
    /// Groups of changes, by their ids, in the place of paths.
    #[serde(default)]
    pub(super) groups: Option<Vec<String>>,
    /// Only these hunks of the one path, by their numbers from 1. They are accepted only.
    #[serde(default)]
    pub(super) hunks: Option<Vec<usize>>,
    /// The list that the numbers are from.
    #[serde(default)]
    pub(super) revision: Option<String>,
}

/// Whether also where files have changed since.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::api) struct FolderUndoRequest {
    #[serde(default)]
    pub(super) force: bool,
}

/// How many changes it was.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::api) struct SettledChanges {
    /// The folder.
    pub(super) at: String,
    pub(super) changes: usize,
}

impl From<&FolderChangeKind> for EntryChangeKind {
    fn from(kind: &FolderChangeKind) -> Self {
        match kind {
            FolderChangeKind::Added => Self::Added,
            FolderChangeKind::Changed => Self::Changed,
            FolderChangeKind::Deleted => Self::Deleted,
            FolderChangeKind::Moved(_) => Self::Moved,
        }
    }
}

impl From<&FolderChange> for ChangedEntry {
    fn from(change: &FolderChange) -> Self {
        let bytes = |look: Option<EntryLook>| look.filter(|look| look.kind == EntryKind::File).map(|look| look.bytes);
        Self {
            path: change.path.to_string_lossy().into_owned(),
            change: (&change.kind).into(),
            from: change.moved_from().map(|from| from.to_string_lossy().into_owned()),
            is_directory: change.after.or(change.before).is_some_and(|look| look.is_dir()),
            bytes_before: bytes(change.before),
            bytes_after: bytes(change.after),
            files: change.files,
            from_outside: change.is_marked(),
            collision: change.collision.map(str::to_owned),
            group: None,
            repository: None,
        }
    }
}

impl From<&RepositoryChange> for ChangedEntry {
    fn from(change: &RepositoryChange) -> Self {
        let newest = change.newest.iter();
        let newest = newest.map(|one| RepositoryCommit { id: one.id.clone(), subject: one.subject.clone() }).collect();
        Self {
            path: change.path.to_string_lossy().into_owned(),
            change: EntryChangeKind::Repository,
            from: None,
            is_directory: true,
            bytes_before: None,
            bytes_after: None,
            files: 0,
            from_outside: change.is_marked,
            collision: change.collision.clone(),
            group: None,
            repository: Some(RepositoryChanges {
                summary: change.summary(),
                commits: change.commits,
                newest,
                files: change.files,
                settings: change.settings.iter().take(MAX_SETTINGS).map(|path| path.to_string_lossy().into()).collect(),
            }),
        }
    }
}

impl From<&ChangeGroup<'_>> for ChangedEntry {
    fn from(group: &ChangeGroup<'_>) -> Self {
        let endings = group.endings().into_iter().take(MAX_ENDINGS);
        Self {
            path: group.dir.to_string_lossy().into_owned(),
            change: group.changes.first().map_or(EntryChangeKind::Changed, |change| (&change.kind).into()),
            from: group.from.map(|from| from.to_string_lossy().into_owned()),
            is_directory: true,
            bytes_before: None,
            bytes_after: None,
            files: group.changes.iter().map(|change| change.files).sum(),
            from_outside: group.changes.iter().any(|change| change.is_marked()),
            collision: group.changes.iter().find_map(|change| change.collision).map(str::to_owned),
            group: Some(GroupedChanges {
                id: group.id(),
                files: group.file_count(),
                bytes: group.bytes(),
                first: group.first_names(),
                endings: endings.map(|one| NamedEnding { ending: one.ending, files: one.files }).collect(),
            }),
            repository: None,
        }
    }
}

impl From<&TextHunk> for HunkText {
    fn from(hunk: &TextHunk) -> Self {
        let line = |line: &kiso_sandbox::effect::overlay::HunkLine| {
            format!("{}{}", line.sign, line.text.trim_end_matches(['\n', '\r']))
        };
        Self { header: hunk.header.clone(), lines: hunk.lines.iter().map(line).collect() }
    }
}

/// A folder with its changes. `is_grouped`: many alike changes are one entry.
pub(super) fn open_folder(view: &FolderView, is_grouped: bool) -> OpenFolder {
    let listed = view.difference.listed(&FolderSelection::All, is_grouped);
    let entry = |line: &ListedChange<'_>| match line {
        ListedChange::Change(change) => ChangedEntry::from(*change),
        ListedChange::Repository(repository) => ChangedEntry::from(*repository),
        ListedChange::Group(group) => ChangedEntry::from(group),
    };
    OpenFolder {
        at: view.folder.at.clone(),
        path: view.folder.path.to_string_lossy().into_owned(),
        write: view.folder.write,
        count: view.difference.count(&FolderSelection::All),
        deleted: view.difference.deleted_files(&FolderSelection::All),
        from_outside: view.difference.count_marked(),
        changes: listed.iter().take(MAX_LISTED).map(entry).collect(),
        more: listed.len().saturating_sub(MAX_LISTED),
    }
}
