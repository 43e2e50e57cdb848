//! How the daemon is.

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use serde_json::{Value, json};

use super::figures::{self, Now};
use crate::gateway::App;
use crate::gateway::auth::Who;
use crate::gateway::error::ApiError;
use crate::gateway::wire::Made;
use crate::graph::report::{often, size};
use crate::home::LOW_DISK;
use crate::store::WebhookLine;

/// What the API offers, for programs.
pub(super) const OPENAPI: &str = include_str!("../../../../docs/openapi.json");

/// Runs that are named because they wait for somebody.
const MAX_HELD: u32 = 5;

/// `GET /health`: whether messages are taken in. That needs a store that can be read, and a daemon that is not ending.
pub async fn health(State(app): State<App>) -> Made<Value> {
    let not_ready = |message: &str| ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "not_ready", message);
    if *app.0.ending.borrow() {
        return Err(not_ready("the daemon is shutting down"));
    }
    if let Err(error) = app.0.drive.store.read(|view| view.feed_end()).await {
        tracing::error!("the store cannot be read: {error}");
        return Err(not_ready("the store cannot be read").hint("the daemon's log says why"));
    }
    Ok(Json(json!({ "status": "ok", "version": env!("CARGO_PKG_VERSION") })))
}

/// `GET /health/details`: the same with figures, for people. What needs somebody stands in `warnings`, a sentence each.
pub async fn details(_: Who, State(app): State<App>) -> Made<Value> {
    let now = Now::read(&app).await?;
    let (home, skills) = (app.0.drive.home.clone(), app.0.drive.now().tools.skills().clone());
    // The disk and the records of skills are asked.
    let asked = tokio::task::spawn_blocking(move || {
        let damaged = skills.list().into_iter().filter_map(Result::err);
        (home.free_bytes().ok(), damaged.map(|error| error.to_string()).collect::<Vec<_>>())
    });
    let (free_bytes, mut warnings) = asked.await.map_err(|panic| ApiError::internal(&panic))?;
    if let Some(free) = free_bytes.filter(|free| *free < LOW_DISK) {
        warnings.push(format!("only {} are free where kiso's home is", size(free)));
    }
    for webhook in now.webhooks.iter().filter(|webhook| webhook.failed > 0) {
        let WebhookLine { webhook, failed, .. } = webhook;
        warnings.push(format!("{failed} deliveries of the webhook {webhook} were given up"));
    }
    let held = app.0.drive.store.read(|view| view.held_runs(MAX_HELD)).await?;
    warnings.extend(held.iter().map(|(run, times)| {
        let times = often(*times);
        format!(
            "kiso was cut off {times} while it worked on run {run}, which waits: POST /runs/{run}/retry, or cancel it"
        )
    }));
    let ending = *app.0.ending.borrow();
    let sum = |of: fn(&WebhookLine) -> u64| now.webhooks.iter().map(of).sum::<u64>();
    Ok(Json(json!({
        "status": if ending { "ending" } else { "ok" },
        "version": env!("CARGO_PKG_VERSION"),
        "started_ms": app.0.began_ms, "now_ms": now.at_ms,
        "queued": now.queued, "running": now.running, "event_streams": now.event_streams,
        "sessions": now.figures.sessions, "messages": now.figures.messages, "runs": now.figures.runs,
        "store_bytes": now.store_bytes, "wal_bytes": now.wal_bytes, "free_bytes": free_bytes,
        "rss_bytes": figures::resident(),
        "model_slots": { "free": now.slots_free, "waiting": now.calls_waiting },
        "webhooks": { "waiting": sum(|line| line.pending), "failed": sum(|line| line.failed) },
        "warnings": warnings,
    })))
}

/// `GET /health/live`: the process answers, whatever else does not work.
pub async fn live() -> Json<Value> {
    Json(json!({ "status": "alive" }))
}

/// `GET /openapi.json`
pub async fn openapi() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], OPENAPI)
}
