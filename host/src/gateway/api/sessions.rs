//! Sessions and their messages.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::messages::{session, whole_message};
use crate::drive::RunExecutor;
use crate::gateway::App;
use crate::gateway::auth::Who;
use crate::gateway::error::ApiError;
use crate::gateway::wire::{Body, MAX_PAGE, Made, Message, Page, Path, Query, Session, Status, page_size};
use crate::home::SessionName;
use crate::llm::Role;
use crate::session::removal::{self, NotRemoved};
use crate::store::{Placement, SessionLine, is_full};

/// Which part of a listing.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    before: Option<i64>,
    limit: Option<u32>,
}

/// Which part of the listing of sessions: it is in the order of activity, of which two sessions may have the same.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sessions {
    before: Option<String>,
    limit: Option<u32>,
    /// Only those that stand there: a placement, or several with commas between them.
    placement: Option<String>,
}

/// `GET /sessions`, the one that was active last first.
pub async fn list(_: Who, State(app): State<App>, Query(part): Query<Sessions>) -> Made<Page<Session>> {
    let before = match part.before.as_deref() {
        None => None,
        Some(text) => {
            let parsed = text.split_once('-').and_then(|(at, id)| Some((at.parse().ok()?, id.parse().ok()?)));
            Some(parsed.ok_or_else(|| ApiError::bad_request("`before` is not a `next` of this listing"))?)
        }
    };
    let placements = match part.placement.as_deref() {
        None => Placement::ALL.to_vec(),
        Some(names) => names.split(',').map(placement).collect::<Result<_, _>>()?,
    };
    let limit = page_size(part.limit)?;
    let rows = app.0.drive.store.read(move |view| view.list_sessions(&placements, before, limit)).await?;
    let full = rows.len() == limit as usize;
    let next = rows.last().filter(|_| full).map(|row| format!("{}-{}", row.active_ms, row.id));
    Ok(Json(Page { items: rows.into_iter().map(Session::of).collect(), next }))
}

/// `GET /sessions/{session}/messages`, the newest page first, each page oldest first.
pub async fn of_session(
    _: Who,
    State(app): State<App>,
    Path(name): Path<String>,
    Query(part): Query<Part>,
) -> Made<Page<Message>> {
    let session = session(&name)?;
    let (limit, before) = (page_size(part.limit)?, part.before);
    let (vault, of) = (app.0.drive.vault.clone(), session.clone());
    let read = app.0.drive.store.read(move |view| {
        if !view.has_session(&of)? {
            return Ok(None);
        }
        let messages = view.messages_before(&of, before, limit)?;
        let more = is_full(&messages, limit);
        let whole = |message| whole_message(view, &vault, of.clone(), message);
        Ok(Some((messages.into_iter().map(whole).collect::<Result<Vec<_>, _>>()?, more)))
    });
    let (items, more) = read.await?.ok_or_else(|| no_session(&name))?;
    let next = items.first().filter(|_| more).map(|message| message.id.to_string());
    Ok(Json(Page { items, next }))
}

/// `GET /status/{session}`
pub async fn status(_: Who, State(app): State<App>, Path(name): Path<String>) -> Made<Status> {
    Ok(Json(status_of(&app, session(&name)?).await?))
}

/// How things stand in a session.
pub async fn status_of(app: &App, session: SessionName) -> Result<Status, ApiError> {
    let drive = app.0.drive.for_session(&session).await?;
    let of = session.clone();
    let read = app.0.drive.store.read(move |view| {
        let Some(line) = view.session(&of)? else { return Ok(None) };
        let queued = view.queued_jobs(&of, MAX_PAGE)?.len();
        Ok(Some((line, view.segment_start(&of)?, view.unfinished_runs(Some(&of))?, queued)))
    });
    let (SessionLine { title, active_ms, placement, .. }, segment_start, running, queued) =
        read.await?.ok_or_else(|| no_session(session.as_str()))?;
    let model = drive.models.of(Role::Planner).name().to_owned();
    let running = running.first().map(ToString::to_string);
    let models = drive.models.by_role();
    Ok(Status { session, title, active_ms, placement, model, models, segment_start, running, queued })
}

/// What can be changed of a session.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    title: Option<String>,
    placement: Option<Placement>,
}

/// Characters of a title.
const MAX_TITLE: usize = 200;

/// `PATCH /sessions/{session}`: gives it another title, or another place in listings.
pub async fn change(
    _: Who,
    State(app): State<App>,
    Path(name): Path<String>,
    Body(change): Body<Change>,
) -> Made<Session> {
    let session = session(&name)?;
    let Change { title, placement } = change;
    if title.is_none() && placement.is_none() {
        return Err(ApiError::bad_request("nothing is to be changed: give `title`, `placement` or both"));
    }
    let title = title.map(|title| title.trim().to_owned());
    let fits = |title: &String| (1..=MAX_TITLE).contains(&title.chars().count()) && !title.chars().any(is_hidden);
    if !title.as_ref().is_none_or(fits) {
        return Err(ApiError::bad_request(format!(
            "a title has 1 to {MAX_TITLE} characters, and none that is invisible"
        )));
    }
    let write = app.0.drive.store.write(move |tx| {
        if let Some(title) = title {
            tx.set_title(&session, &title, true)?;
        }
        if let Some(placement) = placement {
            tx.set_placement(&session, placement)?;
        }
        tx.session(&session)
    });
    Ok(Json(Session::of(write.await?.ok_or_else(|| no_session(&name))?)))
}

fn placement(name: &str) -> Result<Placement, ApiError> {
    let wrong = || {
        ApiError::bad_request(format!(
            "`placement` is {name:?}, and may be listed, pinned or archived, or several of them with commas between them"
        ))
    };
    Placement::named(name).ok_or_else(wrong)
}

/// How far a session was read.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reading {
    /// Id of the last message that was read.
    message: i64,
}

/// `POST /sessions/{session}/read`: the session was read up to a message. That another tab has read further stays so.
pub async fn read(
    _: Who,
    State(app): State<App>,
    Path(name): Path<String>,
    Body(reading): Body<Reading>,
) -> Result<StatusCode, ApiError> {
    let session = session(&name)?;
    let write = app.0.drive.store.write(move |tx| {
        tx.mark_read(&session, reading.message)?;
        tx.has_session(&session)
    });
    match write.await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(no_session(&name)),
    }
}

/// `DELETE /sessions/{session}`: the session with everything that is its own, for good.
pub async fn delete(who: Who, State(app): State<App>, Path(name): Path<String>) -> Made<Value> {
    let session = session(&name)?;
    let (this, of) = (app.clone(), session.clone());
    // In a task of its own: a client that hangs up must leave neither files behind nor listeners that do not know.
    let removing = tokio::spawn(async move {
        let RunExecutor { home, store, .. } = &this.0.drive;
        let told = |gone: &[SessionName]| {
            for name in gone {
                // Whoever listens; nobody has to.
                let _ = this.0.deleted.send(name.clone());
            }
        };
        removal::remove(home, store, &of, told).await
    });
    let removed = match removing.await.map_err(|panic| ApiError::internal(&panic))? {
        Ok(removed) => removed,
        Err(NotRemoved::Unknown { .. }) => return Err(no_session(&name)),
        Err(error @ NotRemoved::AtWork { .. }) => {
            return Err(ApiError::new(StatusCode::CONFLICT, "at_work", error.to_string()));
        }
        Err(NotRemoved::Store(error)) => return Err(error.into()),
        Err(error) => return Err(ApiError::internal(&error)),
    };
    tracing::info!(%session, by = who.name(), "a session was deleted");
    let mut answer = json!({ "deleted": removed.sessions });
    if !removed.left.is_empty() {
        // Where they are is for the log, not for the client.
        answer["files_left"] = true.into();
    }
    Ok(Json(answer))
}

/// Of no width, or one that turns the order of what stands around it. Joiners are neither: emoji and Persian need them.
fn is_hidden(c: char) -> bool {
    let turning = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || turning || matches!(c, '\u{200b}' | '\u{2028}' | '\u{2029}' | '\u{feff}')
}

pub(super) fn no_session(name: &str) -> ApiError {
    ApiError::not_found(format!("there is no session {name:?}")).hint("a session begins with its first message")
}
