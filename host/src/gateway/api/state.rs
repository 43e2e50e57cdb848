//! How the daemon is.

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use serde_json::{Value, json};
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::clock::now_ms;
use crate::gateway::App;
use crate::gateway::auth::Who;
use crate::gateway::error::ApiError;
use crate::gateway::wire::Made;
use crate::store::{Scope, WebhookLine};

/// What the API offers, for programs.
const OPENAPI: &str = include_str!("../../../../docs/openapi.json");

/// `GET /health`: answered when the store can be read.
pub async fn health(State(app): State<App>) -> Made<Value> {
    app.0.drive.store.read(|view| view.feed_end()).await?;
    Ok(Json(json!({ "status": "ok", "version": env!("CARGO_PKG_VERSION") })))
}

/// `GET /openapi.json`
pub async fn openapi() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], OPENAPI)
}

/// `GET /metrics`, in the text format of Prometheus.
pub async fn metrics(_: Who, State(app): State<App>) -> Result<impl IntoResponse, ApiError> {
    let read = app.0.drive.store.read(|view| {
        Ok((view.unfinished_runs(None)?.len() as u64, view.usage_total(Scope::Day(now_ms()))?, view.webhooks()?))
    });
    let (running, today, webhooks) = read.await?;
    let slots = app.0.drive.models.slots();
    let counters = &app.0.counters;
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let mut text = String::new();
    let mut metric = |name: &str, kind: &str, help: &str, value: u64| {
        let _ = writeln!(text, "# HELP kiso_{name} {help}\n# TYPE kiso_{name} {kind}\nkiso_{name} {value}");
    };
    metric(
        "uptime_seconds",
        "gauge",
        "Time since the daemon began.",
        (now_ms() - app.0.began_ms).max(0).unsigned_abs() / 1_000,
    );
    metric("http_requests_total", "counter", "Requests that were answered.", count(&counters.requests));
    metric("http_connections", "gauge", "Connections that are open.", count(&counters.connections));
    metric("socket_connections", "gauge", "Connections to the unix socket that are open.", count(&counters.sockets));
    metric("http_refused_total", "counter", "Connections that were one too many.", count(&counters.refused));
    metric("event_streams", "gauge", "Event streams that are open.", count(&counters.streams));
    metric("queued_messages", "gauge", "Messages that wait for a run.", app.0.intake.queued());
    metric("running_runs", "gauge", "Runs that are under way.", running);
    metric("model_calls_waiting", "gauge", "Model calls that wait for a slot.", slots.waiting() as u64);
    metric("model_slots_free", "gauge", "Model calls that could begin.", slots.free() as u64);
    metric("model_calls_today", "gauge", "Model calls of this day (UTC).", today.calls);
    metric("model_input_tokens_today", "gauge", "Tokens sent on this day (UTC).", today.usage.input_tokens);
    metric("model_output_tokens_today", "gauge", "Tokens received on this day (UTC).", today.usage.output_tokens);
    metric(
        "model_cost_micros_today",
        "gauge",
        "Cost of this day (UTC) in millionths of a US dollar.",
        today.usage.cost_micros,
    );
    webhook_metrics(&mut text, &webhooks);
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text))
}

/// Names of webhooks have no character that would have to be escaped.
fn webhook_metrics(text: &mut String, webhooks: &[WebhookLine]) {
    type Of = fn(&WebhookLine) -> u64;
    let metrics: [(&str, &str, &str, Of); 3] = [
        ("pending", "gauge", "Deliveries that wait.", |line| line.pending),
        ("delivered_total", "counter", "Deliveries that arrived.", |line| line.delivered),
        ("failed_total", "counter", "Deliveries that were given up.", |line| line.failed),
    ];
    for (name, kind, help, of) in metrics.into_iter().filter(|_| !webhooks.is_empty()) {
        let _ = writeln!(text, "# HELP kiso_webhook_{name} {help}\n# TYPE kiso_webhook_{name} {kind}");
        for line in webhooks {
            let _ = writeln!(text, "kiso_webhook_{name}{{webhook=\"{}\"}} {}", line.webhook, of(line));
        }
    }
}
