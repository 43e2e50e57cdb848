//! Schedules. A caller without administrator rights sees all schedules and changes those that run without these rights.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::App;
use crate::auth::Who;
use crate::document::routes;
use crate::error::ApiError;
use crate::wire::{Body, Created, JsonResult, NoContent, Page, Part, Path, Query, Queued, page_size};
use kiso_agent::tool::schedules::{ScheduleError, ScheduleRequest, ScheduleUpdate, ScheduleView, Schedules};
use kiso_base::clock::now_ms;
use kiso_base::home::SessionName;
use kiso_store::store::{Receipt, ReceiptState};

routes! {
    /// The schedules, by name
    GET "/schedules" Chat => list, 200 "All of them";
    /// Add a schedule; it runs with the rights of the caller
    POST "/schedules" Chat => add,
        400 "The body, a time or a name is not valid",
        409 "A schedule of that name exists",
        413 "The message or the body is too large",
        507 "The limit of schedules is reached, or the disk is full; nothing was saved";
    /// Change a schedule; absent fields stay unchanged
    PATCH "/schedules/{name}" Chat => change,
        400 "The body, a time or a name is not valid",
        403 "The schedule is an administrator's",
        404 "The schedule does not exist",
        413 "The message or the body is too large";
    /// Remove a schedule and its receipts
    DELETE "/schedules/{name}" Chat => remove,
        403 "The schedule is an administrator's", 404 "The schedule does not exist";
    /// The outcome of each due time, latest first
    GET "/schedules/{name}/receipts" Chat => receipts, 404 "The schedule does not exist";
    /// Send the schedule's message now; its times do not change
    POST "/schedules/{name}/run" Chat => run,
        202 "The message is on disk and will be answered",
        403 "The schedule is an administrator's",
        404 "The schedule does not exist",
        409 "Its previous message is still waiting",
        507 "There are too many sessions, or the disk is full; nothing was sent";
    /// Pause a schedule
    POST "/schedules/{name}/pause" Chat => pause,
        200 "The changed schedule", 403 "The schedule is an administrator's", 404 "The schedule does not exist";
    /// Resume a schedule; times missed during the pause are skipped
    POST "/schedules/{name}/resume" Chat => resume,
        200 "The changed schedule", 403 "The schedule is an administrator's", 404 "The schedule does not exist";
}

/// A schedule to add.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ScheduleIn {
    #[schemars(regex(pattern = "^[a-z0-9][a-z0-9_-]{0,39}$"))]
    name: String,
    /// A cron expression, `@daily`, `@every 10m` or `at 2030-01-31 08:00`.
    when: String,
    #[schemars(regex(pattern = r"\S"))]
    message: String,
    /// A time zone such as Europe/Berlin.
    zone: Option<String>,
    /// The session that receives the replies.
    session: Option<SessionName>,
    /// The model for the work.
    model: Option<String>,
}

/// Changes of a schedule; absent fields stay unchanged.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ScheduleChange {
    /// A cron expression, `@daily`, `@every 10m` or `at 2030-01-31 08:00`.
    when: Option<String>,
    #[schemars(regex(pattern = r"\S"))]
    message: Option<String>,
    /// A time zone such as Europe/Berlin.
    zone: Option<String>,
    /// The session that receives the replies; null for none.
    #[serde(default, deserialize_with = "or_null")]
    #[schemars(with = "Option<SessionName>")]
    session: Option<Option<SessionName>>,
    /// The model for the work; null for the configured one.
    #[serde(default, deserialize_with = "or_null")]
    #[schemars(with = "Option<String>")]
    model: Option<Option<String>>,
}

/// Distinguishes null from an absent field.
fn or_null<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// A message sent by a schedule.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct FiredMessage {
    name: String,
    /// Id of the message; `GET /messages/{id}` returns its state.
    message: Option<i64>,
    status: ReceiptState,
}

/// Returns all schedules on one page, because there are few.
pub(super) async fn list(who: Who, State(app): State<App>) -> JsonResult<Page<ScheduleView>> {
    let schedules = get_schedules(&app);
    let mut items = Vec::new();
    for schedule in schedules.list().await? {
        if is_own(&who, &app, schedule.session.as_ref()).await {
            items.push(schedules.shown(schedule));
        }
    }
    Ok(Json(Page { items, next: None }))
}

/// Returns whether the caller may see a schedule. A caller that may read only its own sessions sees the schedules that report to
/// them.
async fn is_own(who: &Who, app: &App, session: Option<&SessionName>) -> bool {
    match session {
        Some(session) => who.check_session(app, session).await.is_ok(),
        None => who.owner.is_none(),
    }
}

/// Fails with "not found" if the caller may not see the schedule.
async fn check(who: &Who, app: &App, name: &str) -> Result<(), ApiError> {
    let schedule = get_schedules(app).one(name).await?;
    match is_own(who, app, schedule.session.as_ref()).await {
        true => Ok(()),
        false => Err(ScheduleError::Unknown { name: name.to_owned() }.into()),
    }
}

/// Creates the session that a schedule reports to.
async fn claim(who: &Who, app: &App, session: Option<&SessionName>) -> Result<(), ApiError> {
    match session {
        Some(session) => who.claim_session(app, session).await.map(|_| ()),
        None if who.owner.is_none() => Ok(()),
        None => Err(ApiError::bad_request("`session` is missing: this schedule must report to one of your sessions")),
    }
}

pub(super) async fn add(
    who: Who,
    State(app): State<App>,
    Body(given): Body<ScheduleIn>,
) -> Result<Created<ScheduleView>, ApiError> {
    let wanted = ScheduleRequest {
        label: Default::default(),
        name: given.name,
        timing: given.when,
        zone: given.zone,
        message: given.message,
        session: given.session,
        model: given.model,
        caller: who.caller(),
    };
    claim(&who, &app, wanted.session.as_ref()).await?;
    let schedules = get_schedules(&app);
    let added = schedules.add(wanted, now_ms()).await?;
    Ok(Created(schedules.shown(added)))
}

pub(super) async fn change(
    who: Who,
    State(app): State<App>,
    Path(name): Path<String>,
    Body(given): Body<ScheduleChange>,
) -> JsonResult<ScheduleView> {
    let ScheduleChange { when: timing, message, zone, session, model } = given;
    check(&who, &app, &name).await?;
    if let Some(session) = &session {
        claim(&who, &app, session.as_ref()).await?;
    }
    let change = ScheduleUpdate { timing, zone, message, session, model, label: None };
    let schedules = get_schedules(&app);
    let changed = schedules.change(&name, change, who.caller(), now_ms()).await?;
    Ok(Json(schedules.shown(changed)))
}

pub(super) async fn remove(who: Who, State(app): State<App>, Path(name): Path<String>) -> Result<NoContent, ApiError> {
    check(&who, &app, &name).await?;
    get_schedules(&app).remove(&name, who.caller()).await?;
    Ok(NoContent)
}

pub(super) async fn receipts(
    who: Who,
    State(app): State<App>,
    Path(name): Path<String>,
    Query(part): Query<Part>,
) -> JsonResult<Page<Receipt>> {
    let limit = page_size(part.limit)?;
    check(&who, &app, &name).await?;
    let found = get_schedules(&app).receipts(Some(&name), part.before, limit).await?;
    let next = found.last().filter(|_| found.len() == limit as usize).map(|last| last.id.to_string());
    Ok(Json(Page { items: found, next }))
}

pub(super) async fn run(
    who: Who,
    State(app): State<App>,
    Path(name): Path<String>,
) -> Result<Queued<FiredMessage>, ApiError> {
    check(&who, &app, &name).await?;
    let receipt = get_schedules(&app).run(&name, who.caller(), now_ms()).await?;
    Ok(Queued(FiredMessage { name, message: receipt.message, status: receipt.state }))
}

pub(super) async fn pause(who: Who, State(app): State<App>, Path(name): Path<String>) -> JsonResult<ScheduleView> {
    check(&who, &app, &name).await?;
    let schedules = get_schedules(&app);
    let schedule = schedules.pause(&name, true, who.caller(), now_ms()).await?;
    Ok(Json(schedules.shown(schedule)))
}

pub(super) async fn resume(who: Who, State(app): State<App>, Path(name): Path<String>) -> JsonResult<ScheduleView> {
    check(&who, &app, &name).await?;
    let schedules = get_schedules(&app);
    let schedule = schedules.pause(&name, false, who.caller(), now_ms()).await?;
    Ok(Json(schedules.shown(schedule)))
}

fn get_schedules(app: &App) -> Schedules {
    let drive = &app.0.drive;
    Schedules::new(&drive.newest_config(), &drive.store, &drive.vault)
}

impl From<ScheduleError> for ApiError {
    fn from(error: ScheduleError) -> ApiError {
        let message = error.to_string();
        match error {
            ScheduleError::Unknown { .. } => ApiError::not_found(message),
            ScheduleError::Taken { .. } | ScheduleError::NameInUse { .. } => {
                ApiError::new(StatusCode::CONFLICT, "taken", message)
            }
            ScheduleError::StillWaiting => ApiError::new(StatusCode::CONFLICT, "still_waiting", message),
            ScheduleError::Forbidden { .. } => ApiError::new(StatusCode::FORBIDDEN, "forbidden", message),
            ScheduleError::TooLarge { .. } => ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message),
            ScheduleError::Store(error) => error.into(),
            ScheduleError::Vault(error) => kiso_agent::drive::DriveError::from(error).into(),
            _ => ApiError::bad_request(message),
        }
    }
}
