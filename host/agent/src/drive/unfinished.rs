//! Interrupted runs: resumed, ended, or held until a person retries them.
//!
//! A run may have crashed its process. So each resumption is counted before anything of the run is read, and a run that was
//! interrupted `daemon.hold_after` times at the same step waits for a person. Its session continues without it. The count
//! restarts when a run makes progress: a daemon that is killed repeatedly for other reasons still completes every message.

use super::log::Log;
use super::run_context::RunContext;
use super::{Cancel, DriveError, Listener, RunExecutor};
use kiso_base::clock::now_ms;
use kiso_base::home::SessionName;
use kiso_graph::outcome::{Ending, Outcome};
use kiso_graph::run::Run;
use kiso_plan::label::Label;
use kiso_plan::report::often;
use kiso_sandbox::effect::undo::CutOff;
use kiso_store::secret::Secrets;
use kiso_store::store::{MessageRole, RunId, RunStatus, StoreError};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

impl RunExecutor {
    /// Resumes an interrupted run when its turn comes: replays its events and continues where it was. Started effects are rolled
    /// back and repeated, if nothing of them remained; those that may have taken effect are reported as interrupted. The caller
    /// holds the session's lock, so that nobody else performs the run. A run that was asked to stop before the interruption is
    /// ended as cancelled. A run that was interrupted too often stays unchanged ([`DriveError::CutOff`]); [`RunExecutor::hold`]
    /// makes it wait.
    pub async fn take_up(
        &self,
        id: &RunId,
        secrets: Secrets,
        cancel: &Cancel,
        listener: &mut dyn Listener,
    ) -> Result<(RunId, Outcome), DriveError> {
        let wanted = id.clone();
        let read = self.store.read(move |view| Ok((view.times_resumed(&wanted)?, view.cancel_requested(&wanted)?)));
        let (times, asked) = read.await?;
        // A failure in this process did not crash it.
        let enough = u64::from(times.saturating_add(1)) >= self.config.daemon.hold_after;
        if enough && !asked && !cancel.is_cancelled() && !self.ours.holds(id) {
            return Err(DriveError::CutOff { times: times + 1 });
        }
        self.resume(id, secrets, cancel, listener).await
    }

    /// [`RunExecutor::take_up`] for a person, without a limit of attempts.
    pub async fn resume(
        &self,
        id: &RunId,
        secrets: Secrets,
        cancel: &Cancel,
        listener: &mut dyn Listener,
    ) -> Result<(RunId, Outcome), DriveError> {
        crate::node::prompt::check_prompts(&self.home)?;
        let wanted = id.clone();
        let read = self.store.read(move |view| Ok((view.run(&wanted)?, view.cancel_requested(&wanted)?)));
        let (row, asked) = read.await?;
        let row = row.ok_or_else(|| StoreError::NoRun { text: id.to_string() })?;
        if !row.status.is_open() {
            return Err(DriveError::NotResumable(format!("it has ended ({})", row.status.as_str())));
        }
        let stopped = Cancel::new();
        let cancel = if asked { &stopped } else { cancel };
        if asked {
            stopped.cancel();
        }
        // Ending a run cannot crash the process. Any other run may crash it as soon as the run is read.
        if !cancel.is_cancelled() && !self.ours.holds(id) {
            let resumed = id.clone();
            self.store.write(move |tx| tx.count_resumed(&resumed)).await?;
        }
        let session = row.session;
        let secrets = self.with_session(&session, secrets).await?;
        let (mut log, spec, events) = Log::load(&self.store, &self.vault, &session, id).await?;
        let mut run = Run::replay(spec, &events)?;
        listener.begun(&log.id);
        let cut_off = self.roll_back_step(&session, id, log.seq, &run).await?;
        // A step without remaining effects is simply repeated.
        if cut_off != CutOff::Nothing
            && let Some(event) = run.interrupt(cut_off == CutOff::Outside)?
        {
            log.append(&event, &run, &secrets, Vec::new(), Vec::new())?;
            log.commit().await?;
            listener.event(log.seq, &event, &run);
        }
        let (of, boot) = (id.clone(), self.boot());
        self.store.write(move |tx| tx.set_boot(&of, boot.as_deref())).await?;
        let earlier = self.earlier(&session, Some(id), run.spec().policy.subagent).await?;
        let by_rules = self.for_message(&run.spec().message)?;
        let executor = by_rules.as_ref().unwrap_or(self);
        let at_work = RunContext::new(executor, &log, run.spec(), secrets, earlier);
        executor.drive(run, log, at_work, cancel, listener).await
    }

    /// Makes a run that was interrupted `times` times wait for a person, and reports that in its session. Returns the message.
    pub async fn hold(&self, id: &RunId, times: u32) -> Result<String, DriveError> {
        let times = often(times);
        let text = format!(
            "kiso was cut off {times} while it worked on this message, which may be what brought it down. So it is \
             not begun again by itself: it waits, and other messages are answered meanwhile.\n\n\
             - To try it again: `kiso run --resume {id}`, or `POST /runs/{id}/retry`.\n\
             - To give it up: `kiso cancel {id}`."
        );
        let (id, said) = (id.clone(), text.clone());
        let write = self.store.write(move |tx| {
            let session = tx.run(&id)?.ok_or_else(|| StoreError::NoRun { text: id.to_string() })?.session;
            tx.hold_run(&id, now_ms())?;
            tx.add_message(&session, MessageRole::Assistant, &said, now_ms(), Some(&id))?;
            tx.inject_reply(&id, &said, &Label::session(), now_ms())
        });
        write.await?;
        Ok(text)
    }

    /// Ends a run that cannot be resumed, for the reason `why`, so that it does not block others. Its events stay unchanged; none
    /// of its tasks stays waiting or running. Returns the reply.
    pub async fn abandon(&self, id: &RunId, why: &DriveError) -> Result<String, DriveError> {
        let reason = format!("The run was interrupted and cannot be resumed: {why}");
        let outcome = Outcome::in_words(Ending::Failed { reason: reason.clone() }, reason.clone());
        let body = serde_json::to_string(&outcome)?;
        let (id, reply) = (id.clone(), reason.clone());
        let write = self.store.write(move |tx| {
            let session = tx.run(&id)?.ok_or_else(|| StoreError::NoRun { text: id.to_string() })?.session;
            tx.finish_run(&id, RunStatus::Failed, now_ms(), &body)?;
            tx.leave_tasks(&id, now_ms())?;
            let answer = tx.add_message(&session, MessageRole::Assistant, &reply, now_ms(), Some(&id))?;
            tx.inject_reply(&id, &reply, &Label::session(), now_ms())?;
            tx.finish_jobs(&id, answer)
        });
        write.await?;
        Ok(reason)
    }

    /// Returns the interrupted runs of a session, or of all, that are not held, oldest first.
    pub async fn unfinished(&self, session: Option<&SessionName>) -> Result<Vec<RunId>, StoreError> {
        let session = session.cloned();
        self.store.peek(move |view| view.unfinished_runs(session.as_ref())).await
    }

    /// Ends an inactive run as cancelled, with its results so far recorded. The caller holds the session's lock. Fails
    /// permanently ([`DriveError::is_final`]) if the record cannot be read.
    pub async fn end_cancelled(&self, id: &RunId, secrets: Secrets) -> Result<(), DriveError> {
        struct Silent;
        impl Listener for Silent {}
        let cancel = Cancel::new();
        cancel.cancel();
        self.resume(id, secrets, &cancel, &mut Silent).await.map(drop)
    }
}

/// The runs of this process. A run that could not continue here, for lack of disk space or a prompt, has crashed nothing, so its
/// resumption is not counted. Clones are cheap and share the set.
#[derive(Debug, Clone, Default)]
pub(super) struct RunSet(Arc<Mutex<HashSet<RunId>>>);

impl RunSet {
    fn runs(&self) -> MutexGuard<'_, HashSet<RunId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn holds(&self, id: &RunId) -> bool {
        self.runs().contains(id)
    }

    /// Adds a run until it has ended, or a panic shows that it might have crashed the process.
    pub(super) fn take(&self, id: &RunId) -> InHand {
        self.runs().insert(id.clone());
        InHand { runs: self.clone(), id: id.clone() }
    }
}

/// A run of this process.
#[must_use = "it tells a panic from an end"]
pub(super) struct InHand {
    runs: RunSet,
    id: RunId,
}

impl InHand {
    pub(super) fn ended(self) {
        self.runs.runs().remove(&self.id);
    }
}

impl Drop for InHand {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.runs.runs().remove(&self.id);
        }
    }
}
