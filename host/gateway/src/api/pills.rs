//! Pills. A caller without administrator rights sees all pills and changes only those that were created without these rights.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::App;
use crate::auth::Who;
use crate::document::routes;
use crate::error::ApiError;
use crate::wire::{Body, Created, Either, JsonResult, NoContent, Page, Path, Segments};
use kiso_agent::tool::pills::{PillError, PillOrigin, Pills};
use kiso_base::clock::now_ms;
use kiso_plan::effort::Effort;
use kiso_plan::pill::Pill;

routes! {
    /// The pills: those of `config.toml`, then those that people created, by name
    GET "/pills" Chat => list, 200 "All of them";
    /// Create a pill, or change one with `replace`
    /// A caller without administrator rights can change only pills that were created without these rights.
    PUT "/pills/{name}" Chat => put,
        200 "The pill is changed",
        201 "The pill is created",
        403 "The pill is an administrator's",
        409 "A pill of that name exists, or config.toml defines it",
        507 "The limit of pills is reached, or the disk is full; nothing was saved";
    /// Remove a created pill
    DELETE "/pills/{name}" Chat => remove,
        403 "The pill is an administrator's", 404 "The pill does not exist", 409 "config.toml defines the pill";
}

/// A pill to create.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PillIn {
    /// Template of the message; `{input}` is replaced with the text after the name.
    #[schemars(length(max = 8_000), regex(pattern = r"\S"))]
    template: String,
    /// Categories of allowed tools; all tools if empty.
    #[serde(default)]
    #[schemars(length(max = 16), inner(regex(pattern = NAME)))]
    categories: Vec<String>,
    #[serde(default = "high")]
    effort: Effort,
    /// One line for the list of pills.
    #[serde(default)]
    #[schemars(length(max = 200), regex(pattern = r"^[^\u0000-\u001f\u007f-\u009f]*$"))]
    description: String,
    /// Replace an existing pill of this name.
    #[serde(default)]
    replace: bool,
}

/// The same pattern as for names in `config.toml`.
const NAME: &str = "^[A-Za-z0-9_-]{1,32}$";

/// Name of a pill.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct PillName(#[schemars(regex(pattern = NAME))] String);

impl Segments for PillName {}

fn high() -> Effort {
    Effort::High
}

/// A pill with its origin.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Pill")]
pub(super) struct PillView {
    #[serde(flatten)]
    pill: Pill,
    /// "config" for a pill of `config.toml`, otherwise the rights with which it was created.
    #[schemars(extend("enum" = ["config", "user", "admin"]))]
    origin: &'static str,
}

/// Returns all pills on one page, because there are few.
pub(super) async fn list(_: Who, State(app): State<App>) -> JsonResult<Page<PillView>> {
    let all = get_pills(&app).list().await?;
    Ok(Json(Page { items: all.into_iter().map(shown).collect(), next: None }))
}

pub(super) async fn put(
    who: Who,
    State(app): State<App>,
    Path(PillName(name)): Path<PillName>,
    Body(given): Body<PillIn>,
) -> Result<Either<Created<PillView>, Json<PillView>>, ApiError> {
    let PillIn { template, categories, effort, description, replace } = given;
    let pill = Pill { name, template, categories, effort, description };
    let new = get_pills(&app).put(vec![pill.clone()], replace, who.caller(), now_ms()).await?;
    let shown = shown((pill, PillOrigin::Made(who.caller())));
    Ok(if new == [true] { Either::A(Created(shown)) } else { Either::B(Json(shown)) })
}

pub(super) async fn remove(who: Who, State(app): State<App>, Path(name): Path<String>) -> Result<NoContent, ApiError> {
    get_pills(&app).remove(&name, who.caller()).await?;
    Ok(NoContent)
}

/// Returns the pills of the current configuration and the created ones.
pub(super) fn get_pills(app: &App) -> Pills {
    Pills::new(&app.0.drive.newest_config(), &app.0.drive.store)
}

fn shown((pill, origin): (Pill, PillOrigin)) -> PillView {
    PillView { pill, origin: origin.name() }
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
