//! Undo: the earlier state of a session's workspace, kept until it is too old or too large.
//!
//! ```text
//! a task begins ──▶ Transaction ──before the first change of a thing──▶ sessions/ID/undo/7/log   what changed, a line each
//!                        │                                              sessions/ID/undo/7/3     what was there, if it was a file
//!          ended ◀───────┴──▶ cut off by a crash, a limit or its user
//!   it can be undone              it is rolled back at once
//! ```
//!
//! In reading order: [`Undo`] has the undo data of a home, [`Transaction`] is the work of one task, with a function for each kind
//! of change that is about to happen (`making`, `removing` …), [`log`] is the form on disk, [`tree`] accesses a session's
//! directory without following links, [`keep`] copies files, [`mod@revert`] takes one change back, and [`plan`] has the changes
//! of an undo and its conflicts.
//!
//! A line of the log is written before its change is made, so a process may be killed at any time: of the last line alone it is
//! not known whether it was done, and taking it back where it was not is nothing. A power cut is another matter, because
//! nothing here waits for the disk: how the machine was booted stands in each log.

mod bytes;
mod changed;
mod keep;
mod line;
mod log;
mod plan;
mod revert;
mod shared;
mod shelf;
mod transaction;
mod tree;

pub(crate) use self::bytes::{DELETED, SessionPath, is_of_layer};
pub use self::line::{ChangeLine, UndoVerb};
pub use self::log::{Origin, UndoKind};
pub use self::plan::UndoPlan;
pub use self::shared::SharedAcceptances;
pub use self::shelf::{UndoEntry, boot};
pub use self::transaction::{Opening, RemovedEntry, RollBack, Transaction, UndoLimits, UndoRefusal};

use self::log::Header;
use self::revert::{Reverting, revert};
use self::shared::SessionAcceptances;
use self::shelf::Shelf;
use kiso_base::home::{Home, SessionName};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The undo data of a home's sessions. Cheap to clone; clones share it.
#[derive(Debug, Clone)]
pub struct Undo(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    home: Home,
    shared: Arc<dyn SharedAcceptances>,
    /// The known state of sessions in which something was done.
    shelves: Mutex<HashMap<SessionName, Arc<Shelf>>>,
    /// Transactions that are open, by session.
    open: Mutex<BTreeMap<SessionName, usize>>,
    closed: Notify,
    /// The last reported bytes of each session.
    told: Mutex<HashMap<SessionName, u64>>,
}

/// The state after work that was cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CutOff {
    /// No change remains; the step may be repeated.
    Nothing,
    /// The files are restored, but the step had an effect outside of the sandbox.
    Outside,
    /// Changed files remain: their old content was too large to keep, or somebody else has changed them since.
    Files,
}

/// The result of an undo.
#[derive(Debug, Clone)]
pub struct UndoResult {
    pub plan: UndoPlan,
    /// Changes that could not be taken back, a sentence each: `force` continued all the same.
    pub problems: Vec<String>,
}

/// The reason why nothing was undone.
#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    #[error("there is nothing to {0}")]
    Nothing(UndoKind),
    /// Somebody changed a file since, or its earlier content was not kept.
    #[error("the files have changed since, or were not kept: {}", list(.0))]
    Conflict(Vec<String>),
    /// It belongs to another run, or to a task that cannot be undone alone.
    #[error("{0}")]
    Selection(String),
    #[error("the workspace cannot be changed: {0}; it is as it was")]
    Io(#[from] io::Error),
}

fn list(all: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown = all.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join("; ");
    match all.len().checked_sub(SHOWN) {
        Some(more @ 1..) => format!("{shown}; and {more} more"),
        _ => shown,
    }
}

/// The work to undo or redo.
#[derive(Debug, Clone, Default)]
pub struct UndoChoice {
    /// The run; by default the session's newest.
    pub run: Option<String>,
    /// Undo this task and all later ones; counted from 1.
    pub task: Option<usize>,
}

impl Undo {
    pub fn new(home: Home, shared: Arc<dyn SharedAcceptances>) -> Self {
        let (shelves, open, told) = (Mutex::default(), Mutex::default(), Mutex::default());
        Self(Arc::new(Inner { home, shared, shelves, open, closed: Notify::new(), told }))
    }

    /// Begins the work of a task. Returns `None` if nothing is kept. No file is touched before the first change. The caller holds
    /// the session's lock.
    pub fn begin(&self, session: &SessionName, origin: Origin, limits: UndoLimits) -> Option<Arc<Transaction>> {
        if limits.max_bytes == 0 {
            return None;
        }
        let header = Header::of_work(origin);
        *lock(&self.0.open).entry(session.clone()).or_default() += 1;
        let (undo, of) = (self.clone(), session.clone());
        Some(Transaction::new(self.shelf(session), header, limits, move || undo.closed(&of)))
    }

    fn closed(&self, session: &SessionName) {
        let mut open = lock(&self.0.open);
        if let Some(count) = open.get_mut(session) {
            *count -= 1;
            if *count == 0 {
                open.remove(session);
            }
        }
        drop(open);
        self.0.closed.notify_waiters();
    }

    /// Waits until no work is open in the session. Work that was cut off is rolled back then.
    pub async fn quiet(&self, session: &SessionName) {
        loop {
            let closed = self.0.closed.notified();
            tokio::pin!(closed);
            closed.as_mut().enable();
            if !lock(&self.0.open).contains_key(session) {
                return;
            }
            closed.await;
        }
    }

    /// Whether the session has a log, or may have one.
    pub fn keeps_any(&self, session: &SessionName) -> bool {
        !self.shelf(session).is_missing()
    }

    /// Completes or rolls back the work that a killed process left open in the session. The caller holds the session's lock, and
    /// nothing is [open](Undo::quiet) in it.
    pub fn recover(&self, session: &SessionName) -> io::Result<()> {
        let shelf = self.shelf(session);
        let entries = shelf.entries()?;
        for entry in entries.iter().rev() {
            if !entry.is_closed {
                let log = shelf.read(entry.id)?;
                tracing::info!(%session, changes = log.changes.len(), "work that was cut off is rolled back");
                shelf.roll_back(&log)?;
            }
            // The process was killed between the end of an undo and the removal of the undone logs.
            for target in entry.header.targets.iter().filter(|_| entry.is_closed) {
                if entries.iter().any(|entry| entry.id == *target) {
                    shelf.remove(*target)?;
                }
            }
        }
        Ok(())
    }

    /// Rolls back a run's work in the step after this event, if its result is not on record. The caller holds the session's lock,
    /// and has [recovered](Undo::recover) the session.
    pub fn roll_back_step(&self, session: &SessionName, run: &str, seq: u32) -> io::Result<CutOff> {
        let shelf = self.shelf(session);
        let mut found = CutOff::Nothing;
        for entry in shelf.entries()?.iter().rev() {
            let Some(origin) = entry.header.of.first().filter(|_| entry.header.kind == UndoKind::Undo) else {
                continue;
            };
            if entry.header.of.len() > 1 || origin.run != run || origin.seq < seq {
                continue;
            }
            let log = shelf.read(entry.id)?;
            if log.left.is_some() && found == CutOff::Nothing {
                found = CutOff::Outside;
            }
            let plan = UndoPlan::from_logs(&shelf, std::slice::from_ref(&log))?;
            if plan.conflicts.is_empty() && plan.missing.is_empty() {
                shelf.roll_back(&log)?;
            } else {
                found = CutOff::Files;
            }
        }
        Ok(found)
    }

    /// The work that can be undone and redone in a session, oldest first.
    pub fn entries(&self, session: &SessionName) -> io::Result<Vec<UndoEntry>> {
        let entries = self.shelf(session).entries()?;
        Ok(entries.iter().filter(|entry| entry.is_closed && entry.changes > 0).cloned().collect())
    }

    /// Returns the changes that an undo or redo would make.
    pub fn plan(&self, session: &SessionName, kind: UndoKind, choice: &UndoChoice) -> Result<UndoPlan, UndoError> {
        let shelf = self.shelf(session);
        let chosen = choose(&shelf, kind, choice)?;
        let logs = chosen.iter().map(|id| shelf.read(*id)).collect::<io::Result<Vec<_>>>()?;
        Ok(UndoPlan::from_logs(&shelf, &logs)?)
    }

    /// Restores the workspace to its state before a run, or before one of its tasks; or redoes that. All of it, or nothing. With
    /// `force` also if files have changed since: these are kept, and a redo restores them. The caller holds the session's lock.
    pub fn apply(
        &self,
        session: &SessionName,
        kind: UndoKind,
        choice: &UndoChoice,
        force: bool,
        limits: UndoLimits,
    ) -> Result<UndoResult, UndoError> {
        self.recover(session)?;
        let shelf = self.shelf(session);
        let chosen = choose(&shelf, kind, choice)?;
        let logs = chosen.iter().map(|id| shelf.read(*id)).collect::<io::Result<Vec<_>>>()?;
        let plan = UndoPlan::from_logs(&shelf, &logs)?;
        let against: Vec<String> = plan.problems().collect();
        if !against.is_empty() && !force {
            return Err(UndoError::Conflict(against));
        }
        let mut of: Vec<Origin> = logs.iter().flat_map(|log| log.header.of.iter().cloned()).collect();
        of.sort_by_key(|origin| (origin.seq, origin.place));
        let header = Header::of_undo(kind.opposite(), of, chosen.clone());
        // Undoing frees as much room as a redo needs.
        let unlimited = UndoLimits { max_bytes: u64::MAX, refuse: false };
        let work = Transaction::new(shelf.clone(), header, unlimited, || ());
        let tree = shelf.tree()?;
        let mut problems = Vec::new();
        let how = Reverting::Undo { journal: &*work, is_as_it_was: against.is_empty() };
        for change in logs.iter().flat_map(|log| log.changes.iter().rev()) {
            match revert(&tree, change, how) {
                Ok(problem) => problems.extend(problem),
                Err(error) => {
                    work.roll_back();
                    return Err(UndoError::Io(error));
                }
            }
        }
        work.commit();
        for id in chosen {
            shelf.remove(id)?;
        }
        shelf.make_room(0, limits.max_bytes, None)?;
        Ok(UndoResult { plan, problems })
    }

    /// Drops undo data that is older than this (milliseconds since 1970).
    pub fn sweep(&self, session: &SessionName, before_ms: i64) -> io::Result<()> {
        let shelf = self.shelf(session);
        let old = |entry: &&UndoEntry| entry.is_closed && entry.header.at_ms < before_ms;
        let ids: Vec<u64> = shelf.entries()?.iter().filter(old).map(|entry| entry.id).collect();
        ids.into_iter().try_for_each(|id| shelf.remove(id))
    }

    /// Deletes undo data that a finished run no longer needs: the note that it had reached something outside.
    pub fn tidy(&self, session: &SessionName, run: &str) -> io::Result<()> {
        let shelf = self.shelf(session);
        let idle = |entry: &&UndoEntry| entry.run() == Some(run) && entry.is_closed && entry.changes + entry.lost == 0;
        let ids: Vec<u64> = shelf.entries()?.iter().filter(idle).map(|entry| entry.id).collect();
        ids.into_iter().try_for_each(|id| shelf.remove(id))
    }

    /// Bytes that are kept for a session.
    pub fn bytes(&self, session: &SessionName) -> io::Result<u64> {
        Ok(self.shelf(session).entries()?.iter().map(|entry| entry.bytes).sum())
    }

    /// [`Undo::bytes`], if they differ much from the last reported ones.
    pub fn bytes_if_changed(&self, session: &SessionName) -> Option<u64> {
        const ROUGHLY: u64 = 1 << 20;
        let bytes = self.bytes(session).ok()?;
        let mut told = lock(&self.0.told);
        let before = told.get(session).copied().unwrap_or(0);
        if bytes.abs_diff(before) < ROUGHLY {
            return None;
        }
        told.insert(session.clone(), bytes);
        Some(bytes)
    }

    fn shelf(&self, session: &SessionName) -> Arc<Shelf> {
        let mut shelves = lock(&self.0.shelves);
        // To read a shelf again costs little: one look at a directory.
        if shelves.len() > MAX_SHELVES {
            shelves.retain(|_, shelf| Arc::strong_count(shelf) > 1);
        }
        let make = || {
            let (all, home) = (self.0.shared.clone(), self.0.home.clone());
            Arc::new(Shelf::new(SessionAcceptances { all, home, session: session.clone() }))
        };
        shelves.entry(session.clone()).or_insert_with(make).clone()
    }
}

/// Sessions whose logs are remembered.
const MAX_SHELVES: usize = 1_000;

/// The chosen logs, the newest first.
fn choose(shelf: &Shelf, kind: UndoKind, choice: &UndoChoice) -> Result<Vec<u64>, UndoError> {
    let entries = shelf.entries()?;
    let usable: Vec<_> =
        entries.iter().filter(|entry| entry.is_closed && entry.changes > 0 && entry.header.kind == kind).collect();
    let run = match &choice.run {
        Some(run) => run.clone(),
        None => usable.last().and_then(|entry| entry.run()).ok_or(UndoError::Nothing(kind))?.to_owned(),
    };
    let mut chosen: Vec<_> = usable.into_iter().rev().filter(|entry| entry.run() == Some(run.as_str())).collect();
    if let Some(task) = choice.task {
        chosen.retain(|entry| entry.header.of.iter().any(|origin| origin.task >= task));
        if chosen.iter().any(|entry| entry.header.of.iter().any(|origin| origin.task < task)) {
            let words = format!(
                "the tasks of run {run} were {} together, so task {task} cannot be {} alone",
                kind.opposite().participle(),
                kind.participle()
            );
            return Err(UndoError::Selection(words));
        }
    }
    match chosen.is_empty() {
        true => Err(UndoError::Nothing(kind)),
        false => Ok(chosen.into_iter().map(|entry| entry.id).collect()),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
