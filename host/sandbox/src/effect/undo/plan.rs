//! The changes that undoing some logs would make, and the conflicts.

use super::bytes::{DELETED, SessionPath};
use super::line::{ChangeLine, UndoVerb};
use super::log::{FileChange, Look};
use super::shared;
use super::shelf::{Shelf, UndoLog};
use super::tree::{Tree, is_nothing};
use rustix::fs::readlinkat;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// The changes that an undo or redo would make.
#[derive(Debug, Clone, Default)]
pub struct UndoPlan {
    /// The run whose work it is.
    pub run: String,
    pub changes: Vec<ChangeLine>,
    /// Paths that somebody else has changed since.
    pub conflicts: Vec<String>,
    /// Paths whose earlier content was not kept, and why.
    pub missing: Vec<String>,
}

impl UndoPlan {
    /// Makes the plan of undoing these logs, the newest first.
    pub fn from_logs(shelf: &Shelf, logs: &[UndoLog]) -> io::Result<Self> {
        let tree = shelf.tree()?;
        let run = logs.first().and_then(|log| log.header.of.first()).map(|origin| origin.run.clone());
        let missing =
            logs.iter().flat_map(|log| &log.lost).map(|lost| format!("{} was not kept: {}", lost.at, lost.why));
        let after = expected(logs);
        let mut now = BTreeMap::new();
        let mut conflicts = Vec::new();
        for (path, look) in &after {
            let found = tree.look(path)?;
            if !found.is_same(look) {
                conflicts.push(format!("{path} {}", found.since(look)));
            }
            now.insert(*path, found);
        }
        // Others may have put something into a directory that is to be deleted.
        let made: BTreeSet<&SessionPath> = changes(logs).filter_map(made).collect();
        let moved: BTreeSet<&SessionPath> = changes(logs).flat_map(moved).collect();
        // The content of a directory that was moved there has no names in the logs.
        let is_moved = |dir: &SessionPath| moved.iter().any(|moved| dir == *moved || dir.is_below(moved));
        for dir in made.into_iter().filter(|dir| !is_moved(dir)) {
            if !matches!(now.get(dir), Some(Look::Dir { .. })) {
                continue;
            }
            let names = match tree.names(dir) {
                Err(error) if is_nothing(&error) => continue,
                names => names?,
            };
            let added = names.iter().filter(|name| !after.contains_key(name));
            conflicts.extend(added.map(|name| format!("{name} was added since")));
        }
        let mut shared = Vec::new();
        for change in self::changes(logs) {
            if let FileChange::Shared { number, accepted, paths } = change {
                conflicts.extend(tree.shared.conflicts(*number, *accepted)?);
                shared.extend(shared::lines(paths, *accepted));
            }
        }
        let mut changes = BTreeMap::new();
        // The oldest change has the earlier state.
        for change in logs.iter().rev().flat_map(|log| &log.changes).map(|change| &change.change) {
            for path in change.paths().filter(|path| !path.is_of_layer()) {
                let was_there = change.is_of_something_at(path);
                let is_there = now.get(path).is_some_and(|now| *now != Look::Nothing);
                // The folder's own entry becomes visible again.
                if is_there && !was_there && is_deletion(&tree, path) {
                    changes.entry(path).or_insert(Some(UndoVerb::Create));
                    continue;
                }
                let verb = match (was_there, is_there) {
                    (true, true) => Some(UndoVerb::Restore),
                    (true, false) => Some(UndoVerb::Create),
                    (false, true) => Some(UndoVerb::Delete),
                    (false, false) => None,
                };
                changes.entry(path).or_insert(verb);
            }
        }
        let line =
            |(path, verb): (&SessionPath, Option<UndoVerb>)| Some(ChangeLine { path: path.to_string(), change: verb? });
        Ok(Self {
            run: run.unwrap_or_default(),
            missing: missing.collect(),
            changes: changes.into_iter().filter_map(line).chain(shared).collect(),
            conflicts,
        })
    }

    /// All reasons not to do it.
    pub fn problems(&self) -> impl Iterator<Item = String> {
        self.conflicts.iter().chain(&self.missing).cloned()
    }
}

/// The expected state of each path, by the newest log that has it. An older state of a path is ignored if a directory above it
/// was moved since, or the file was written to under another name.
fn expected(logs: &[UndoLog]) -> BTreeMap<&SessionPath, &Look> {
    let mut after = BTreeMap::new();
    let (mut moved, mut written): (Vec<&SessionPath>, BTreeSet<u64>) = Default::default();
    for log in logs {
        let is_known = |(path, look): &(&SessionPath, &Look)| {
            let has_moved = moved.iter().any(|moved| path.is_below(moved));
            !has_moved && !matches!(look, Look::File { inode, .. } if written.contains(inode))
        };
        for (path, look) in log.after.iter().map(|(path, look)| (path, look)).filter(is_known) {
            after.entry(path).or_insert(look);
        }
        for change in &log.changes {
            match &change.change {
                FileChange::Moved { from, to } => moved.extend([from, to]),
                FileChange::Wrote { inode, .. }
                | FileChange::Grew { inode, .. }
                | FileChange::Permitted { inode, .. } => {
                    written.insert(*inode);
                }
                _ => {}
            }
        }
    }
    after
}

/// Whether a path of a folder has the mark of a deleted entry.
fn is_deletion(tree: &Tree, path: &SessionPath) -> bool {
    let target = tree.slot(path).and_then(|slot| Ok(readlinkat(&slot.dir, slot.name, Vec::new())?));
    path.is_of_folder() && target.is_ok_and(|target| target.as_bytes() == DELETED)
}

fn changes(logs: &[UndoLog]) -> impl Iterator<Item = &FileChange> {
    logs.iter().flat_map(|log| &log.changes).map(|change| &change.change)
}

fn made(change: &FileChange) -> Option<&SessionPath> {
    match change {
        FileChange::Made { at } => Some(at),
        _ => None,
    }
}

fn moved(change: &FileChange) -> impl Iterator<Item = &SessionPath> {
    let both = match change {
        FileChange::Moved { from, to } => Some([from, to]),
        _ => None,
    };
    both.into_iter().flatten()
}

impl FileChange {
    /// Whether this path existed before the change.
    pub(super) fn is_of_something_at(&self, path: &SessionPath) -> bool {
        match self {
            Self::Made { .. } | Self::Returned { .. } | Self::Shared { .. } => false,
            Self::Moved { from, .. } => from == path,
            Self::Removed { .. }
            | Self::RemovedDir { .. }
            | Self::Wrote { .. }
            | Self::Grew { .. }
            | Self::Permitted { .. } => true,
        }
    }
}

impl Look {
    /// Whether both look the same. A directory that was deleted and made again does, and so does a file with other names.
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::File { bytes, modified, mode, .. },
                Self::File { bytes: bytes2, modified: modified2, mode: mode2, .. },
            ) => (bytes, modified, mode) == (bytes2, modified2, mode2),
            (Self::Dir { mode, .. }, Self::Dir { mode: mode2, .. }) => mode == mode2,
            (one, two) => one == two,
        }
    }

    /// The change since `before`, in words.
    fn since(&self, before: &Self) -> &'static str {
        match (before, self) {
            (Self::Nothing, _) => "was made since",
            (_, Self::Nothing) => "was deleted since",
            _ => "was changed since",
        }
    }
}
