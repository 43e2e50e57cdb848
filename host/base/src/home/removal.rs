//! Removes directories that guests have filled: those of sessions, and temporary ones of tasks.
//!
//! ```text
//! sessions/demo ──▶ sessions/.gone-demo ──▶ sessions/.trash-7-3 ──▶ nothing
//!            put aside; can be put back    nothing needs it; removed, now or later
//! ```
//!
//! Trash can never be put back. If some of it could not be removed, [`Home::empty_trash`] tries again later.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::{Home, HomeError, SessionName, is_empty_dir, lock, tree};

/// Prefix of session directories that are being deleted; no session's name has it.
const GONE: &str = ".gone-";

/// Prefix of directories that are no longer needed.
const TRASH: &str = ".trash-";

/// Prefix of the directories in the cache for self-tests of skills.
const SELF_TEST: &str = "scratch-";

/// A session's directory that was moved aside. It can be put back until it is removed.
#[derive(Debug)]
#[must_use = "what is put aside takes up space until it is removed"]
pub struct MovedSession {
    place: PathBuf,
    aside: PathBuf,
}

/// Files that are no longer needed and could not be removed.
#[derive(Debug, thiserror::Error)]
#[error("{} could not be removed: {error}", path.display())]
pub struct Leftover {
    pub path: PathBuf,
    pub error: io::Error,
}

impl Home {
    /// Moves the session's directory, including its workspace, aside, so that a new session of that name never sees any of it.
    /// The caller holds the session's lock. `None` if there is no directory.
    pub fn put_aside(&self, session: &SessionName) -> Result<Option<MovedSession>, HomeError> {
        let place = self.session_dir(session);
        let aside = place.with_file_name(format!("{GONE}{session}"));
        let failed = |error| HomeError::from_io(&place, "remove", error);
        // Left by a crash; the directory that is in its place now is newer.
        discard(&aside).map_err(failed)?;
        match fs::rename(&place, &aside) {
            Ok(()) => Ok(Some(MovedSession { place, aside })),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }

    /// Returns what interrupted deletions have left, with the names of the sessions. Skips deletions in progress: they hold the
    /// lock in the directory that they have moved.
    pub fn left_aside(&self) -> Vec<(SessionName, MovedSession)> {
        let left = self.below_sessions().filter_map(|path| {
            let session = SessionName::parse(path.file_name()?.to_str()?.strip_prefix(GONE)?).ok()?;
            drop(lock::take(&path.join("lock"), "the session is being deleted".to_owned()).ok()?);
            let place = self.session_dir(&session);
            Some((session, MovedSession { place, aside: path }))
        });
        left.collect()
    }

    /// Directories that are waiting to be removed.
    pub fn trash(&self) -> Vec<PathBuf> {
        let is_trash =
            |path: &PathBuf| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(TRASH.as_bytes()));
        self.below_sessions().filter(is_trash).collect()
    }

    /// Removes the trash and returns what could not be removed. This can take long.
    pub fn empty_trash(&self) -> Vec<Leftover> {
        let removed =
            self.trash().into_iter().map(|path| tree::remove(&path).map_err(|error| Leftover { path, error }));
        removed.filter_map(Result::err).collect()
    }

    /// Moves what tasks of killed processes left in `/tmp` to the trash, in every session without a run. Removes nothing yet, so
    /// that it locks each session only briefly.
    pub fn sweep_scratch(&self) {
        let is_session = |dir: &PathBuf| !dir.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        for dir in self.below_sessions().filter(is_session) {
            let scratch = dir.join("tmp");
            // Empty ones were kept for a next task; the next run of the session removes them.
            let left =
                fs::read_dir(&scratch).is_ok_and(|entries| entries.flatten().any(|entry| !is_empty_dir(&entry.path())));
            if left
                && let Ok(_lock) = lock::take(&dir.join("lock"), String::new())
                && let Err(error) = discard_into(&scratch, &self.path().join("sessions"))
            {
                tracing::warn!("{} could not be moved away: {error}", scratch.display());
            }
        }
        // A self-test of a skill that is being installed has such a directory, too.
        if let Ok(_lock) = self.lock_install() {
            for entry in fs::read_dir(self.cache_dir()).into_iter().flatten().flatten() {
                if entry.file_name().as_encoded_bytes().starts_with(SELF_TEST.as_bytes()) {
                    let _ = discard_into(&entry.path(), &self.path().join("sessions"));
                }
            }
        }
    }

    /// Sessions with stored undo data.
    pub fn sessions_with_undo(&self) -> Vec<SessionName> {
        let has_undo = |dir: &PathBuf| ["undo", "folders", "shared"].iter().any(|name| dir.join(name).is_dir());
        let name = |dir: PathBuf| SessionName::parse(dir.file_name()?.to_str()?).ok();
        self.below_sessions().filter(has_undo).filter_map(name).collect()
    }

    /// The directory for a self-test. Self-tests only run while the skills are locked.
    pub fn self_test_dir(&self) -> PathBuf {
        self.cache_dir().join(format!("{SELF_TEST}{}", std::process::id()))
    }

    fn below_sessions(&self) -> impl Iterator<Item = PathBuf> {
        let entries = fs::read_dir(self.path().join("sessions")).into_iter().flatten().flatten();
        entries.map(|entry| entry.path())
    }
}

impl MovedSession {
    /// Moves the directory back.
    pub fn put_back(self) -> Result<(), HomeError> {
        fs::rename(&self.aside, &self.place).map_err(|error| HomeError::from_io(&self.place, "put back", error))
    }

    /// Removes it for good. Removes links in it without following them. Anything that cannot be removed stays in the trash and
    /// can never be put back.
    pub fn remove(self) -> Result<(), Leftover> {
        let trash = match discard(&self.aside) {
            Ok(trash) => trash,
            Err(error) => return Err(Leftover { path: self.aside, error }),
        };
        match trash {
            None => Ok(()),
            Some(path) => tree::remove(&path).map_err(|error| Leftover { path, error }),
        }
    }
}

/// Removes a directory that tasks saw as `/tmp`, or that contains such directories. Anything that cannot be removed stays in the
/// trash.
pub(super) fn drop_scratch(dir: &Path) {
    let Err(error) = tree::remove(dir) else { return };
    let kept = sessions_of(dir).and_then(|sessions| discard_into(dir, sessions));
    tracing::warn!("{} could not be removed, and is tried again: {error}", dir.display());
    if let Err(error) = kept {
        tracing::warn!("nor could it be moved away: {error}");
    }
}

/// The directory `sessions` above a path.
fn sessions_of(path: &Path) -> io::Result<&Path> {
    path.ancestors().find(|at| at.file_name().is_some_and(|name| name == "sessions")).ok_or(ErrorKind::NotFound.into())
}

/// Moves a directory beside the sessions to the trash and returns its new path; `None` if it does not exist.
fn discard(dir: &Path) -> io::Result<Option<PathBuf>> {
    discard_into(dir, dir.parent().unwrap_or(dir))
}

fn discard_into(dir: &Path, sessions: &Path) -> io::Result<Option<PathBuf>> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let trash = sessions.join(format!("{TRASH}{}-{next}", std::process::id()));
        // A process with the same pid may have left that name.
        if trash.symlink_metadata().is_ok() {
            continue;
        }
        return match fs::rename(dir, &trash) {
            Ok(()) => Ok(Some(trash)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Temp;
    use super::*;

    fn house() -> (Temp, Home, SessionName) {
        let temp = Temp::new();
        let home = Home::open(&temp.0.join("home")).unwrap();
        (temp, home, SessionName::parse("s").unwrap())
    }

    #[test]
    fn what_became_trash_is_never_put_back_and_keeps_nobody_from_going_on() {
        let (_temp, home, session) = house();
        for round in ["first", "second"] {
            let lock = home.lock_session(&session).unwrap();
            fs::write(home.work_dir(&session).join(round), "").unwrap();
            let aside = home.put_aside(&session).unwrap().unwrap();
            drop(lock);
            // A crash before anything was removed; then another session of that name is deleted.
            drop(aside);
        }
        assert_eq!(home.trash().len(), 1, "the older of the two");
        let left = home.left_aside();
        assert_eq!(left.len(), 1);
        for (_, aside) in left {
            aside.put_back().unwrap();
        }
        assert!(home.work_dir(&session).join("second").exists());
        assert!(home.empty_trash().is_empty() && home.trash().is_empty());
    }

    #[test]
    fn scratch_directories_of_killed_processes_are_swept_unless_somebody_works_there() {
        let (_temp, home, session) = house();
        home.create_session(&session).unwrap();
        let scratch = home.create_scratch(&session).unwrap();
        fs::create_dir_all(scratch.join("d/e")).unwrap();
        let lock = home.lock_session(&session).unwrap();
        assert!(!scratch.exists(), "whoever takes the lock sweeps");
        let scratch = home.create_scratch(&session).unwrap();
        fs::write(scratch.join("left"), "").unwrap();
        home.sweep_scratch();
        assert!(scratch.exists(), "somebody works there");
        drop(lock);
        fs::create_dir_all(home.self_test_dir().join("d")).unwrap();
        home.sweep_scratch();
        assert!(!scratch.exists() && !home.self_test_dir().exists() && home.trash().len() == 2);
        assert!(home.empty_trash().is_empty() && home.trash().is_empty());
    }
}
