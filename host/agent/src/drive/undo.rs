//! File changes of a run: recorded while it works, rolled back if it is interrupted, and undone on request.

use super::run_context::RunContext;
use super::{DriveError, RunExecutor};
use kiso_base::compute;
use kiso_base::config::Config;
use kiso_base::home::{HomeError, HomeLock, SHARED, SessionName};
use kiso_graph::run::{PendingStep, Run};
use kiso_sandbox::effect::member::FleetMember;
use kiso_sandbox::effect::overlay::Overlay;
use kiso_sandbox::effect::undo::{
    CutOff, Origin, Transaction, UndoChoice, UndoEntry, UndoError, UndoKind, UndoLimits, UndoPlan, UndoResult, boot,
};
use kiso_store::store::{RunId, Store};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::runtime::{Handle, RuntimeFlavor};

/// Placeholder on a machine that does not report its boot.
const ANY_BOOT: &str = "unknown";

/// How long a member waits until it knows that it owns the home: longer than a lease, after which its process is replaced.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often to check whether a session that no run works in is idle.
const LOOKS: u32 = 300;

/// The same for a request that can be repeated.
const LOOKS_SOON: u32 = 20;

/// Beginning of the commands that an error suggests.
const PROGRAM: &str = "kiso";

/// Delay between two checks.
const LOOK: Duration = Duration::from_millis(100);

/// Why nothing was undone.
#[derive(Debug, thiserror::Error)]
pub enum UndoFailure {
    #[error("a run is working in the session {session}; undo it when it has ended")]
    AtWork { session: SessionName },
    #[error(transparent)]
    Undo(#[from] UndoError),
    /// Changes of the run were accepted into a folder after it, and prevent the undo.
    #[error("{reason}")]
    Accepted { reason: String },
    #[error(transparent)]
    Drive(#[from] DriveError),
}

impl RunContext<'_> {
    /// Returns the transaction of the next step, or of the call at this index among concurrent calls.
    pub(super) fn transaction(&self, run: &Run, place: usize) -> Option<Arc<Transaction>> {
        let origin = Origin { run: self.run.to_string(), task: run.tasks_recorded() + 1, seq: self.seq, place };
        let work = self.drive.undo.begin(&self.session, origin, limits(&self.drive.config))?;
        if let Some(member) = self.drive.member.clone() {
            work.ask_before_leaving(departure(member, self.drive.store.clone(), self.run.clone(), self.seq));
        }
        Some(work)
    }
}

/// Prepares a step of a fleet's member for an effect outside: ensures that nobody else owns the home, and that the next owner
/// will know of the step. The undo data stays on this machine.
fn departure(
    member: Arc<dyn FleetMember>,
    store: Store,
    run: RunId,
    seq: u32,
) -> impl Fn() -> io::Result<()> + Send + Sync + 'static {
    let is_on_record = AtomicBool::new(false);
    let waits = move || {
        let began = Instant::now();
        while !member.may_act() {
            if began.elapsed() >= PATIENCE {
                return Err(io::Error::other("this member of the fleet may not own the home any more"));
            }
            std::thread::sleep(LOOK);
        }
        if !is_on_record.load(Ordering::Acquire) {
            let of = run.clone();
            let put = store.write_blocking(move |tx| tx.set_left(&of, seq));
            put.map_err(|error| io::Error::other(error.to_string()))?;
            is_on_record.store(true, Ordering::Release);
        }
        Ok(())
    };
    // Called from synchronous code of the sandbox; the runtime moves other tasks to another thread meanwhile.
    move || match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(&waits),
        _ => waits(),
    }
}

impl RunExecutor {
    /// Returns the value of [`boot`] for a run that starts or is resumed now; `None` if undo is disabled.
    pub(super) fn boot(&self) -> Option<String> {
        (self.config.undo.max_mib > 0).then(|| boot().unwrap_or(ANY_BOOT).to_owned())
    }

    /// Completes interrupted work in the session, before anybody works in it. The caller holds its lock.
    pub(super) async fn settle(&self, session: &SessionName) -> Result<(), DriveError> {
        self.undo.quiet(session).await;
        Overlay::drop_unshared(&self.home, session).map_err(|error| undoing(session, error))?;
        // Most sessions have none, so this is checked first; switching threads would take longer.
        if self.undo.keeps_any(session) {
            let (undo, of) = (self.undo.clone(), session.clone());
            let recovered = compute::run("rolling back what was cut off", move || undo.recover(&of)).await?;
            recovered.map_err(|error| undoing(session, error))?;
        }
        self.tools.skills().measure_anew(session);
        Ok(())
    }

    /// Rolls back the step in which a run was interrupted, if there is one. Returns whether it may be repeated because no effect
    /// remained.
    pub(super) async fn roll_back_step(
        &self,
        session: &SessionName,
        id: &RunId,
        seq: u32,
        run: &Run,
    ) -> Result<CutOff, DriveError> {
        self.settle(session).await?;
        let (undo, of, run_id) = (self.undo.clone(), session.clone(), id.to_string());
        let back = compute::run("rolling back a step", move || undo.roll_back_step(&of, &run_id, seq)).await?;
        let found = back.map_err(|error| undoing(session, error))?;
        self.tools.skills().measure_anew(session);
        let wanted = id.clone();
        let read = self.store.read(move |view| Ok((view.boot_of_run(&wanted)?, view.has_left(&wanted, seq)?)));
        let (boot, has_left) = read.await?;
        let is_kept = match run.pending() {
            Some(PendingStep::Task(task)) => self.tools.is_undoable_task(task),
            Some(PendingStep::Calls(calls)) => calls.iter().all(|call| self.tools.is_undoable_call(&call.name)),
            None => true,
        };
        Ok(match found {
            // If the machine went down before the log was on disk, the log is not reliable. A member of a fleet starts with the
            // files of the last commit, whatever was changed since, and with the record of other effects.
            CutOff::Nothing if boot.is_none() || self.member.is_none() && boot != self.boot() => CutOff::Files,
            CutOff::Nothing if !is_kept => CutOff::Files,
            CutOff::Nothing if has_left => CutOff::Outside,
            found => found,
        })
    }

    /// Cleans up the undo data of a run that has ended.
    pub(super) fn close_undo(&self, session: &SessionName, id: &RunId) {
        if let Err(error) = self.undo.tidy(session, id.as_str()) {
            tracing::warn!(%session, "what is kept to undo a run could not be tidied: {error}");
        }
        self.count_undo(session);
    }

    /// Tells the store the size of the session's undo data, if it has changed significantly.
    pub(super) fn count_undo(&self, session: &SessionName) {
        if let Some(bytes) = self.undo.bytes_if_changed(session) {
            let session = session.clone();
            self.store.post(move |tx| tx.set_undo_bytes(&session, bytes));
        }
    }

    /// Returns what can be undone and redone in a session, oldest first.
    pub async fn undo_entries(&self, session: &SessionName) -> Result<Vec<UndoEntry>, UndoFailure> {
        let (undo, of) = (self.undo.clone(), session.clone());
        let read = compute::run("reading what is kept", move || undo.entries(&of)).await.map_err(DriveError::from)?;
        Ok(read.map_err(UndoError::from)?)
    }

    /// Returns the changes that an undo or redo would make.
    pub async fn undo_plan(
        &self,
        session: &SessionName,
        kind: UndoKind,
        choice: UndoChoice,
    ) -> Result<UndoPlan, UndoFailure> {
        let (undo, of) = (self.undo.clone(), session.clone());
        let plan = compute::run("reading what is kept", move || undo.plan(&of, kind, &choice));
        Ok(plan.await.map_err(DriveError::from)??)
    }

    /// Undoes a run of the session, or the end of one, or redoes it. Nobody may work in the session meanwhile.
    pub async fn undo(
        &self,
        session: &SessionName,
        kind: UndoKind,
        choice: UndoChoice,
        force: bool,
    ) -> Result<UndoResult, UndoFailure> {
        let lock = self.lock_at_rest(session).await?;
        self.undo.quiet(session).await;
        let (undo, of, limits) = (self.undo.clone(), session.clone(), limits(&self.config));
        let named = choice.run.clone();
        // Runs to its end even if the caller stops waiting, because the lock is held until then.
        let done = tokio::task::spawn_blocking(move || {
            let done = undo.apply(&of, kind, &choice, force, limits);
            drop(lock);
            done
        });
        let done = done.await.map_err(|error| UndoError::Io(std::io::Error::other(error)))?;
        self.tools.skills().measure_anew(session);
        self.count_undo(session);
        let result = match done {
            Err(error @ UndoError::Conflict(_)) => {
                return Err(match self.accepted_since(session, kind, named.as_deref()).await? {
                    Some(reason) => UndoFailure::Accepted { reason },
                    None => error.into(),
                });
            }
            done => done?,
        };
        self.keep_files(session).await?;
        tracing::info!(%session, run = result.plan.run, changes = result.plan.changes.len(), "a run was {}", kind.participle());
        Ok(result)
    }

    /// Undoes the changes of the runs that the next version of a turn replaces, if its sender wants that. The caller holds the
    /// session's lock. Failures are logged, and do not prevent the answer.
    pub(super) async fn undo_replaced(&self, session: &SessionName) -> Result<(), DriveError> {
        let of = session.clone();
        let Some((branch, runs)) = self.store.read(move |view| view.undo_before(&of)).await? else { return Ok(()) };
        for run in runs.into_iter().rev() {
            let (undo, of, limits) = (self.undo.clone(), session.clone(), limits(&self.config));
            let choice = UndoChoice { run: Some(run.to_string()), task: None };
            let done = compute::run("undoing a run", move || undo.apply(&of, UndoKind::Undo, &choice, true, limits));
            match done.await? {
                Ok(_) | Err(UndoError::Nothing(_)) => {}
                Err(error) => tracing::warn!(%session, %run, "what a replaced run changed was not undone: {error}"),
            }
        }
        self.tools.skills().measure_anew(session);
        self.count_undo(session);
        Ok(self.store.write(move |tx| tx.set_undone(branch)).await?)
    }

    /// Returns why a run cannot be undone or redone, if its changes of a folder were accepted after it: names the command to use
    /// first.
    async fn accepted_since(
        &self,
        session: &SessionName,
        kind: UndoKind,
        run: Option<&str>,
    ) -> Result<Option<String>, UndoFailure> {
        let entries = self.undo_entries(session).await?;
        let is_meant = |entry: &&UndoEntry| entry.header.kind == kind && run.is_none_or(|run| entry.run() == Some(run));
        let Some(made) = entries.iter().filter(is_meant).map(|entry| entry.header.at_ms).max() else {
            return Ok(None);
        };
        let Ok(folders) = self.folders(session, None).await else { return Ok(None) };
        let command = |words: &str| match session.as_str() {
            "default" => format!("`{PROGRAM} {words}`"),
            name => format!("`{PROGRAM} {words} --session {name}`"),
        };
        for view in folders.iter() {
            let at = &view.folder.at;
            let newer = view.overlay.acceptances().unwrap_or_default().into_iter().rfind(|one| one.changed_ms > made);
            let Some(newer) = newer else { continue };
            return Ok(Some(match newer.is_undone {
                false => format!(
                    "changes to {at} were accepted after this run; undo that acceptance first: {}",
                    command("undo")
                ),
                true => format!(
                    "changes to {at} were accepted after this run, and that was undone; {} accepts them again, and {} drops those \
                     that still wait",
                    command("undo --redo"),
                    command("diff --discard")
                ),
            }));
        }
        Ok(None)
    }

    /// Returns the session's lock, if no run works in it. A run whose reply was just sent may hold it for a moment longer.
    pub(super) async fn lock_at_rest(&self, session: &SessionName) -> Result<HomeLock, UndoFailure> {
        self.lock_after(session, LOOKS).await
    }

    /// The same for a frequent request, which must not block a shell of a terminal in this session.
    pub(super) async fn lock_soon(&self, session: &SessionName) -> Result<HomeLock, UndoFailure> {
        self.lock_after(session, LOOKS_SOON).await
    }

    async fn lock_after(&self, session: &SessionName, looks: u32) -> Result<HomeLock, UndoFailure> {
        for _ in 0..looks {
            match self.home.lock_session(session) {
                Err(HomeError::Busy { .. }) => {}
                taken => return Ok(taken.map_err(DriveError::from)?),
            }
            let of = session.clone();
            let unfinished =
                self.store.read(move |view| view.unfinished_runs(Some(&of))).await.map_err(DriveError::from)?;
            if !unfinished.is_empty() {
                break;
            }
            tokio::time::sleep(LOOK).await;
        }
        Err(UndoFailure::AtWork { session: session.clone() })
    }

    /// Deletes undo data that is older than `[undo] keep_days`, of every idle session.
    pub fn sweep_undo(&self, now_ms: i64) {
        const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
        let days = i64::try_from(self.newest_config().undo.keep_days).unwrap_or(i64::MAX);
        let before = now_ms.saturating_sub(days.saturating_mul(DAY_MS));
        for session in self.home.sessions_with_undo() {
            let Ok(_lock) = self.home.lock_session(&session) else { continue };
            if let Err(error) = self.undo.sweep(&session, before) {
                tracing::warn!(%session, "what is kept to undo runs could not be dropped: {error}");
            }
            // Most sessions have changed no shared files.
            let has_shared = self.home.folder_dir(&session, SHARED).is_dir();
            let shared = self.home.shared_folder().ok().filter(|_| has_shared);
            for folder in self.home.folders(&session).unwrap_or_default().into_iter().chain(shared) {
                let opened = Overlay::open(&self.home, &session, &folder);
                if let Err(error) = opened.and_then(|overlay| overlay.sweep_acceptances(before)) {
                    tracing::warn!(%session, at = folder.at, "old files of a folder could not be dropped: {error}");
                }
            }
            self.count_undo(&session);
        }
    }
}

pub(super) fn limits(config: &Config) -> UndoLimits {
    UndoLimits { max_bytes: config.undo.max_mib << 20, refuse: config.undo.too_large == "refuse" }
}

fn undoing(session: &SessionName, error: std::io::Error) -> DriveError {
    DriveError::Undo { session: session.clone(), error }
}
