//! A line's `/tmp`, a directory that only its processes see.

use crate::effect::files::FileLabels;
use kiso_base::home::{Home, HomeError, SessionName};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use tokio::runtime::{Handle, RuntimeFlavor};

/// Removed when it is dropped, or kept for the session's next line.
#[derive(Debug)]
pub struct Scratch {
    home: Home,
    session: SessionName,
    dir: PathBuf,
    /// Lines that were begun and whose processes may still use it.
    at_work: AtomicUsize,
}

impl Scratch {
    pub(super) fn new(home: &Home, session: &SessionName) -> Result<Self, HomeError> {
        let dir = home.create_scratch(session)?;
        Ok(Self { home: home.clone(), session: session.clone(), dir, at_work: AtomicUsize::new(0) })
    }

    pub(super) fn path(&self) -> &Path {
        &self.dir
    }

    /// Records that a line begins to use it.
    pub(super) fn enter(&self) {
        self.at_work.fetch_add(1, Relaxed);
    }

    /// Records that a line has ended and all its processes have exited by themselves: none was cut off in the middle of a write.
    pub(super) fn leave(&self) {
        self.at_work.fetch_sub(1, Relaxed);
    }

    /// Writes a file into a directory of it, before a line has used it. Neither name may have a separator.
    pub fn put(&self, dir: &str, name: &str, text: &str) -> std::io::Result<()> {
        debug_assert!(!dir.contains('/') && !name.contains('/'));
        let dir = self.dir.join(dir);
        std::fs::create_dir_all(&dir)?;
        std::fs::write(dir.join(name), text)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Most lines leave nothing. Labels stay with the directory, so if there are any, the next line gets another directory.
        let is_clean = *self.at_work.get_mut() == 0 && FileLabels::of_session(&self.home, &self.session).is_empty();
        let is_kept = is_clean && self.home.keep_scratch(&self.session, &self.dir);
        if is_kept || std::fs::remove_dir(&self.dir).is_ok() {
            return;
        }
        let remove = || Home::remove_scratch(&self.dir);
        // A line may have left thousands of files; others must not wait for their removal.
        match Handle::try_current().map(|handle| handle.runtime_flavor()) {
            Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(remove),
            _ => remove(),
        }
    }
}
