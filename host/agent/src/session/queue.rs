//! The queue: gives each session its turn, and drives its runs.

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

/// Milliseconds until a session is tried again whose lock somebody else has.
const AGAIN_MS: i64 = 1_000;

/// How often it is seen whether something is due behind replies that was put off, while nothing else happens.
const AGAIN_BEHIND: Duration = Duration::from_secs(60);

/// How often the time doubles until a session is tried again that failed: to about a minute.
const MAX_DOUBLINGS: u32 = 6;

/// How often it is looked for subagents that another process spawned. The rows of an index are read, and there are few.
const LOOK: Duration = Duration::from_secs(1);

/// Spawned messages that are looked at: the first ones; those behind them are found when these have begun.
const MAX_FOUND: u32 = 1_000;

/// What the queue needs and never changes.
#[derive(Debug, Clone)]
struct Works {
    drive: RunExecutor,
    hub: Hub,
    /// Of the environment.
    secrets: Secrets,
    queued: Arc<AtomicU64>,
    /// Where runs are worked on: on threads of their own, so that nothing that one of them does holds up who is served.
    workers: Handle,
    /// Told when a run has ended, so that what is due behind its reply is done.
    background: mpsc::UnboundedSender<()>,
}

/// A queue that is running.
#[derive(Debug)]
pub struct Queue {
    pub intake: Intake,
    pub hub: Hub,
    wake: mpsc::UnboundedSender<Wake>,
    pause: Pause,
    ended: oneshot::Receiver<()>,
}

impl Queue {
    /// Takes up what the store says is unfinished, and begins. `secrets` are those of the environment.
    ///
    /// Runs are worked on in the runtime of `workers`, the queue itself in that of the caller.
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
        // What a process before this one left to do.
        let _ = background.send(());
        let works = Works { drive, hub: hub.clone(), secrets, queued, workers, background };
        tokio::spawn(async move {
            serve(works, turns, clock, woken).await;
            let _ = done.send(());
        });
        Ok(Queue { intake, hub, wake, pause, ended })
    }

    /// Takes nothing more, lets each run finish the step that is under way, at most for `grace`, and leaves the rest to the
    /// next start.
    pub async fn stop(self, grace: Duration) {
        let Queue { intake, hub: _, wake, pause, ended } = self;
        intake.close();
        pause.pause();
        let _ = wake.send(Wake::Pause);
        drop((intake, wake));
        let _ = tokio::time::timeout(grace, ended).await;
    }
}

/// Milliseconds since the queue began. The clock of the wall may jump by years when a board without a battery hears of the
/// time; a message that waits must not notice.
#[derive(Debug, Clone, Copy)]
struct Clock(Instant);

impl Clock {
    fn new() -> Clock {
        Clock(Instant::now())
    }

    fn now_ms(self) -> i64 {
        i64::try_from(self.0.elapsed().as_millis()).unwrap_or(i64::MAX)
    }

    /// A time of the wall on this clock, where it is `now` there. One that is yet to come was written before the clock was
    /// put back: how long ago is not known, so it counts as now.
    fn past_ms(self, now: i64, wall_ms: i64) -> i64 {
        self.now_ms().saturating_sub(now.saturating_sub(wall_ms).max(0))
    }
}

/// Why a session's turn ended without being over.
enum Ended {
    /// Nothing is left to do, or only what another kind of caller said, which has a run of its own.
    Over { left: Option<JobPriority> },
    /// Somebody else works in the session.
    Busy,
    /// Something is in the way that may go.
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
                    // A mistake in one run must not end all others, nor leave its session without a turn.
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
                // Everybody who could send has gone: the daemon is shutting down.
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

/// Tells the queue of runs that are to be tried again, and of subagents that were spawned: at once where this process did it, and soon where another one did.
async fn look_for_spawned(store: Store, wake: mpsc::WeakUnboundedSender<Wake>) {
    let mut bell = store.bell();
    let mut tick = tokio::time::interval(LOOK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = tick.tick() => {}
            _ = bell.changed() => {}
        }
        // Runs whose time to be answered is over go on without an answer.
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

/// Does what waits in a session: first what was cut off, then one run for the messages that wait.
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
        // What was to be stopped had not begun; it is tried again.
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
            // It goes on once a person has answered; the session goes on meanwhile.
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

/// Counts the messages that a run takes out of the queue.
struct Counting<'a> {
    teller: super::live::Teller,
    session: &'a SessionName,
    drive: &'a RunExecutor,
    queued: &'a AtomicU64,
    /// Whether the run takes messages when it begins; one that is taken up again has done so before.
    begins: bool,
    /// The priority of the first message that still waited when the run had taken its own.
    left: Option<JobPriority>,
}

impl Listener for Counting<'_> {
    fn begun(&mut self, run: &RunId) {
        self.teller.begun(run);
        if !self.begins {
            return;
        }
        // One row of an index for each message; a store that cannot be read here fails the run at its next event.
        let read = self.drive.store.read_blocking(|view| {
            let left = view.queued_jobs(self.session, 1)?;
            Ok((view.count_jobs_of(run)?, left.first().map(|job| job.priority)))
        });
        let (taken, left) = read.unwrap_or((1, None));
        count_down(self.queued, taken);
        self.left = left;
    }

    fn event(&mut self, _: u32, event: &Event, _: &Run) {
        // The turn goes on with what came meanwhile.
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

/// Titles, summaries, facts and memory, one piece after the other, whenever a run has ended.
async fn behind_replies(drive: RunExecutor, mut due: mpsc::UnboundedReceiver<()>) {
    // What was put off is due again without a word from anybody.
    while !matches!(tokio::time::timeout(AGAIN_BEHIND, due.recv()).await, Ok(None)) {
        while due.try_recv().is_ok() {}
        loop {
            if drive.pause.is_paused() {
                return;
            }
            match drive.newest().background(None).await {
                Ok(0) => break,
                Ok(_) => {}
                // The store was closed meanwhile; the next daemon finds what is due.
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

    /// A message that was written a day "later" waits no longer than one that comes now, and one of last year no less.
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
