//! The journal of an acceptance: each step is on disk before the first of them is done, and every step can be taken back.
//!
//! A crash leaves any number of steps done. The entries themselves show which, so nothing is written between two steps.

use super::super::base::FileState;
use super::super::lower::{DIRECTORY, is_dir, is_missing, stat_at};
use super::labels::{PathLabels, StageLabels};
use super::print::LayerPrint;
use super::step::{AcceptStep, staged_name};
use crate::effect::undo::SessionPath;
use rustix::fs::{AtFlags, Mode, RenameFlags, fchmod, linkat, mkdirat, openat, renameat, renameat_with, unlinkat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A line of the journal.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum AcceptRecord {
    Begin(AcceptHeader),
    Step(AcceptStep),
    State(AcceptState),
    /// The labels of shared files.
    Labels(Vec<PathLabels>),
    /// The changes wait again, in an upper layer like this.
    Waiting(LayerPrint),
    /// The states of the entries that were put, removed or moved, as the acceptance left them.
    After(AcceptedStates),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct AcceptHeader {
    /// Milliseconds since 1970.
    pub(super) at_ms: i64,
    /// The staging directory.
    pub(super) stage: SessionPath,
    pub(super) changes: usize,
    /// Whether the upper layer is emptied when it is done.
    pub(super) is_all: bool,
    /// Whether the upper layer is kept then, for the changes to wait again after an undo.
    #[serde(default)]
    pub(super) keeps_layer: bool,
}

/// The states of entries as an acceptance left them.
pub(super) type AcceptedStates = Vec<(SessionPath, Option<FileState>)>;

/// The progress of an acceptance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum AcceptState {
    /// All steps are on disk.
    Ready,
    /// All steps are done.
    Done,
    /// The upper layer no longer has the changes.
    Cleared,
    Undoing,
    /// The folder is as it was, and the changes come back to the upper layer.
    Returning,
    Undone,
    Redoing,
}

/// A journal as it is on disk.
#[derive(Debug)]
pub(super) struct AcceptLog {
    pub(super) header: AcceptHeader,
    pub(super) steps: Vec<AcceptStep>,
    /// `None` if a crash came before the steps were complete.
    pub(super) state: Option<AcceptState>,
    pub(super) after: AcceptedStates,
    /// The upper layer in which the changes wait again.
    pub(super) waiting: Option<LayerPrint>,
    pub(super) labels: Vec<PathLabels>,
}

impl AcceptLog {
    /// `None` if the journal has no complete first line.
    pub(super) fn read(path: &Path) -> io::Result<Option<Self>> {
        let mut log: Option<Self> = None;
        for line in BufReader::new(File::open(path)?).split(b'\n') {
            // A crash may have cut off the last one.
            let Ok(record) = serde_json::from_slice(&line?) else { break };
            match (record, &mut log) {
                (AcceptRecord::Begin(header), none @ None) => {
                    *none = Some(Self {
                        header,
                        steps: Vec::new(),
                        state: None,
                        after: Vec::new(),
                        waiting: None,
                        labels: Vec::new(),
                    });
                }
                (AcceptRecord::Step(step), Some(log)) => log.steps.push(step),
                (AcceptRecord::State(state), Some(log)) => {
                    log.state = Some(state);
                    if matches!(state, AcceptState::Done | AcceptState::Cleared) {
                        log.waiting = None;
                    }
                }
                (AcceptRecord::Waiting(print), Some(log)) => log.waiting = Some(print),
                (AcceptRecord::After(after), Some(log)) => log.after = after,
                (AcceptRecord::Labels(labels), Some(log)) => log.labels = labels,
                _ => break,
            }
        }
        Ok(log)
    }
}

/// Appends lines, and waits until they are on disk.
pub(super) fn append(path: &Path, records: &[AcceptRecord]) -> io::Result<()> {
    let mut text = Vec::new();
    for record in records {
        serde_json::to_writer(&mut text, record)?;
        text.push(b'\n');
    }
    let is_new = !path.exists();
    let mut file = OpenOptions::new().append(true).create(true).open(path)?;
    file.write_all(&text)?;
    file.sync_all()?;
    match path.parent().filter(|_| is_new) {
        Some(dir) => File::open(dir)?.sync_all(),
        None => Ok(()),
    }
}

/// The folder and its staging directory, for the steps of one acceptance.
#[derive(Debug)]
pub(super) struct Stage<'a> {
    pub(super) folder: &'a OwnedFd,
    pub(super) stage: OwnedFd,
    /// Directories whose entries have changed.
    pub(super) touched: BTreeSet<PathBuf>,
    /// The labels of shared files; `None` for other folders.
    pub(super) labels: Option<StageLabels>,
    /// Nobody else changes shared files meanwhile.
    pub(super) _lock: Option<Arc<File>>,
}

impl Stage<'_> {
    /// The directory of a path, and the name there.
    fn slot<'p>(&mut self, path: &'p SessionPath) -> io::Result<(OwnedFd, &'p OsStr)> {
        let path = path.as_path();
        let parent = path.parent().unwrap_or(Path::new(""));
        let mut dir = self.folder.try_clone()?;
        for name in parent {
            dir = openat(&dir, name, DIRECTORY, Mode::empty())?;
        }
        self.touched.insert(parent.to_owned());
        Ok((dir, path.file_name().unwrap_or_default()))
    }

    fn state(dir: &OwnedFd, name: &OsStr) -> io::Result<Option<FileState>> {
        Ok(stat_at(dir, name)?.map(|stat| FileState::from_stat(&stat)))
    }

    /// Does a step. Fails if the folder's entry is not as it was when the step was planned.
    pub(super) fn apply(&mut self, step: &AcceptStep) -> io::Result<()> {
        let Some(labels) = self.labels.take() else { return self.change(step) };
        let changed = self.slot(step.path()).and_then(|slot| {
            let slot = (&slot.0, slot.1);
            let change = labels.changing(step, slot)?;
            self.change(step)?;
            if let AcceptStep::MakeDir { path, .. } = step {
                labels.made_dir(path, slot)?;
            }
            change.done()
        });
        self.labels = Some(labels);
        changed
    }

    fn change(&mut self, step: &AcceptStep) -> io::Result<()> {
        match step {
            AcceptStep::TakeOut { from: path, staged: number, before }
            | AcceptStep::Remove { path, kept: number, before } => {
                let (dir, name) = self.slot(path)?;
                if Self::state(&dir, name)?.is_none_or(|now| !now.is_same(before)) {
                    return Err(changed(path));
                }
                move_new(&dir, name, &self.stage, &staged_name(*number))
            }
            AcceptStep::Place { staged, path, .. } => {
                let (dir, name) = self.slot(path)?;
                move_new(&self.stage, &staged_name(*staged), &dir, name).map_err(|error| there(error, path))
            }
            AcceptStep::MakeDir { path, mode } => {
                let (dir, name) = self.slot(path)?;
                mkdirat(&dir, name, Mode::RWXU).map_err(|error| there(error.into(), path))?;
                let made: OwnedFd = openat(&dir, name, DIRECTORY, Mode::empty())?;
                // 16 bits on some systems, 32 on others.
                #[allow(clippy::useless_conversion)]
                let mode = Mode::from_raw_mode((*mode).try_into().unwrap_or_default());
                Ok(fchmod(&made, mode | Mode::RWXU)?)
            }
            AcceptStep::Put { path, new, kept, before, .. } => {
                let (dir, name) = self.slot(path)?;
                let (new, kept) = (staged_name(*new), staged_name(*kept));
                let Some(before) = before else {
                    return move_new(&self.stage, &new, &dir, name).map_err(|error| there(error, path));
                };
                if Self::state(&dir, name)?.is_none_or(|now| !now.is_same(before)) {
                    return Err(changed(path));
                }
                // The old file gets its second name first, so that it always has one of the two.
                if linkat(&dir, name, &self.stage, &kept, AtFlags::empty()).is_err() {
                    move_new(&dir, name, &self.stage, &kept)?;
                }
                Ok(renameat(&self.stage, &new, &dir, name)?)
            }
        }
    }

    /// Takes a step back, if it was done. Returns whether something was changed.
    pub(super) fn revert(&mut self, step: &AcceptStep) -> io::Result<bool> {
        let is_changed = self.change_back(step)?;
        // An entry that somebody else has put there has its own label.
        let Some(labels) = self.labels.take_if(|_| is_changed) else { return Ok(is_changed) };
        let put_back = self.found(step.path()).and_then(|found| match found {
            Some((dir, name)) => labels.put_back(step.path(), (&dir, name)),
            None => Ok(()),
        });
        self.labels = Some(labels);
        put_back.map(|()| is_changed)
    }

    fn change_back(&mut self, step: &AcceptStep) -> io::Result<bool> {
        match step {
            AcceptStep::TakeOut { from: path, staged: number, .. } | AcceptStep::Remove { path, kept: number, .. } => {
                let kept = staged_name(*number);
                if stat_at(&self.stage, &kept)?.is_none() {
                    return Ok(false);
                }
                let (dir, name) = self.slot(path)?;
                move_new(&self.stage, &kept, &dir, name).map_err(|error| there(error, path))?;
                Ok(true)
            }
            AcceptStep::Place { staged, path, inode } => {
                let (staged, Some((dir, name))) = (staged_name(*staged), self.found(path)?) else { return Ok(false) };
                // The entry may not have been moved here, and may not even have left its old place.
                if stat_at(&dir, name)?.is_none_or(|stat| number(stat.st_ino) != *inode) {
                    return Ok(false);
                }
                move_new(&dir, name, &self.stage, &staged)?;
                Ok(true)
            }
            AcceptStep::MakeDir { path, .. } => {
                let Some((dir, name)) = self.found(path)? else { return Ok(false) };
                match unlinkat(&dir, name, AtFlags::REMOVEDIR) {
                    // Somebody else has put something there.
                    Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => Ok(false),
                    done => Ok(done.map(|()| true)?),
                }
            }
            AcceptStep::Put { path, new, inode, kept, .. } => {
                let Some((dir, name)) = self.found(path)? else { return Ok(false) };
                let (new, kept) = (staged_name(*new), staged_name(*kept));
                // The new file is kept, so that this can be done again.
                let is_new = stat_at(&dir, name)?.is_some_and(|stat| number(stat.st_ino) == *inode);
                let mut is_changed = false;
                if is_new && stat_at(&self.stage, &new)?.is_none() {
                    match stat_at(&self.stage, &kept)? {
                        Some(_) if linkat(&dir, name, &self.stage, &new, AtFlags::empty()).is_ok() => {}
                        _ => renameat(&dir, name, &self.stage, &new)?,
                    }
                    is_changed = true;
                }
                if stat_at(&self.stage, &kept)?.is_some() {
                    renameat(&self.stage, &kept, &dir, name)?;
                    // A move between two names of one file leaves both.
                    let _ = unlinkat(&self.stage, &kept, AtFlags::empty());
                    is_changed = true;
                }
                Ok(is_changed)
            }
        }
    }

    /// Does a step again that was taken back, perhaps only in part.
    pub(super) fn restore(&mut self, step: &AcceptStep) -> io::Result<()> {
        let is_done = match step {
            AcceptStep::TakeOut { staged: number, .. } | AcceptStep::Remove { kept: number, .. } => {
                stat_at(&self.stage, &staged_name(*number))?.is_some()
            }
            AcceptStep::Place { path, inode, .. } => self.has(path, *inode)?,
            AcceptStep::MakeDir { path, .. } => match self.found(path)? {
                Some((dir, name)) => stat_at(&dir, name)?.is_some_and(|stat| is_dir(&stat)),
                None => false,
            },
            AcceptStep::Put { path, new, inode, kept, .. } => {
                let (new, kept) = (staged_name(*new), staged_name(*kept));
                let has_new = self.has(path, *inode)?;
                if has_new && stat_at(&self.stage, &new)?.is_some() {
                    unlinkat(&self.stage, &new, AtFlags::empty())?;
                }
                let (dir, name) = self.slot(path)?;
                // It was moved away, and nothing was put in its place.
                let is_half = stat_at(&dir, name)?.is_none() && stat_at(&self.stage, &kept)?.is_some();
                if is_half {
                    move_new(&self.stage, &new, &dir, name).map_err(|error| there(error, path))?;
                }
                has_new || is_half
            }
        };
        if is_done { Ok(()) } else { self.apply(step) }
    }

    /// Whether a file is at a path.
    fn has(&mut self, path: &SessionPath, inode: u64) -> io::Result<bool> {
        let Some((dir, name)) = self.found(path)? else { return Ok(false) };
        Ok(stat_at(&dir, name)?.is_some_and(|stat| number(stat.st_ino) == inode))
    }

    /// The directory of a path, if it is there.
    fn found<'p>(&mut self, path: &'p SessionPath) -> io::Result<Option<(OwnedFd, &'p OsStr)>> {
        match self.slot(path) {
            Ok(slot) => Ok(Some(slot)),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Waits until the names are on disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        for path in &self.touched {
            let mut dir = self.folder.try_clone()?;
            let opened = path.iter().try_for_each(|name| {
                dir = openat(&dir, name, DIRECTORY, Mode::empty())?;
                Ok::<_, Errno>(())
            });
            if opened.is_ok() {
                File::from(dir).sync_all()?;
            }
        }
        File::from(self.stage.try_clone()?).sync_all()
    }
}

// The types differ between systems.
#[allow(clippy::useless_conversion, clippy::unnecessary_cast)]
pub(super) fn number(inode: impl TryInto<u64>) -> u64 {
    inode.try_into().unwrap_or_default()
}

/// Moves an entry to a free name.
fn move_new(from: &OwnedFd, name: &OsStr, to: &OwnedFd, new: &OsStr) -> io::Result<()> {
    match renameat_with(from, name, to, new, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => match stat_at(to, new)? {
            None => Ok(renameat(from, name, to, new)?),
            Some(_) => Err(Errno::EXIST.into()),
        },
        moved => Ok(moved?),
    }
}

fn changed(path: &SessionPath) -> io::Error {
    io::Error::other(format!("{path} was changed in the folder meanwhile"))
}

fn there(error: io::Error, path: &SessionPath) -> io::Error {
    match error.kind() {
        io::ErrorKind::AlreadyExists => io::Error::other(format!("{path} was made in the folder meanwhile")),
        _ => error,
    }
}
