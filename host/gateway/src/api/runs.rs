//! Runs: the work on messages.

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::App;
use crate::auth::Who;
use crate::document::routes;
use crate::error::ApiError;
use crate::wire::{JsonResult, Page, Path, Query, page_size, shown};
use kiso_agent::drive::SEALED_RUN;
use kiso_base::clock::now_ms;
use kiso_base::home::SessionName;
use kiso_graph::reflection::Reflection;
use kiso_graph::step::ToolResult;
use kiso_store::store::{RunFilter, RunId, RunLine, RunStatus, View, is_whole_page};

routes! {
    /// Runs, latest first
    GET "/runs" Chat => list, 404 "`before` is not a run";
    /// The events of a run, in order
    GET "/runs/{run}/trace" Chat => trace, 404 "The run does not exist";
    /// Cancel a run; it stops between its steps
    POST "/runs/{run}/cancel" Chat => cancel, 200 "The run is stopping", 404 "The run does not exist", 409 "The run has ended";
    /// Retry a run that is held because kiso was interrupted while it worked on the run
    POST "/runs/{run}/retry" Chat => retry,
        200 "The run is resumed",
        404 "The run does not exist",
        409 "The run is not held: it is running, or has ended";
}

/// Filter and page of the listing of runs.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RunsPart {
    /// Only runs of this session.
    session: Option<SessionName>,
    /// Only runs with this status.
    status: Option<RunStatus>,
    /// Id of the last run of the previous page.
    before: Option<String>,
    /// Number of entries per page; 50 by default.
    #[schemars(range(min = 1, max = 500))]
    limit: Option<u32>,
}

/// An event of a run.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Event")]
pub(super) struct EventLine {
    seq: u32,
    /// Milliseconds since 1970 (UTC).
    at_ms: i64,
    kind: String,
    body: Value,
    /// The run's reflections on the results of its calls, in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    reflections: Option<Vec<Value>>,
    /// Prompts of the models that were called in the step.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    prompts: Vec<Prompt>,
}

/// The prompt of a model.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Prompt {
    role: String,
    text: String,
}

/// A change of a run's status.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RunChange {
    run: RunId,
    /// "cancelling" or "running".
    status: &'static str,
}

/// Maximum number of events on a page with prompts. Each prompt may be as long as a model's context.
const MAX_PROMPTED: u32 = 20;

/// Filter and page of a trace.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Events {
    /// Only events after this number.
    #[serde(default)]
    after: u32,
    /// Number of entries per page; 50 by default.
    #[schemars(range(min = 1, max = 500))]
    limit: Option<u32>,
    /// Include the prompts of models; a page then has at most 20 entries.
    #[serde(default)]
    prompts: bool,
}

pub(super) async fn list(who: Who, State(app): State<App>, Query(part): Query<RunsPart>) -> JsonResult<Page<RunLine>> {
    let of = part.session;
    // Checks access to a named session; without one, lists only runs of the caller's sessions.
    let owner = match &of {
        Some(session) => who.check_session(&app, session).await.map(|()| None)?,
        None => who.owner,
    };
    let before = part.before.as_deref().map(run_id).transpose()?;
    let limit = page_size(part.limit)?;
    let status = part.status;
    let read = move |view: &View<'_>| {
        let filter = RunFilter { owner: owner.as_ref(), session: of.as_ref(), status };
        view.list_runs_of(filter, before.as_ref(), limit)
    };
    let lines = app.0.drive.store.read(read).await?;
    let next = lines.last().filter(|_| lines.len() == limit as usize).map(|line| line.id.to_string());
    Ok(Json(Page { items: lines.into_iter().map(shown).collect(), next }))
}

pub(super) async fn trace(
    _: Who,
    State(app): State<App>,
    Path(id): Path<RunId>,
    Query(part): Query<Events>,
) -> JsonResult<Page<EventLine>> {
    let limit = page_size(part.limit)?.min(if part.prompts { MAX_PROMPTED } else { u32::MAX });
    let vault = app.0.drive.vault.clone();
    let read = app.0.drive.store.read(move |view| {
        let events = view.events_after(&id, part.after, limit)?;
        let prompts = match (events.first(), events.last()) {
            (Some(first), Some(last)) if part.prompts => view.prompts_between(&id, first.seq, last.seq)?,
            _ => Vec::new(),
        };
        let open = |text: &str| match vault.open_text(SEALED_RUN, text) {
            Ok(text) => text.into_owned(),
            Err(_) => "null".to_owned(),
        };
        let made = events.iter().map(|event| {
            let body: Value = serde_json::from_str(&open(&event.body)).unwrap_or_default();
            let reflections = reflections(&event.kind, &body);
            let asked = prompts.iter().filter(|prompt| prompt.seq == event.seq);
            let prompts = asked.map(|prompt| Prompt { role: prompt.role.clone(), text: open(&prompt.text) }).collect();
            EventLine { seq: event.seq, at_ms: event.at_ms, kind: event.kind.clone(), body, reflections, prompts }
        });
        Ok((made.collect::<Vec<_>>(), is_whole_page(&events, limit)))
    });
    let (items, more) = read.await?;
    let next = items.last().filter(|_| more).map(|event| event.seq.to_string());
    Ok(Json(Page { items, next }))
}

/// Returns the reflections on the results of calls, in order. The log contains only the results.
fn reflections(kind: &str, body: &Value) -> Option<Vec<Value>> {
    let results = (kind == "called").then(|| Vec::<ToolResult>::deserialize(body.get("results")?).ok()).flatten()?;
    Some(results.iter().map(|result| serde_json::json!(Reflection::of_result(result))).collect())
}

pub(super) async fn cancel(who: Who, State(app): State<App>, Path(id): Path<RunId>) -> JsonResult<RunChange> {
    let row = {
        let id = id.clone();
        app.0.drive.store.read(move |view| view.run(&id)).await?
    };
    let row = row.ok_or_else(|| no_run(&id))?;
    if !row.status.is_open() {
        return Err(ended(&id, row.status));
    }
    tracing::info!(run = %id, by = who.name(), "a run is cancelled");
    {
        let id = id.clone();
        app.0.drive.store.write(move |tx| tx.request_cancel(&id)).await?;
    }
    Ok(Json(RunChange { run: id, status: "cancelling" }))
}

pub(super) async fn retry(who: Who, State(app): State<App>, Path(id): Path<RunId>) -> JsonResult<RunChange> {
    let wanted = id.clone();
    let row = app.0.drive.store.read(move |view| view.run(&wanted)).await?;
    match row.map(|row| row.status) {
        None => return Err(no_run(&id)),
        Some(RunStatus::Held) => {}
        Some(RunStatus::Running) => {
            let message = format!("run {id} is running and is not waiting for anybody");
            return Err(ApiError::new(axum::http::StatusCode::CONFLICT, "running", message));
        }
        Some(status) => return Err(ended(&id, status).hint("send the message again")),
    }
    tracing::info!(run = %id, by = who.name(), "a run is tried again");
    let wanted = id.clone();
    app.0.drive.store.write(move |tx| tx.retry_run(&wanted, now_ms())).await?;
    Ok(Json(RunChange { run: id, status: "running" }))
}

fn no_run(id: &RunId) -> ApiError {
    ApiError::not_found(format!("there is no run {:?}", id.as_str()))
}

fn ended(id: &RunId, status: RunStatus) -> ApiError {
    let message = format!("run {id} has already ended ({})", status.as_str());
    ApiError::new(axum::http::StatusCode::CONFLICT, "ended", message)
}

fn run_id(text: &str) -> Result<RunId, ApiError> {
    text.parse()
        .map_err(|_| ApiError::not_found(format!("{:?} is not a run's id", text.chars().take(80).collect::<String>())))
}
