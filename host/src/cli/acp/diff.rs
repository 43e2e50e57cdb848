//! Finds the files of a directory that changed since the last call, and their changes.

use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::Dir;

use kiso_agent::session::workspace::{self, FileLine, FilePath};

/// Maximum bytes of a file whose text is shown.
const MAX_TEXT: u64 = 64 << 10;

/// Maximum bytes of texts that are kept for later comparison.
const MAX_KEPT: usize = 16 << 20;

/// Maximum files reported at once.
const MAX_CHANGES: usize = 50;

/// A created, changed or deleted file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub path: PathBuf,
    /// The text before, if the file existed, and after; only if both are known and short.
    pub text: Option<(Option<String>, String)>,
}

/// A directory that is scanned repeatedly. Its content may change during a scan; links are not followed.
#[derive(Debug)]
pub(super) struct WatchedDir {
    place: PathBuf,
    known: HashMap<String, Known>,
    kept: usize,
}

#[derive(Debug)]
struct Known {
    bytes: u64,
    modified_ms: i64,
    text: Option<String>,
}

impl WatchedDir {
    /// Scans the directory for the first time.
    pub(super) fn new(place: PathBuf) -> WatchedDir {
        let mut watched = WatchedDir { place, known: HashMap::new(), kept: 0 };
        watched.look(|_| {});
        watched
    }

    /// Returns the changes since the last scan, up to a limit.
    pub(super) fn changes(&mut self) -> Vec<Change> {
        let mut changes = Vec::new();
        self.look(|change| {
            if changes.len() < MAX_CHANGES {
                changes.push(change);
            }
        });
        changes
    }

    fn look(&mut self, mut tell: impl FnMut(Change)) {
        let Ok(dir) = Dir::open_ambient_dir(&self.place, ambient_authority()) else { return };
        let Ok((files, is_whole)) = workspace::list_in(&dir) else { return };
        let mut gone = std::mem::take(&mut self.known);
        for file in files {
            let before = gone.remove(&file.path);
            let is_same = |known: &Known| (known.bytes, known.modified_ms) == (file.bytes, file.modified_ms);
            if let Some(known) = before.as_ref().filter(|known| is_same(known)) {
                let known = Known { text: None, ..*known };
                let text = before.and_then(|before| before.text);
                self.known.insert(file.path, Known { text, ..known });
                continue;
            }
            let was_there = before.is_some();
            let old = before.and_then(|before| before.text);
            self.kept -= old.as_ref().map_or(0, String::len);
            let new = text_of(&dir, &file);
            let text = match (was_there, &old, &new) {
                (true, Some(_), Some(new)) | (false, _, Some(new)) => Some((old.clone(), new.clone())),
                _ => None,
            };
            // A file with a new time and the same content has not changed.
            if old.is_none() || old != new {
                tell(Change { path: self.place.join(&file.path), text });
            }
            let new = new.filter(|new| self.kept + new.len() <= MAX_KEPT);
            self.kept += new.as_ref().map_or(0, String::len);
            self.known.insert(file.path, Known { bytes: file.bytes, modified_ms: file.modified_ms, text: new });
        }
        // After an incomplete scan, missing files may still exist.
        if !is_whole {
            self.known.extend(gone);
            return;
        }
        for (path, known) in gone {
            self.kept -= known.text.as_ref().map_or(0, String::len);
            tell(Change { path: self.place.join(path), text: known.text.map(|old| (Some(old), String::new())) });
        }
    }
}

fn text_of(dir: &Dir, file: &FileLine) -> Option<String> {
    if file.bytes > MAX_TEXT {
        return None;
    }
    let (open, _) = workspace::open_in(dir, &FilePath::parse(&file.path).ok()?).ok()?;
    let mut bytes = Vec::new();
    open.take(MAX_TEXT + 1).read_to_end(&mut bytes).ok()?;
    if bytes.len() as u64 > MAX_TEXT || bytes.contains(&0) {
        return None;
    }
    String::from_utf8(bytes).ok()
}

/// Returns the changes of several directories, in their order.
pub(super) fn changes_of(watched: &mut [WatchedDir]) -> Vec<Change> {
    watched.iter_mut().flat_map(WatchedDir::changes).take(MAX_CHANGES).collect()
}

/// Returns the path relative to `top`, if it is below it.
pub(super) fn relative<'a>(top: &Path, path: &'a Path) -> Option<&'a str> {
    path.strip_prefix(top).ok().and_then(Path::to_str).filter(|relative| !relative.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_was_made_changed_and_deleted_is_told_once() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("kept"), "same").unwrap();
        fs::write(at("old"), "one\n").unwrap();
        let mut watched = WatchedDir::new(dir.path().to_owned());
        assert_eq!(watched.changes(), []);
        fs::write(at("old"), "one\ntwo\n").unwrap();
        fs::write(at("made"), "m").unwrap();
        fs::write(at("binary"), [0, 159]).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", at("link")).unwrap();
        let text = |old: Option<&str>, new: &str| Some((old.map(str::to_owned), new.to_owned()));
        assert_eq!(
            watched.changes(),
            [
                Change { path: at("binary"), text: None },
                Change { path: at("made"), text: text(None, "m") },
                Change { path: at("old"), text: text(Some("one\n"), "one\ntwo\n") },
            ]
        );
        fs::remove_file(at("made")).unwrap();
        assert_eq!(watched.changes(), [Change { path: at("made"), text: text(Some("m"), "") }]);
        assert_eq!(watched.changes(), []);
    }
}
