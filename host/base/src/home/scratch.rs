//! The directories that tasks see as `/tmp`, beside their session's workspace.
//!
//! Most tasks leave theirs empty. It is then kept for the session's next task: creating and removing a directory takes several
//! writes to an SD card, and on some file systems more time than the rest of a short command.

use std::collections::HashMap;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Home, HomeError, SessionName, is_empty_dir, private_dir, removal};

/// Maximum sessions for which a directory is kept.
const MAX_SPARES: usize = 4_000;

/// Distinguishes the scratch directories of one process.
static SCRATCHES: AtomicU32 = AtomicU32::new(0);

/// Empty directories that this process keeps for the next task, one per session.
#[derive(Debug, Default)]
pub(super) struct SpareScratches(Mutex<HashMap<SessionName, PathBuf>>);

impl SpareScratches {
    fn lock(&self) -> MutexGuard<'_, HashMap<SessionName, PathBuf>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for SpareScratches {
    fn drop(&mut self) {
        for (_, spare) in self.lock().drain() {
            let _ = fs::remove_dir(spare);
        }
    }
}

impl Home {
    /// Contains the scratch directories of the session's tasks.
    pub fn scratch_dir(&self, session: &SessionName) -> PathBuf {
        self.session_dir(session).join("tmp")
    }

    /// Returns an empty directory for a task's temporary files, beside the workspace. The caller passes it to
    /// [`Home::keep_scratch`] or [`Home::remove_scratch`] later; [`Home::lock_session`] and [`Home::sweep_scratch`] remove what a
    /// crash left.
    pub fn create_scratch(&self, session: &SessionName) -> Result<PathBuf, HomeError> {
        let spare = self.0.spares.lock().remove(session);
        if let Some(spare) = spare.filter(|spare| is_empty_dir(spare)) {
            return Ok(spare);
        }
        let parent = self.scratch_dir(session);
        private_dir(&parent)?;
        loop {
            let dir = parent.join(format!("{}-{}", std::process::id(), SCRATCHES.fetch_add(1, Ordering::Relaxed)));
            match DirBuilder::new().mode(0o700).create(&dir) {
                // Left by a killed process with the same pid: no task may see another one's files.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => return made.map(|()| dir.clone()).map_err(|error| HomeError::from_io(&dir, "create", error)),
            }
        }
    }

    /// Keeps a directory of [`Home::create_scratch`] for the session's next task if it is empty and no other is kept; returns
    /// whether it did. The caller must know that no task can access it any more.
    pub fn keep_scratch(&self, session: &SessionName, dir: &Path) -> bool {
        if !is_empty_dir(dir) {
            return false;
        }
        let mut spares = self.0.spares.lock();
        if spares.contains_key(session) {
            return false;
        }
        // Another session's directory is removed; most likely that session is idle.
        let other = if spares.len() < MAX_SPARES { None } else { spares.keys().next().cloned() };
        if let Some(other) = other.and_then(|other| spares.remove(&other)) {
            let _ = fs::remove_dir(other);
        }
        spares.insert(session.clone(), dir.to_owned());
        true
    }

    /// Removes a directory of [`Home::create_scratch`]. Removes links in it without following them; anything that cannot be
    /// removed waits for [`Home::empty_trash`].
    pub fn remove_scratch(dir: &Path) {
        removal::drop_scratch(dir);
    }

    /// Removes what killed processes left in the session, but not the directory that this process keeps. Only for the holder of
    /// the session's lock.
    pub(super) fn remove_lost_scratch(&self, session: &SessionName) {
        let all = self.scratch_dir(session);
        let Some(spare) = self.0.spares.lock().get(session).cloned() else {
            return removal::drop_scratch(&all);
        };
        for entry in fs::read_dir(all).into_iter().flatten().flatten() {
            if entry.path() != spare {
                removal::drop_scratch(&entry.path());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Temp;
    use super::*;

    #[test]
    fn an_empty_one_is_kept_for_the_session_and_no_other() {
        let temp = Temp::new();
        let home = Home::open(&temp.0.join("home")).unwrap();
        let [one, other] = ["one", "other"].map(|name| SessionName::parse(name).unwrap());
        home.create_session(&other).unwrap();
        let lock = home.lock_session(&one).unwrap();
        let first = home.create_scratch(&one).unwrap();
        let beside = home.create_scratch(&one).unwrap();
        assert!(home.keep_scratch(&one, &first) && !home.keep_scratch(&one, &beside), "one is enough");
        drop(lock);

        // The next run removes what a killed process left, but not the kept directory.
        let _lock = home.lock_session(&one).unwrap();
        assert!(first.is_dir() && !beside.exists());
        assert_ne!(home.create_scratch(&other).unwrap(), first);
        assert_eq!(home.create_scratch(&one).unwrap(), first);

        // A directory with files in it is not kept, so no task sees them.
        fs::write(first.join("left"), "").unwrap();
        assert!(!home.keep_scratch(&one, &first));
        fs::remove_file(first.join("left")).unwrap();
        assert!(home.keep_scratch(&one, &first));
        fs::write(first.join("later"), "").unwrap();
        let fresh = home.create_scratch(&one).unwrap();
        assert!(fresh != first && is_empty_dir(&fresh));

        // This is another session of the same name.
        assert!(home.keep_scratch(&one, &fresh));
        home.put_aside(&one).unwrap().unwrap().remove().unwrap();
        home.create_session(&one).unwrap();
        let last = home.create_scratch(&one).unwrap();
        assert!(is_empty_dir(&last) && home.keep_scratch(&one, &last));

        // Nothing is left when the process ends.
        drop(home);
        assert!(!last.exists());
    }

    #[test]
    fn what_is_kept_is_no_reason_to_sweep() {
        let temp = Temp::new();
        let home = Home::open(&temp.0.join("home")).unwrap();
        let session = SessionName::parse("one").unwrap();
        drop(home.lock_session(&session).unwrap());
        let dir = home.create_scratch(&session).unwrap();
        assert!(home.keep_scratch(&session, &dir));
        home.sweep_scratch();
        assert!(dir.exists() && home.trash().is_empty());
        fs::write(dir.join("left"), "").unwrap();
        home.sweep_scratch();
        assert!(!dir.exists());
    }
}
