//! Sessions and their messages.

use axum::Json;
use axum::extract::{Path, Query, State};
use serde::Deserialize;

use super::messages::{open_message, session};
use crate::gateway::App;
use crate::gateway::auth::Who;
use crate::gateway::error::ApiError;
use crate::gateway::wire::{MAX_PAGE, Made, Message, PAGE, Page, Session, Status};
use crate::home::SessionName;
use crate::llm::Role;

/// Which part of a listing.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    before: Option<i64>,
    limit: Option<u32>,
}

impl Part {
    fn limit(&self) -> u32 {
        self.limit.unwrap_or(PAGE).clamp(1, MAX_PAGE)
    }
}

/// Which part of the listing of sessions: it is in the order of activity, of which two sessions may have the same.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sessions {
    before: Option<String>,
    limit: Option<u32>,
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
    let limit = part.limit.unwrap_or(PAGE).clamp(1, MAX_PAGE);
    let rows = app.0.drive.store.read(move |view| view.list_sessions(before, limit)).await?;
    let full = rows.len() == limit as usize;
    let next = rows.last().filter(|_| full).map(|row| format!("{}-{}", row.active_ms, row.id));
    let items = rows.into_iter().map(|row| Session {
        name: row.name,
        title: row.title,
        created_ms: row.created_ms,
        active_ms: row.active_ms,
        model: row.model,
    });
    Ok(Json(Page { items: items.collect(), next }))
}

/// `GET /sessions/{session}/messages`, the newest page first, each page oldest first.
pub async fn of_session(
    _: Who,
    State(app): State<App>,
    Path(name): Path<String>,
    Query(part): Query<Part>,
) -> Made<Page<Message>> {
    let session = session(&name)?;
    let (limit, before) = (part.limit(), part.before);
    let (vault, of) = (app.0.drive.vault.clone(), session.clone());
    let read = app.0.drive.store.read(move |view| {
        if !view.has_session(&of)? {
            return Ok(None);
        }
        let messages = view.messages_before(&of, before, limit)?;
        Ok(Some(messages.into_iter().map(|message| open_message(&vault, of.clone(), message)).collect::<Vec<_>>()))
    });
    let items = read.await?.ok_or_else(|| no_session(&name))?;
    let next = items.first().filter(|_| items.len() == limit as usize).map(|message| message.id.to_string());
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
        if !view.has_session(&of)? {
            return Ok(None);
        }
        let queued = view.queued_jobs(&of, MAX_PAGE)?.len();
        Ok(Some((view.title(&of)?, view.segment_start(&of)?, view.unfinished_runs(Some(&of))?, queued)))
    });
    let (title, segment_start, running, queued) = read.await?.ok_or_else(|| no_session(session.as_str()))?;
    let model = drive.models.of(Role::Planner).name().to_owned();
    let running = running.first().map(ToString::to_string);
    Ok(Status { session, title, model, segment_start, running, queued })
}

fn no_session(name: &str) -> ApiError {
    ApiError::not_found(format!("there is no session {name:?}")).hint("a session begins with its first message")
}
