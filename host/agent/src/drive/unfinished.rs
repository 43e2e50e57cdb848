//! Runs that were cut off: taken up again, given up, or held until a person says that they are to be tried again.
//!
//! A run may be what brought its process down. So it is counted, before anything of it is read, that it is taken up
//! again; and one that was cut off `daemon.hold_after` times at the same step waits for a person. Its session goes on
//! without it. A run that got further in between is not counted: a daemon that is killed again and again by something else
//! still brings every message to its end.

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
    /// Takes up a run that was cut off, because its turn has come and nobody said so: replays its events and goes on where
    /// it was. What had started is rolled back and done again, if nothing of it remained; what may have taken effect is reported as
    /// interrupted. The caller holds
    /// the session's lock, so that nobody else drives the run. A run that somebody stopping before it was cut off is
    /// ended as cancelled. One that was cut off too often is left as it is ([`DriveError::CutOff`]); [`RunExecutor::hold`] has it
    /// wait.
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
        // What went wrong in this process did not bring it down.
        let enough = u64::from(times.saturating_add(1)) >= self.config.daemon.hold_after;
        if enough && !asked && !cancel.is_cancelled() && !self.ours.holds(id) {
            return Err(DriveError::CutOff { times: times + 1 });
        }
        self.resume(id, secrets, cancel, listener).await
    }

    /// [`RunExecutor::take_up`] for a person, who may try as often as they like.
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
        // A run that is only ended brings nothing down. Any other may already do so when it is read.
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
        // What nothing remained of is simply the next step once more.
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

    /// Has a run that was cut off `times` times wait for a person, and says so in its session. Returns what was said.
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

    /// Ends a run that cannot be taken up again, for the reason in `why`, so that it does not stand in the way of others.
    /// Its events stay as they are; of its tasks, none is left waiting or running. Returns the reply.
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

    /// The runs of a session, or of all, that were cut off and are not held, oldest first.
    pub async fn unfinished(&self, session: Option<&SessionName>) -> Result<Vec<RunId>, StoreError> {
        let session = session.cloned();
        self.store.peek(move |view| view.unfinished_runs(session.as_ref())).await
    }

    /// Ends a run that nobody drives as cancelled, with what it has done so far on record. The caller holds the session's
    /// lock. Fails finally ([`DriveError::is_final`]) where that record cannot be read.
    pub async fn end_cancelled(&self, id: &RunId, secrets: Secrets) -> Result<(), DriveError> {
        struct Silent;
        impl Listener for Silent {}
        let cancel = Cancel::new();
        cancel.cancel();
        self.resume(id, secrets, &cancel, &mut Silent).await.map(drop)
    }
}

/// The runs that this process has in hand. One of them that could not go on, for lack of disk or of a prompt, has brought
/// nothing down, so that taking it up again is not counted. Cheap to clone; clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct RunSet(Arc<Mutex<HashSet<RunId>>>);

impl RunSet {
    fn runs(&self) -> MutexGuard<'_, HashSet<RunId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn holds(&self, id: &RunId) -> bool {
        self.runs().contains(id)
    }

    /// From now on it is in hand, until it has ended or a panic shows that it might have brought the process down.
    pub(super) fn take(&self, id: &RunId) -> InHand {
        self.runs().insert(id.clone());
        InHand { runs: self.clone(), id: id.clone() }
    }
}

/// A run that is in hand.
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
