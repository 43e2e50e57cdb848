//! Messages: sending them, and what became of them.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use crate::drive::SEALED_RUN;
use crate::gateway::App;
use crate::gateway::auth::Who;
use crate::gateway::error::ApiError;
use crate::gateway::wire::{Accepted, Body, Job, Made, Message, MessageIn, Path, Reply, status_of};
use crate::graph::block::Block;
use crate::graph::outcome::Outcome;
use crate::home::SessionName;
use crate::node::output;
use crate::secret::Vault;
use crate::session::intake::{Inbound, Taken};
use crate::store::{self, JobPriority, MessageRole, StoreError, View};

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
        let reply = reply.map(|(session, message)| whole_message(view, &vault, session, message)).transpose()?;
        Ok(Some((job, reply)))
    });
    let (job, reply) = read.await?.ok_or_else(|| ApiError::not_found(format!("no message {id} was sent here")))?;
    let run = job.run.map(|run| run.to_string());
    Ok(Json(Job { message: id, session: job.session, status: status_of(job.state), run, reply }))
}

/// [`open_message`] with what is known of a reply.
pub fn whole_message(
    view: &View<'_>,
    vault: &Vault,
    session: SessionName,
    message: store::Message,
) -> Result<Message, StoreError> {
    let run = message.run.clone().filter(|_| message.role == MessageRole::Assistant);
    let mut message = open_message(vault, session, message);
    let Some((status, Some(outcome))) = run.map(|run| view.ending(&run)).transpose()?.flatten() else {
        return Ok(message);
    };
    // One that an older version wrote may have another form.
    let Ok(outcome) = serde_json::from_str::<Outcome>(&outcome) else { return Ok(message) };
    let shown = output::reply(&outcome);
    // A run that went on with further messages has given other replies before.
    if message.text != shown {
        return Ok(message);
    }
    let Outcome { reply, files, mut blocks, .. } = outcome;
    if blocks.is_empty() && reply != shown {
        blocks.push(Block::Text { text: reply });
    }
    message.reply = Some(Reply { status: status.as_str(), blocks, files });
    Ok(message)
}

/// A message as its owner reads it: what is sealed is opened. One that cannot be is said to be so.
pub fn open_message(vault: &Vault, session: SessionName, message: store::Message) -> Message {
    let text = match vault.open_text(SEALED_RUN, &message.text) {
        Ok(text) => text.into_owned(),
        Err(_) => "(sealed with the key of another home)".to_owned(),
    };
    Message::of(session, message, text)
}
