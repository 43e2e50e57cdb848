//! The queue: gives each session its turn, and performs its runs.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use super::intake::{Intake, count_down};
use super::live::Hub;
use super::turns::Turns;
use super::wake::{QueueLimits, Wake};
use crate::drive::{Cancel, DriveError, Listener, Pause, RunExecutor};
use kiso_base::clock::now_ms;
use kiso_base::home::{HomeError, SessionName};
use kiso_graph::run::Run;
use kiso_graph::step::{Event, Step, StepResult, ToolResult};
use kiso_plan::report::often;
use kiso_store::secret::Secrets;
use kiso_store::store::{JobPriority, RunId, Store, StoreError};

/// Milliseconds before a session whose lock somebody else holds is retried.
const AGAIN_MS: i64 = 1_000;

/// Polling interval for postponed background work.
const AGAIN_BEHIND: Duration = Duration::from_secs(60);

/// How often the delay doubles before a failed session is retried: up to about a minute.
const MAX_DOUBLINGS: u32 = 6;

/// How often to poll for subagents spawned by another process. This reads a few rows of an index.
const LOOK: Duration = Duration::from_secs(1);

/// Maximum number of spawned messages that are examined; later ones are found when these have started.
const MAX_FOUND: u32 = 1_000;

/// The immutable context of the queue.
#[derive(Debug, Clone)]
struct Works {
    drive: RunExecutor,
    hub: Hub,
    /// Secrets from the environment.
    secrets: Secrets,
    queued: Arc<AtomicU64>,
    /// The runtime for runs, with its own threads, so that runs do not delay the serving of clients.
    workers: Handle,
    /// Notified when a run has ended, to start background work.
    background: mpsc::UnboundedSender<()>,
}

/// A running queue.
#[derive(Debug)]
pub struct Queue {
    pub intake: Intake,
    pub hub: Hub,
    wake: mpsc::UnboundedSender<Wake>,
    pause: Pause,
    ended: oneshot::Receiver<()>,
}

impl Queue {
    /// Starts the queue, and resumes unfinished work of the store. `secrets` are those of the environment.
    ///
    /// Runs are performed in the runtime of `workers`, the queue itself in that of the caller.
    pub async fn start(
        drive: RunExecutor,
        secrets: Secrets,
        limits: QueueLimits,
        workers: Handle,
    ) -> Result<Queue, StoreError> {
        let (waiting, unfinished, count) = drive
            .store
            .read(|view| {
                let unfinished = view.unfinished_runs(None)?;
                let of = unfinished.iter().map(|run| {
                    let session = view.run(run)?.map(|run| run.session);
                    Ok(session.zip(Some(view.priority_of_run(run)?)))
                });
                let of = of.collect::<Result<Vec<_>, StoreError>>()?;
                Ok((view.sessions_queued()?, of, view.count_queued()?))
            })
            .await?;
        let mut turns = Turns::new(limits.debounce_ms, limits.max_jobs);
        let (clock, now) = (Clock::new(), now_ms());
        for (session, priority) in unfinished.into_iter().flatten() {
            turns.ready(&session, priority);
        }
        for (session, at_ms, priority) in waiting {
            turns.arrived(&session, priority, clock.past_ms(now, at_ms));
        }
        let (wake, woken) = mpsc::unbounded_channel();
        let (background, due) = mpsc::unbounded_channel();
        let (done, ended) = oneshot::channel();
        let (hub, queued, pause) = (Hub::default(), Arc::new(AtomicU64::new(count)), drive.pause.clone());
        let intake = Intake::new(drive.clone(), wake.clone(), queued.clone());
        workers.spawn(behind_replies(drive.clone(), due));
        tokio::spawn(look_for_spawned(drive.store.clone(), wake.downgrade()));
        // Starts background work that an earlier process left.
        let _ = background.send(());
        let works = Works { drive, hub: hub.clone(), secrets, queued, workers, background };
        tokio::spawn(async move {
            serve(works, turns, clock, woken).await;
            let _ = done.send(());
        });
        Ok(Queue { intake, hub, wake, pause, ended })
    }

    /// Stops accepting messages, waits up to `grace` for the current step of each run, and leaves the rest to the next start.
    pub async fn stop(self, grace: Duration) {
        let Queue { intake, hub: _, wake, pause, ended } = self;
        intake.close();
        pause.pause();
        let _ = wake.send(Wake::Pause);
        drop((intake, wake));
        let _ = tokio::time::timeout(grace, ended).await;
    }
}

/// Milliseconds since the queue was started. The system's clock may jump by years when a board without a battery gets the time;
/// waiting messages must not be affected.
#[derive(Debug, Clone, Copy)]
struct Clock(Instant);

impl Clock {
    fn new() -> Clock {
        Clock(Instant::now())
    }

    fn now_ms(self) -> i64 {
        i64::try_from(self.0.elapsed().as_millis()).unwrap_or(i64::MAX)
    }

    /// Converts a time of the system's clock, which is `now`, to this clock. A future time was stored before the clock was set
    /// back. Its age is unknown, so it is treated as now.
    fn past_ms(self, now: i64, wall_ms: i64) -> i64 {
        self.now_ms().saturating_sub(now.saturating_sub(wall_ms).max(0))
    }
}

/// The end of a session's turn.
enum Ended {
    /// Nothing is left to do, except messages of another kind of caller, which get their own run.
    Over { left: Option<JobPriority> },
    /// Somebody else works in the session.
    Busy,
    /// A temporary failure.
    Failed,
    /// The daemon is ending.
    Paused,
}

#[expect(clippy::expect_used, reason = "a turn catches what goes wrong in it")]
async fn serve(works: Works, mut turns: Turns, clock: Clock, mut woken: mpsc::UnboundedReceiver<Wake>) {
    let mut runs: JoinSet<(SessionName, Ended)> = JoinSet::new();
    let mut cancels: HashMap<SessionName, Cancel> = HashMap::new();
    let mut failures: HashMap<SessionName, u32> = HashMap::new();
    loop {
        let paused = works.drive.pause.is_paused();
        if !paused {
            for session in turns.begin(clock.now_ms()) {
                let cancel = Cancel::new();
                cancels.insert(session.clone(), cancel.clone());
                let works = works.clone();
                let workers = works.workers.clone();
                let turn = async move {
                    // A bug in one run must not end all others, nor leave its session without a turn.
                    let ended = AssertUnwindSafe(turn(&works, &session, &cancel)).catch_unwind().await;
                    (session, ended.unwrap_or(Ended::Failed))
                };
                runs.spawn_on(turn, &workers);
            }
        } else if runs.is_empty() {
            return;
        }
        let wait = turns.next_ms().map(|due| Duration::from_millis((due - clock.now_ms()).max(0).unsigned_abs()));
        let due = async {
            match wait {
                Some(wait) if !paused => tokio::time::sleep(wait).await,
                _ => std::future::pending().await,
            }
        };
        tokio::select! {
            Some(ended) = runs.join_next(), if !runs.is_empty() => {
                let (session, ended) = ended.expect("a turn catches what goes wrong in it");
                cancels.remove(&session);
                let wait = match ended {
                    Ended::Over { .. } | Ended::Paused => None,
                    Ended::Busy => Some(AGAIN_MS),
                    Ended::Failed => {
                        let failed = failures.entry(session.clone()).or_default();
                        *failed += 1;
                        Some(AGAIN_MS << (*failed).min(MAX_DOUBLINGS))
                    }
                };
                if wait.is_none() {
                    failures.remove(&session);
                }
                turns.ended(&session, wait.map(|wait| clock.now_ms() + wait));
                if let Ended::Over { left: Some(priority) } = ended {
                    turns.ready(&session, priority);
                }
                let _ = works.background.send(());
            }
            wake = woken.recv() => match wake {
                Some(Wake::Message { session, priority, flush }) => {
                    turns.arrived(&session, priority, clock.now_ms());
                    if flush {
                        turns.flush(&session);
                    }
                }
                Some(Wake::Cancel { session, stopped }) => {
                    let cancel = cancels.get(&session);
                    if let Some(cancel) = cancel {
                        cancel.cancel();
                    }
                    let _ = stopped.send(cancel.is_some());
                }
                Some(Wake::Found(found)) => {
                    let now = now_ms();
                    for (session, at_ms, priority) in found {
                        turns.found(&session, priority, clock.past_ms(now, at_ms));
                    }
                }
                Some(Wake::Limits(limits)) => turns.limit(limits.debounce_ms, limits.max_jobs),
                Some(Wake::Alive(answer)) => drop(answer.send(())),
                Some(Wake::Pause) => {}
                // All senders are gone: the daemon is shutting down.
                None if runs.is_empty() => return,
                None => {
                    if let Some(Ok((session, _))) = runs.join_next().await {
                        turns.ended(&session, None);
                    }
                }
            },
            () = due => {}
        }
    }
}

/// Notifies the queue of runs to retry, and of spawned subagents: immediately after changes by this process, and soon after those
/// by others.
async fn look_for_spawned(store: Store, wake: mpsc::WeakUnboundedSender<Wake>) {
    let mut bell = store.bell();
    let mut tick = tokio::time::interval(LOOK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = tick.tick() => {}
            _ = bell.changed() => {}
        }
        // Runs with an expired question continue without an answer.
        let expired = async {
            if store.peek(|view| view.has_expired_approvals(now_ms())).await? {
                store.write(|tx| tx.expire_approvals(now_ms())).await?;
            }
            Ok::<_, StoreError>(())
        };
        if let Err(error) = expired.await
            && error != StoreError::Closed
        {
            tracing::warn!("approvals could not be expired; it is tried again: {error}");
        }
        let found = store.peek(|view| {
            let mut found = view.spawned_queued(MAX_FOUND)?;
            let retried = view.runs_to_retry(MAX_FOUND)?;
            found.extend(retried.into_iter().map(|(session, priority)| (session, 0, priority)));
            Ok(found)
        });
        let found = found.await;
        let Some(wake) = wake.upgrade() else { return };
        match found {
            Ok(found) if found.is_empty() => {}
            Ok(found) => drop(wake.send(Wake::Found(found))),
            Err(StoreError::Closed) => return,
            Err(error) => tracing::warn!("the queue could not be read; it is tried again: {error}"),
        }
    }
}

/// Performs the work of a session: first interrupted runs, then one run for the waiting messages.
#[tracing::instrument(name = "session.turn", level = "debug", skip_all, fields(session = %session))]
async fn turn(works: &Works, session: &SessionName, cancel: &Cancel) -> Ended {
    let lock = match works.drive.home.lock_session(session) {
        Ok(lock) => lock,
        Err(HomeError::Busy { .. }) => return Ended::Busy,
        Err(error) => {
            tracing::error!(%session, "the session cannot be worked in: {error}");
            return Ended::Failed;
        }
    };
    let full =
        |max| tracing::info!(%session, "{max} runs are active in this home (daemon.max_jobs); this one is queued");
    let _place = match works.drive.place(cancel, full).await {
        Ok(Some(place)) => place,
        Ok(None) if works.drive.pause.is_paused() => return Ended::Paused,
        // The run to cancel had not started; the session is retried.
        Ok(None) => {
            cancel.forget();
            return Ended::Busy;
        }
        Err(error) => {
            tracing::error!(%session, "no place for a run can be had: {error}");
            return Ended::Failed;
        }
    };
    tracing::debug!("a turn begins");
    let ended = match work(works, session, cancel).await {
        Ok(left) => Ended::Over { left },
        Err(DriveError::Paused) => Ended::Paused,
        Err(error) => {
            tracing::error!(%session, "the run could not go on: {error}");
            Ended::Failed
        }
    };
    drop(lock);
    ended
}

/// Returns the priority of the first message that the run did not take, if there is one.
async fn work(works: &Works, session: &SessionName, cancel: &Cancel) -> Result<Option<JobPriority>, DriveError> {
    let Works { drive, hub, secrets, queued, .. } = works;
    let drive = drive.for_session(session).await?;
    for run in drive.unfinished(Some(session)).await? {
        let mut teller =
            Counting { teller: hub.listener(session), session, drive: &drive, queued, begins: false, left: None };
        match drive.take_up(&run, secrets.clone(), cancel, &mut teller).await {
            Err(DriveError::CutOff { times }) => {
                tracing::error!(%session, %run, "the run was cut off {}; it waits for a person", often(times));
                drive.hold(&run, times).await?;
            }
            Err(error) if error.is_final() => {
                tracing::warn!(%session, %run, "{error}");
                drive.abandon(&run, &error).await?;
            }
            // The run continues after a person has answered; the session continues meanwhile.
            Err(DriveError::Waiting { .. }) => {}
            resumed => drop(resumed?),
        }
        cancel.forget();
    }
    let mut teller =
        Counting { teller: hub.listener(session), session, drive: &drive, queued, begins: true, left: None };
    match drive.run_queued(session, secrets.clone(), cancel, &mut teller).await {
        Err(DriveError::Waiting { .. }) => {}
        ended => drop(ended?),
    }
    Ok(teller.left)
}

/// Decrements the number of waiting messages when a run takes them.
struct Counting<'a> {
    teller: super::live::Teller,
    session: &'a SessionName,
    drive: &'a RunExecutor,
    queued: &'a AtomicU64,
    /// Whether the run takes messages when it starts; a resumed run has already done so.
    begins: bool,
    /// Priority of the first message that was still waiting when the run had taken its own.
    left: Option<JobPriority>,
}

impl Listener for Counting<'_> {
    fn begun(&mut self, run: &RunId) {
        self.teller.begun(run);
        if !self.begins {
            return;
        }
        // Reads one row of an index per message; if the store cannot be read here, the run fails at its next event.
        let read = self.drive.store.read_blocking(|view| {
            let left = view.queued_jobs(self.session, 1)?;
            Ok((view.count_jobs_of(run)?, left.first().map(|job| job.priority)))
        });
        let (taken, left) = read.unwrap_or((1, None));
        count_down(self.queued, taken);
        self.left = left;
    }

    fn event(&mut self, _: u32, event: &Event, _: &Run) {
        // The turn continues with newly arrived messages.
        if let (true, StepResult::Finished { arrived, .. }) = (event.continues, &event.result) {
            count_down(self.queued, arrived.len() as u64);
        }
    }

    fn step(&mut self, seq: u32, step: &Step) {
        self.teller.step(seq, step);
    }

    fn thought(&mut self, thought: &crate::drive::Thought) {
        self.teller.thought(thought);
    }

    fn token(&mut self, role: kiso_base::role::Role, text: &str) {
        self.teller.token(role, text);
    }

    fn reasoning(&mut self, role: kiso_base::role::Role, text: &str) {
        self.teller.reasoning(role, text);
    }

    fn output(&mut self, call: usize, stream: &'static str, text: &str) {
        self.teller.output(call, stream, text);
    }

    fn call_ended(&mut self, call: usize, result: &ToolResult) {
        self.teller.call_ended(call, result);
    }

    fn restart(&mut self, role: kiso_base::role::Role) {
        self.teller.restart(role);
    }
}

/// Runs background work whenever a run has ended: titles, summaries, facts and memory, one after the other.
async fn behind_replies(drive: RunExecutor, mut due: mpsc::UnboundedReceiver<()>) {
    // Postponed work becomes due without a notification.
    while !matches!(tokio::time::timeout(AGAIN_BEHIND, due.recv()).await, Ok(None)) {
        while due.try_recv().is_ok() {}
        loop {
            if drive.pause.is_paused() {
                return;
            }
            match drive.newest().background(None).await {
                Ok(0) => break,
                Ok(_) => {}
                // The store was closed in the meantime; the next daemon finds the due work.
                Err(_) if drive.pause.is_paused() => return,
                Err(error) => {
                    tracing::warn!("what is due behind replies was put off: {error}");
                    break;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Clock;

    /// A message with a time a day in the future waits no longer than a new one, and one from last year no less.
    #[test]
    fn a_clock_that_was_put_back_makes_nobody_wait() {
        let clock = Clock::new();
        const DAY: i64 = 86_400_000;
        let before = clock.now_ms();
        let future = clock.past_ms(5 * DAY, 6 * DAY);
        assert!((before..=clock.now_ms()).contains(&future), "{future}");
        assert!(clock.past_ms(5 * DAY, 4 * DAY) <= clock.now_ms() - DAY);
        assert!(clock.past_ms(i64::MAX, i64::MIN) < 0);
    }
}
