//! One exec task: the limits that all its processes share, and how a process is started.

use super::channel::Channel;
use super::commands::{Commands, Program};
use super::dirs::Dirs;
use super::engine::Engine;
use super::limiter::{Memory, Share};
use super::process::{Ctx, Process, ProcessSpec, Running, Streams, exit_code, run_command, store};
use super::wit::exports::kiso::exec::shell::Ended;
use crate::skill::BrokenPipe;
use crate::skill::limits::{Budget, BudgetKind, HitCell, Limit, LimitHit};
use crate::skill::sandbox::Quota;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, OwnedSemaphorePermit, oneshot};
use wasmtime_wasi::p2::bindings::CommandPre;

/// A task while it runs.
#[derive(Debug)]
pub struct Task {
    pub engine: Arc<Engine>,
    pub budget: Budget,
    pub quota: Arc<Quota>,
    pub dirs: Dirs,
    pub commands: Commands,
    /// Those that run, by number.
    processes: Mutex<BTreeMap<u32, Arc<Process>>>,
    /// A process ended, or a limit was reached.
    changed: Notify,
    /// Nothing more is started.
    closing: AtomicBool,
    most_at_once: AtomicU64,
    started: AtomicU32,
    hit: HitCell,
    culprit: OnceLock<String>,
    memory: Arc<Memory>,
    /// Its place among the tasks that run at once: free when the last process is gone.
    _place: OwnedSemaphorePermit,
}

/// What people call a process that is a shell.
const SHELL: &str = "sh";

/// The end of a task's time in which it is seen who works.
pub const LAST_LOOK: Duration = Duration::from_secs(1);

/// Work in it that makes a process one that spins rather than one that waits.
const AT_WORK: Duration = Duration::from_millis(50);

/// Why a process goes no further: another one of its task reached a limit.
#[derive(Debug, thiserror::Error)]
#[error("the task has reached a limit")]
pub struct TaskEnded;

/// What the shell is to do.
#[derive(Debug)]
pub enum Work {
    /// Run a line.
    Line { source: String, state: Vec<u8>, args: Vec<String>, partial: bool },
    /// Go on as a child.
    Fork { state: Vec<u8> },
}

/// What a task is made of.
pub struct Parts {
    pub engine: Arc<Engine>,
    pub budget: Budget,
    pub hit: HitCell,
    pub quota: Arc<Quota>,
    pub dirs: Dirs,
    pub commands: Commands,
    pub place: OwnedSemaphorePermit,
}

impl Task {
    pub fn new(parts: Parts) -> Arc<Self> {
        let Parts { engine, budget, hit, quota, dirs, commands, place } = parts;
        engine.ticker.enter();
        Arc::new(Self {
            engine,
            budget,
            quota,
            dirs,
            commands,
            processes: Mutex::default(),
            changed: Notify::new(),
            closing: AtomicBool::new(false),
            most_at_once: AtomicU64::new(0),
            started: AtomicU32::new(0),
            hit,
            culprit: OnceLock::new(),
            memory: Arc::default(),
            _place: place,
        })
    }

    /// Records that a limit was reached; the task ends then.
    pub fn hit(&self, limit: Limit) -> LimitHit {
        self.hit_with(self.budget.hit(limit))
    }

    fn hit_with(&self, hit: LimitHit) -> LimitHit {
        let hit = self.hit.set(hit);
        self.changed.notify_waiters();
        hit
    }

    /// The limit that ended the task.
    pub fn limit(&self) -> Option<LimitHit> {
        self.hit.get()
    }

    /// The command that reached the limit.
    pub fn culprit(&self) -> Option<&str> {
        self.culprit.get().map(String::as_str)
    }

    /// The share of one more process.
    pub fn share(&self) -> Share {
        Share::new(self.memory.clone(), self.budget.clone(), self.hit.clone())
    }

    /// The most bytes that all processes held at once.
    pub fn peak_memory(&self) -> u64 {
        self.memory.peak()
    }

    /// Processes that were started, and the most that ran at once.
    pub fn counts(&self) -> (u64, u64) {
        (u64::from(self.started.load(Relaxed)), self.most_at_once.load(Relaxed))
    }

    /// Waits until the last process is gone.
    pub async fn idle(&self) {
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
    pub async fn stopped(&self) -> LimitHit {
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

    /// Starts a command.
    pub fn start(
        self: &Arc<Self>,
        parent: &Process,
        program: Program,
        given: ProcessSpec,
    ) -> Result<Arc<Process>, LimitHit> {
        let process = self.admit(Some(parent), given.title())?;
        // Made here: a future that is dropped before it was polled runs nothing of its body.
        let running = Running::new(self.clone(), process.clone());
        self.spawn(&process, async move {
            // As a whole: the block would otherwise take a copy of its code alone.
            let mut running = running;
            let task = running.task.clone();
            let stderr = given.channel(2);
            let title = running.process.title.clone();
            let result = match program {
                Program::Coreutils => command(&task, &running.process, task.engine.coreutils(), given).await,
                Program::Js => command(&task, &running.process, task.engine.js(), given).await,
                Program::Shell => unreachable!("a shell is started by `start_shell`"),
                Program::Skill(skill) => {
                    let ran = task.commands.run_skill(&skill, given, task.dirs.tmp(), &stderr).await;
                    ran.map_err(|hit| task.hit_with(hit).into())
                }
            };
            running.code = task.close(&title, &stderr, result).await;
        });
        Ok(process)
    }

    /// Starts a shell. What it came to arrives at the receiver if it was given a line.
    pub fn start_shell(
        self: &Arc<Self>,
        parent: Option<&Process>,
        work: Work,
        given: ProcessSpec,
    ) -> Result<(Arc<Process>, oneshot::Receiver<Ended>), LimitHit> {
        let process = self.admit(parent, SHELL.to_owned())?;
        let running = Running::new(self.clone(), process.clone());
        let (sender, receiver) = oneshot::channel();
        self.spawn(&process, async move {
            let mut running = running;
            let task = running.task.clone();
            let stderr = given.channel(2);
            let result = shell(&task, &running.process, work, given).await;
            let result = result.map(|(code, ended)| {
                if let Some(ended) = ended {
                    // Nobody may wait any more.
                    let _ = sender.send(ended);
                }
                code
            });
            running.code = task.close(SHELL, &stderr, result).await;
        });
        Ok((process, receiver))
    }

    /// The code of what a process came to; the first that reached a limit is to blame.
    async fn close(&self, title: &str, stderr: &Channel, result: wasmtime::Result<u8>) -> u8 {
        // Those who wait for it, read from it or write to it end too.
        let blamed = result.as_ref().is_err_and(|error| {
            error.downcast_ref::<BrokenPipe>().is_none() && error.downcast_ref::<TaskEnded>().is_none()
        });
        let code = exit_code(self, title, stderr, result).await;
        if blamed && self.limit().is_some() {
            let _ = self.culprit.set(title.to_owned());
            self.changed.notify_waiters();
        }
        code
    }

    fn admit(&self, parent: Option<&Process>, title: String) -> Result<Arc<Process>, LimitHit> {
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
        let parent = parent.map(|parent| parent.id);
        let process = Process::new(self.started.fetch_add(1, Relaxed) + 1, parent, title);
        processes.insert(process.id, process.clone());
        self.most_at_once.fetch_max(processes.len() as u64, Relaxed);
        Ok(process)
    }

    /// How long threads have worked for each process that runs.
    pub fn busy(&self) -> BTreeMap<u32, Duration> {
        self.lock().iter().map(|(id, process)| (*id, process.busy())).collect()
    }

    /// Takes the deadline to be the fault of the process that worked most since `before`. Where all of them waited, it is that of
    /// the command that was started last and still runs: the others wait for it.
    pub fn blame(&self, before: &BTreeMap<u32, Duration>) {
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

    /// Ends a process and those below it that it, or one of them, started and that still run.
    pub fn kill(&self, process: &Process) {
        let processes = self.lock();
        process.kill();
        let mut doomed = BTreeSet::from([process.id]);
        // A child has a greater number than its parent.
        for child in processes.values().filter(|child| child.id > process.id) {
            if child.parent.is_some_and(|parent| doomed.contains(&parent)) {
                doomed.insert(child.id);
                child.kill();
            }
        }
    }

    /// Ends every process, and starts no more.
    pub fn end(&self) {
        let processes = self.lock();
        self.closing.store(true, Relaxed);
        processes.values().for_each(|process| process.kill());
    }

    /// A process is gone, with its memory.
    pub fn gone(&self, process: &Process) {
        self.lock().remove(&process.id);
        self.changed.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, Arc<Process>>> {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spawn(&self, process: &Arc<Process>, work: impl Future<Output = ()> + Send + 'static) {
        let counted = process.clone().counted(work);
        process.aborts_with(self.engine.runtime().spawn(counted).abort_handle());
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.engine.ticker.leave();
    }
}

async fn command(
    task: &Arc<Task>,
    process: &Arc<Process>,
    pre: wasmtime::Result<&CommandPre<Ctx>>,
    given: ProcessSpec,
) -> wasmtime::Result<u8> {
    run_command(pre?, store(task, process, given, Streams::Command)?).await
}

async fn shell(
    task: &Arc<Task>,
    process: &Arc<Process>,
    work: Work,
    given: ProcessSpec,
) -> wasmtime::Result<(u8, Option<Ended>)> {
    let (env, cwd) = (given.env.clone(), given.cwd.clone());
    let mut store = store(task, process, given, Streams::Shell)?;
    let instance = task.engine.shell()?.instantiate_async(&mut store).await?;
    let shell = instance.kiso_exec_shell();
    match work {
        Work::Fork { state } => Ok((shell.call_resume(&mut store, &state).await?, None)),
        Work::Line { source, state, args, partial } => {
            let ended = shell.call_run(&mut store, &source, &state, &cwd, &env, &args, partial).await?;
            Ok((ended.code, Some(ended)))
        }
    }
}
