//! Messages that came while the run was under way.

use super::run_context::RunContext;
use super::window::WAITING;
use super::{DriveError, SEALED_RUN};
use kiso_graph::run::Run;
use kiso_plan::cues;
use kiso_store::store::{Job, JobPriority};

impl RunContext<'_> {
    /// What waits and belongs to this turn. The messages are the run's only when the event that goes on with them is
    /// committed.
    pub(super) async fn arrived(&mut self, run: &Run) -> Result<Vec<String>, DriveError> {
        self.taking.clear();
        // Neither is what spells all of it out a part of a turn that a model has understood, nor the other way round.
        if self.drive.is_explicit(run.message()) {
            return Ok(Vec::new());
        }
        // Each message of a subagent is a turn of its own, whose reply goes where that one's goes.
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
            // What somebody else says is done with what they may do, and so by a run of its own.
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
            // In their order: one that begins something new ends the turn.
            if !cues::continues(&text) || self.drive.is_explicit(&text) {
                break;
            }
            self.taking.push(message.id);
            arrived.push(text);
        }
        Ok(arrived)
    }
}
