//! Messages: sending them, and reading their state.

use std::time::Instant;

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use crate::App;
use crate::auth::{Who, own};
use crate::document::routes;
use crate::error::ApiError;
use crate::message::whole_message;
use crate::polls::HELD;
use crate::wire::{AcceptedMessage, Admission, Body, Either, Job, JsonResult, Path, Queued};
use kiso_agent::session::intake::{Inbound, IntakeOutcome};
use kiso_base::home::SessionName;
use kiso_store::store::{JobPriority, JobState};

routes! {
    /// Send a message, or a command such as /status
    POST "/msg" Chat => send,
        200 "The answer to a command",
        202 "The message is on disk and will be answered",
        413 "The message or the body is too large",
        429 "Too many messages are waiting, or too many wrong tokens came from this address; Retry-After says when to try again",
        503 "The daemon is shutting down",
        507 "There are too many sessions, the storage limit is reached, or the disk is full; nothing was saved";
    /// The state of a message. A repeated request within half a second waits up to a fifth of a second for a change
    GET "/messages/{id}" Chat => job, 200 "The job of the message, with the reply if there is one", 404 "No such message was sent";
}

/// A message to send.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MessageIn {
    /// The session; its first message creates it.
    #[serde(default)]
    session: SessionName,
    /// At most 1 MiB.
    #[schemars(length(max = 1_048_576), regex(pattern = r"\S"))]
    text: String,
    /// Idempotency key: the same message with the same key is not processed twice.
    #[serde(default)]
    #[schemars(length(min = 1, max = 128))]
    key: Option<String>,
    /// Process the message at once, together with earlier messages, instead of waiting for more messages.
    #[serde(default)]
    flush: bool,
}

/// The answer to a command.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Answered")]
pub(super) struct CommandAnswer {
    session: SessionName,
    answer: String,
}

pub(super) async fn send(
    who: Who,
    State(app): State<App>,
    Body(given): Body<MessageIn>,
) -> Result<Either<Queued<AcceptedMessage>, Json<CommandAnswer>>, ApiError> {
    let session = given.session;
    let begun = who.claim_session(&app, &session).await?;
    let inbound = Inbound {
        session: session.clone(),
        text: given.text,
        caller: who.caller(),
        by_person: true,
        priority: JobPriority::Interactive,
        client_key: given.key,
        flush: given.flush,
    };
    let taken = app.intake().take(inbound).await;
    if taken.is_err() && begun {
        own::abandon_session(&app, &session).await;
    }
    Ok(match taken? {
        IntakeOutcome::Queued { message, again } => {
            let status = if again { Admission::Known } else { Admission::Queued };
            Either::A(Queued(AcceptedMessage { session, message, status }))
        }
        IntakeOutcome::Answered { text } => Either::B(Json(CommandAnswer { session, answer: text })),
    })
}

pub(super) async fn job(_: Who, State(app): State<App>, Path(id): Path<i64>) -> JsonResult<Job> {
    let polls = app.0.polls.is_asked_again(id);
    let first = read_job(&app, id).await?;
    if !polls || is_over(first.status) {
        return Ok(Json(first));
    }
    let (bell, until) = (app.0.hub.bell(&first.session), Instant::now() + HELD);
    loop {
        let rung = bell.notified();
        tokio::pin!(rung);
        // Must happen before the message is read again, so that no change is missed in between.
        rung.as_mut().enable();
        let job = read_job(&app, id).await?;
        let left = until.saturating_duration_since(Instant::now());
        if job.status != first.status || left.is_zero() || timeout(left, rung).await.is_err() {
            return Ok(Json(job));
        }
    }
}

/// Returns whether the state of a message is final.
fn is_over(state: JobState) -> bool {
    matches!(state, JobState::Done | JobState::Failed | JobState::Cancelled)
}

async fn read_job(app: &App, id: i64) -> Result<Job, ApiError> {
    let vault = app.0.drive.vault.clone();
    let read = app.0.drive.store.peek(move |view| {
        let Some(job) = view.job(id)? else { return Ok(None) };
        let reply = job.reply.map(|reply| view.message(reply)).transpose()?.flatten();
        let reply = reply.map(|(session, message)| whole_message(view, &vault, session, message)).transpose()?;
        Ok(Some((job, reply)))
    });
    let (job, reply) = read.await?.ok_or_else(|| ApiError::not_found(format!("no message {id} was sent here")))?;
    Ok(Job { message: id, session: job.session, status: job.state, run: job.run, reply })
}
