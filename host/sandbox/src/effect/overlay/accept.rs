//! Brings a difference into the folder: all of it or nothing, even after a crash.
//!
//! ```text
//! stage: new files are copied beside the folder ──▶ journal, on disk ──▶ steps: renames only ──▶ done ──▶ the upper layer is cleared
//!                                                        └── a crash or an error: the steps are taken back
//! ```
//!
//! The staging directory keeps what was replaced and deleted, so an acceptance can be undone, and done again.

mod clear;
mod conflict;
mod journal;
mod labels;
mod prepare;
mod print;
mod step;
mod waiting;

use self::journal::{AcceptHeader, AcceptLog, AcceptRecord, AcceptState, AcceptedStates, Stage, append};
use self::labels::PathLabels;
use self::step::AcceptStep;
use super::Overlay;
use super::base::FileState;
use super::difference::{FolderChange, FolderChangeKind, FolderDifference, FolderSelection, count};
use super::lower::DIRECTORY;
use crate::effect::undo::SessionPath;
use kiso_base::clock::now_ms;
use rustix::fs::{Mode, fstat};
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// The reason why a difference was not accepted, or an acceptance not undone or redone.
#[derive(Debug, thiserror::Error)]
pub enum AcceptError {
    #[error("there is nothing to accept")]
    Nothing,
    /// A line for each path.
    #[error("the folder has changed since: {}", .0.join("; "))]
    Collision(Vec<String>),
    #[error("{0}")]
    Dependent(String),
    #[error("this acceptance cannot be {0}: it is unknown, or already is")]
    Missing(&'static str),
    #[error("the folder cannot be changed: {0}; it is as it was")]
    Io(#[from] io::Error),
    /// The steps failed, and not all of them could be taken back. The journal records it, and the next opening continues.
    #[error(
        "the folder is changed in part: {error}, and then {back}; the next command that opens the folder puts it back as it was before the \
         changes were accepted"
    )]
    Partial { error: io::Error, back: io::Error },
}

/// A difference that was accepted, and can be undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acceptance {
    pub number: u64,
    /// When it was accepted, undone or redone, in milliseconds since 1970.
    pub changed_ms: i64,
    pub changes: usize,
    pub is_undone: bool,
    /// Whether its changes wait to be accepted again.
    pub waits: bool,
}

/// An acceptance whose steps are to be done.
struct PendingAcceptance {
    id: u64,
    header: AcceptHeader,
    steps: Vec<AcceptStep>,
    /// The labels of shared files; empty for other folders.
    labels: Vec<PathLabels>,
}

/// Steps that could not all be taken back.
#[derive(Debug)]
struct FailedUndo<'s> {
    error: io::Error,
    /// The steps that were taken back, the last one first. The one that failed is at the end.
    reverted: Vec<&'s AcceptStep>,
}

impl From<FailedUndo<'_>> for io::Error {
    fn from(failed: FailedUndo<'_>) -> Self {
        failed.error
    }
}

/// The directory of acceptances, in the session's directory of the folder.
pub(super) const ACCEPTED: &str = "accepted";

/// Begins the name of the staging directory, where that has to be in the folder itself.
const STAGE: &str = ".kiso~accepted";

impl Overlay {
    /// Brings the chosen changes of a difference into the folder. The caller has held the session's lock since the difference was
    /// made.
    pub fn accept(
        &self,
        difference: &FolderDifference,
        selection: &FolderSelection,
    ) -> Result<Acceptance, AcceptError> {
        self.accept_recorded(difference, selection, |_| Ok(()))
    }

    /// The same. `record` gets the number of the acceptance before anything has changed.
    pub(super) fn accept_recorded(
        &self,
        difference: &FolderDifference,
        selection: &FolderSelection,
        record: impl FnOnce(u64) -> io::Result<()>,
    ) -> Result<Acceptance, AcceptError> {
        let PendingAcceptance { id, header, steps, labels } = self.begin(difference, selection)?;
        let log = self.accept_log(id);
        if let Err(error) = record(id) {
            self.forget(id, &header)?;
            return Err(error.into());
        }
        let mut stage = self.stage(&header, &labels)?;
        if let Err(error) = self.run(&mut stage, &steps) {
            return Err(match self.take_back(&mut stage, &steps) {
                Ok(()) => {
                    self.forget(id, &header)?;
                    error.into()
                }
                Err(failed) => AcceptError::Partial { error, back: failed.error },
            });
        }
        let after = self.states_after(&steps)?;
        append(&log, &[AcceptRecord::After(after), AcceptRecord::State(AcceptState::Done)])?;
        self.clear(id, &header, &steps)?;
        append(&log, &[AcceptRecord::State(AcceptState::Cleared)])?;
        if let Err(error) = self.forget_waiting() {
            tracing::warn!(at = self.at, "the files of an undone acceptance could not be deleted: {error}");
        }
        Ok(Acceptance { number: id, changed_ms: now_ms(), changes: header.changes, is_undone: false, waits: false })
    }

    /// Puts the new files and the journal on disk. Nothing in the folder has changed yet.
    fn begin(
        &self,
        difference: &FolderDifference,
        selection: &FolderSelection,
    ) -> Result<PendingAcceptance, AcceptError> {
        let chosen = choose(difference, selection)?;
        let id = self.accept_logs()?.last().map_or(1, |id| id + 1);
        let stage_path = self.make_stage(id)?;
        let prepared = self.prepare(&chosen, difference, &stage_path);
        let steps = match prepared {
            Ok(steps) => steps,
            Err(error) => {
                let _ = std::fs::remove_dir_all(&stage_path);
                return Err(error.into());
            }
        };
        let is_part = chosen.iter().any(|change| change.part.is_some());
        let is_all = chosen.len() == difference.changes.len() && !is_part;
        let header = AcceptHeader {
            at_ms: now_ms(),
            stage: SessionPath::new(&stage_path),
            changes: count(chosen.iter().copied()),
            is_all,
            keeps_layer: is_all && !self.is_shared() && self.is_kept()?,
        };
        let _lock = self.lock_shared()?;
        let labels = self.path_labels(&chosen);
        self.label_staged(&stage_path, &steps, &labels)?;
        let mut records = vec![AcceptRecord::Begin(header.clone())];
        if !labels.is_empty() {
            records.push(AcceptRecord::Labels(labels.clone()));
        }
        records.extend(steps.iter().cloned().map(AcceptRecord::Step));
        records.push(AcceptRecord::State(AcceptState::Ready));
        append(&self.accept_log(id), &records)?;
        Ok(PendingAcceptance { id, header, steps, labels })
    }

    /// Drops the chosen changes. They cannot be brought back.
    pub fn discard(&self, difference: &FolderDifference, selection: &FolderSelection) -> Result<usize, AcceptError> {
        let chosen = choose_any(difference, selection)?;
        let changes = count(chosen.iter().copied());
        if chosen.len() == difference.changes.len() {
            self.empty_upper()?;
            return Ok(changes);
        }
        let mut paths: Vec<_> = chosen.iter().map(|change| change.path.clone()).collect();
        paths.sort_by_key(|path| std::cmp::Reverse(path.iter().count()));
        for path in paths {
            self.drop_upper(&path)?;
        }
        for change in &chosen {
            if let FolderChangeKind::Moved(from) = &change.kind {
                self.drop_upper(from)?;
            }
        }
        Ok(changes)
    }

    /// The acceptances that can be undone or done again, the oldest first.
    pub fn acceptances(&self) -> io::Result<Vec<Acceptance>> {
        let mut all = Vec::new();
        for number in self.accept_logs()? {
            let path = self.accept_log(number);
            if let Some(AcceptLog { header, state: Some(state), waiting, .. }) = AcceptLog::read(&path)? {
                let modified = path.metadata()?.modified()?.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
                let changed_ms = i64::try_from(modified.as_millis()).unwrap_or(i64::MAX);
                let is_undone = state == AcceptState::Undone;
                let waits = is_undone && waiting.is_some();
                all.push(Acceptance { number, changed_ms, changes: header.changes, is_undone, waits });
            }
        }
        Ok(all)
    }

    /// Restores the folder to its state before an acceptance. With `force` also if its files have changed since.
    pub fn undo_acceptance(&self, id: u64, force: bool) -> Result<Acceptance, AcceptError> {
        let log = self.read_log(id, "undone", |state| matches!(state, AcceptState::Done | AcceptState::Cleared))?;
        let changed: Vec<String> = if force { Vec::new() } else { self.changed_since(&log)? };
        if !changed.is_empty() {
            return Err(AcceptError::Collision(changed));
        }
        let path = self.accept_log(id);
        append(&path, &[AcceptRecord::State(AcceptState::Undoing)])?;
        let mut stage = self.stage(&log.header, &log.labels)?;
        if let Err(FailedUndo { error, reverted }) = self.take_back(&mut stage, &log.steps) {
            return Err(match self.put_again(&mut stage, &reverted) {
                Ok(()) => {
                    let after = self.states_again(&reverted, log.after)?;
                    append(&path, &[AcceptRecord::After(after), AcceptRecord::State(AcceptState::Cleared)])?;
                    error.into()
                }
                // The journal still has the state of an undo, which the next opening completes.
                Err(back) => AcceptError::Partial { error, back },
            });
        }
        self.renew_bases(&log.steps)?;
        let waits = self.undone(id, &path)?;
        Ok(Acceptance { waits, ..acceptance(id, &log, true) })
    }

    /// Accepts changes again that were undone.
    pub fn redo_acceptance(&self, id: u64) -> Result<Acceptance, AcceptError> {
        let log = self.read_log(id, "redone", |state| state == AcceptState::Undone)?;
        let waits = self.waits(&log)?;
        let path = self.accept_log(id);
        append(&path, &[AcceptRecord::State(AcceptState::Redoing)])?;
        let mut stage = self.stage(&log.header, &log.labels)?;
        if let Err(error) = self.run(&mut stage, &log.steps) {
            return Err(match self.take_back(&mut stage, &log.steps) {
                Ok(()) => {
                    append(&path, &[AcceptRecord::State(AcceptState::Undone)])?;
                    error.into()
                }
                Err(failed) => AcceptError::Partial { error, back: failed.error },
            });
        }
        self.renew_bases(&log.steps)?;
        let after = self.states_after(&log.steps)?;
        if waits {
            append(&path, &[AcceptRecord::After(after), AcceptRecord::State(AcceptState::Done)])?;
            self.clear(id, &log.header, &log.steps)?;
            append(&path, &[AcceptRecord::State(AcceptState::Cleared)])?;
        } else {
            append(&path, &[AcceptRecord::After(after), AcceptRecord::State(AcceptState::Cleared)])?;
        }
        Ok(acceptance(id, &log, false))
    }

    /// Deletes the files of acceptances before a time (milliseconds since 1970).
    pub fn sweep_acceptances(&self, before_ms: i64) -> io::Result<()> {
        for id in self.accept_logs()? {
            if let Some(log) = AcceptLog::read(&self.accept_log(id))?
                && log.header.at_ms < before_ms
            {
                self.forget(id, &log.header)?;
            }
        }
        Ok(())
    }

    /// Completes the work of a process that was killed: an acceptance is taken back, unless it was complete.
    pub(super) fn recover(&self) -> io::Result<()> {
        for id in self.accept_logs()? {
            let path = self.accept_log(id);
            let Some(log) = AcceptLog::read(&path)? else {
                std::fs::remove_file(&path)?;
                continue;
            };
            match log.state {
                Some(AcceptState::Cleared | AcceptState::Undone) => {}
                Some(AcceptState::Done) => {
                    self.clear(id, &log.header, &log.steps)?;
                    append(&path, &[AcceptRecord::State(AcceptState::Cleared)])?;
                }
                Some(state @ (AcceptState::Undoing | AcceptState::Redoing)) => {
                    let mut stage = self.stage(&log.header, &log.labels)?;
                    self.take_back(&mut stage, &log.steps)?;
                    self.renew_bases(&log.steps)?;
                    match state {
                        AcceptState::Undoing => {
                            self.undone(id, &path)?;
                        }
                        _ => append(&path, &[AcceptRecord::State(AcceptState::Undone)])?,
                    }
                }
                Some(AcceptState::Returning) => self.bring_back(id, &path)?,
                Some(AcceptState::Ready) | None => {
                    if let (Ok(mut stage), Some(_)) = (self.stage(&log.header, &log.labels), log.state) {
                        self.take_back(&mut stage, &log.steps)?;
                    }
                    self.forget(id, &log.header)?;
                }
            }
        }
        Ok(())
    }

    fn read_log(
        &self,
        id: u64,
        verb: &'static str,
        is_usable: impl Fn(AcceptState) -> bool,
    ) -> Result<AcceptLog, AcceptError> {
        let path = self.accept_log(id);
        let log = if path.exists() { AcceptLog::read(&path)? } else { None };
        log.filter(|log| log.state.is_some_and(is_usable)).ok_or(AcceptError::Missing(verb))
    }

    fn accept_log(&self, id: u64) -> PathBuf {
        self.kept.join(ACCEPTED).join(format!("{id}.log"))
    }

    /// The numbers of the journals, in their order.
    fn accept_logs(&self) -> io::Result<Vec<u64>> {
        let entries = match std::fs::read_dir(self.kept.join(ACCEPTED)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut all = Vec::new();
        for entry in entries {
            let name = entry?.file_name();
            all.extend(name.to_str().and_then(|name| name.strip_suffix(".log")?.parse::<u64>().ok()));
        }
        all.sort_unstable();
        Ok(all)
    }

    /// Makes the staging directory: beside the journal, or in the folder if that is on another file system.
    fn make_stage(&self, id: u64) -> io::Result<PathBuf> {
        let accepted = self.kept.join(ACCEPTED);
        std::fs::create_dir_all(&accepted)?;
        let is_near = fstat(File::open(&accepted)?)?.st_dev == fstat(self.lower.root())?.st_dev;
        let above = if self.is_shared() { 1 } else { 2 };
        let session = self.kept.ancestors().nth(above).and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        let path = match is_near {
            true => accepted.join(id.to_string()),
            false => self.lower.path().join(format!("{STAGE}-{session}-{id}")),
        };
        // A crash may have left these files without a journal.
        self.forget_layer(id)?;
        match std::fs::remove_dir_all(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        std::fs::create_dir(&path)?;
        Ok(path)
    }

    fn stage(&self, header: &AcceptHeader, labels: &[PathLabels]) -> io::Result<Stage<'_>> {
        let stage = rustix::fs::open(header.stage.as_path(), DIRECTORY, Mode::empty())?;
        let (labels, lock) = (self.stage_labels(labels), self.lock_shared()?);
        Ok(Stage { folder: self.lower.root(), stage, touched: BTreeSet::new(), labels, _lock: lock })
    }

    fn forget(&self, id: u64, header: &AcceptHeader) -> io::Result<()> {
        let stage = header.stage.as_path();
        let removed = match stage.starts_with(self.home.path()) {
            true => self.home.remove_tree(stage),
            false => std::fs::remove_dir_all(stage),
        };
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        self.forget_layer(id)?;
        std::fs::remove_file(self.accept_log(id))
    }

    fn run(&self, stage: &mut Stage<'_>, steps: &[AcceptStep]) -> io::Result<()> {
        steps.iter().try_for_each(|step| stage.apply(step))?;
        stage.sync()
    }

    /// Takes the steps back, the last one first.
    fn take_back<'s>(&self, stage: &mut Stage<'_>, steps: &'s [AcceptStep]) -> Result<(), FailedUndo<'s>> {
        let mut reverted = Vec::new();
        let done = steps.iter().rev().try_for_each(|step| {
            // A step that failed may be taken back in part.
            reverted.push(step);
            if !stage.revert(step)? {
                reverted.pop();
            }
            Ok(())
        });
        done.and_then(|()| stage.sync()).map_err(|error| FailedUndo { error, reverted })
    }

    /// Does steps again that were taken back, in their first order.
    fn put_again(&self, stage: &mut Stage<'_>, reverted: &[&AcceptStep]) -> io::Result<()> {
        reverted.iter().rev().try_for_each(|step| stage.restore(step))?;
        stage.sync()
    }

    fn states_after(&self, steps: &[AcceptStep]) -> io::Result<AcceptedStates> {
        let paths: BTreeSet<&SessionPath> = steps.iter().map(AcceptStep::path).collect();
        paths.into_iter().map(|path| Ok((path.clone(), self.state_now(path)?))).collect()
    }

    /// The same states after steps were done again. Only directories that were made again have new states.
    fn states_again(&self, steps: &[&AcceptStep], mut states: AcceptedStates) -> io::Result<AcceptedStates> {
        let dirs: BTreeSet<&SessionPath> =
            steps.iter().filter(|step| matches!(step, AcceptStep::MakeDir { .. })).map(|step| step.path()).collect();
        for (path, state) in states.iter_mut().filter(|(path, _)| dirs.contains(path)) {
            *state = self.state_now(path)?;
        }
        Ok(states)
    }

    fn state_now(&self, path: &SessionPath) -> io::Result<Option<FileState>> {
        Ok(self.lower.stat(path.as_path())?.map(|stat| FileState::from_stat(&stat)))
    }

    /// Paths that somebody has changed since an acceptance, a line each.
    fn changed_since(&self, log: &AcceptLog) -> io::Result<Vec<String>> {
        let mut changed = Vec::new();
        for (path, after) in &log.after {
            let is_same = match (&self.state_now(path)?, after) {
                (None, None) => true,
                (Some(now), Some(after)) => now.is_same(after),
                _ => false,
            };
            if !is_same {
                changed.push(format!("{path} was changed since"));
            }
        }
        Ok(changed)
    }
}

fn acceptance(number: u64, log: &AcceptLog, is_undone: bool) -> Acceptance {
    Acceptance { number, changed_ms: now_ms(), changes: log.header.changes, is_undone, waits: false }
}

fn choose_any<'a>(
    difference: &'a FolderDifference,
    selection: &FolderSelection,
) -> Result<Vec<&'a FolderChange>, AcceptError> {
    let chosen: Vec<&FolderChange> = difference.changes.iter().filter(|change| selection.contains(change)).collect();
    if chosen.is_empty() { Err(AcceptError::Nothing) } else { Ok(chosen) }
}

/// The chosen changes, with the new directories that contain them. Fails if one of them cannot be accepted, or only together with
/// another.
fn choose<'a>(
    difference: &'a FolderDifference,
    selection: &FolderSelection,
) -> Result<Vec<&'a FolderChange>, AcceptError> {
    let chosen = choose_any(difference, selection)?;
    let is_above = |change: &FolderChange| {
        let is_dir = change.after.is_some_and(|after| after.is_dir());
        is_dir && chosen.iter().any(|other| other.path.starts_with(&change.path))
    };
    let is_chosen = |change: &FolderChange| selection.contains(change) || is_above(change);
    let all: Vec<&FolderChange> = difference.changes.iter().filter(|change| is_chosen(change)).collect();
    for change in difference.changes.iter().filter(|change| !is_chosen(change)) {
        let takes = |other: &&&FolderChange| match (&other.kind, change.moved_from()) {
            (FolderChangeKind::Deleted, Some(from)) => from.starts_with(&other.path),
            (FolderChangeKind::Moved(source), Some(from)) => from.starts_with(source),
            _ => false,
        };
        if let Some(other) = all.iter().find(takes) {
            let (moved, of) = (change.path.display(), other.path.display());
            return Err(AcceptError::Dependent(format!("{moved} was moved out of {of}; accept both, or all changes")));
        }
    }
    let collisions: Vec<String> =
        all.iter().filter_map(|change| Some(format!("{} {}", change.path.display(), change.collision?))).collect();
    if collisions.is_empty() { Ok(all) } else { Err(AcceptError::Collision(collisions)) }
}

#[cfg(test)]
mod tests;
