//! `GET /metrics`, in the text format of Prometheus.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;

use super::figures::Snapshot;
use crate::App;
use crate::auth::Who;
use crate::document::routes;
use crate::error::ApiError;
use crate::hook::{self, HookCounts};
use crate::wire::Metrics;
use kiso_store::store::WebhookLine;

routes! {
    /// Counters and gauges in the text format of Prometheus
    GET "/metrics" Chat => metrics, 200 "Lines of text";
}

/// Returns the metrics for Prometheus.
pub(super) async fn metrics(_: Who, State(app): State<App>) -> Result<Metrics, ApiError> {
    let now = Snapshot::read(&app).await?;
    let mut text = Text::default();
    of_gateway(&mut text, &app, &now);
    of_work(&mut text, &now);
    of_models(&mut text, &now);
    of_webhooks(&mut text, &now.webhooks);
    of_hooks(&mut text, &hook::counts(&app));
    Ok(Metrics(([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text.0).into_response()))
}

fn of_gateway(text: &mut Text, app: &App, now: &Snapshot) {
    let counters = &app.0.counters;
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let up = (now.at_ms - app.0.began_ms).max(0).unsigned_abs() / 1_000;
    text.gauge("uptime_seconds", "Time since the daemon began.", up);
    text.counter("http_requests_total", "Requests that were answered.", count(&counters.requests));
    text.gauge("http_connections", "Connections that are open.", count(&counters.connections));
    text.gauge("socket_connections", "Connections to the unix socket that are open.", count(&counters.sockets));
    text.gauge("event_streams", "Event streams that are open.", now.event_streams);
    text.head("refused_total", "counter", "Refused requests since the daemon started, by the code of the error.");
    for (reason, count) in counters.refusals() {
        let _ = writeln!(text.0, "kiso_refused_total{{reason=\"{reason}\"}} {count}");
    }
}

fn of_work(text: &mut Text, now: &Snapshot) {
    text.gauge("queued_messages", "Messages that wait for a run.", now.queued);
    text.gauge("running_runs", "Runs that are under way.", now.running);
    text.counter("messages_total", "Number of the last message, of users and replies.", now.figures.messages);
    text.counter("runs_total", "Number of the last run.", now.figures.runs);
    text.gauge("sessions", "Sessions, with those of subagents.", now.figures.sessions);
    text.gauge("store_bytes", "Size of the store.", now.store_bytes);
    text.gauge("store_wal_bytes", "Size of the store's log.", now.wal_bytes);
}

fn of_models(text: &mut Text, now: &Snapshot) {
    let (today, ever) = (now.today, now.figures.used);
    text.gauge("model_calls_waiting", "Model calls that wait for a slot.", now.calls_waiting);
    text.gauge("model_slots_free", "Model calls that could begin.", now.slots_free);
    text.counter("model_calls_total", "Model calls.", ever.calls);
    text.counter("model_input_tokens_total", "Tokens that were sent.", ever.usage.input_tokens);
    let cached = "Tokens that were sent and that the provider had kept.";
    text.counter("model_cached_tokens_total", cached, ever.usage.cached_tokens);
    text.counter("model_output_tokens_total", "Tokens that were received.", ever.usage.output_tokens);
    text.counter("model_cost_micros_total", "Cost in millionths of a US dollar.", ever.usage.cost_micros);
    text.gauge("model_calls_today", "Model calls of this day (UTC).", today.calls);
    text.gauge("model_input_tokens_today", "Tokens sent on this day (UTC).", today.usage.input_tokens);
    text.gauge("model_output_tokens_today", "Tokens received on this day (UTC).", today.usage.output_tokens);
    let cost = "Cost of this day (UTC) in millionths of a US dollar.";
    text.gauge("model_cost_micros_today", cost, today.usage.cost_micros);
}

/// Names of webhooks have no characters that need escaping.
fn of_webhooks(text: &mut Text, webhooks: &[WebhookLine]) {
    type Measure = fn(&WebhookLine) -> u64;
    let metrics: [(&str, &str, &str, Measure); 3] = [
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

/// Names of hooks need no escaping, either.
fn of_hooks(text: &mut Text, hooks: &[(String, HookCounts)]) {
    if hooks.is_empty() {
        return;
    }
    text.head("hook_events_total", "counter", "Events of hooks since the daemon began, by what became of them.");
    for (hook, HookCounts { queued, known, ignored, refused, .. }) in hooks {
        for (result, count) in [("queued", queued), ("known", known), ("ignored", ignored), ("refused", refused)] {
            let _ = writeln!(text.0, "kiso_hook_events_total{{hook=\"{hook}\",result=\"{result}\"}} {count}");
        }
    }
}

/// The text of the response.
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
