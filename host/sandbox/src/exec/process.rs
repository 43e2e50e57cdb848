//! One process as the others see it: how it is started, waited for and killed.

use super::channel::Channel;
use crate::effect::label::LabelCell;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// 128 + SIGKILL: it was killed.
pub(super) const KILLED: u8 = 137;
/// 128 + SIGABRT: it crashed.
pub(super) const CRASHED: u8 = 134;
/// It was found and could not be run.
pub(super) const CANNOT_RUN: u8 = 126;

/// A process that runs or has ended, as its parent knows it.
#[derive(Debug)]
#[expect(unreachable_pub, reason = "a part of `Child`")]
pub struct Process {
    pub id: u32,
    /// The process that started it. It is a number, because references in a chain of children would keep the dead ones.
    pub parent: Option<u32>,
    /// Its name and arguments, cut, for people.
    pub title: String,
    /// The label of everything that it has read.
    pub label: LabelCell,
    /// Nanoseconds for which a thread has worked for it.
    busy: AtomicU64,
    ended: watch::Sender<Option<u8>>,
    abort: Mutex<Abort>,
}

/// The state of a process's kill.
#[derive(Debug, Default)]
enum Abort {
    /// The process has no future yet.
    #[default]
    Unborn,
    /// The process was killed before it had one.
    Wanted,
    With(AbortHandle),
}

impl Process {
    pub(super) fn new(id: u32, parent: Option<u32>, title: String, label: LabelCell) -> Arc<Self> {
        Arc::new(Self {
            id,
            parent,
            title,
            label,
            busy: AtomicU64::new(0),
            ended: watch::Sender::new(None),
            abort: Mutex::default(),
        })
    }

    /// The time for which threads have worked for it.
    pub(super) fn busy(&self) -> Duration {
        Duration::from_nanos(self.busy.load(Relaxed))
    }

    /// The same work, with its thread time counted. A process that spins yields its thread at every tick, and one that waits is
    /// not polled.
    pub(super) async fn counted(self: Arc<Self>, work: impl Future<Output = ()>) {
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
    pub(super) async fn wait(&self) -> u8 {
        let mut ended = self.ended.subscribe();
        let code = ended.wait_for(Option::is_some).await;
        code.ok().and_then(|code| *code).unwrap_or(KILLED)
    }

    /// The code that it has ended with, if it has.
    pub(super) fn code(&self) -> Option<u8> {
        *self.ended.borrow()
    }

    /// Records that it has ended, with this code.
    pub(super) fn ended(&self, code: u8) {
        self.ended.send_replace(Some(code));
    }

    /// Kills this process only; its children continue.
    pub(super) fn kill(&self) {
        let mut abort = self.abort.lock().unwrap_or_else(PoisonError::into_inner);
        match &*abort {
            Abort::With(handle) => handle.abort(),
            Abort::Unborn | Abort::Wanted => *abort = Abort::Wanted,
        }
    }

    /// Sets the handle that aborts its future, and aborts it at once if it was killed already.
    pub(super) fn aborts_with(&self, handle: AbortHandle) {
        let mut abort = self.abort.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*abort, Abort::Wanted) {
            handle.abort();
        }
        *abort = Abort::With(handle);
    }
}

/// A process, as its parent holds it.
#[expect(unreachable_pub, reason = "the generated bindings export it again")]
pub type Child = Arc<Process>;

/// The words, streams and environment of a process to start.
#[derive(Debug, Default)]
pub(super) struct ProcessSpec {
    pub argv: Vec<String>,
    /// The absolute path of a WebAssembly program that is run instead of the command that the first word names.
    pub program: Option<String>,
    pub env: Vec<(String, String)>,
    /// Absolute, as the process sees it.
    pub cwd: String,
    pub channels: BTreeMap<u32, Channel>,
}

impl ProcessSpec {
    pub(super) fn channel(&self, number: u32) -> Channel {
        self.channels.get(&number).cloned().unwrap_or(Channel::Null)
    }

    /// Its command line for people, cut.
    pub(super) fn title(&self) -> String {
        let mut title = self.argv.join(" ");
        title.truncate(title.floor_char_boundary(200));
        title
    }
}
