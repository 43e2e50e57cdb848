//! A difference for people: repositories are one line each, and so are many similar changes.

use super::{EntryKind, FolderChange, FolderChangeKind, FolderDifference, FolderSelection, RepositoryChange};
use data_encoding::HEXLOWER;
use kiso_plan::report::size;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fmt;
use std::path::Path;

/// Similar changes that are still listed one by one.
const FEW: usize = 20;

/// Names and endings of a group that are shown.
const SHOWN: usize = 3;

/// A line of a list of changes.
#[derive(Debug)]
pub enum ListedChange<'a> {
    Change(&'a FolderChange),
    Repository(&'a RepositoryChange),
    Group(ChangeGroup<'a>),
}

/// Many changes of one kind: files of one directory, or everything in a new directory.
#[derive(Debug)]
pub struct ChangeGroup<'a> {
    /// The directory that the files were moved from.
    pub from: Option<&'a Path>,
    /// The directory that they are in; of a tree, the new directory.
    pub dir: &'a Path,
    /// Whether this is a new directory with everything in it.
    pub is_tree: bool,
    pub changes: Vec<&'a FolderChange>,
}

/// An extension of file names, in small letters, and the number of files with it. It is empty for names without one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndingCount {
    pub ending: String,
    pub files: usize,
}

/// Changes with an equal key belong together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct GroupKey<'a> {
    kind: &'static str,
    from: Option<&'a Path>,
    dir: &'a Path,
    is_tree: bool,
    is_marked: bool,
    collision: Option<&'static str>,
}

impl FolderDifference {
    /// The lines of the chosen changes. `is_grouped`: many alike changes are one line.
    pub fn listed(&self, selection: &FolderSelection, is_grouped: bool) -> Vec<ListedChange<'_>> {
        let chosen: Vec<&FolderChange> = self.changes.iter().filter(|change| selection.contains(change)).collect();
        let keys = if is_grouped { keys(&chosen) } else { vec![None; chosen.len()] };
        let mut groups: BTreeMap<&GroupKey<'_>, Vec<&FolderChange>> = BTreeMap::new();
        for (change, key) in chosen.iter().zip(&keys) {
            if let Some(key) = key {
                groups.entry(key).or_default().push(change);
            }
        }
        groups.retain(|key, changes| key.is_tree || changes.len() > FEW);
        let mut repositories: BTreeMap<&Path, &RepositoryChange> =
            self.repositories.iter().map(|repository| (repository.path.as_path(), repository)).collect();
        let mut seen = BTreeSet::new();
        let mut lines = Vec::new();
        for (change, key) in chosen.iter().zip(&keys) {
            if let Some(repository) = &change.repository {
                lines.extend(repositories.remove(repository.as_path()).map(ListedChange::Repository));
                continue;
            }
            match key.as_ref().filter(|key| seen.contains(key) || groups.contains_key(key)) {
                None => lines.push(ListedChange::Change(change)),
                Some(key) => {
                    if let Some(changes) = groups.remove(key) {
                        let GroupKey { from, dir, is_tree, .. } = *key;
                        lines.push(ListedChange::Group(ChangeGroup { from, dir, is_tree, changes }));
                    }
                    seen.insert(key);
                }
            }
        }
        lines
    }
}

/// The key of each change. `None` for those that are always listed by themselves.
fn keys<'a>(chosen: &[&'a FolderChange]) -> Vec<Option<GroupKey<'a>>> {
    let mut keys = Vec::with_capacity(chosen.len());
    let mut tree: Option<GroupKey<'a>> = None;
    for (number, change) in chosen.iter().enumerate() {
        if change.repository.is_some() {
            keys.push(None);
            continue;
        }
        let is_dir = change.after.or(change.before).is_some_and(|look| look.is_dir());
        let (kind, from) = match &change.kind {
            FolderChangeKind::Added => ("added", None),
            FolderChangeKind::Changed => ("changed", None),
            FolderChangeKind::Deleted => ("deleted", None),
            FolderChangeKind::Moved(from) => ("moved", from.parent()),
        };
        let dir = change.path.parent().unwrap_or(Path::new(""));
        let (is_marked, collision) = (change.is_marked(), change.collision);
        let own = GroupKey { kind, from, dir, is_tree: false, is_marked, collision };
        let is_like = |tree: &GroupKey<'_>| (tree.kind, tree.is_marked, tree.collision) == (kind, is_marked, collision);
        tree = tree.filter(|tree| change.path.starts_with(tree.dir));
        // The changes are sorted by path, so those in a directory come after it.
        if tree.is_none() && is_dir && kind == "added" {
            let new = GroupKey { dir: &change.path, is_tree: true, ..own.clone() };
            let inside = chosen[number..].iter().take_while(|other| other.path.starts_with(&change.path));
            let alike = inside.filter(|other| {
                let is_file = other.after.is_some_and(|after| !after.is_dir());
                is_file
                    && other.repository.is_none()
                    && other.kind == change.kind
                    && (other.is_marked(), other.collision) == (is_marked, collision)
            });
            tree = (alike.count() > FEW).then_some(new);
        }
        keys.push(match &tree {
            Some(tree) if is_like(tree) => Some(tree.clone()),
            _ if is_dir || change.is_secret => None,
            _ => Some(own),
        });
    }
    keys
}

impl ChangeGroup<'_> {
    /// Identifies the group. It stays the same as long as the same kind of change is made in the same directories.
    pub fn id(&self) -> String {
        let mut state = blake2b_simd::Params::new().hash_length(16).to_state();
        let first = self.changes.first();
        let words = [
            self.letter().to_owned(),
            self.from.map_or(String::new(), |from| format!("{from:?}")),
            format!("{:?} {}", self.dir, self.is_tree),
            format!("{:?}", first.map(|change| (change.is_marked(), change.collision))),
        ];
        for word in words {
            state.update(word.as_bytes()).update(b"\0");
        }
        HEXLOWER.encode(state.finalize().as_bytes())
    }

    /// The changes of the group.
    pub fn selection(&self) -> FolderSelection {
        FolderSelection::Exact(self.changes.iter().map(|change| change.path.clone()).collect())
    }

    fn files(&self) -> impl Iterator<Item = &FolderChange> {
        let is_file = |change: &&&FolderChange| change.after.or(change.before).is_some_and(|look| !look.is_dir());
        self.changes.iter().filter(is_file).copied()
    }

    pub fn file_count(&self) -> usize {
        self.files().count()
    }

    /// The bytes of all files, at present or before they were deleted.
    pub fn bytes(&self) -> u64 {
        self.files().filter_map(|change| change.after.or(change.before)).map(|look| look.bytes).sum()
    }

    /// The extensions of the names, the most frequent first.
    pub fn endings(&self) -> Vec<EndingCount> {
        let mut endings: BTreeMap<String, usize> = BTreeMap::new();
        for change in self.files() {
            *endings.entry(ending(change.moved_from().unwrap_or(&change.path))).or_default() += 1;
        }
        let mut endings: Vec<EndingCount> =
            endings.into_iter().map(|(ending, files)| EndingCount { ending, files }).collect();
        endings.sort_by_key(|one| Reverse(one.files));
        endings
    }

    /// The first files: their names, with the old ones of files that were renamed.
    pub fn first_names(&self) -> Vec<String> {
        let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let shown = |change: &FolderChange| match change.moved_from().map(name) {
            Some(old) if old != name(&change.path) => format!("{old} → {}", name(&change.path)),
            _ => change.path.strip_prefix(self.dir).unwrap_or(&change.path).to_string_lossy().into_owned(),
        };
        self.files().take(SHOWN).map(shown).collect()
    }

    fn letter(&self) -> &'static str {
        self.changes.first().map_or("M", |change| match change.kind {
            FolderChangeKind::Added => "A",
            FolderChangeKind::Changed => "M",
            FolderChangeKind::Deleted => "D",
            FolderChangeKind::Moved(_) => "R",
        })
    }

    fn notes(&self, endings: &[EndingCount]) -> Vec<String> {
        let mut notes = Vec::new();
        let has_content =
            self.files().any(|change| change.after.or(change.before).is_some_and(|look| look.kind == EntryKind::File));
        if self.is_tree {
            notes.push(format!("{} files", digits(self.file_count())));
            match self.changes.len() - self.file_count() {
                0 | 1 => {}
                dirs => notes.push(format!("{} directories", digits(dirs))),
            }
        }
        if has_content && self.from.is_none() {
            notes.push(size(self.bytes()));
        }
        if endings.len() > 1 {
            let mut parts: Vec<String> = endings
                .iter()
                .take(SHOWN)
                .map(|one| match one.ending.as_str() {
                    "" => format!("{} without an ending", digits(one.files)),
                    ending => format!("{} {ending}", digits(one.files)),
                })
                .collect();
            match endings.iter().skip(SHOWN).map(|one| one.files).sum() {
                0 => {}
                others => parts.push(format!("{} others", digits(others))),
            }
            notes.push(parts.join(", "));
        }
        notes.push(format!("{}, …", self.first_names().join(", ")));
        if self.changes.iter().any(|change| change.is_marked()) {
            notes.push("decided by, or with, text from outside".to_owned());
        }
        if let Some(collision) = self.changes.iter().find_map(|change| change.collision) {
            notes.push(format!("CANNOT BE ACCEPTED: {collision}"));
        }
        notes
    }
}

/// The extension of a file's name, without the dot, in small letters.
fn ending(path: &Path) -> String {
    path.extension().unwrap_or(OsStr::new("")).to_string_lossy().to_lowercase()
}

/// A directory's path with a slash behind it, as the beginning of another path. Nothing for the folder itself.
fn inside(dir: &Path) -> String {
    match dir.as_os_str().is_empty() {
        true => String::new(),
        false => format!("{}/", dir.display()),
    }
}

/// A number with commas between thousands.
fn digits(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

impl fmt::Display for ChangeGroup<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let endings = self.endings();
        let names = match endings.as_slice() {
            [one] if !one.ending.is_empty() => format!("*.{}", one.ending),
            _ => "*".to_owned(),
        };
        let (letter, dir, files) = (self.letter(), inside(self.dir), digits(self.file_count()));
        match self.from {
            _ if self.is_tree => write!(f, "{letter}  {dir}")?,
            None => write!(f, "{letter}  {files} files  {dir}{names}")?,
            Some(from) => {
                let is_renamed = self
                    .changes
                    .iter()
                    .any(|change| change.moved_from().and_then(Path::file_name) != change.path.file_name());
                // The folder itself has no name to end with a slash.
                let target = if is_renamed || dir.is_empty() { format!("{dir}{names}") } else { dir };
                write!(f, "{letter}  {files} files  {}{names} → {target}", inside(from))?;
            }
        }
        write!(f, "  ({})", self.notes(&endings).join("; "))
    }
}

impl fmt::Display for ListedChange<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Change(change) => change.fmt(f),
            Self::Repository(repository) => repository.fmt(f),
            Self::Group(group) => group.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests;
