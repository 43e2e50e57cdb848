//! The work of one `kiso run`: interrupted runs, the requested run, and waiting for a person in between.

use super::{Reply, RunPrinter, Watched, ask};
use crate::cli::show::told::LastError;
use crate::cli::{Exit, Failure, environment_secrets};
use kiso_agent::drive::{Cancel, DriveError, RunExecutor};
use kiso_graph::outcome::Outcome;
use kiso_plan::plan::CallerScope;
use kiso_store::store::RunId;

/// Finishes interrupted runs of the session, then executes the requested one.
pub(super) async fn perform(
    drive: &RunExecutor,
    at: &Watched<'_>,
    message: Option<&str>,
    resumed: Option<RunId>,
    cancel: &Cancel,
) -> Result<(Outcome, Option<LastError>), Failure> {
    let full = |max| {
        at.show.busy(&format!(
            "{max} runs are active in this home (daemon.max_jobs); waiting for one to finish, press Ctrl-C to cancel"
        ));
    };
    let Some(mut place) = drive.place(cancel, full).await? else {
        return Err(Failure::new(Exit::Failed, "cancelled while waiting; nothing was started"));
    };
    at.show.rest();
    let begun = begin(drive, at, message, resumed, cancel).await;
    let mut waits = match begun {
        Err(Stop::Waits(id)) => id,
        Err(Stop::Failed(failure)) => return Err(failure),
        Ok(ended) => return Ok(ended),
    };
    loop {
        // Others may use the session while a person thinks.
        drop(place);
        let run = ask::until_answered(drive, at.show, at.json, waits, cancel).await?;
        let again = |_| at.show.busy("waiting for one of the places for runs (daemon.max_jobs)");
        let Some(free) = drive.place(cancel, again).await? else {
            return Err(Failure::new(Exit::Failed, format!("cancelled; `kiso run --resume {run}` goes on")));
        };
        place = free;
        at.show.rest();
        let resume = async |told: &mut RunPrinter<'_>| drive.resume(&run, environment_secrets(), cancel, told).await;
        match at.watch(Reply::Asked, resume).await {
            Err(DriveError::Waiting { approval }) => waits = approval,
            ended => return Ok(ended?),
        }
    }
}

/// Reasons why there is no outcome.
enum Stop {
    /// The run waits for this approval.
    Waits(i64),
    Failed(Failure),
}

impl<E: Into<Failure>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// Executes the request until it has ended, or waits for a person.
async fn begin(
    drive: &RunExecutor,
    at: &Watched<'_>,
    message: Option<&str>,
    resumed: Option<RunId>,
    cancel: &Cancel,
) -> Result<(Outcome, Option<LastError>), Stop> {
    let outcome = |watched: Result<_, DriveError>| match watched {
        Err(DriveError::Waiting { approval }) => Err(Stop::Waits(approval)),
        watched => Ok(watched?),
    };
    if let Some(run) = resumed {
        let resume = async |told: &mut RunPrinter<'_>| drive.resume(&run, environment_secrets(), cancel, told).await;
        return outcome(at.watch(Reply::Asked, resume).await);
    }
    for run in drive.unfinished(Some(at.session)).await? {
        at.show.line(&at.show.dim(&format!("run {run} was interrupted; resuming it first")));
        let take_up = async |told: &mut RunPrinter<'_>| drive.take_up(&run, environment_secrets(), cancel, told).await;
        let watched = at.watch(Reply::Earlier, take_up).await;
        let (outcome, _) = match watched {
            Err(DriveError::CutOff { times }) => {
                at.show.line(&drive.hold(&run, times).await?);
                continue;
            }
            // A run that cannot be finished must not block the session.
            Err(error) if error.is_final() => {
                at.show.line(&drive.abandon(&run, &error).await?);
                continue;
            }
            Err(DriveError::Waiting { approval }) => {
                at.show.line(&ask::how_to_answer(approval));
                continue;
            }
            watched => watched?,
        };
        // `kiso cancel` stops the run that it names, and not the requested one.
        if cancel.is_cancelled() {
            return Ok((outcome, None));
        }
    }
    let (secrets, message) = (environment_secrets(), message.unwrap_or_default());
    let run = async |told: &mut RunPrinter<'_>| {
        drive.run(at.session, message, CallerScope::Admin, secrets, cancel, told).await
    };
    outcome(at.watch(Reply::Asked, run).await)
}
