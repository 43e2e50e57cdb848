//! Messages that arrive while a run is active.

use super::run_context::RunContext;
use super::window::WAITING;
use super::{DriveError, SEALED_RUN};
use kiso_graph::run::Run;
use kiso_plan::cues;
use kiso_store::store::{Job, JobPriority};

impl RunContext<'_> {
    /// Returns the waiting messages that belong to this turn. They become the run's only when the event that continues with them
    /// is committed.
    pub(super) async fn arrived(&mut self, run: &Run) -> Result<Vec<String>, DriveError> {
        self.taking.clear();
        // Explicit messages and messages for a model are not mixed in one turn.
        if self.drive.is_explicit(run.message()) {
            return Ok(Vec::new());
        }
        // Each message to a subagent is a turn of its own, whose reply goes to the sender of that message.
        if self.subagent {
            return Ok(Vec::new());
        }
        let (session, caller, run) = (self.session.clone(), self.caller, self.run.clone());
        let waiting = self.drive.store.peek(move |view| {
            // Waiting messages follow the version that has replaced this turn.
            if view.is_run_replaced(&run)? {
                return Ok(Vec::new());
            }
            let mut waiting = view.waiting_messages(&session, WAITING)?;
            let jobs = view.queued_jobs(&session, WAITING)?;
            // A message of another caller is processed with that caller's rights, and therefore in its own run.
            let alike = |job: &Job| job.caller == caller && job.priority == JobPriority::Interactive;
            let foreign = |id| jobs.iter().any(|job| job.message == id && !alike(job));
            let own = waiting.iter().take_while(|message| !foreign(message.id)).count();
            waiting.truncate(own);
            Ok(waiting)
        });
        let waiting = waiting.await?;
        let mut arrived = Vec::new();
        for message in waiting {
            let text = self.drive.vault.open_text(SEALED_RUN, &message.text)?.into_owned();
            // In order: a message that begins something new ends the turn.
            if !cues::continues(&text) || self.drive.is_explicit(&text) {
                break;
            }
            self.taking.push(message.id);
            arrived.push(text);
        }
        Ok(arrived)
    }
}
