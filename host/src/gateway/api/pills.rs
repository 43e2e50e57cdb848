//! Pills. A caller without administrator's rights sees all of them and changes those that were made without them.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};

use crate::clock::now_ms;
use crate::gateway::App;
use crate::gateway::auth::Who;
use crate::gateway::error::ApiError;
use crate::gateway::wire::{Body, Made, Page, Path};
use crate::graph::pill::Pill;
use crate::graph::route::Effort;
use crate::tool::pills::{Origin, PillError, Pills};

/// `PUT /pills/{name}`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PillIn {
    /// What the message becomes; `{input}` stands for what is written behind the name.
    template: String,
    /// Categories of the tools that it may use; none for all.
    #[serde(default)]
    categories: Vec<String>,
    #[serde(default = "high")]
    effort: Effort,
    #[serde(default)]
    description: String,
    /// Whether one of that name is replaced; else it is `taken`.
    #[serde(default)]
    replace: bool,
}

fn high() -> Effort {
    Effort::High
}

/// A pill, and whose it is.
#[derive(Debug, Serialize)]
pub struct Shown {
    #[serde(flatten)]
    pill: Pill,
    /// "config", "user" or "admin".
    origin: &'static str,
}

/// `GET /pills`: all, because there are few.
pub async fn list(_: Who, State(app): State<App>) -> Made<Page<Shown>> {
    let all = of(&app).list().await?;
    Ok(Json(Page { items: all.into_iter().map(shown).collect(), next: None }))
}

/// `PUT /pills/{name}`
pub async fn put(
    who: Who,
    State(app): State<App>,
    Path(name): Path<String>,
    Body(given): Body<PillIn>,
) -> Result<Response, ApiError> {
    let PillIn { template, categories, effort, description, replace } = given;
    let pill = Pill { name, template, categories, effort, description };
    let new = of(&app).put(vec![pill.clone()], replace, who.caller(), now_ms()).await?;
    let status = if new == [true] { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(shown((pill, Origin::Made(who.caller()))))).into_response())
}

/// `DELETE /pills/{name}`
pub async fn remove(who: Who, State(app): State<App>, Path(name): Path<String>) -> Result<StatusCode, ApiError> {
    of(&app).remove(&name, who.caller()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The pills of the configuration in force, and those that were made.
pub(super) fn of(app: &App) -> Pills {
    Pills::new(&app.0.drive.config_now(), &app.0.drive.store)
}

fn shown((pill, origin): (Pill, Origin)) -> Shown {
    Shown { pill, origin: origin.name() }
}

impl From<PillError> for ApiError {
    fn from(error: PillError) -> ApiError {
        let message = error.to_string();
        match error {
            PillError::Invalid(_) => ApiError::bad_request(message),
            PillError::Unknown { .. } => ApiError::not_found(message),
            PillError::Taken(_) | PillError::Configured(_) => ApiError::new(StatusCode::CONFLICT, "taken", message),
            PillError::Forbidden(_) => ApiError::new(StatusCode::FORBIDDEN, "forbidden", message),
            PillError::TooMany => ApiError::new(StatusCode::INSUFFICIENT_STORAGE, "quota", message),
            PillError::Store(error) => error.into(),
        }
    }
}
