//! The tool `run` in the daemon: sends an ordinary message and follows it to its reply.

use futures_util::future::BoxFuture;
use kiso_plan::code::ErrorCode;

use super::progress::ProgressTeller;
use super::server::{Asker, RunAnswer, RunMessage, Runner};
use crate::App;
use crate::auth::Who;
use crate::error::ApiError;
use crate::follow::Subscription;
use crate::openai::turn::{Piece, Turn, TurnSlot};
use kiso_agent::session::intake::{Inbound, IntakeOutcome};
use kiso_agent::session::workspace::Incoming;
use kiso_agent::tool::builtin::ToolFault;
use kiso_store::store::{JobPriority, JobState};

/// Uses the daemon's queue to process messages.
pub(super) struct QueuedRunner {
    pub app: App,
    pub who: Who,
}

impl Runner for QueuedRunner {
    fn run<'a>(
        &'a self,
        asker: &'a Asker,
        message: RunMessage,
        progress: &'a ProgressTeller,
    ) -> BoxFuture<'a, Result<RunAnswer, ToolFault>> {
        Box::pin(async move { self.follow(asker, message, progress).await.map_err(fault) })
    }
}

impl QueuedRunner {
    async fn follow(
        &self,
        asker: &Asker,
        message: RunMessage,
        progress: &ProgressTeller,
    ) -> Result<RunAnswer, ApiError> {
        let app = &self.app;
        // Taken before the message is accepted, because a lack of places cannot be reported afterwards.
        let slot = TurnSlot::take(app)?;
        let text = message.settled(&app.0.drive.newest(), &asker.session, Incoming::begin).await?;
        let after = app.0.drive.store.read(|view| view.feed_end()).await?;
        let inbound = Inbound {
            session: asker.session.clone(),
            text,
            caller: asker.caller,
            by_person: false,
            priority: JobPriority::Interactive,
            client_key: None,
            flush: false,
        };
        let message = match app.intake().take(inbound).await? {
            IntakeOutcome::Queued { message, .. } => message,
            IntakeOutcome::Answered { text } => return Ok(RunAnswer { text, status: "done", run: None }),
        };
        let mut waited_for = WaitedFor { app: app.clone(), message: Some(message) };
        let wanted = Subscription { session: Some(asker.session.clone()), after: Some(after), live: true, owner: None };
        let mut turn = Turn::of_message(app, self.who.clone(), message, wanted, slot).await?;
        let answer = loop {
            match turn.next().await {
                Some(Piece::Thought(said)) => said.lines().for_each(|line| progress.tell(line)),
                Some(Piece::Text(_)) => {}
                Some(Piece::End(answer)) => break answer,
                Some(Piece::Failed(error)) => {
                    // A message that is deferred, or that waits for a person, must not be cancelled here.
                    waited_for.message = None;
                    return Err(error);
                }
                None => return Err(ApiError::internal(&"a turn ended without an end")),
            }
        };
        waited_for.message = None;
        let status = match answer.state {
            JobState::Cancelled => "cancelled",
            JobState::Failed => "failed",
            _ => "done",
        };
        Ok(RunAnswer { text: answer.text, status, run: answer.run.map(|run| run.to_string()) })
    }
}

/// A message whose client waits for the reply. If the client stops waiting, the run is cancelled.
struct WaitedFor {
    app: App,
    message: Option<i64>,
}

impl Drop for WaitedFor {
    fn drop(&mut self) {
        let Some(message) = self.message.take() else { return };
        let app = self.app.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Err(error) = cancel(&app, message).await {
                    tracing::warn!(message, "the run is not cancelled: {error:?}");
                }
            });
        }
    }
}

/// Cancels the run of a message, as soon as it has one.
async fn cancel(app: &App, message: i64) -> Result<(), ApiError> {
    let store = &app.0.drive.store;
    let (mut feed, mut ending) = (store.feed_changes(), app.0.ending.clone());
    loop {
        let job = store.read(move |view| view.job(message)).await?;
        let Some(job) = job.filter(|job| job.state.is_open()) else {
            return Ok(());
        };
        if let Some(run) = job.run {
            return Ok(store.write(move |tx| tx.request_cancel(&run)).await?);
        }
        tokio::select! {
            changed = feed.changed() => if changed.is_err() { return Ok(()) },
            _ = ending.wait_for(|ending| *ending) => return Ok(()),
        }
    }
}

fn fault(error: ApiError) -> ToolFault {
    ToolFault { code: ErrorCode::Failed, message: error.message, hint: error.hint }
}
