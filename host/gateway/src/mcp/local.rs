//! The tool `run` without a daemon: performs the run in this process, like `kiso run`.

use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::progress::ProgressTeller;
use super::server::{Asker, RunAnswer, RunMessage, Runner};
use kiso_agent::drive::{Cancel, DriveError, Listener, RunExecutor, Thought};
use kiso_agent::node::output;
use kiso_agent::session::workspace::Incoming;
use kiso_agent::tool::builtin::ToolFault;
use kiso_base::home::{HomeError, HomeLock, SessionName};
use kiso_graph::outcome::{Ending, Outcome};
use kiso_plan::code::ErrorCode;
use kiso_store::secret::Secrets;
use kiso_store::store::RunId;

/// How often to check whether the session is free.
const LOOK: Duration = Duration::from_millis(100);

/// Maximum number of unsent progress messages of a run; further ones are dropped.
const MAX_UNTOLD: usize = 64;

/// Performs runs in this process.
pub(super) struct LocalRunner {
    pub drive: RunExecutor,
    /// Secrets from the environment.
    pub secrets: Secrets,
}

impl Runner for LocalRunner {
    fn run<'a>(
        &'a self,
        asker: &'a Asker,
        message: RunMessage,
        progress: &'a ProgressTeller,
    ) -> BoxFuture<'a, Result<RunAnswer, ToolFault>> {
        Box::pin(async move {
            let cancel = Cancel::new();
            // If the caller stops waiting, the run ends cleanly in a separate task.
            let _cancelled = CancelOnDrop(cancel.clone());
            let (said, mut heard) = mpsc::channel(MAX_UNTOLD);
            let work = work(self.drive.clone(), self.secrets.clone(), asker.clone(), message, cancel, said);
            let mut work = tokio::spawn(work);
            loop {
                tokio::select! {
                    Some(said) = heard.recv() => progress.tell(&said),
                    done = &mut work => {
                        let done = done.map_err(|panic| fault(&panic))?;
                        return done.map_err(|error| fault(&error));
                    }
                }
            }
        })
    }
}

struct CancelOnDrop(Cancel);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Sends the current activity of a run.
struct Thoughts(mpsc::Sender<String>);

impl Listener for Thoughts {
    fn thought(&mut self, thought: &Thought) {
        let _ = self.0.try_send(thought.text());
    }
}

/// Why a message was not processed.
#[derive(Debug, thiserror::Error)]
enum LocalRunError {
    #[error(transparent)]
    Drive(#[from] DriveError),
    #[error("{0}")]
    Files(String),
}

/// Finishes interrupted work in the session, then processes the message.
async fn work(
    drive: RunExecutor,
    environment: Secrets,
    asker: Asker,
    message: RunMessage,
    cancel: Cancel,
    said: mpsc::Sender<String>,
) -> Result<RunAnswer, LocalRunError> {
    let (session, mut thoughts) = (&asker.session, Thoughts(said));
    let Some(_lock) = lock(&drive, session, &cancel).await? else { return Ok(never_begun()) };
    let full = |max| tracing::info!("{max} runs are active in this home (daemon.max_jobs); this one waits");
    let Some(_place) = drive.place(&cancel, full).await? else { return Ok(never_begun()) };
    let drive = drive.for_session(session).await?;
    for run in drive.unfinished(Some(session)).await.map_err(DriveError::from)? {
        match drive.take_up(&run, environment.clone(), &cancel, &mut thoughts).await {
            Err(DriveError::CutOff { times }) => drop(drive.hold(&run, times).await?),
            // The run continues after a person has answered.
            Err(DriveError::Waiting { .. }) => {}
            // An unfinishable run must not block the session.
            Err(error) if error.is_final() => drop(drive.abandon(&run, &error).await?),
            resumed => drop(resumed?),
        }
        if cancel.is_cancelled() {
            return Ok(never_begun());
        }
    }
    let message = message.settled(&drive, session, Incoming::begin_locked).await;
    let message = message.map_err(|error| LocalRunError::Files(error.message))?;
    let (run, outcome) = drive.run(session, &message, asker.caller, environment, &cancel, &mut thoughts).await?;
    // Titles and memory are background work; nobody waits for them.
    let behind = (drive.clone(), session.clone());
    tokio::spawn(async move { behind.0.background(Some(&behind.1)).await });
    Ok(answer(&run, &outcome))
}

/// Waits for the session's lock; `None` if the call was cancelled.
async fn lock(drive: &RunExecutor, session: &SessionName, cancel: &Cancel) -> Result<Option<HomeLock>, DriveError> {
    loop {
        match drive.home.lock_session(session) {
            Ok(lock) => return Ok(Some(lock)),
            Err(HomeError::Busy { .. }) if cancel.is_cancelled() => return Ok(None),
            Err(HomeError::Busy { .. }) => sleep(LOOK).await,
            Err(error) => return Err(error.into()),
        }
    }
}

fn never_begun() -> RunAnswer {
    RunAnswer { text: "cancelled while waiting; nothing was started".to_owned(), status: "cancelled", run: None }
}

fn answer(run: &RunId, outcome: &Outcome) -> RunAnswer {
    let status = match outcome.ending {
        Ending::Done => "done",
        Ending::Failed { .. } => "failed",
        Ending::LimitHit(_) => "limit",
        Ending::Cancelled => "cancelled",
    };
    RunAnswer { text: output::reply(outcome), status, run: Some(run.to_string()) }
}

fn fault(error: &dyn std::fmt::Display) -> ToolFault {
    ToolFault { code: ErrorCode::Failed, message: error.to_string(), hint: None }
}
