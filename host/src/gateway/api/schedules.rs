//! The schedule. A caller without administrator's rights sees all schedules and changes those that run without them.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Deserializer, Serialize};

use super::messages::session;
use crate::clock::now_ms;
use crate::gateway::App;
use crate::gateway::auth::Who;
use crate::gateway::error::ApiError;
use crate::gateway::wire::{Body, Made, Page, Path, Query, page_size};
use crate::graph::plan::CallerScope;
use crate::home::SessionName;
use crate::store;
use crate::tool::schedules::{Change, ScheduleError, ScheduleRequest, Schedules};

/// `POST /schedules`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduleIn {
    name: String,
    /// A cron expression, "@daily", "@every 10m", "at 2030-01-31 08:00".
    when: String,
    message: String,
    zone: Option<String>,
    /// The session that is told the replies.
    session: Option<String>,
    model: Option<String>,
}

/// `PATCH /schedules/{name}`: what is left out stays as it is.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangeIn {
    when: Option<String>,
    message: Option<String>,
    zone: Option<String>,
    #[serde(default, deserialize_with = "or_null")]
    session: Option<Option<String>>,
    #[serde(default, deserialize_with = "or_null")]
    model: Option<Option<String>>,
}

/// A member that is there, if only as null.
fn or_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// A schedule, as in a listing.
#[derive(Debug, Serialize)]
pub struct Schedule {
    name: String,
    when: String,
    zone: String,
    message: String,
    session: Option<SessionName>,
    model: Option<String>,
    /// With whose rights it runs: "user" or "admin".
    role: &'static str,
    paused: bool,
    /// When it comes next; null: not again.
    next_ms: Option<i64>,
    created_ms: i64,
}

/// `POST /schedules/{name}/run`
#[derive(Debug, Serialize)]
pub struct Fired {
    name: String,
    /// The message's id; `GET /messages/ID` says what became of it.
    message: Option<i64>,
    status: &'static str,
}

/// Which part of the receipts.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Id of the last receipt of the page before.
    before: Option<i64>,
    limit: Option<u32>,
}

/// What came of one time that a schedule was due.
#[derive(Debug, Serialize)]
pub struct Receipt {
    id: i64,
    due_ms: i64,
    /// Later than `due_ms` where nobody was there to send it.
    fired_ms: i64,
    by_hand: bool,
    /// "queued", "running", "done", "failed", "cancelled", "skipped", or "gone" where the message is not kept any more.
    state: &'static str,
    message: Option<i64>,
    run: Option<String>,
}

/// `GET /schedules`, by name: all, because there are few.
pub async fn list(_: Who, State(app): State<App>) -> Made<Page<Schedule>> {
    let schedules = of(&app);
    let items = schedules.list().await?.into_iter().map(|schedule| shown(&schedules, schedule));
    Ok(Json(Page { items: items.collect(), next: None }))
}

/// `POST /schedules`
pub async fn add(who: Who, State(app): State<App>, Body(given): Body<ScheduleIn>) -> Result<Response, ApiError> {
    let wanted = ScheduleRequest {
        name: given.name,
        timing: given.when,
        zone: given.zone,
        message: given.message,
        session: given.session.as_deref().map(session).transpose()?,
        model: given.model,
        caller: who.caller(),
    };
    let schedules = of(&app);
    let added = schedules.add(wanted, now_ms()).await?;
    Ok((StatusCode::CREATED, Json(shown(&schedules, added))).into_response())
}

/// `PATCH /schedules/{name}`
pub async fn change(
    who: Who,
    State(app): State<App>,
    Path(name): Path<String>,
    Body(given): Body<ChangeIn>,
) -> Made<Schedule> {
    let ChangeIn { when, message, zone, session: told, model } = given;
    let told = told.map(|name| name.as_deref().map(session).transpose()).transpose()?;
    let change = Change { timing: when, zone, message, session: told, model };
    let schedules = of(&app);
    let changed = schedules.change(&name, change, who.caller(), now_ms()).await?;
    Ok(Json(shown(&schedules, changed)))
}

/// `DELETE /schedules/{name}`
pub async fn remove(who: Who, State(app): State<App>, Path(name): Path<String>) -> Result<StatusCode, ApiError> {
    of(&app).remove(&name, who.caller()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `GET /schedules/{name}/receipts`, the latest first.
pub async fn receipts(
    _: Who,
    State(app): State<App>,
    Path(name): Path<String>,
    Query(part): Query<Part>,
) -> Made<Page<Receipt>> {
    let limit = page_size(part.limit)?;
    let found = of(&app).receipts(Some(&name), part.before, limit).await?;
    let next = found.last().filter(|_| found.len() == limit as usize).map(|last| last.id.to_string());
    let items = found.into_iter().map(|receipt| Receipt {
        id: receipt.id,
        due_ms: receipt.due_ms,
        fired_ms: receipt.fired_ms,
        by_hand: receipt.by_hand,
        state: receipt.state.as_str(),
        message: receipt.message,
        run: receipt.run.map(|run| run.to_string()),
    });
    Ok(Json(Page { items: items.collect(), next }))
}

/// `POST /schedules/{name}/run`
pub async fn run(who: Who, State(app): State<App>, Path(name): Path<String>) -> Result<Response, ApiError> {
    let receipt = of(&app).run(&name, who.caller(), now_ms()).await?;
    let fired = Fired { name, message: receipt.message, status: receipt.state.as_str() };
    Ok((StatusCode::ACCEPTED, Json(fired)).into_response())
}

/// `POST /schedules/{name}/pause`
pub async fn pause(who: Who, State(app): State<App>, Path(name): Path<String>) -> Made<Schedule> {
    let schedules = of(&app);
    let schedule = schedules.pause(&name, true, who.caller(), now_ms()).await?;
    Ok(Json(shown(&schedules, schedule)))
}

/// `POST /schedules/{name}/resume`
pub async fn resume(who: Who, State(app): State<App>, Path(name): Path<String>) -> Made<Schedule> {
    let schedules = of(&app);
    let schedule = schedules.pause(&name, false, who.caller(), now_ms()).await?;
    Ok(Json(shown(&schedules, schedule)))
}

fn of(app: &App) -> Schedules {
    let drive = &app.0.drive;
    Schedules::new(&drive.config_now(), &drive.store, &drive.vault)
}

fn shown(schedules: &Schedules, schedule: store::Schedule) -> Schedule {
    let sealed = |_| "(sealed with the key of another home)".to_owned();
    let message = schedules.message(&schedule).unwrap_or_else(sealed);
    let role = match schedule.caller {
        CallerScope::Admin => "admin",
        CallerScope::User => "user",
    };
    let store::Schedule { name, timing, zone, session, model, paused, next_ms, created_ms, .. } = schedule;
    Schedule { name, when: timing, zone, message, session, model, role, paused, next_ms, created_ms }
}

impl From<ScheduleError> for ApiError {
    fn from(error: ScheduleError) -> ApiError {
        let message = error.to_string();
        match error {
            ScheduleError::Unknown { .. } => ApiError::not_found(message),
            ScheduleError::Taken { .. } => ApiError::new(StatusCode::CONFLICT, "taken", message),
            ScheduleError::StillWaiting => ApiError::new(StatusCode::CONFLICT, "still_waiting", message),
            ScheduleError::Forbidden { .. } => ApiError::new(StatusCode::FORBIDDEN, "forbidden", message),
            ScheduleError::TooLarge { .. } => ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message),
            ScheduleError::Store(error) => error.into(),
            ScheduleError::Vault(error) => crate::drive::DriveError::from(error).into(),
            _ => ApiError::bad_request(message),
        }
    }
}
