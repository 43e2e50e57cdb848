//! Messages: sending them, and what became of them.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use crate::drive::SEALED_RUN;
use crate::gateway::App;
use crate::gateway::auth::Who;
use crate::gateway::error::ApiError;
use crate::gateway::wire::{Accepted, Body, Job, Made, Message, MessageIn, Path, status_of};
use crate::home::SessionName;
use crate::secret::Vault;
use crate::session::intake::{Inbound, Taken};
use crate::store::{self, JobPriority};

/// A name out of a request.
pub fn session(name: &str) -> Result<SessionName, ApiError> {
    SessionName::parse(name).map_err(|error| ApiError::bad_request(error.to_string()))
}

/// `POST /msg`
pub async fn send(who: Who, State(app): State<App>, Body(given): Body<MessageIn>) -> Result<Response, ApiError> {
    let session = session(&given.session)?;
    let inbound = Inbound {
        session: session.clone(),
        text: given.text,
        caller: who.caller(),
        priority: JobPriority::Interactive,
        client_key: given.key,
    };
    Ok(match app.0.intake.take(inbound).await? {
        Taken::Queued { message, again } => {
            let status = if again { "known" } else { "queued" };
            (StatusCode::ACCEPTED, Json(Accepted::Queued { session, message, status })).into_response()
        }
        Taken::Answered { text } => Json(Accepted::Answered { session, answer: text }).into_response(),
    })
}

/// `GET /messages/{id}`
pub async fn job(_: Who, State(app): State<App>, Path(id): Path<i64>) -> Made<Job> {
    let vault = app.0.drive.vault.clone();
    let read = app.0.drive.store.read(move |view| {
        let Some(job) = view.job(id)? else { return Ok(None) };
        let reply = job.reply.map(|reply| view.message(reply)).transpose()?.flatten();
        Ok(Some((job, reply.map(|(session, message)| open_message(&vault, session, message)))))
    });
    let (job, reply) = read.await?.ok_or_else(|| ApiError::not_found(format!("no message {id} was sent here")))?;
    let run = job.run.map(|run| run.to_string());
    Ok(Json(Job { message: id, session: job.session, status: status_of(job.state), run, reply }))
}

/// A message as its owner reads it: what is sealed is opened. One that cannot be is said to be so.
pub fn open_message(vault: &Vault, session: SessionName, message: store::Message) -> Message {
    let text = match vault.open_text(SEALED_RUN, &message.text) {
        Ok(text) => text.into_owned(),
        Err(_) => "(sealed with the key of another home)".to_owned(),
    };
    Message::of(session, message, text)
}
