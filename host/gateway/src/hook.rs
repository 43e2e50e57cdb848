//! `POST /hooks/NAME`: turns an event of another program into a message, with a template from the administrator.
//!
//! ```text
//!  request ─▶ known name ─▶ size ─▶ signature and time ─▶ rate ─▶ JSON ─▶ conditions ─▶ template ─▶ files ─▶ intake
//! ```
//!
//! An event is not trusted before its signature was verified. Even then, its content is from outside: it becomes data of the
//! message ([`mod@render`]), never a command, a tag or an instruction of the template. The message is processed like a
//! subagent's, with the rights of a user.

mod files;
mod meter;
mod render;
mod verify;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::App;
use super::attachment::{self, Attachment};
use super::auth;
use super::document::routes;
use super::error::ApiError;
use super::wire::{Either, EventBody, Path, Queued, read_body};
use kiso_agent::session::intake::{InboundEvent, IntakeOutcome};
use kiso_agent::session::workspace::Incoming;
use kiso_base::clock::now_ms;
use kiso_base::config::HookSettings;
use kiso_base::home::SessionName;
use kiso_base::{compute, json};
use kiso_plan::label::{Confidentiality, Integrity, Label};
use kiso_sandbox::effect::label::LabelId;

pub use self::files::take as take_files;
pub use self::meter::HookMeter;
pub(crate) use self::meter::{EventStatus, HookCounts};
pub use self::render::{OutsideEvent, render};
pub(crate) use self::verify::Rejection;
pub use self::verify::{HookError, HookKey};

routes! {
    /// Send an event to a hook of config.toml
    /// Authentication is the hook's own signature or token; no token of kiso is needed.
    POST "/hooks/{name}" Open => receive,
        200 "The event came before, or the hook ignores events like it",
        202 "The message is on disk and will be answered",
        401 "The signature or the token is not valid, or is too old",
        404 "There is no hook of that name",
        413 "The event or its message is too large",
        415 "The event is neither JSON, a form nor plain text",
        422 "The template names a field that the event does not have",
        429 "Too many events came within a minute, too many messages wait, or too many wrong signatures came from this address; Retry-After says when to try again",
        503 "The daemon is shutting down, or lacks the hook's secret",
        507 "There are too many sessions, the storage limit is reached, or the disk is full; nothing was saved";
}

/// The outcome of an event.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct EventReceipt {
    hook: String,
    status: EventStatus,
    /// The session that processes it; null if the event is ignored.
    session: Option<SessionName>,
    /// The message's id, for `GET /messages/{id}`; null if the event is ignored.
    message: Option<i64>,
}

pub(crate) async fn receive(
    Path(name): Path<String>,
    State(app): State<App>,
    EventBody(request): EventBody,
) -> Result<Either<Queued<EventReceipt>, Json<EventReceipt>>, ApiError> {
    let config = app.0.drive.newest_config();
    let Some(hook) = config.hooks.iter().find(|hook| hook.name == name) else {
        let short: String = name.chars().take(80).collect();
        return Err(ApiError::not_found(format!("there is no hook {short:?}"))
            .hint("`kiso connect hook list` lists the hooks of config.toml"));
    };
    let taken = take(&app, hook, request).await;
    let meter = &app.0.hooks;
    match &taken {
        Ok(receipt) => meter.count(&name, receipt.status),
        Err(error) => {
            tracing::info!(hook = %name, code = error.code, "an event was refused");
            meter.count_refused(&name, error.code);
        }
    }
    let receipt = taken?;
    Ok(match receipt.status {
        EventStatus::Queued => Either::A(Queued(receipt)),
        EventStatus::Known | EventStatus::Ignored => Either::B(Json(receipt)),
    })
}

async fn take(app: &App, hook: &HookSettings, request: axum::extract::Request) -> Result<EventReceipt, ApiError> {
    let key = HookKey::open(&app.0.drive.home, hook, |variable| std::env::var(variable).ok()).map_err(|error| {
        tracing::error!("{error}");
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "not_ready", "the daemon lacks the hook's secret")
            .hint("the daemon's log says why")
    })?;
    let (headers, extensions) = (request.headers().clone(), request.extensions().clone());
    let max = usize::try_from(hook.max_body_kib << 10).unwrap_or(usize::MAX);
    let bytes = read_body(request, app, max, "max_body_kib of the hook raises this limit").await?;
    let now = now_ms();
    let seen = key.verify(hook, &headers, &bytes, now / 1_000).map_err(|rejection| match rejection {
        Rejection::BadId => ApiError::bad_request(rejection.to_string()),
        Rejection::Stale { .. } => ApiError::new(StatusCode::UNAUTHORIZED, "stale", rejection.to_string())
            .hint("sign each attempt again, and set the clocks; replay_s of the hook is the greatest difference"),
        Rejection::Wrong => auth::wrong(app, &extensions, WRONG_SIGNATURE),
    })?;
    if !app.0.hooks.admits(&hook.name, hook.per_minute, now) {
        let message = format!("the hook {} takes {} events a minute (per_minute)", hook.name, hook.per_minute);
        return Err(ApiError::new(StatusCode::TOO_MANY_REQUESTS, "too_many_events", message));
    }
    let (body, files) = body_of(&headers, &bytes)?;
    let receipt = |status, session, message| EventReceipt { hook: hook.name.clone(), status, session, message };
    let mut event = OutsideEvent { headers, body };
    if !event.fits(&hook.only) {
        return Ok(receipt(EventStatus::Ignored, None, None));
    }
    let (session, label) = (hook.own_session(), hook_label(hook));
    let mut text = filled(hook, &event).await?;
    if !files.is_empty() {
        let sent: Vec<_> = files.iter().map(|file| file.name().to_owned()).collect();
        let names =
            attachment::put(&app.0.drive.newest(), &session, files, LabelId::from_label(&label), Incoming::begin)
                .await?;
        // The session may already have had a different file with one of these names.
        if names != sent {
            files::rename(&mut event.body, &sent.into_iter().zip(names.iter().cloned()).collect::<Vec<_>>());
            text = filled(hook, &event).await?;
        }
        text = format!("{text}\n\nFiles: {}", names.join(", "));
    }
    let inbound = InboundEvent {
        hook: hook.name.clone(),
        label,
        session: session.clone(),
        text,
        keys: seen.keys(),
        told: hook.session.clone(),
        max_waiting: hook.max_waiting,
    };
    Ok(match app.intake().take_event(inbound).await? {
        IntakeOutcome::Queued { message, again } => {
            let status = if again { EventStatus::Known } else { EventStatus::Queued };
            receipt(status, Some(session), Some(message))
        }
        IntakeOutcome::Answered { .. } => return Err(ApiError::internal(&"an event was answered like a command")),
    })
}

/// Returns the label of everything that comes through a hook.
fn hook_label(hook: &HookSettings) -> Label {
    Label::new(Integrity::World, Confidentiality::Session, &format!("hook:{}", hook.name))
}

/// Returns the message for an event.
async fn filled(hook: &HookSettings, event: &OutsideEvent) -> Result<String, ApiError> {
    let (template, event) = (hook.template.clone(), event.clone());
    // The event may be several MiB.
    let text = compute::run("filling the template of a hook", move || render(&template, &event)).await?;
    text.map_err(|missing| {
        ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "missing_field", missing.to_string())
            .hint(format!("change the template of [hooks.{}], or end the name with ? if it may be missing", hook.name))
    })
}

const WRONG_SIGNATURE: auth::AuthProblem = (
    "the signature or token of the event is not valid",
    "`kiso connect hook secret NAME` prints the secret that the sender needs",
);

/// Parses the body as JSON and extracts its files; plain text becomes a string.
fn body_of(headers: &HeaderMap, bytes: &[u8]) -> Result<(Value, Vec<Attachment>), ApiError> {
    let parsed = || -> Result<_, ApiError> {
        let mut body = json::parse(bytes)?;
        let files = files::take(&mut body)?;
        Ok((body, files))
    };
    let media_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match essence.as_str() {
        "text/plain" => match std::str::from_utf8(bytes) {
            Ok(text) => Ok((Value::from(text), Vec::new())),
            Err(_) => Err(ApiError::bad_request("the event is not UTF-8 text")),
        },
        "" | "application/json" => parsed(),
        json if json.ends_with("+json") => parsed(),
        "multipart/form-data" => files::read_form(media_type, bytes),
        other => {
            let short: String = other.chars().take(60).collect();
            let message = format!("an event is JSON, a form or plain text, and this one is {short:?}");
            Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "wrong_media_type", message)
                .hint("of a webhook at GitHub, set the content type to application/json"))
        }
    }
}

/// Returns the counters of each hook since the daemon's start, by name.
pub(super) fn counts(app: &App) -> Vec<(String, HookCounts)> {
    let config = app.0.drive.newest_config();
    config.hooks.iter().map(|hook| (hook.name.clone(), app.0.hooks.counts(&hook.name))).collect()
}
