//! `GET /metrics`, in the text format of Prometheus.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;

use crate::clock::now_ms;
use crate::gateway::App;
use crate::gateway::auth::Who;
use crate::gateway::error::ApiError;
use crate::store::{Figures, Scope, Totals, WebhookLine};

/// What Prometheus asks for.
pub async fn metrics(_: Who, State(app): State<App>) -> Result<impl IntoResponse, ApiError> {
    let store = &app.0.drive.store;
    let read = store.read(|view| {
        let running = view.unfinished_runs(None)?.len() as u64;
        Ok((running, view.usage_total(Scope::Day(now_ms()))?, view.figures()?, view.webhooks()?))
    });
    let (running, today, figures, webhooks) = read.await?;
    let mut text = Text::default();
    of_gateway(&mut text, &app);
    of_work(&mut text, &app, running, figures);
    of_models(&mut text, &app, today, figures.used);
    of_webhooks(&mut text, &webhooks);
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text.0))
}

fn of_gateway(text: &mut Text, app: &App) {
    let counters = &app.0.counters;
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let up = (now_ms() - app.0.began_ms).max(0).unsigned_abs() / 1_000;
    text.gauge("uptime_seconds", "Time since the daemon began.", up);
    text.counter("http_requests_total", "Requests that were answered.", count(&counters.requests));
    text.gauge("http_connections", "Connections that are open.", count(&counters.connections));
    text.gauge("socket_connections", "Connections to the unix socket that are open.", count(&counters.sockets));
    text.gauge("event_streams", "Event streams that are open.", count(&counters.streams));
    text.head("refused_total", "counter", "What was refused since the daemon began, by the code of the error.");
    for (reason, count) in counters.refusals() {
        let _ = writeln!(text.0, "kiso_refused_total{{reason=\"{reason}\"}} {count}");
    }
}

fn of_work(text: &mut Text, app: &App, running: u64, figures: Figures) {
    text.gauge("queued_messages", "Messages that wait for a run.", app.0.intake.queued());
    text.gauge("running_runs", "Runs that are under way.", running);
    text.counter("messages_total", "Number of the last message, of users and replies.", figures.messages);
    text.counter("runs_total", "Number of the last run.", figures.runs);
    text.gauge("sessions", "Sessions, with those of subagents.", figures.sessions);
    let path = app.0.drive.store.path();
    let size = |path: &std::path::Path| std::fs::metadata(path).map_or(0, |file| file.len());
    text.gauge("store_bytes", "Size of the store.", size(path));
    text.gauge("store_wal_bytes", "Size of the store's log.", size(&path.with_extension("db-wal")));
}

fn of_models(text: &mut Text, app: &App, today: Totals, ever: Totals) {
    let drive = app.0.drive.now();
    let slots = drive.models.slots();
    text.gauge("model_calls_waiting", "Model calls that wait for a slot.", slots.waiting() as u64);
    text.gauge("model_slots_free", "Model calls that could begin.", slots.free() as u64);
    text.counter("model_calls_total", "Model calls.", ever.calls);
    text.counter("model_input_tokens_total", "Tokens that were sent.", ever.usage.input_tokens);
    text.counter("model_output_tokens_total", "Tokens that were received.", ever.usage.output_tokens);
    text.counter("model_cost_micros_total", "Cost in millionths of a US dollar.", ever.usage.cost_micros);
    text.gauge("model_calls_today", "Model calls of this day (UTC).", today.calls);
    text.gauge("model_input_tokens_today", "Tokens sent on this day (UTC).", today.usage.input_tokens);
    text.gauge("model_output_tokens_today", "Tokens received on this day (UTC).", today.usage.output_tokens);
    let cost = "Cost of this day (UTC) in millionths of a US dollar.";
    text.gauge("model_cost_micros_today", cost, today.usage.cost_micros);
}

/// Names of webhooks have no character that would have to be escaped.
fn of_webhooks(text: &mut Text, webhooks: &[WebhookLine]) {
    type Of = fn(&WebhookLine) -> u64;
    let metrics: [(&str, &str, &str, Of); 3] = [
        ("webhook_pending", "gauge", "Deliveries that wait.", |line| line.pending),
        ("webhook_delivered_total", "counter", "Deliveries that arrived.", |line| line.delivered),
        ("webhook_failed_total", "counter", "Deliveries that were given up.", |line| line.failed),
    ];
    for (name, kind, help, of) in metrics.into_iter().filter(|_| !webhooks.is_empty()) {
        text.head(name, kind, help);
        for line in webhooks {
            let _ = writeln!(text.0, "kiso_{name}{{webhook=\"{}\"}} {}", line.webhook, of(line));
        }
    }
}

/// Lines that are being written.
#[derive(Debug, Default)]
struct Text(String);

impl Text {
    fn gauge(&mut self, name: &str, help: &str, value: u64) {
        self.head(name, "gauge", help);
        let _ = writeln!(self.0, "kiso_{name} {value}");
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.head(name, "counter", help);
        let _ = writeln!(self.0, "kiso_{name} {value}");
    }

    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP kiso_{name} {help}\n# TYPE kiso_{name} {kind}");
    }
}
