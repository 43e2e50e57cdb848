//! The directories of a session: its workspace, and data of the session that tasks may not see.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use cap_std::ambient_authority;
use cap_std::fs::Dir;

use super::{Home, HomeError, HomeLock, SessionName, TEMP, lock, make_private_dir, private_dir};

/// Workspaces that have been checked, so that not every call repeats all checks.
#[derive(Debug, Default)]
pub(super) struct KnownWorkspaces(Mutex<HashMap<SessionName, WorkspaceId>>);

/// A workspace, identified by the system's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct WorkspaceId {
    device: u64,
    inode: u64,
}

impl WorkspaceId {
    /// `None` if there is no directory, or a link to one.
    fn from_path(work: &Path) -> Option<Self> {
        let found = fs::symlink_metadata(work).ok().filter(fs::Metadata::is_dir)?;
        Some(Self { device: found.dev(), inode: found.ino() })
    }
}

/// Maximum workspaces that are remembered.
const MAX_KNOWN: usize = 1_000;

impl KnownWorkspaces {
    /// Whether it is the workspace that was checked, and guests have not removed `pub`.
    fn holds(&self, session: &SessionName, work: &Path) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(session).copied();
        known.is_some_and(|known| {
            WorkspaceId::from_path(work) == Some(known) && WorkspaceId::from_path(&work.join("pub")).is_some()
        })
    }

    fn add(&self, session: &SessionName, work: &Path) {
        let Some(id) = WorkspaceId::from_path(work) else { return };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        known.insert(session.clone(), id);
    }
}

impl Home {
    /// Contains the workspace and the data of the session that tasks may not see.
    pub fn session_dir(&self, session: &SessionName) -> PathBuf {
        self.path().join("sessions").join(session.as_str())
    }

    /// The workspace, `/work` for tasks. Use [`Home::open_work`] to access its contents.
    pub fn work_dir(&self, session: &SessionName) -> PathBuf {
        self.session_dir(session).join("work")
    }

    /// Opens the session's workspace as a capability: links in it cannot lead outside.
    pub fn open_work(&self, session: &SessionName) -> Result<Dir, HomeError> {
        let path = self.work_dir(session);
        Dir::open_ambient_dir(&path, ambient_authority()).map_err(|error| HomeError::from_io(&path, "open", error))
    }

    /// Creates the session's directories (`work/` and `work/pub/`) if they are missing.
    pub fn create_session(&self, session: &SessionName) -> Result<(), HomeError> {
        self.make_session(session).map(drop)
    }

    /// Like [`Home::create_session`]; returns whether the session was new.
    fn make_session(&self, session: &SessionName) -> Result<bool, HomeError> {
        let path = self.work_dir(session);
        if self.0.workspaces.holds(session, &path) {
            return Ok(false);
        }
        let dir = self.session_dir(session);
        let is_new = make_private_dir(&dir)?;
        // On a file system that ignores case, "Oslo" and "oslo" would share one workspace.
        let real = dir.canonicalize().map_err(|error| HomeError::from_io(&dir, "find", error))?;
        if real.file_name() != dir.file_name() {
            return Err(HomeError::SameName { session: session.clone(), other: real });
        }
        private_dir(&path)?;
        let work = self.open_work(session)?;
        let failed = |error| HomeError::from_io(&path.join("pub"), "create", error);
        // Files that skills put there would go elsewhere, and could not be published.
        if work.symlink_metadata("pub").is_ok_and(|there| there.is_symlink()) {
            work.remove_file("pub").map_err(failed)?;
        }
        match work.create_dir("pub") {
            // A file that a guest left under that name stays.
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
            _ => self.0.workspaces.add(session, &path),
        }
        Ok(is_new)
    }

    /// Held while a run works in the session. Fails with [`HomeError::Busy`] if another process, or another run of this one,
    /// holds it. Creates the session's directories.
    pub fn lock_session(&self, session: &SessionName) -> Result<HomeLock, HomeError> {
        let dir = self.session_dir(session);
        let what = format!("the session {session} is in use");
        let (is_new, lock) = lock::take_in(&dir, &what, || self.make_session(session))?;
        // Nobody has left anything in a new directory.
        if !is_new {
            sweep(&dir);
            self.remove_lost_scratch(session);
        }
        Ok(lock)
    }
}

/// Removes temporary files of killed processes beside a session's workspace. Only for the holder of the session's lock.
fn sweep(session_dir: &Path) {
    for entry in fs::read_dir(session_dir).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(TEMP) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Temp;
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn demo() -> (Temp, Home, SessionName) {
        let temp = Temp::new();
        let home = Home::open(&temp.0.join("home")).unwrap();
        let session = SessionName::parse("demo").unwrap();
        home.create_session(&session).unwrap();
        (temp, home, session)
    }

    #[test]
    fn what_a_killed_process_left_beside_a_workspace_goes_with_the_next_lock() {
        let (_temp, home, session) = demo();
        let left = home.session_dir(&session).join(".new-1-1");
        fs::write(&left, "half").unwrap();
        let _lock = home.lock_session(&session).unwrap();
        assert!(!left.exists());
    }

    #[test]
    fn a_session_has_its_workspace_whatever_a_guest_did_to_it() {
        let (_temp, home, session) = demo();
        let place = home.work_dir(&session).join("pub");
        assert!(place.is_dir());
        assert_eq!(fs::metadata(home.work_dir(&session)).unwrap().permissions().mode() & 0o777, 0o700);
        // A link in place of pub/ is not followed; the directory replaces it. A file stays.
        for target in ["/", "../..", "."] {
            fs::remove_dir(&place).unwrap();
            symlink(target, &place).unwrap();
            home.create_session(&session).unwrap();
            assert!(place.symlink_metadata().unwrap().is_dir());
        }
        fs::remove_dir(&place).unwrap();
        fs::write(&place, "kept").unwrap();
        home.create_session(&session).unwrap();
        assert_eq!(fs::read_to_string(&place).unwrap(), "kept");
    }

    #[test]
    fn a_workspace_that_somebody_removed_is_made_again() {
        let (_temp, home, session) = demo();
        home.create_session(&session).unwrap();
        for gone in [home.work_dir(&session).join("pub"), home.work_dir(&session), home.session_dir(&session)] {
            fs::remove_dir_all(&gone).unwrap();
            home.create_session(&session).unwrap();
            assert!(home.work_dir(&session).join("pub").is_dir(), "{}", gone.display());
        }
        // The directory in its place is not the one that was checked.
        let elsewhere = home.path().join("elsewhere");
        fs::rename(home.work_dir(&session), &elsewhere).unwrap();
        symlink(&elsewhere, home.work_dir(&session)).unwrap();
        fs::remove_dir(elsewhere.join("pub")).unwrap();
        home.create_session(&session).unwrap();
        assert!(elsewhere.join("pub").is_dir());
    }
}
