//! Health and figures of the daemon.

use std::sync::LazyLock;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::figures::Snapshot;
use crate::App;
use crate::auth::Who;
use crate::document::{document, routes};
use crate::error::ApiError;
use crate::hook::{self, HookCounts};
use crate::wire::JsonResult;
use kiso_agent::mcp::{ServerKind, ServerSummary};
use kiso_base::home::LOW_DISK;
use kiso_base::system::resident_memory;
use kiso_plan::report::{often, size};
use kiso_store::store::WebhookLine;

routes! {
    /// Report whether messages are accepted
    GET "/health" Open => health, 503 "store.db or the directory sessions was removed or replaced in the home, the store cannot be read, or the daemon is shutting down";
    /// Figures about the daemon
    GET "/health/details" Chat => details, 200 "The current state";
    /// Report whether the process responds, even if nothing else works
    GET "/health/live" Open => live;
    /// This document
    GET "/openapi.json" Open => openapi, 200 "The document";
}

/// Messages are accepted.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Ready {
    #[schemars(extend("const" = "ok"))]
    status: &'static str,
    version: &'static str,
}

/// The process responds.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Alive {
    #[schemars(extend("const" = "alive"))]
    status: &'static str,
}

/// State of the daemon.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Health {
    #[schemars(extend("enum" = ["ok", "ending", "not_ready"]))]
    status: &'static str,
    version: &'static str,
    /// Milliseconds since 1970 (UTC).
    started_ms: i64,
    /// Milliseconds since 1970 (UTC).
    now_ms: i64,
    /// Number of queued messages.
    queued: u64,
    /// Number of active runs.
    running: u64,
    event_streams: u64,
    sessions: u64,
    /// Number of the last message.
    messages: u64,
    /// Number of the last run.
    runs: u64,
    store_bytes: u64,
    wal_bytes: u64,
    /// Free disk space; null if unknown.
    free_bytes: Option<u64>,
    /// Memory of the process; null if unknown.
    rss_bytes: Option<u64>,
    model_slots: Slots,
    webhooks: Webhooks,
    hooks: Vec<HookHealth>,
    /// The servers of [mcp.NAME], in the order of config.toml.
    mcp_servers: Vec<McpServerHealth>,
    /// Name of the fleet of the home; null if the home is on one machine. GET /fleet has details.
    fleet: Option<String>,
    /// Problems that need attention, one sentence each.
    warnings: Vec<String>,
}

/// Free places for model calls, and waiting calls.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ModelSlots")]
struct Slots {
    free: u64,
    waiting: u64,
}

/// Waiting deliveries, and deliveries that were given up.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "WebhookDeliveries")]
struct Webhooks {
    waiting: u64,
    failed: u64,
}

/// Events of a hook since the daemon started.
#[derive(Debug, Serialize, JsonSchema)]
struct HookHealth {
    name: String,
    queued: u64,
    /// Number of repeated events.
    known: u64,
    ignored: u64,
    refused: u64,
    /// The code of the error, if the last event was refused.
    trouble: Option<&'static str>,
}

/// An MCP server with tools for plans.
#[derive(Debug, Serialize, JsonSchema)]
struct McpServerHealth {
    name: String,
    kind: ServerKind,
    /// Whether it is a program of this machine outside of the sandbox.
    outside_the_sandbox: bool,
    /// Where it runs, in a few words.
    place: String,
    /// Whether it is expected to respond; it is not contacted to find out.
    usable: bool,
}

/// Maximum number of held runs that are listed.
const MAX_HELD: u32 = 5;

/// Checks that the home has its store and its sessions, that the store is readable, and that the daemon is not stopping.
pub(super) async fn health(State(app): State<App>) -> JsonResult<Ready> {
    let not_ready = |message: String| ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "not_ready", message);
    if *app.0.ending.borrow() {
        return Err(not_ready("the daemon is shutting down".to_owned()));
    }
    let check = app.clone();
    // A slow disk must not block the threads that serve other requests.
    let checked = tokio::task::spawn_blocking(move || check.check_home()).await;
    if let Err(fault) = checked.map_err(|panic| ApiError::internal(&panic))? {
        tracing::error!("{}: {fault}", app.0.drive.home.path().display());
        return Err(not_ready(fault.to_string()).hint(fault.hint()));
    }
    if let Err(error) = app.0.drive.store.read(|view| view.feed_end()).await {
        tracing::error!("the store cannot be read: {error}");
        return Err(not_ready("the store cannot be read".to_owned()).hint("the daemon's log says why"));
    }
    Ok(Json(Ready { status: "ok", version: env!("CARGO_PKG_VERSION") }))
}

pub(super) async fn details(_: Who, State(app): State<App>) -> JsonResult<Health> {
    let now = Snapshot::read(&app).await?;
    let (home, tools) = (app.0.drive.home.clone(), app.0.drive.newest().tools.clone());
    // Reads from the disk, the records of skills and the kernel.
    let check = app.clone();
    let asked = tokio::task::spawn_blocking(move || {
        let fault = check.check_home().err().map(|fault| format!("{fault}: {}", fault.hint()));
        let damaged = tools.skills().list().into_iter().filter_map(Result::err);
        let damaged = damaged.chain(tools.skills().agent_skills().into_iter().filter_map(Result::err));
        let damaged = damaged.map(|error| error.to_string()).collect::<Vec<_>>();
        (fault, home.free_bytes().ok(), tools.servers().summaries(), damaged)
    });
    let (fault, free_bytes, servers, mut warnings) = asked.await.map_err(|panic| ApiError::internal(&panic))?;
    let status = match (*app.0.ending.borrow(), &fault) {
        (true, _) => "ending",
        (false, Some(_)) => "not_ready",
        (false, None) => "ok",
    };
    // A fault that prevents work comes first.
    if let Some(fault) = fault {
        warnings.insert(0, fault);
    } else if let Some(free) = free_bytes.filter(|free| *free < LOW_DISK) {
        warnings.push(format!("only {} are free where kiso's home is", size(free)));
    }
    warnings.extend(
        app.0
            .drive
            .newest()
            .models
            .unready()
            .iter()
            .map(|error| format!("{error}; set the variable and restart kiso, or connect a model in the page")),
    );
    for webhook in now.webhooks.iter().filter(|webhook| webhook.failed > 0) {
        let WebhookLine { webhook, failed, .. } = webhook;
        warnings.push(format!("{failed} deliveries of the webhook {webhook} were given up"));
    }
    let held = app.0.drive.store.read(|view| view.held_runs(MAX_HELD + 1)).await?;
    let more = held.len() > MAX_HELD as usize;
    warnings.extend(held.iter().take(MAX_HELD as usize).map(|(run, times)| {
        let times = often(*times);
        format!(
            "kiso was cut off {times} while it worked on run {run}, which waits: POST /runs/{run}/retry, or cancel it"
        )
    }));
    if more {
        warnings.push(
            "more runs wait, because kiso was cut off while it worked on them; GET /runs lists them as held".to_owned(),
        );
    }
    let sum = |of: fn(&WebhookLine) -> u64| now.webhooks.iter().map(of).sum::<u64>();
    Ok(Json(Health {
        status,
        version: env!("CARGO_PKG_VERSION"),
        started_ms: app.0.began_ms,
        now_ms: now.at_ms,
        queued: now.queued,
        running: now.running,
        event_streams: now.event_streams,
        sessions: now.figures.sessions,
        messages: now.figures.messages,
        runs: now.figures.runs,
        store_bytes: now.store_bytes,
        wal_bytes: now.wal_bytes,
        free_bytes,
        rss_bytes: resident_memory(),
        model_slots: Slots { free: now.slots_free, waiting: now.calls_waiting },
        hooks: hook::counts(&app).into_iter().map(hook_health).collect(),
        webhooks: Webhooks { waiting: sum(|line| line.pending), failed: sum(|line| line.failed) },
        mcp_servers: servers.into_iter().map(server_health).collect(),
        fleet: app.0.drive.member.as_ref().map(|member| member.fleet()),
        warnings,
    }))
}

fn hook_health((name, counts): (String, HookCounts)) -> HookHealth {
    let HookCounts { queued, known, ignored, refused, trouble } = counts;
    HookHealth { name, queued, known, ignored, refused, trouble }
}

fn server_health(summary: ServerSummary) -> McpServerHealth {
    let ServerSummary { name, kind, outside_the_sandbox, place, trouble, .. } = summary;
    McpServerHealth { name, kind, outside_the_sandbox, place, usable: trouble.is_none() }
}

pub(super) async fn live() -> Json<Alive> {
    Json(Alive { status: "alive" })
}

pub(super) async fn openapi() -> Json<&'static Map<String, Value>> {
    static DOCUMENT: LazyLock<Map<String, Value>> = LazyLock::new(|| document(super::routes()));
    Json(&DOCUMENT)
}
