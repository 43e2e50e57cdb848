//! One exec task: its processes, and the limits that they share.

use super::channel::{PipeReader, PipeWriter, pipe_of};
use super::commands::Commands;
use super::dirs::Dirs;
use super::engine::Engine;
use super::line_network::LineNetwork;
use super::process::Process;
use crate::effect::label::{LabelCell, LabelId};
use crate::engine::limits::{Budget, BudgetKind, HitCell, Limit, LimitHit};
use crate::engine::meter::{MemoryUse, Meter};
use crate::skill::sandbox::Quota;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, OwnedSemaphorePermit};

/// A task while it runs.
#[derive(Debug)]
pub(super) struct ExecTask {
    pub engine: Arc<Engine>,
    pub budget: Budget,
    pub quota: Arc<Quota>,
    pub dirs: Dirs,
    pub commands: Commands,
    pub network: LineNetwork,
    /// Running processes, by number.
    processes: Mutex<BTreeMap<u32, Arc<Process>>>,
    /// A process ended, or a limit was reached.
    changed: Notify,
    /// Whether new processes are refused.
    closing: AtomicBool,
    most_at_once: AtomicU64,
    started: AtomicU32,
    hit: HitCell,
    culprit: OnceLock<String>,
    /// The label of the processes that a limit ended: the message names one of them by its words.
    cut_off: LabelCell,
    memory: Arc<MemoryUse>,
    /// Its place among the running tasks. It becomes free when the last process is gone.
    _place: OwnedSemaphorePermit,
}

/// The name of a shell's process, as people know it.
pub(super) const SHELL: &str = "sh";

/// The end of a task's time in which the work of each process is measured.
pub(super) const LAST_LOOK: Duration = Duration::from_secs(1);

/// Work in that time from which on a process counts as spinning, not waiting.
const AT_WORK: Duration = Duration::from_millis(50);

/// The parts of a task.
pub(super) struct Parts {
    pub engine: Arc<Engine>,
    pub budget: Budget,
    pub hit: HitCell,
    pub quota: Arc<Quota>,
    pub dirs: Dirs,
    pub commands: Commands,
    pub network: LineNetwork,
    pub place: OwnedSemaphorePermit,
}

impl ExecTask {
    pub(super) fn new(parts: Parts) -> Arc<Self> {
        let Parts { engine, budget, hit, quota, dirs, commands, network, place } = parts;
        engine.ticker.enter();
        Arc::new(Self {
            engine,
            budget,
            quota,
            dirs,
            commands,
            network,
            processes: Mutex::default(),
            changed: Notify::new(),
            closing: AtomicBool::new(false),
            most_at_once: AtomicU64::new(0),
            started: AtomicU32::new(0),
            hit,
            culprit: OnceLock::new(),
            cut_off: LabelCell::default(),
            memory: Arc::default(),
            _place: place,
        })
    }

    /// Locks the trees of all folders against changes by others. Returns `None` without folders.
    pub(super) async fn alone_in_folders(&self) -> Option<tokio::sync::OwnedMutexGuard<()>> {
        if self.dirs.overlays().is_empty() {
            return None;
        }
        Some(self.quota.structure().lock_owned().await)
    }

    /// Records that a limit was reached, which ends the task.
    pub(super) fn hit(&self, limit: Limit) -> LimitHit {
        self.hit_with(self.budget.hit(limit))
    }

    pub(super) fn hit_with(&self, hit: LimitHit) -> LimitHit {
        let hit = self.hit.set(hit);
        self.changed.notify_waiters();
        hit
    }

    /// The limit that ended the task.
    pub(super) fn limit(&self) -> Option<LimitHit> {
        self.hit.get()
    }

    /// Names the command that reached the limit; the first that did stays.
    pub(super) fn blame_command(&self, title: &str) {
        let _ = self.culprit.set(title.to_owned());
        self.changed.notify_waiters();
    }

    /// The label of the message about a limit; complete when the last process is gone.
    pub(super) fn cut_off(&self) -> LabelId {
        self.cut_off.get()
    }

    /// The command that reached the limit.
    pub(super) fn culprit(&self) -> Option<&str> {
        self.culprit.get().map(String::as_str)
    }

    /// A new pipe. If a limit ends the task, its readers do not see an end.
    pub(super) fn pipe(&self) -> (PipeReader, PipeWriter) {
        pipe_of(self.hit.clone())
    }

    /// A meter for one more process.
    pub(super) fn meter(&self) -> Meter {
        Meter::new(self.budget.clone(), self.hit.clone(), self.memory.clone())
    }

    /// The most bytes that all processes held at once.
    pub(super) fn peak_memory(&self) -> u64 {
        self.memory.peak()
    }

    /// Processes that were started, and the most that ran at once.
    pub(super) fn counts(&self) -> (u64, u64) {
        (u64::from(self.started.load(Relaxed)), self.most_at_once.load(Relaxed))
    }

    /// Waits until the last process is gone.
    pub(super) async fn idle(&self) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.lock().is_empty() {
                return;
            }
            changed.await;
        }
    }

    /// Waits until a limit was reached.
    pub(super) async fn stopped(&self) -> LimitHit {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if let Some(hit) = self.limit() {
                return hit;
            }
            changed.await;
        }
    }

    /// Adds a process, if the task may have one more. `parent` is the process that starts it; without one, the line does.
    pub(super) fn admit(&self, parent: Option<&Process>, title: String) -> Result<Arc<Process>, LimitHit> {
        let BudgetKind::Exec { processes: most, .. } = self.budget.of else {
            unreachable!("a task has the limits of a task")
        };
        let mut processes = self.lock();
        if let Some(hit) = self.limit() {
            return Err(hit);
        }
        if self.closing.load(Relaxed) {
            return Err(self.budget.hit(Limit::Processes));
        }
        if processes.len() as u64 >= most {
            let _ = self.culprit.set(title);
            return Err(self.hit(Limit::Processes));
        }
        let label = parent.map_or(self.commands.permit.read(), |parent| &parent.label).get();
        let parent = parent.map(|parent| parent.id);
        let label = LabelCell::new(label);
        let process = Process::new(self.started.fetch_add(1, Relaxed) + 1, parent, title, label);
        processes.insert(process.id, process.clone());
        self.most_at_once.fetch_max(processes.len() as u64, Relaxed);
        Ok(process)
    }

    /// The time for which threads have worked for each running process.
    pub(super) fn busy(&self) -> BTreeMap<u32, Duration> {
        self.lock().iter().map(|(id, process)| (*id, process.busy())).collect()
    }

    /// Blames the deadline on the process that worked most since `before`. If all of them waited, blames the running command that
    /// was started last: the others wait for it.
    pub(super) fn blame(&self, before: &BTreeMap<u32, Duration>) {
        let processes = self.lock();
        let worked =
            |process: &Process| process.busy().saturating_sub(before.get(&process.id).copied().unwrap_or_default());
        let busiest =
            processes.values().max_by_key(|process| worked(process)).filter(|process| worked(process) >= AT_WORK);
        let last = || processes.values().rev().find(|process| process.title != SHELL).or(processes.values().next());
        if let Some(culprit) = busiest.or_else(last) {
            let _ = self.culprit.set(culprit.title.clone());
        }
    }

    /// Kills a process and all running processes below it.
    pub(super) fn kill(&self, process: &Process) {
        let processes = self.lock();
        process.kill();
        let mut doomed = BTreeSet::from([process.id]);
        // A child always has a greater number than its parent.
        for child in processes.values().filter(|child| child.id > process.id) {
            if child.parent.is_some_and(|parent| doomed.contains(&parent)) {
                doomed.insert(child.id);
                child.kill();
            }
        }
    }

    /// Kills every process, and refuses new ones.
    pub(super) fn end(&self) {
        let processes = self.lock();
        self.closing.store(true, Relaxed);
        processes.values().for_each(|process| process.kill());
    }

    /// Removes a process and frees its memory.
    pub(super) fn gone(&self, process: &Process) {
        if self.limit().is_some() {
            self.cut_off.join(process.label.get());
        }
        self.lock().remove(&process.id);
        self.changed.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, Arc<Process>>> {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs the work of a process, until it ends or is killed.
    pub(super) fn spawn(&self, process: &Arc<Process>, work: impl Future<Output = ()> + Send + 'static) {
        let counted = process.clone().counted(work);
        process.aborts_with(self.engine.runtime().spawn(counted).abort_handle());
    }
}

impl Drop for ExecTask {
    fn drop(&mut self) {
        self.engine.ticker.leave();
    }
}
