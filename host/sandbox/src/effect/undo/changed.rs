//! The files that work has changed, for people.

use super::bytes::SessionPath;
use super::log::FileChange;
use kiso_plan::report::{ChangeKind, ChangedFile};
use std::collections::BTreeMap;

/// Whether a path existed before the first of some changes, and after the last.
#[derive(Debug, Clone, Copy)]
struct PathState {
    was_there: bool,
    is_there: bool,
}

/// The files that these changes created, changed or deleted, by path. A file that was created and deleted again is not among them.
pub(super) fn changed_files<'a>(changes: impl Iterator<Item = &'a FileChange>) -> Vec<ChangedFile> {
    let mut states: BTreeMap<&SessionPath, PathState> = BTreeMap::new();
    let mut shared = Vec::new();
    for change in changes {
        if let FileChange::Shared { paths, accepted: false, .. } = change {
            let opposite = |line: &super::ChangeLine| {
                let kind = match line.change {
                    super::UndoVerb::Delete => ChangeKind::Created,
                    super::UndoVerb::Create => ChangeKind::Deleted,
                    super::UndoVerb::Restore => ChangeKind::Changed,
                };
                ChangedFile::new(&line.path, kind)
            };
            shared.extend(paths.iter().map(opposite));
        }
        for path in change.paths().filter(|path| !path.is_of_layer()) {
            let (was_there, is_there) = (change.is_of_something_at(path), is_there_after(change, path));
            states
                .entry(path)
                .and_modify(|state| state.is_there = is_there)
                .or_insert(PathState { was_there, is_there });
        }
    }
    let file = |(path, state): (&SessionPath, PathState)| {
        let kind = match (state.was_there, state.is_there) {
            (false, true) => ChangeKind::Created,
            (true, true) => ChangeKind::Changed,
            (true, false) => ChangeKind::Deleted,
            (false, false) => return None,
        };
        Some(ChangedFile::new(&path.to_string(), kind))
    };
    states.into_iter().filter_map(file).chain(shared).collect()
}

/// Whether something is at the path after the change.
fn is_there_after(change: &FileChange, path: &SessionPath) -> bool {
    match change {
        FileChange::Removed { .. } | FileChange::RemovedDir { .. } => false,
        FileChange::Moved { from, .. } => from != path,
        FileChange::Made { .. }
        | FileChange::Returned { .. }
        | FileChange::Wrote { .. }
        | FileChange::Grew { .. }
        | FileChange::Permitted { .. }
        | FileChange::Shared { .. } => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn session_path(name: &str) -> SessionPath {
        SessionPath::new(Path::new(&format!("work/{name}")))
    }

    #[test]
    fn a_path_is_listed_by_how_it_began_and_how_it_ended() {
        let kept = |n| SessionPath::kept(1, n);
        let changes = [
            FileChange::Made { at: session_path("new") },
            FileChange::Wrote { at: session_path("new"), inode: 1, kept: kept(1) },
            FileChange::Wrote { at: session_path("old"), inode: 2, kept: kept(2) },
            FileChange::Removed { at: session_path("gone"), kept: kept(3) },
            FileChange::Made { at: session_path("temporary") },
            FileChange::Removed { at: session_path("temporary"), kept: kept(4) },
            FileChange::Moved { from: session_path("a"), to: session_path("b") },
            FileChange::Removed { at: session_path("again"), kept: kept(5) },
            FileChange::Made { at: session_path("again") },
        ];
        let found = changed_files(changes.iter()).into_iter().map(|file| (file.path, file.change));
        let expected = [
            ("a", ChangeKind::Deleted),
            ("again", ChangeKind::Changed),
            ("b", ChangeKind::Created),
            ("gone", ChangeKind::Deleted),
            ("new", ChangeKind::Created),
            ("old", ChangeKind::Changed),
        ];
        assert_eq!(found.collect::<Vec<_>>(), expected.map(|(path, change)| (path.to_owned(), change)));
    }
}
