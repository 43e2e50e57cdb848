//! The models of OpenAI's API: kiso itself, sessions, and pills.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use crate::App;
use crate::auth::Who;
use crate::document::routes;
use crate::error::ApiError;
use crate::wire::{JsonResult, Path};
use kiso_agent::tool::pills::{PillError, Pills};
use kiso_base::home::SessionName;
use kiso_store::store::{Placement, View};

routes! {
    /// OpenAI's API: the available models
    /// `kiso`, then pills and sessions as `kiso/NAME`; sessions that other programs created here are left out.
    GET "/v1/models" Chat => list, 200 "All of them, and the last 50 sessions";
    /// OpenAI's API: one model
    GET "/v1/models/{*model}" Chat => show, 200 "The model", 404 "The model does not exist";
}

/// Kiso itself.
pub(crate) const OWN: &str = "kiso";

/// Prefix of the names of sessions that programs create through this API.
pub(crate) const CHATS: &str = "chat-";

/// Maximum number of listed sessions.
const MAX_LISTED: usize = 50;

/// Number of sessions to search for them; most may belong to programs.
const MAX_LOOKED_AT: u32 = 500;

/// The meaning of a model's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Model {
    /// The program's conversation determines the session.
    Own,
    Session(SessionName),
    /// Like `Own`, and the pill expands every message.
    Pill(String),
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "OpenAiModel")]
pub(crate) struct ModelView {
    id: String,
    #[schemars(extend("const" = "model"))]
    object: &'static str,
    /// Seconds since 1970 (UTC).
    created: i64,
    #[schemars(extend("const" = "kiso"))]
    owned_by: &'static str,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "OpenAiModels")]
pub(crate) struct ModelList {
    #[schemars(extend("const" = "list"))]
    object: &'static str,
    data: Vec<ModelView>,
}

pub(crate) async fn list(who: Who, State(app): State<App>) -> JsonResult<ModelList> {
    let began = app.0.began_ms;
    let mut data = vec![view(OWN.to_owned(), began)];
    for (pill, _) in pills(&app).list().await? {
        data.push(view(format!("{OWN}/{}", pill.name), began));
    }
    let placements = [Placement::Pinned, Placement::Listed];
    let read = move |view: &View<'_>| view.list_sessions_of(who.owner.as_ref(), &placements, None, MAX_LOOKED_AT);
    let sessions = app.0.drive.store.read(read).await?;
    let own = sessions.into_iter().filter(|session| !session.name.as_str().starts_with(CHATS));
    data.extend(own.take(MAX_LISTED).map(|session| view(format!("{OWN}/{}", session.name), session.created_ms)));
    Ok(Json(ModelList { object: "list", data }))
}

pub(crate) async fn show(who: Who, State(app): State<App>, Path(model): Path<String>) -> JsonResult<ModelView> {
    let created = match find(&app, &who, &model).await? {
        Model::Own | Model::Pill(_) => app.0.began_ms,
        Model::Session(session) => {
            let line = app.0.drive.store.read(move |view| view.session(&session)).await?;
            line.map_or(0, |line| line.created_ms)
        }
    };
    Ok(Json(view(model, created)))
}

/// Returns the meaning of a model's name. If a pill and a session have the same name, the pill is used.
pub(crate) async fn find(app: &App, who: &Who, name: &str) -> Result<Model, ApiError> {
    let unknown = || {
        let name: String = name.chars().take(80).collect();
        ApiError::new(StatusCode::NOT_FOUND, "model_not_found", format!("there is no model {name:?}"))
            .hint("GET /v1/models lists them: kiso, and pills and sessions as kiso/NAME")
            .param("model")
    };
    if name == OWN {
        return Ok(Model::Own);
    }
    let Some(rest) = name.strip_prefix(OWN).and_then(|rest| rest.strip_prefix('/')) else { return Err(unknown()) };
    match pills(app).one(rest).await {
        Ok((pill, _)) => return Ok(Model::Pill(pill.name)),
        Err(PillError::Unknown { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    let session = SessionName::parse(rest).map_err(|_| unknown())?;
    let (of, who) = (session.clone(), who.clone());
    let read = move |view: &View<'_>| Ok(view.has_session(&of)? && who.may_read(view, &of)?);
    match app.0.drive.store.read(read).await? {
        true => Ok(Model::Session(session)),
        false => Err(unknown()),
    }
}

fn pills(app: &App) -> Pills {
    Pills::new(&app.0.drive.newest_config(), &app.0.drive.store)
}

fn view(id: String, created_ms: i64) -> ModelView {
    ModelView { id, object: "model", created: created_ms / 1_000, owned_by: OWN }
}
