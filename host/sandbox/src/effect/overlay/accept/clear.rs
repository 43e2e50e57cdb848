//! Removes accepted and discarded changes from the upper layer.

use super::super::Overlay;
use super::super::lower::DIRECTORY;
use super::super::mark::{LayerMark, ORIGIN};
use super::super::walk::{MergedEntry, SeenLabels, last};
use super::journal::AcceptHeader;
use super::step::AcceptStep;
use crate::effect::undo::SessionPath;
use rustix::fs::{AtFlags, Mode, openat, unlinkat};
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

impl Overlay {
    /// Removes the changes from the upper layer that the folder has now.
    pub(super) fn clear(&self, id: u64, header: &AcceptHeader, steps: &[AcceptStep]) -> io::Result<()> {
        match header.is_all {
            true if header.keeps_layer => return self.put_away(id),
            true => return self.empty_upper(),
            false => {}
        }
        for step in steps {
            if let AcceptStep::TakeOut { from, staged, .. } = step
                && let Some(to) = steps.iter().find_map(|step| match step {
                    AcceptStep::Place { staged: number, path, .. } if number == staged => Some(path),
                    _ => None,
                })
            {
                self.rename_bases(from.as_path(), to.as_path())?;
            }
        }
        let dirs: Vec<&SessionPath> = steps
            .iter()
            .filter_map(|step| match step {
                AcceptStep::MakeDir { path, .. } | AcceptStep::Place { path, .. } => Some(path),
                _ => None,
            })
            .collect();
        for step in steps {
            match step {
                AcceptStep::Put { is_part: true, .. } => {}
                AcceptStep::Put { path, .. }
                | AcceptStep::Remove { path, .. }
                | AcceptStep::TakeOut { from: path, .. } => {
                    self.drop_upper(path.as_path())?;
                }
                AcceptStep::MakeDir { .. } | AcceptStep::Place { .. } => {}
            }
        }
        dirs.iter().try_for_each(|path| self.drop_upper(path.as_path()))?;
        self.renew_bases(steps)
    }

    /// Records the present states of files that a part of the changes was accepted for, or taken back: the rest is a change of what the folder
    /// has now.
    pub(super) fn renew_bases(&self, steps: &[AcceptStep]) -> io::Result<()> {
        for step in steps {
            if let AcceptStep::Put { path, is_part: true, .. } = step {
                let stat = self.lower.stat(path.as_path())?;
                self.remember(path.as_path(), stat.as_ref())?;
            }
        }
        Ok(())
    }

    /// Moves the recorded states of the entries of a directory to its new path.
    fn rename_bases(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut bases = self.bases.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        for (path, state) in bases.below(from) {
            if let Ok(rest) = path.strip_prefix(from) {
                bases.set(&to.join(rest), state)?;
            }
        }
        Ok(())
    }

    /// Empties the upper layer.
    pub(in super::super) fn empty_upper(&self) -> io::Result<()> {
        for entry in std::fs::read_dir(&self.upper_path)? {
            let entry = entry?;
            match entry.file_type()?.is_dir() {
                true => self.home.remove_tree(&entry.path())?,
                false => std::fs::remove_file(entry.path())?,
            }
        }
        self.bases.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clear()
    }

    /// Removes a single entry from the upper layer: a file, a mark, or the origin of a directory.
    pub(in super::super) fn drop_upper(&self, path: &Path) -> io::Result<()> {
        let Ok(spot) = self.walk(Path::new(""), path.as_os_str(), false, &mut SeenLabels::new(None)) else {
            return Ok(());
        };
        let (dir, Some((name, found))) = (last(&spot.dirs)?, &spot.entry) else { return Ok(()) };
        let Some(upper) = &dir.upper else { return Ok(()) };
        if !matches!(found, MergedEntry::Upper(_)) || !found.is_dir() {
            return match unlinkat(&**upper, name, AtFlags::empty()) {
                Err(rustix::io::Errno::NOENT) => Ok(()),
                done => Ok(done?),
            };
        }
        let inner: OwnedFd = openat(&**upper, name, DIRECTORY, Mode::empty())?;
        if LayerMark::read(&inner, OsStr::new(ORIGIN))?.is_some() {
            unlinkat(&inner, ORIGIN, AtFlags::empty())?;
        }
        // If the directory is empty, only the folder's remains.
        let _ = unlinkat(&**upper, name, AtFlags::REMOVEDIR);
        Ok(())
    }
}
