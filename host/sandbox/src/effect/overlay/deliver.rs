//! Puts a file into a folder at once, as a separate acceptance. Other changes in the folder still wait.

use super::Overlay;
use super::accept::{AcceptError, Acceptance};
use super::difference::FolderSelection;
use super::lower::stat_at;
use super::raise::fill;
use crate::effect::files::FileLabels;
use rustix::fs::{AtFlags, Mode, OFlags, openat, unlinkat};
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// A file that was put into a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderDelivery {
    /// Its name there.
    pub name: String,
    pub acceptance: Acceptance,
}

/// Names that are tried for a file.
const MAX_NAMES: usize = 1_000;

impl Overlay {
    /// Copies a file into the folder. An existing file is never replaced: the new one gets a number. The caller holds the
    /// session's lock.
    pub fn deliver(&self, file: &File, name: &str, labels: &FileLabels) -> Result<FolderDelivery, AcceptError> {
        let name = self.free_number(name)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let copy = openat(&self.upper, name.as_str(), flags, Mode::from_raw_mode(0o644)).map_err(io::Error::from)?;
        let accepted = self.accept_copy(file, &File::from(copy), &name, labels);
        if accepted.is_err() {
            // The entry was made only for this.
            let _ = unlinkat(&self.upper, name.as_str(), AtFlags::empty());
        }
        Ok(FolderDelivery { acceptance: accepted?, name })
    }

    fn accept_copy(
        &self,
        file: &File,
        copy: &File,
        name: &str,
        labels: &FileLabels,
    ) -> Result<Acceptance, AcceptError> {
        fill(file, copy)?;
        copy.sync_all()?;
        self.remember_state(Path::new(name), None)?;
        let difference = self.difference(labels)?;
        self.accept(&difference, &FolderSelection::Exact(BTreeSet::from([PathBuf::from(name)])))
    }

    /// The name, or one with a number, that is free in the folder and in the session's copy of it.
    pub(super) fn free_number(&self, name: &str) -> io::Result<String> {
        let path = Path::new(name);
        let stem = path.file_stem().map_or_else(|| name.to_owned(), |stem| stem.to_string_lossy().into_owned());
        let ending = path.extension().map(|ending| format!(".{}", ending.to_string_lossy())).unwrap_or_default();
        for number in 1..=MAX_NAMES {
            let free = if number == 1 { name.to_owned() } else { format!("{stem} ({number}){ending}") };
            // A file whose deletion waits still exists.
            let is_taken =
                self.lower.stat(Path::new(&free))?.is_some() || stat_at(&self.upper, free.as_str().as_ref())?.is_some();
            if !is_taken {
                return Ok(free);
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }
}
