//! Runs: what was done for a message.

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Value, json};

use super::messages::session;
use crate::clock::now_ms;
use crate::drive::SEALED_RUN;
use crate::gateway::App;
use crate::gateway::auth::Who;
use crate::gateway::error::ApiError;
use crate::gateway::wire::{Made, Page, Path, Query, Run, page_size};
use crate::graph::reflection::Reflection;
use crate::graph::step::ToolResult;
use crate::store::{RunId, RunStatus, is_whole_page};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    session: Option<String>,
    before: Option<String>,
    limit: Option<u32>,
}

/// Events of a page with prompts, each of which may be as long as a model's context.
const MAX_PROMPTED: u32 = 20;

/// Which events of a trace.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Events {
    /// Those after this one.
    #[serde(default)]
    after: u32,
    limit: Option<u32>,
    /// Whether what models were asked is sent along.
    #[serde(default)]
    prompts: bool,
}

/// `GET /runs`, the latest first.
pub async fn list(_: Who, State(app): State<App>, Query(part): Query<Part>) -> Made<Page<Run>> {
    let of = part.session.as_deref().map(session).transpose()?;
    let before = part.before.as_deref().map(run_id).transpose()?;
    let limit = page_size(part.limit)?;
    let lines = app.0.drive.store.read(move |view| view.list_runs(of.as_ref(), before.as_ref(), limit)).await?;
    let next = lines.last().filter(|_| lines.len() == limit as usize).map(|line| line.id.to_string());
    Ok(Json(Page { items: lines.into_iter().map(Run::of).collect(), next }))
}

/// `GET /runs/{run}/trace`: its events in order, a part at a time.
pub async fn trace(
    _: Who,
    State(app): State<App>,
    Path(run): Path<String>,
    Query(part): Query<Events>,
) -> Made<Page<Value>> {
    let id = run_id(&run)?;
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
            let mut made = json!({ "seq": event.seq, "at_ms": event.at_ms, "kind": event.kind, "body": body });
            if let Some(reflections) = reflections(&event.kind, &made["body"]) {
                made["reflections"] = reflections;
            }
            let asked = prompts.iter().filter(|prompt| prompt.seq == event.seq);
            let asked: Vec<_> =
                asked.map(|prompt| json!({ "role": prompt.role, "text": open(&prompt.text) })).collect();
            if !asked.is_empty() {
                made["prompts"] = asked.into();
            }
            made
        });
        Ok((made.collect::<Vec<_>>(), is_whole_page(&events, limit)))
    });
    let (items, more) = read.await?;
    let next = items.last().filter(|_| more).map(|event| event["seq"].to_string());
    Ok(Json(Page { items, next }))
}

/// What the run made of the results of its calls, in their order: the log has the results alone.
fn reflections(kind: &str, body: &Value) -> Option<Value> {
    let results = (kind == "called").then(|| Vec::<ToolResult>::deserialize(body.get("results")?).ok()).flatten()?;
    Some(results.iter().map(|result| json!(Reflection::of_result(result))).collect())
}

/// `POST /runs/{run}/cancel`
pub async fn cancel(who: Who, State(app): State<App>, Path(run): Path<String>) -> Made<Value> {
    let id = run_id(&run)?;
    let row = {
        let id = id.clone();
        app.0.drive.store.read(move |view| view.run(&id)).await?
    };
    let row = row.ok_or_else(|| ApiError::not_found(format!("there is no run {run:?}")))?;
    if !row.status.is_open() {
        return Err(ended(&id, row.status));
    }
    tracing::info!(run = %id, by = who.name(), "a run is cancelled");
    {
        let id = id.clone();
        let write = app.0.drive.store.write(move |tx| {
            tx.request_cancel(&id)?;
            // Nobody drives one that is held; whoever takes it up sees that it is to be ended.
            if row.status == RunStatus::Held { tx.retry_run(&id, now_ms()) } else { Ok(()) }
        });
        write.await?;
    }
    Ok(Json(json!({ "run": id.to_string(), "status": "cancelling" })))
}

/// `POST /runs/{run}/retry`: a run that is held is taken up again.
pub async fn retry(who: Who, State(app): State<App>, Path(run): Path<String>) -> Made<Value> {
    let id = run_id(&run)?;
    let wanted = id.clone();
    let row = app.0.drive.store.read(move |view| view.run(&wanted)).await?;
    match row.map(|row| row.status) {
        None => return Err(ApiError::not_found(format!("there is no run {run:?}"))),
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
    Ok(Json(json!({ "run": id.to_string(), "status": "running" })))
}

fn ended(id: &RunId, status: RunStatus) -> ApiError {
    let message = format!("run {id} has already ended ({})", status.as_str());
    ApiError::new(axum::http::StatusCode::CONFLICT, "ended", message)
}

pub(super) fn run_id(text: &str) -> Result<RunId, ApiError> {
    text.parse()
        .map_err(|_| ApiError::not_found(format!("{:?} is not a run's id", text.chars().take(80).collect::<String>())))
}
