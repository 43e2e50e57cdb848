//! The work of one task while it runs: before a change, the old state is kept.

mod before;

use super::bytes::SessionPath;
use super::changed::changed_files;
use super::line::ChangeLine;
use super::log::{EntryLabels, FileChange, Header, LabelledChange, LostFile, Total, UndoRecord};
use super::revert::{Journal, Reverting, revert};
use super::shelf::{Shelf, append, looks};
use super::tree::{DirSlot, Tree};
use kiso_plan::report::ChangedFile;
use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

/// The limits of undo data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UndoLimits {
    /// For one session; 0 keeps nothing.
    pub max_bytes: u64,
    /// Whether to refuse a change of a file that is too large to keep. Otherwise the change is made and cannot be undone.
    pub refuse: bool,
}

/// The reason why a change is refused.
#[derive(Debug, thiserror::Error)]
pub enum UndoRefusal {
    #[error("{0}")]
    TooLarge(String),
    /// A file would have a name in the workspace and one in another directory that tasks see: it has to be copied.
    #[error("the workspace ends there")]
    Across,
    #[error("what is there cannot be kept: {0}")]
    Io(#[from] io::Error),
}

/// A file that is about to be opened.
#[derive(Debug)]
pub enum Opening {
    /// It existed, or is outside of the workspace.
    Plain,
    /// It did not exist.
    Fresh,
}

/// The state of a name that is to be deleted.
#[derive(Debug, PartialEq, Eq)]
pub enum RemovedEntry {
    /// The name is removed already, and its file is kept.
    Done,
    /// The caller has to delete it.
    Delete,
}

/// The result of a rollback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RollBack {
    /// It had changed nothing, or was ended.
    Nothing,
    Done,
    /// A change was not kept, or cannot be taken back now.
    Impossible,
}

/// The reason why a file need not be kept again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    /// This work made the file.
    Made,
    /// Its content is kept, or cannot be kept.
    Content,
    /// Its length is kept, and data was only appended.
    Length,
}

/// The work of one task. Dropped before it is [committed](Transaction::commit), it is rolled back.
pub struct Transaction {
    shelf: Arc<Shelf>,
    header: Header,
    limits: UndoLimits,
    /// The directory of the session, opened before the first change.
    tree: OnceLock<Tree>,
    state: Mutex<State>,
    /// Called before a change that cannot be undone.
    note: Mutex<Option<Note>>,
    /// Called before something outside of the sandbox is reached.
    gate: OnceLock<Gate>,
    closed: Box<dyn Fn() + Send + Sync>,
}

type Note = Box<dyn Fn(&str) + Send + Sync>;

type Gate = Box<dyn Fn() -> io::Result<()> + Send + Sync>;

/// The place outside of the sandbox that a task reaches when it writes to a mount.
const MACHINE: &str = "a directory of this machine";

#[derive(Default)]
struct State {
    /// Begun before the first change.
    log: Option<OpenLog>,
    changes: Vec<LabelledChange>,
    /// Files by their inodes.
    known: HashMap<u64, Known>,
    /// Files that also have a name among the kept ones.
    kept: HashMap<u64, SessionPath>,
    lost: Vec<LostFile>,
    /// The first place outside of the sandbox that was reached.
    left: Option<String>,
    bytes: u64,
    /// Bytes that may be kept, these included.
    room: u64,
    next: u64,
    /// Files and directories that threads may still be using when their work is cut off.
    busy: Vec<Weak<File>>,
    ended: bool,
}

struct OpenLog {
    id: u64,
    file: File,
    /// The directory of the kept files.
    dir: OwnedFd,
}

/// The number of open files above which closed ones are dropped from the list.
const MANY: usize = 64;

/// The longest wait for a running write.
const LAST_WRITE: Duration = Duration::from_secs(2);

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction").field("header", &self.header).finish_non_exhaustive()
    }
}

impl Transaction {
    pub(super) fn new(
        shelf: Arc<Shelf>,
        header: Header,
        limits: UndoLimits,
        closed: impl Fn() + Send + Sync + 'static,
    ) -> Arc<Self> {
        let (tree, state, note, gate) = (OnceLock::new(), Mutex::default(), Mutex::default(), OnceLock::new());
        Arc::new(Self { shelf, header, limits, tree, state, note, gate, closed: Box::new(closed) })
    }

    /// Sets the function that is called before a change that cannot be undone.
    pub fn tell(&self, note: impl Fn(&str) + Send + Sync + 'static) {
        *self.note.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(note));
    }

    /// Sets the function that is called before something outside of the sandbox is reached. If it fails, nothing is reached.
    pub fn ask_before_leaving(&self, gate: impl Fn() -> io::Result<()> + Send + Sync + 'static) {
        let _ = self.gate.set(Box::new(gate));
    }

    /// Records that something outside of the sandbox is about to be reached. From now on the work cannot be undone completely.
    pub fn leaving(&self, what: &str) -> io::Result<()> {
        self.may_leave()?;
        self.leave(&mut self.lock(), what)
    }

    fn may_leave(&self) -> io::Result<()> {
        self.gate.get().map_or(Ok(()), |gate| gate())
    }

    fn leave(&self, state: &mut State, what: &str) -> io::Result<()> {
        if state.left.is_some() || state.ended {
            return Ok(());
        }
        self.may_leave()?;
        let log = self.log(state)?;
        append(&mut log.file, &UndoRecord::Left(what.to_owned()))?;
        state.left = Some(what.to_owned());
        Ok(())
    }

    /// Records that changes to shared files are about to be accepted.
    pub fn sharing(&self, number: u64, paths: Vec<ChangeLine>) -> Result<(), UndoRefusal> {
        self.record(&mut self.lock(), FileChange::Shared { number, accepted: false, paths })
    }

    /// The parts of the work that cannot be undone, and why.
    pub fn lost(&self) -> Vec<String> {
        self.lock().lost.iter().map(|lost| format!("{}: {}", lost.at, lost.why)).collect()
    }

    /// The files that the work has created, changed or deleted so far.
    pub fn changed(&self) -> Vec<ChangedFile> {
        changed_files(self.lock().changes.iter().map(|change| &change.change))
    }

    /// Completes the work. It can be undone later.
    pub fn commit(&self) {
        let mut state = self.lock();
        if std::mem::replace(&mut state.ended, true) {
            return;
        }
        let total = Total { changes: state.changes.len(), lost: state.lost.len(), bytes: state.bytes };
        let State { log, changes, .. } = &mut *state;
        if let Some(log) = log
            && let Err(error) = self.end(log, changes, total)
        {
            tracing::error!("what was changed cannot be undone later: {error}");
            let _ = self.shelf.remove(log.id);
        }
        *state = State { ended: true, ..State::default() };
        drop(state);
        (self.closed)();
    }

    /// Restores the state before the work.
    pub fn roll_back(&self) -> RollBack {
        let mut state = self.lock();
        if std::mem::replace(&mut state.ended, true) {
            return RollBack::Nothing;
        }
        self.wait_for_writes(&state);
        let State { log, changes, lost, left, .. } = std::mem::take(&mut *state);
        state.ended = true;
        let done = match log {
            None => RollBack::Nothing,
            Some(log) if lost.is_empty() => match self.take_back(log, &changes, left.as_deref()) {
                Ok(()) if changes.is_empty() => RollBack::Nothing,
                Ok(()) => RollBack::Done,
                // The log stays open. The next work in the session rolls it back.
                Err(error) => {
                    tracing::error!("work that was cut off cannot be rolled back yet: {error}");
                    RollBack::Impossible
                }
            },
            // If some changes cannot be taken back, none are.
            Some(mut log) => {
                let total = Total { changes: changes.len(), lost: lost.len(), ..Total::default() };
                if let Err(error) = self.end(&mut log, &changes, total) {
                    tracing::error!("a log of changes cannot be ended: {error}");
                }
                RollBack::Impossible
            }
        };
        drop(state);
        (self.closed)();
        done
    }

    fn take_back(&self, mut log: OpenLog, changes: &[LabelledChange], left: Option<&str>) -> io::Result<()> {
        for (number, change) in changes.iter().enumerate().rev() {
            if let Some(problem) = revert(self.tree()?, change, Reverting::Work)? {
                tracing::warn!("while work was rolled back: {problem}");
            }
            append(&mut log.file, &UndoRecord::Reverted(number))?;
        }
        match left {
            None => self.shelf.remove(log.id),
            Some(left) => self.shelf.remember(log.id, &self.header, left),
        }
    }

    /// The last lines of a log.
    fn end(&self, log: &mut OpenLog, changes: &[LabelledChange], total: Total) -> io::Result<()> {
        append(&mut log.file, &UndoRecord::After(looks(self.tree()?, changes)?))?;
        append(&mut log.file, &UndoRecord::End(total))
    }

    /// A thread may still be in the middle of a write.
    fn wait_for_writes(&self, state: &State) {
        let since = std::time::Instant::now();
        while state.busy.iter().any(|file| file.strong_count() > 0) && since.elapsed() < LAST_WRITE {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn tree(&self) -> io::Result<&Tree> {
        if let Some(tree) = self.tree.get() {
            return Ok(tree);
        }
        let tree = self.shelf.tree()?;
        Ok(self.tree.get_or_init(|| tree))
    }

    /// Returns the log, and begins it if it is missing.
    #[expect(clippy::expect_used, reason = "it was made")]
    fn log<'a>(&self, state: &'a mut State) -> io::Result<&'a mut OpenLog> {
        if state.log.is_none() {
            let run = self.header.of.first().map(|origin| origin.run.as_str());
            let others = self.shelf.make_room(0, self.limits.max_bytes, run)?;
            state.room = self.limits.max_bytes.saturating_sub(others);
            let (id, file) = self.shelf.begin(&self.header)?;
            let dir = self.tree()?.slot(&SessionPath::kept(id, 0))?.dir;
            state.log = Some(OpenLog { id, file, dir });
        }
        Ok(state.log.as_mut().expect("it was made"))
    }

    /// Records a change before it is made.
    fn record(&self, state: &mut State, change: FileChange) -> Result<(), UndoRefusal> {
        if state.ended {
            return Err(io::Error::other("the work has ended").into());
        }
        let entries = self.entries(&change)?;
        let log = self.log(state)?;
        if !entries.is_empty() {
            append(&mut log.file, &UndoRecord::Entries(entries.clone()))?;
        }
        append(&mut log.file, &UndoRecord::FileChange(change.clone()))?;
        state.changes.push(LabelledChange { change, entries });
        Ok(())
    }

    /// The labels of the entries that are about to change, and of those above them.
    fn entries(&self, change: &FileChange) -> io::Result<Vec<EntryLabels>> {
        let tree = self.tree()?;
        if tree.labels.is_empty() {
            return Ok(Vec::new());
        }
        let mut entries: Vec<EntryLabels> = Vec::new();
        for path in change.paths() {
            // From the directory up. A path that does not exist any more has no entry.
            for at in path.with_parents().filter(SessionPath::is_work) {
                if entries.iter().any(|known| known.at == at) {
                    continue;
                }
                let Ok(slot) = tree.slot(&at) else { continue };
                let [mut label, displaced] = tree.labels.entry_labels(&slot.dir, slot.name);
                if let FileChange::RemovedDir { at: gone, .. } = change
                    && *gone == at
                    && let Ok(dir) = super::tree::open_dir(&slot.dir, slot.name)
                {
                    // A directory that is made again gets the labels of its earlier content through its name only.
                    label = label.join(tree.labels.of_names(&dir)).join(tree.labels.of_attributes(&dir));
                }
                if !label.is_ordinary() || !displaced.is_ordinary() {
                    let (label, displaced) = ((*label.label()).clone(), (*displaced.label()).clone());
                    entries.push(EntryLabels { at, label, displaced });
                }
            }
        }
        Ok(entries)
    }

    /// Whether this many bytes can be kept. If not, this is reported at once, before the file changes.
    fn fits(&self, state: &mut State, at: &SessionPath, bytes: u64) -> Result<bool, UndoRefusal> {
        self.log(state)?;
        let wanted = state.bytes.saturating_add(bytes);
        if wanted <= state.room {
            return Ok(true);
        }
        let run = self.header.of.first().map(|origin| origin.run.as_str());
        let others = self.shelf.make_room(wanted, self.limits.max_bytes, run)?;
        state.room = self.limits.max_bytes.saturating_sub(others);
        if wanted <= state.room {
            return Ok(true);
        }
        let (size, most) = (mebibytes(bytes), self.limits.max_bytes >> 20);
        self.lose(state, at.clone(), format!("{size} do not fit into the {most} MiB of [undo] max_mib"))?;
        Ok(false)
    }

    fn lose(&self, state: &mut State, at: SessionPath, why: String) -> Result<(), UndoRefusal> {
        if self.limits.refuse {
            return Err(UndoRefusal::TooLarge(format!("{at} would be changed and could not be undone: {why}")));
        }
        let lost = LostFile { at, why };
        append(&mut self.log(state)?.file, &UndoRecord::Lost(lost.clone()))?;
        if let Some(note) = &*self.note.lock().unwrap_or_else(PoisonError::into_inner) {
            note(&format!("kiso: the change of {} cannot be undone: {}\n", lost.at, lost.why));
        }
        state.lost.push(lost);
        Ok(())
    }

    fn number(&self, state: &mut State) -> io::Result<(SessionPath, String)> {
        let id = self.log(state)?.id;
        state.next += 1;
        Ok((SessionPath::kept(id, state.next), state.next.to_string()))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The changes of an undo are kept, too.
impl Journal for Transaction {
    fn removing(&self, slot: &DirSlot<'_>) -> io::Result<bool> {
        let removal = Transaction::removing(self, &slot.dir, slot.name).map_err(of_undo)?;
        Ok(removal == RemovedEntry::Done)
    }

    fn removing_dir(&self, slot: &DirSlot<'_>) -> io::Result<()> {
        Transaction::removing_dir(self, &slot.dir, slot.name).map_err(of_undo)
    }

    fn writing(&self, file: &File) -> io::Result<()> {
        Transaction::writing(self, file, false).map_err(of_undo)
    }

    fn kept(&self, inode: u64) -> Option<SessionPath> {
        self.lock().kept.get(&inode).cloned()
    }

    fn changing(&self, change: FileChange) -> io::Result<()> {
        self.record(&mut self.lock(), change).map_err(of_undo)
    }
}

/// An undo has no limits that could refuse it.
fn of_undo(refusal: UndoRefusal) -> io::Error {
    match refusal {
        UndoRefusal::Io(error) => error,
        other => io::Error::other(other.to_string()),
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        self.roll_back();
    }
}

fn mebibytes(bytes: u64) -> String {
    match bytes >> 20 {
        0 => format!("{bytes} bytes"),
        mebibytes => format!("{mebibytes} MiB"),
    }
}
