//! One process: an instance of a component with its streams, from its start to its exit code.

use super::channel::Channel;
use super::limiter::Share;
use super::streams::{Stdio, WriteError, in_words};
use super::task::Task;
use crate::skill::BrokenPipe;
use crate::skill::limits::{Limit, LimitHit};
use crate::skill::sandbox::{ChargedFiles, Quota, Roots};
use crate::skill::trap;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use wasmtime::component::{ResourceTable, ResourceTableError};
use wasmtime::{Store, Trap};
use wasmtime_wasi::p2::bindings::CommandPre;
use wasmtime_wasi::{I32Exit, WasiCtx, WasiCtxView, WasiView};

/// 128 + SIGKILL: it was killed.
const KILLED: u8 = 137;
/// 128 + SIGABRT: it crashed.
pub(super) const CRASHED: u8 = 134;
/// Most bytes that a process hands to the host at once.
const TRANSFER_BYTES: usize = 32 << 20;
/// Most random bytes at once.
const RANDOM_BYTES: u64 = 1 << 20;

/// A process that runs or has ended, as its parent knows it.
#[derive(Debug)]
pub struct Process {
    pub id: u32,
    /// The process that started it; a number, because a chain of children that each start one must not keep the dead.
    pub parent: Option<u32>,
    /// Its name and arguments, cut, for people.
    pub title: String,
    /// Nanoseconds for which a thread has worked for it.
    busy: AtomicU64,
    ended: watch::Sender<Option<u8>>,
    abort: Mutex<Abort>,
}

/// How far a process is on its way to be killed.
#[derive(Debug, Default)]
enum Abort {
    /// It has no future yet.
    #[default]
    Unborn,
    /// It was killed before it had one.
    Wanted,
    With(AbortHandle),
}

impl Process {
    pub fn new(id: u32, parent: Option<u32>, title: String) -> Arc<Self> {
        Arc::new(Self {
            id,
            parent,
            title,
            busy: AtomicU64::new(0),
            ended: watch::Sender::new(None),
            abort: Mutex::default(),
        })
    }

    /// For how long a thread has worked for it.
    pub fn busy(&self) -> Duration {
        Duration::from_nanos(self.busy.load(Relaxed))
    }

    /// The same work, with the time that it takes a thread counted. A process that spins gives its thread back at every tick, and
    /// one that waits is not polled.
    pub async fn counted(self: Arc<Self>, work: impl Future<Output = ()>) {
        let mut work = pin!(work);
        poll_fn(|context| {
            let started = Instant::now();
            let polled = work.as_mut().poll(context);
            let taken = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
            self.busy.fetch_add(taken, Relaxed);
            polled
        })
        .await;
    }

    /// Waits for its end.
    pub async fn wait(&self) -> u8 {
        let mut ended = self.ended.subscribe();
        let code = ended.wait_for(Option::is_some).await;
        code.ok().and_then(|code| *code).unwrap_or(KILLED)
    }

    /// Ends it. What it started is ended by [`Task::kill`].
    pub fn kill(&self) {
        let mut abort = self.abort.lock().unwrap_or_else(PoisonError::into_inner);
        match &*abort {
            Abort::With(handle) => handle.abort(),
            Abort::Unborn | Abort::Wanted => *abort = Abort::Wanted,
        }
    }

    /// Says how its future is aborted; at once if somebody wanted that already.
    pub fn aborts_with(&self, handle: AbortHandle) {
        let mut abort = self.abort.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*abort, Abort::Wanted) {
            handle.abort();
        }
        *abort = Abort::With(handle);
    }
}

/// A process in the hands of its parent.
pub type Child = Arc<Process>;

/// What a process is started with.
#[derive(Debug, Default)]
pub struct ProcessSpec {
    pub argv: Vec<String>,
    pub env: Vec<(String, String)>,
    /// Absolute, as the process sees it.
    pub cwd: String,
    pub channels: BTreeMap<u32, Channel>,
}

impl ProcessSpec {
    pub fn channel(&self, number: u32) -> Channel {
        self.channels.get(&number).cloned().unwrap_or(Channel::Null)
    }

    /// As people write it, cut.
    pub fn title(&self) -> String {
        let mut title = self.argv.join(" ");
        title.truncate(title.floor_char_boundary(200));
        title
    }
}

/// The data of a process's store.
pub struct Ctx {
    wasi: WasiCtx,
    pub table: ResourceTable,
    pub task: Arc<Task>,
    pub process: Arc<Process>,
    /// What `inherited` gives out.
    channels: BTreeMap<u32, Channel>,
    /// Whether `inherited` hands channels over, so that a pipe ends when the process closes its end.
    hands_over: bool,
    share: Share,
    listings: Vec<u32>,
}

impl Ctx {
    /// The channels that it was started with. A shell takes them over; a command's standard streams hold them anyway.
    pub fn inherited(&mut self) -> BTreeMap<u32, Channel> {
        match self.hands_over {
            true => std::mem::take(&mut self.channels),
            false => self.channels.clone(),
        }
    }
}

impl WasiView for Ctx {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

impl ChargedFiles for Ctx {
    fn quota(&self) -> &Arc<Quota> {
        &self.task.quota
    }

    fn listings(&mut self) -> &mut Vec<u32> {
        &mut self.listings
    }

    fn listings_hit(&self) -> LimitHit {
        self.task.hit(Limit::Listings)
    }

    fn roots(&self) -> &Roots {
        self.task.dirs.roots()
    }
}

/// How a process reaches its channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streams {
    /// Through `kiso:exec` alone.
    Shell,
    /// As standard streams.
    Command,
}

/// A store with the process's limits.
pub fn store(
    task: &Arc<Task>,
    process: &Arc<Process>,
    given: ProcessSpec,
    streams: Streams,
) -> wasmtime::Result<Store<Ctx>> {
    let mut wasi = WasiCtx::builder();
    match streams {
        // It would hold the ends of pipes open that it closes itself. A panic can still be heard.
        Streams::Shell => wasi.stderr(Stdio::new(given.channel(2))),
        Streams::Command => wasi
            .stdin(Stdio::new(given.channel(0)))
            .stdout(Stdio::new(given.channel(1)))
            .stderr(Stdio::new(given.channel(2))),
    };
    wasi.args(&given.argv)
        .envs(&given.env)
        .initial_cwd(&given.cwd)
        .allow_tcp(false)
        .allow_udp(false)
        .allow_ip_name_lookup(false)
        .max_random_size(RANDOM_BYTES)
        // Four times faster than a hop to another thread, and these threads run nothing else.
        .allow_blocking_current_thread(true);
    task.dirs.give(&mut wasi)?;
    let mut table = ResourceTable::new();
    table.set_max_capacity(usize::try_from(task.budget.handles()).unwrap_or(usize::MAX));
    let ctx = Ctx {
        wasi: wasi.build(),
        table,
        share: task.share(),
        task: task.clone(),
        process: process.clone(),
        channels: given.channels,
        hands_over: streams == Streams::Shell,
        listings: Vec::new(),
    };
    let mut store = Store::new(task.engine.wasmtime(), ctx);
    store.limiter(|ctx| &mut ctx.share);
    store.set_hostcall_fuel(TRANSFER_BYTES);
    store.set_epoch_deadline(1);
    // A process that spins gives its thread back at every tick; kill and deadline are then seen.
    store.epoch_deadline_async_yield_and_update(1);
    Ok(store)
}

/// Runs a bundled command to its end.
pub async fn run_command(pre: &CommandPre<Ctx>, mut store: Store<Ctx>) -> wasmtime::Result<u8> {
    let instance = pre.instantiate_async(&mut store).await?;
    match instance.wasi_cli_run().call_run(&mut store).await? {
        Ok(()) => Ok(0),
        Err(()) => Ok(1),
    }
}

/// The exit code of what a process came to, with a word on its standard error where it said none itself.
pub async fn exit_code(task: &Task, title: &str, stderr: &Channel, result: wasmtime::Result<u8>) -> u8 {
    let error = match result {
        Ok(code) => return code,
        Err(error) => error,
    };
    if let Some(exit) = error.downcast_ref::<I32Exit>() {
        return u8::try_from(exit.0 & 0xff).unwrap_or(CRASHED);
    }
    if error.downcast_ref::<BrokenPipe>().is_some() {
        return BrokenPipe::CODE;
    }
    if task.limit().is_some() {
        return KILLED;
    }
    if error.root_cause().to_string().contains("fuel allocated for hostcalls") {
        task.hit(Limit::Transfer);
        return KILLED;
    }
    let name = title.split(' ').next().unwrap_or_default();
    if let Some(WriteError(errno)) = error.downcast_ref() {
        let _ = stderr.write(format!("{name}: write error: {}\n", in_words(*errno)).as_bytes()).await;
        return 1;
    }
    let (message, code) = match error.downcast_ref::<Trap>() {
        Some(Trap::StackOverflow) => {
            (format!("it recursed deeper than its stack of {} KiB", super::engine::STACK_BYTES >> 10), CRASHED)
        }
        // A panic of a bundled command; it has said why.
        Some(Trap::UnreachableCodeReached) => return CRASHED,
        Some(trap) => (trap::in_words(*trap).to_owned(), CRASHED),
        _ if matches!(error.downcast_ref(), Some(ResourceTableError::Full)) => {
            task.hit(Limit::OpenFiles);
            return KILLED;
        }
        _ => (error.root_cause().to_string(), CRASHED),
    };
    let _ = stderr.write(format!("{name}: crashed: {message}\n").as_bytes()).await;
    code
}

/// Marks a process as ended, however its future goes away.
pub struct Running {
    pub task: Arc<Task>,
    pub process: Arc<Process>,
    pub code: u8,
}

impl Running {
    pub fn new(task: Arc<Task>, process: Arc<Process>) -> Self {
        Self { task, process, code: KILLED }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.process.ended.send_replace(Some(self.code));
        self.task.gone(&self.process);
    }
}
