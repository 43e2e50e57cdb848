use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::HomeError;

/// A lock that is held until it is dropped. The system releases it when the process ends, however it ends, so there
/// are no stale locks to remove by hand.
#[derive(Debug)]
#[must_use = "the lock is released when this is dropped"]
pub struct HomeLock(File);

/// Takes the lock at `path`, or fails at once with [`HomeError::Busy`] whose text starts with `what`.
pub(super) fn take(path: &Path, what: String) -> Result<HomeLock, HomeError> {
    let failed = |error| HomeError::from_io(path, "lock", error);
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .map_err(failed)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => {
            let mut pid = String::new();
            // The holder may be between taking the lock and writing its pid.
            let _ = file.read_to_string(&mut pid);
            return Err(HomeError::Busy { what, pid: pid.trim().parse().ok() });
        }
        Err(error) => return Err(failed(error.into())),
    }
    // The pid is for people. A full disk must not keep anybody from making room.
    let _ = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
    Ok(HomeLock(file))
}

impl Drop for HomeLock {
    fn drop(&mut self) {
        // A pid of a process that no longer holds the lock would only mislead.
        let _ = self.0.rewind().and_then(|()| self.0.set_len(0));
    }
}
