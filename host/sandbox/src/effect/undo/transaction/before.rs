//! The steps before each kind of change: the old state is kept, and the change is recorded.

use super::super::bytes::SessionPath;
use super::super::keep;
use super::super::log::{FileChange, Look};
use super::super::tree;
use super::{Known, MACHINE, MANY, Opening, RemovedEntry, State, Transaction, UndoRefusal};
use rustix::fs::{AtFlags, OFlags, fstat, linkat, renameat};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

/// A name in a directory.
type Name<'a> = (BorrowedFd<'a>, &'a OsStr);

impl Transaction {
    /// Records that a file is about to be opened for writing, made if it is missing, and emptied if `empties` is set.
    pub fn opening(&self, dir: impl AsFd, name: &OsStr, empties: bool) -> Result<Opening, UndoRefusal> {
        let mut state = self.lock();
        let Some(at) = self.place(&mut state, &dir, name)? else { return Ok(Opening::Plain) };
        match tree::look(&dir, name)? {
            Look::Nothing => {
                self.record(&mut state, FileChange::Made { at })?;
                Ok(Opening::Fresh)
            }
            Look::File { inode, .. } if empties => {
                if !matches!(state.known.get(&inode), Some(Known::Made | Known::Content)) {
                    self.keep_content(&mut state, at, inode, false)?;
                }
                Ok(Opening::Plain)
            }
            _ => Ok(Opening::Plain),
        }
    }

    /// Records that a new file is open.
    pub fn opened(&self, file: &File) {
        if let Ok(found) = file.metadata() {
            self.lock().known.insert(found.ino(), Known::Made);
        }
    }

    /// Records that a file is about to be written to: anywhere, or at its end.
    pub fn writing(&self, file: &File, adds: bool) -> Result<(), UndoRefusal> {
        let found = file.metadata()?;
        let (inode, tree) = (found.ino(), self.tree()?);
        let mut state = self.lock();
        // Another file system uses the same inode numbers for other files.
        if found.dev() != tree.device {
            return Ok(self.leave(&mut state, MACHINE)?);
        }
        match state.known.get(&inode) {
            Some(Known::Made | Known::Content) => return Ok(()),
            Some(Known::Length) if adds => return Ok(()),
            _ => {}
        }
        match self.name_of(&state, file, inode)? {
            // A kept file may have a name in the workspace, too.
            Some(at) if at.is_work() || at.is_kept() => self.keep_content(&mut state, at, inode, adds),
            // Files of the session outside of the workspace are deleted with the task.
            Some(_) => {
                state.known.insert(inode, Known::Content);
                Ok(())
            }
            None => Ok(self.leave(&mut state, MACHINE)?),
        }
    }

    /// Records that the permissions of a file are about to be set.
    pub fn permitting(&self, file: &File) -> Result<(), UndoRefusal> {
        let found = file.metadata()?;
        let (inode, mode) = (found.ino(), found.mode() & 0o7777);
        let mut state = self.lock();
        if found.dev() != self.tree()?.device {
            return Ok(self.leave(&mut state, MACHINE)?);
        }
        // Nothing to record: the file is new, or its copy already has the old permissions.
        if matches!(state.known.get(&inode), Some(Known::Made | Known::Content)) {
            return Ok(());
        }
        match self.name_of(&state, file, inode)? {
            Some(at) if at.is_work() || at.is_kept() => {
                self.record(&mut state, FileChange::Permitted { at, inode, mode })
            }
            Some(_) => Ok(()),
            None => Ok(self.leave(&mut state, MACHINE)?),
        }
    }

    /// The path of a file. A file without a name in the workspace may have one among the kept files.
    fn name_of(&self, state: &State, file: &File, inode: u64) -> io::Result<Option<SessionPath>> {
        let at = self.tree()?.path_of(file)?;
        Ok(match state.kept.get(&inode) {
            Some(kept) if !at.as_ref().is_some_and(SessionPath::is_work) => Some(kept.clone()),
            _ => at,
        })
    }

    /// [`Transaction::writing`] for a file that may still be written to when the work is cut off.
    pub fn writing_behind(&self, file: &Arc<File>, adds: bool) -> Result<(), UndoRefusal> {
        self.writing(file, adds)?;
        self.busy(file);
        Ok(())
    }

    /// Marks this file or directory as possibly in use by threads after the work is cut off. They keep the handle until they end.
    pub fn busy(&self, file: &Arc<File>) {
        let mut state = self.lock();
        if state.busy.iter().any(|busy| std::ptr::eq(busy.as_ptr(), Arc::as_ptr(file))) {
            return;
        }
        if state.busy.len() >= MANY {
            state.busy.retain(|file| file.strong_count() > 0);
        }
        state.busy.push(Arc::downgrade(file));
    }

    /// Records that a directory, a link or a further name of a file is about to be made.
    pub fn making(&self, dir: impl AsFd, name: &OsStr) -> Result<(), UndoRefusal> {
        let mut state = self.lock();
        match self.place(&mut state, &dir, name)? {
            Some(at) if tree::look(&dir, name)? == Look::Nothing => self.record(&mut state, FileChange::Made { at }),
            _ => Ok(()),
        }
    }

    /// Records that a file gets another name.
    pub fn linking(&self, from: impl AsFd, to: (impl AsFd, &OsStr)) -> Result<(), UndoRefusal> {
        let mut state = self.lock();
        let is_work = self.place(&mut state, &from, OsStr::new("x"))?.is_some();
        if is_work != self.place(&mut state, &to.0, to.1)?.is_some() {
            return Err(UndoRefusal::Across);
        }
        drop(state);
        self.making(to.0, to.1)
    }

    /// Records that a file or a link is about to be deleted.
    #[expect(clippy::expect_used, reason = "something was recorded")]
    pub fn removing(&self, dir: impl AsFd, name: &OsStr) -> Result<RemovedEntry, UndoRefusal> {
        let mut state = self.lock();
        let Some(at) = self.place(&mut state, &dir, name)? else { return Ok(RemovedEntry::Delete) };
        let (inode, bytes, links) = match tree::look(&dir, name)? {
            Look::File { inode, bytes, links, .. } => (inode, bytes, links),
            Look::Other { inode } => (inode, 0, 1),
            _ => return Ok(RemovedEntry::Delete),
        };
        if state.known.get(&inode) == Some(&Known::Made) {
            // The file may have another name. If it has none, the next file may get its inode number.
            if links == 1 {
                state.known.remove(&inode);
            }
            return Ok(RemovedEntry::Delete);
        }
        if !self.fits(&mut state, &at, bytes)? {
            return Ok(RemovedEntry::Delete);
        }
        let (kept, number) = self.number(&mut state)?;
        self.record(&mut state, FileChange::Removed { at, kept: kept.clone() })?;
        let log = state.log.as_ref().expect("something was recorded");
        renameat(&dir, name, &log.dir, &number).map_err(io::Error::from)?;
        state.bytes += bytes;
        state.kept.insert(inode, kept);
        Ok(RemovedEntry::Done)
    }

    /// Records that an empty directory is about to be deleted.
    pub fn removing_dir(&self, dir: impl AsFd, name: &OsStr) -> Result<(), UndoRefusal> {
        let mut state = self.lock();
        let Some(at) = self.place(&mut state, &dir, name)? else { return Ok(()) };
        match tree::look(&dir, name)? {
            Look::Dir { mode, .. } if is_empty(&dir, name)? => {
                self.record(&mut state, FileChange::RemovedDir { at, mode })
            }
            _ => Ok(()),
        }
    }

    /// Records that an entry is about to be moved, and may replace another one.
    pub fn moving(&self, from: (impl AsFd, &OsStr), to: (impl AsFd, &OsStr)) -> Result<(), UndoRefusal> {
        let mut state = self.lock();
        let (old, new) = (self.place(&mut state, &from.0, from.1)?, self.place(&mut state, &to.0, to.1)?);
        let moved = tree::look(&from.0, from.1)?;
        // Nothing is moved between file systems.
        if moved == Look::Nothing || device(&from.0)? != device(&to.0)? {
            return Ok(());
        }
        if let Some(new) = &new
            && !self.replacing(&mut state, new, &moved, &to.0, to.1)?
        {
            return Ok(());
        }
        match (old, new) {
            (None, None) => Ok(()),
            (Some(old), Some(new)) => self.record(&mut state, FileChange::Moved { from: old, to: new }),
            // A move between the workspace and another directory that tasks see. Each file below is kept, or recorded as new.
            (Some(old), None) => self.taking_out(&mut state, (from.0.as_fd(), from.1), old, 0),
            (None, Some(new)) => self.bringing_in(&mut state, (from.0.as_fd(), from.1), new, 0),
        }
    }

    /// Keeps the files that a move is about to take out of the workspace.
    fn taking_out(&self, state: &mut State, from: Name<'_>, at: SessionPath, depth: usize) -> Result<(), UndoRefusal> {
        match tree::look(from.0, from.1)? {
            Look::Nothing => Ok(()),
            Look::Dir { mode, .. } => {
                let dir = deeper(from, depth)?;
                for name in tree::names_in(&dir)? {
                    self.taking_out(state, (dir.as_fd(), &name), at.join(&name), depth + 1)?;
                }
                self.record(state, FileChange::RemovedDir { at, mode })
            }
            found => self.keep_name(state, &at, &found, from.0, from.1),
        }
    }

    /// Records the files that a move is about to bring into the workspace.
    fn bringing_in(&self, state: &mut State, from: Name<'_>, at: SessionPath, depth: usize) -> Result<(), UndoRefusal> {
        let found = tree::look(from.0, from.1)?;
        self.record(state, FileChange::Made { at: at.clone() })?;
        match found {
            Look::Dir { .. } => {
                let dir = deeper(from, depth)?;
                for name in tree::names_in(&dir)? {
                    self.bringing_in(state, (dir.as_fd(), &name), at.join(&name), depth + 1)?;
                }
            }
            // A file that was taken out before is its own undo copy.
            Look::File { inode, .. } if !state.kept.contains_key(&inode) => {
                state.known.insert(inode, Known::Made);
            }
            _ => {}
        }
        Ok(())
    }

    /// Keeps the entry that a move replaces. Returns whether the move will do anything.
    fn replacing(
        &self,
        state: &mut State,
        at: &SessionPath,
        moved: &Look,
        dir: impl AsFd,
        name: &OsStr,
    ) -> Result<bool, UndoRefusal> {
        let found = tree::look(&dir, name)?;
        match &found {
            Look::Nothing => {}
            // A directory can only replace an empty directory, and nothing else can.
            Look::Dir { mode, inode } => match moved {
                Look::Dir { inode: own, .. } if own != inode && is_empty(&dir, name)? => {
                    self.record(state, FileChange::RemovedDir { at: at.clone(), mode: *mode })?;
                }
                _ => return Ok(false),
            },
            _ if matches!(moved, Look::Dir { .. }) => return Ok(false),
            // Both are names of one file: nothing happens.
            Look::File { inode, .. } if matches!(moved, Look::File { inode: own, .. } if own == inode) => {
                return Ok(false);
            }
            found => self.keep_name(state, at, found, dir, name)?,
        }
        Ok(true)
    }

    /// Keeps a file or a link by adding a second name, so that it has a name at each moment.
    #[expect(clippy::expect_used, reason = "something was recorded")]
    fn keep_name(
        &self,
        state: &mut State,
        at: &SessionPath,
        found: &Look,
        dir: impl AsFd,
        name: &OsStr,
    ) -> Result<(), UndoRefusal> {
        let (inode, bytes) = match found {
            Look::File { inode, bytes, .. } => (*inode, *bytes),
            Look::Other { inode } => (*inode, 0),
            _ => return Ok(()),
        };
        if state.known.get(&inode) == Some(&Known::Made) || !self.fits(state, at, bytes)? {
            return Ok(());
        }
        let (kept, number) = self.number(state)?;
        self.record(state, FileChange::Removed { at: at.clone(), kept: kept.clone() })?;
        let log = state.log.as_ref().expect("something was recorded");
        // On file systems with one name per file, there is such a moment.
        if linkat(&dir, name, &log.dir, &number, AtFlags::empty()).is_err() {
            renameat(&dir, name, &log.dir, &number).map_err(io::Error::from)?;
        }
        state.bytes += bytes;
        state.kept.insert(inode, kept);
        Ok(())
    }

    /// The path of a name in the workspace; `None` if it is elsewhere.
    fn place(&self, state: &mut State, dir: impl AsFd, name: &OsStr) -> io::Result<Option<SessionPath>> {
        let found = self.tree()?.path_of(&dir)?;
        match found {
            Some(dir) => Ok(Some(dir.join(name)).filter(SessionPath::is_work)),
            None => self.leave(state, MACHINE).map(|()| None),
        }
    }

    #[expect(clippy::expect_used, reason = "it was begun")]
    fn keep_content(&self, state: &mut State, at: SessionPath, inode: u64, adds: bool) -> Result<(), UndoRefusal> {
        let tree = self.tree()?;
        let file = tree.open_file(&at, OFlags::RDONLY)?;
        let found = file.metadata()?;
        if found.ino() != inode {
            // Somebody has replaced the file.
            return Ok(());
        }
        if adds {
            let modified = found.mtime().wrapping_mul(1_000_000_000).wrapping_add(found.mtime_nsec());
            let label = tree.labels.label_of(&file);
            let label = (!label.is_ordinary()).then(|| (*label.label()).clone());
            self.record(state, FileChange::Grew { at, inode, length: found.len(), modified, label })?;
            state.known.insert(inode, Known::Length);
            return Ok(());
        }
        if self.fits(state, &at, found.len())? {
            let (kept, number) = self.number(state)?;
            let log = state.log.as_ref().expect("it was begun");
            match keep::copy_to(&file, &log.dir, OsStr::new(&number)) {
                Ok(copy) => {
                    tree.labels.copied(&file, &copy)?;
                    state.bytes += found.len();
                    self.record(state, FileChange::Wrote { at, inode, kept })?;
                }
                Err(error) => self.lose(state, at, format!("it could not be copied: {error}"))?,
            }
        }
        state.known.insert(inode, Known::Content);
        Ok(())
    }
}

/// Opens a directory, unless it is nested deeper than a guest can make it.
fn deeper((dir, name): Name<'_>, depth: usize) -> io::Result<OwnedFd> {
    const MAX_DEPTH: usize = 128;
    match depth > MAX_DEPTH {
        true => Err(io::Error::other("directories are nested too deep")),
        false => tree::open_dir(dir, name),
    }
}

fn device(dir: impl AsFd) -> io::Result<rustix::fs::Dev> {
    Ok(fstat(dir)?.st_dev)
}

fn is_empty(dir: impl AsFd, name: &OsStr) -> io::Result<bool> {
    Ok(tree::names_in(&tree::open_dir(dir, name)?)?.is_empty())
}
