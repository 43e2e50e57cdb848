//! Checks that the home still has everything it needs: the intact store, the directory of the sessions, and some disk space.
//!
//! Open connections keep working with a file that was removed, so reading the store does not detect it. The files are only looked
//! up here and never opened: closing the store's file would release the locks that SQLite has on it in this process.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;

use kiso_base::home::Home;
use kiso_store::store::Store;

/// Compares the home with its state at the start of the daemon.
#[derive(Debug)]
pub(crate) struct HomeCheck {
    home: Home,
    /// Device and inode of the store. `kiso restore` replaces it only while no daemon runs.
    store: Option<(u64, u64)>,
}

/// Why the home is unusable.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HomeFault {
    #[error("{file} was removed from kiso's home")]
    Removed { file: &'static str },
    #[error("{file} was replaced by another file in kiso's home")]
    Replaced { file: &'static str },
    #[error("failed to check {file} in kiso's home: {error}")]
    Unknown { file: &'static str, error: io::Error },
    #[error("store.db is damaged ({detail})")]
    Damaged { detail: String },
    #[error("{shortage}")]
    Full { shortage: String },
}

const STORE: &str = "store.db";
const SESSIONS: &str = "sessions";

impl HomeCheck {
    pub(crate) fn new(home: &Home) -> HomeCheck {
        let store = fs::metadata(home.store_path()).ok().map(|found| id(&found));
        HomeCheck { home: home.clone(), store }
    }

    /// Looks up both files, and checks the state of the store and the free space. May block on the file system.
    pub(crate) fn run(&self, store: &Store, reserve_mib: u64) -> Result<(), HomeFault> {
        self.look_up()?;
        if let Some(detail) = store.damage() {
            return Err(HomeFault::Damaged { detail: detail.to_owned() });
        }
        match self.home.shortage(reserve_mib) {
            Some(shortage) => Err(HomeFault::Full { shortage }),
            None => Ok(()),
        }
    }

    fn look_up(&self) -> Result<(), HomeFault> {
        let store = fs::metadata(self.home.store_path()).map_err(|error| HomeFault::from_io(STORE, error))?;
        if self.store.is_some_and(|id_at_start| id_at_start != id(&store)) {
            return Err(HomeFault::Replaced { file: STORE });
        }
        let sessions = self.home.path().join(SESSIONS);
        let sessions = fs::metadata(sessions).map_err(|error| HomeFault::from_io(SESSIONS, error))?;
        // Only the directory itself is checked: missing workspaces of sessions are created.
        if !sessions.is_dir() {
            return Err(HomeFault::Replaced { file: SESSIONS });
        }
        Ok(())
    }
}

impl HomeFault {
    fn from_io(file: &'static str, error: io::Error) -> HomeFault {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => HomeFault::Removed { file },
            _ => HomeFault::Unknown { file, error },
        }
    }

    /// The next step for the reader of the error.
    pub(crate) fn hint(&self) -> &'static str {
        match self {
            HomeFault::Removed { file: STORE } | HomeFault::Replaced { file: STORE } => {
                "stop the daemon, then put the file back or run `kiso restore` with a backup"
            }
            HomeFault::Removed { .. } => "put the directory back, or restart the daemon, which creates an empty one",
            HomeFault::Replaced { .. } => "move that file away and put the directory back",
            HomeFault::Damaged { .. } => {
                "stop the daemon, and run `kiso restore` with a backup; `kiso doctor` says more"
            }
            HomeFault::Full { .. } => "free some space on that disk, or delete sessions and files in them",
            HomeFault::Unknown { .. } => "check the disk and the permissions of the home",
        }
    }
}

fn id(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_home_is_fit_for_work_with_its_store_and_any_directory_of_sessions() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(&dir.path().join("home")).unwrap();
        let (store, sessions, aside) = (home.store_path(), home.path().join(SESSIONS), dir.path().join("aside"));
        fs::write(&store, "first").unwrap();
        let check = HomeCheck::new(&home);
        let says = || check.look_up().map_err(|fault| fault.to_string());
        let fault = |text: &str| Err(format!("{text} kiso's home"));
        assert_eq!(says(), Ok(()));

        fs::rename(&store, &aside).unwrap();
        assert_eq!(says(), fault("store.db was removed from"));
        fs::write(&store, "second").unwrap();
        assert_eq!(says(), fault("store.db was replaced by another file in"));
        fs::rename(&aside, &store).unwrap();
        assert_eq!(says(), Ok(()), "the same file is there again");

        fs::rename(&sessions, &aside).unwrap();
        assert_eq!(says(), fault("sessions was removed from"));
        symlink(&aside, &sessions).unwrap();
        assert_eq!(says(), Ok(()), "it was moved to another disk");
        fs::remove_file(&sessions).unwrap();
        fs::write(&sessions, "").unwrap();
        assert_eq!(says(), fault("sessions was replaced by another file in"));
        fs::remove_file(&sessions).unwrap();
        fs::create_dir(&sessions).unwrap();
        assert_eq!(says(), Ok(()), "workspaces are made in an empty one");

        fs::remove_dir_all(home.path()).unwrap();
        assert_eq!(says(), fault("store.db was removed from"), "all of it is gone");
    }
}
