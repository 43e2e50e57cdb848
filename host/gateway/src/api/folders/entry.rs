//! Request and response types for the folders of a session.

use kiso_agent::drive::FolderView;
use kiso_sandbox::effect::overlay::{
    ChangeGroup, EntryKind, EntryLook, FolderChange, FolderChangeKind, FolderSelection, ListedChange, RepositoryChange,
    TextHunk,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum number of listed entries per folder.
const MAX_LISTED: usize = 1_000;

/// Maximum number of listed file extensions per group.
const MAX_ENDINGS: usize = 8;

/// Maximum number of listed git settings per repository.
const MAX_SETTINGS: usize = 20;

/// Options of the listing.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::api) struct FolderListQuery {
    /// List each change separately, even if many are similar.
    #[serde(default)]
    pub(super) all: bool,
}

/// The folders that are open in a session.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::api) struct FolderList {
    pub(super) items: Vec<OpenFolder>,
    /// Whether a run works in the session; no folder is listed then.
    pub(super) at_work: bool,
}

/// A folder that is open in a session.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::api) struct OpenFolder {
    /// Path of the folder for tasks, such as "/project".
    at: String,
    /// Path on the machine.
    path: String,
    /// Whether tasks can change their copy of it.
    write: bool,
    /// Number of pending changes. The changes of a git repository count as one.
    count: usize,
    /// Number of files that the changes delete.
    deleted: u64,
    /// Number of changes that text from outside influenced or that contain such text.
    from_outside: usize,
    changes: Vec<ChangedEntry>,
    /// Number of entries that are not listed.
    more: usize,
}

/// A pending change, or a group of similar changes.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::api) struct ChangedEntry {
    /// Path below the folder. For a group, the directory of its files.
    path: String,
    change: EntryChangeKind,
    /// Old path of a moved file. For a group of moves, the old directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    is_directory: bool,
    /// Bytes before and after, of files.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_before: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_after: Option<u64>,
    /// Number of files that the change deletes.
    files: u64,
    /// Whether text from outside influenced the change or is in it.
    from_outside: bool,
    /// The reason why it cannot be accepted.
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
    /// A git repository: everything below its `.git` directory, accepted or discarded as a whole.
    Repository,
}

/// Many changes of the same kind in one directory, or all files of a new directory.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::api) struct GroupedChanges {
    /// Identifies the group in a request to accept or discard it.
    id: String,
    files: usize,
    /// Total size of all files.
    bytes: u64,
    /// Names of the first files.
    first: Vec<String>,
    /// The most frequent file extensions.
    endings: Vec<NamedEnding>,
}

/// A file extension.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::api) struct NamedEnding {
    /// Without the dot; empty for names without an extension.
    ending: String,
    files: usize,
}

/// The changes of a git repository.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::api) struct RepositoryChanges {
    /// A short summary, such as "3 commits on branch fix".
    summary: String,
    /// Number of new commits; null if they cannot be counted.
    commits: Option<u64>,
    /// The newest commits, up to ten.
    newest: Vec<RepositoryCommit>,
    /// Number of changed entries below the `.git` directory.
    files: usize,
    /// Paths of changed hooks and other files that affect what git runs.
    settings: Vec<String>,
}

/// A new commit.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::api) struct RepositoryCommit {
    id: String,
    /// First line of its message.
    subject: String,
}

/// A change in a folder.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::api) struct ChangePart {
    /// The folder.
    pub(super) at: String,
    /// Path below the folder.
    pub(super) path: String,
}

/// A side of a change.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::api) struct SidePart {
    /// The folder.
    pub(super) at: String,
    /// Path below the folder.
    pub(super) path: String,
    pub(super) side: SideName,
}

/// One of the two sides of a change: the folder's file or the session's file.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(in crate::api) enum SideName {
    Before,
    After,
}

/// Both sides of a file; null for a side that is missing, too long, or not a text.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::api) struct FileSides {
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
    /// Null for a side that is missing or cannot be shown.
    pub(super) before_kind: Option<FileSideKind>,
    pub(super) after_kind: Option<FileSideKind>,
    /// The differing hunks, if both sides are texts or one side is missing.
    pub(super) hunks: Vec<HunkText>,
    /// Identifies this list of hunks in a request to accept some of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) revision: Option<String>,
}

/// Form in which a file can be shown.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(in crate::api) enum FileSideKind {
    Text,
    /// PNG, JPEG, GIF or WebP.
    Picture,
    Binary,
}

/// A block of differing lines, with some lines around it.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::api) struct HunkText {
    /// As in a unified diff, such as "@@ -1,4 +1,5 @@".
    header: String,
    /// Each line begins with "+", "-" or a space.
    lines: Vec<String>,
}

/// A selection of changes of a folder.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::api) struct ChangesRequest {
    /// The folder.
    pub(super) at: String,
    /// Files and directories below it; all changes by default.
    #[serde(default)]
    pub(super) paths: Option<Vec<String>>,
    /// Ids of groups of changes; use either this or `paths`.
    #[serde(default)]
    pub(super) groups: Option<Vec<String>>,
    /// Only these hunks of a single path, by their numbers from 1. Hunks can only be accepted.
    #[serde(default)]
    pub(super) hunks: Option<Vec<usize>>,
    /// The revision of the list that contains these hunks.
    #[serde(default)]
    pub(super) revision: Option<String>,
}

/// Options of an undo.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::api) struct FolderUndoRequest {
    #[serde(default)]
    pub(super) force: bool,
}

/// The number of affected changes.
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

/// Returns a folder with its changes. With `is_grouped`, many similar changes become one entry.
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
