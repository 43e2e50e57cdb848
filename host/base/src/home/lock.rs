use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::HomeError;

/// A lock that is held until it is dropped. The system releases it when the process ends for any reason, so stale locks never
/// need to be removed by hand.
#[derive(Debug)]
#[must_use = "the lock is released when this is dropped"]
pub struct HomeLock {
    file: File,
    /// Whether the file contains its holder's pid.
    named: bool,
}

impl HomeLock {
    /// Writes the port that the holder listens on, after its pid.
    pub fn note_port(&self, port: u16) -> std::io::Result<()> {
        writeln!(&self.file, "{port}")
    }

    /// Whether the file at `path` is the one that is locked.
    fn is_at(&self, path: &Path) -> bool {
        let id = |found: std::fs::Metadata| (found.dev(), found.ino());
        let (held, there) = (self.file.metadata().map(id), std::fs::metadata(path).map(id));
        held.is_ok_and(|held| there.is_ok_and(|there| there == held))
    }
}

/// Takes the lock at `path`. Fails at once with [`HomeError::Busy`] if it is held; that error's text begins with `what`.
pub(super) fn take(path: &Path, what: String) -> Result<HomeLock, HomeError> {
    let failed = |error| HomeError::from_io(path, "lock", error);
    let mut file = open(path).map_err(failed)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => {
            let mut pid = String::new();
            // The holder may not have written its pid yet.
            let _ = file.read_to_string(&mut pid);
            return Err(HomeError::Busy { what, pid: line(&pid, 0) });
        }
        Err(error) => return Err(failed(error.into())),
    }
    // Left by a killed process.
    if file.metadata().is_ok_and(|found| found.len() > 0) {
        let _ = file.set_len(0);
    }
    // The pid is only for people. A full disk must not prevent the lock, which is needed to free space.
    let _ = writeln!(file, "{}", std::process::id());
    Ok(HomeLock { file, named: true })
}

/// Calls `make` to create a directory, takes the lock in it, and returns the result of `make` with the lock. If the directory is
/// deleted in between and another one is created, that lock protects nothing; then the lock of the new directory is taken.
pub(super) fn take_in<T>(
    dir: &Path,
    what: &str,
    mut make: impl FnMut() -> Result<T, HomeError>,
) -> Result<(T, HomeLock), HomeError> {
    let path = dir.join("lock");
    loop {
        let made = make()?;
        let lock = take(&path, what.to_owned())?;
        if lock.is_at(&path) {
            return Ok((made, lock));
        }
    }
}

/// Takes the lock at `path`; `None` if it is held. Writes no pid, because nobody asks who holds such a lock.
pub(super) fn try_take(path: &Path) -> Result<Option<HomeLock>, HomeError> {
    let failed = |error| HomeError::from_io(path, "lock", error);
    let file = open(path).map_err(failed)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(HomeLock { file, named: false })),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(failed(error.into())),
    }
}

/// The process that holds the lock at `path`, if any, and if it has written its pid. Writes nothing, so the note of a killed
/// process stays, and holds the lock only for a moment.
pub(super) fn holder(path: &Path) -> Result<Option<u32>, HomeError> {
    Ok(note(path)?.and_then(|note| line(&note, 0)))
}

/// The port of the process that holds the lock at `path`, as written by [`HomeLock::note_port`].
pub(super) fn port(path: &Path) -> Result<Option<u16>, HomeError> {
    Ok(note(path)?.and_then(|note| line(&note, 1)))
}

/// Parses a line of a note as a number.
fn line<T: std::str::FromStr>(note: &str, index: usize) -> Option<T> {
    note.lines().nth(index)?.trim().parse().ok()
}

/// The note of the process that holds the lock at `path`, if any.
fn note(path: &Path) -> Result<Option<String>, HomeError> {
    let failed = |error| HomeError::from_io(path, "lock", error);
    let mut file = match File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(failed)?,
    };
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => {
            let _ = flock(&file, FlockOperation::Unlock);
            Ok(None)
        }
        Err(Errno::WOULDBLOCK) => {
            let mut note = String::new();
            let _ = file.read_to_string(&mut note);
            Ok(Some(note))
        }
        Err(error) => Err(failed(error.into())),
    }
}

fn open(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

impl Drop for HomeLock {
    fn drop(&mut self) {
        // The pid of a process that no longer holds the lock would mislead.
        if self.named {
            let _ = self.file.set_len(0);
        }
        // Closing the file is not enough: a child process that another thread has just forked also has it open until it calls
        // exec.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_was_dropped_is_free_whoever_has_its_file_still() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let lock = take(&path, "it is held".to_owned()).unwrap();
        // Like in a child between fork and exec.
        let _inherited = lock.file.try_clone().unwrap();
        assert!(matches!(take(&path, "it is held".to_owned()), Err(HomeError::Busy { .. })));
        drop(lock);
        let _again = take(&path, "it is held".to_owned()).unwrap();
    }

    #[test]
    fn who_asks_for_the_holder_leaves_everything_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        assert_eq!(holder(&path).unwrap(), None);
        assert!(!path.exists());
        let lock = take(&path, "it is held".to_owned()).unwrap();
        assert_eq!((holder(&path).unwrap(), port(&path).unwrap()), (Some(std::process::id()), None));
        lock.note_port(4_711).unwrap();
        assert_eq!((holder(&path).unwrap(), port(&path).unwrap()), (Some(std::process::id()), Some(4_711)));
        let busy = take(&path, "it is held".to_owned()).unwrap_err();
        assert!(matches!(busy, HomeError::Busy { pid: Some(pid), .. } if pid == std::process::id()));
        drop(lock);
        // Left by a killed process.
        std::fs::write(&path, "4242\n").unwrap();
        assert_eq!(holder(&path).unwrap(), None);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "4242\n");
    }
}
