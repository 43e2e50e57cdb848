//! The folders that an administrator lists in `[folders]` of `config.toml`: opened in a session by name, and closed. No request names a path of
//! the machine.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::App;
use crate::auth::Who;
use crate::document::routes;
use crate::error::ApiError;
use crate::wire::{Body, JsonResult, NoContent, Path, Query};
use kiso_base::clock::now_ms;
use kiso_base::home::{FolderRefusal, HomeError, SessionName};
use kiso_plan::plan::CallerScope;

routes! {
    /// The folders of config.toml that the caller may open
    GET "/folders" Chat => list;
    /// Open one of them in a session; a session that is new is made
    POST "/sessions/{session}/folders" Chat => open,
        404 "No such folder is listed for the caller, or it is not on this machine",
        409 "A run works in the session, or another folder is in the way";
    /// Close a folder that has no changes
    POST "/sessions/{session}/folders/close" Chat => close,
        404 "The session has no such folder",
        409 "A run works in the session, or changes wait";
}

/// For which session it is asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListedFoldersQuery {
    /// Says of each folder where this session has it open.
    session: Option<SessionName>,
}

/// The folders that the caller may open.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ListedFolders {
    items: Vec<ListedFolder>,
}

/// A folder of `config.toml`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ListedFolder {
    name: String,
    /// On the machine; administrators see it.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    /// Whether tasks can change the session's copy of it.
    write: bool,
    /// Whether it is on the machine now.
    available: bool,
    /// Where tasks of the session see it, such as "/project". Absent if it is not open there.
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<String>,
}

/// A folder of `config.toml`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FolderName {
    name: String,
}

/// A folder that was opened.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct OpenedFolder {
    name: String,
    /// Where tasks see it, such as "/project".
    at: String,
    /// Whether tasks can change the session's copy of it.
    write: bool,
}

/// A folder of a session.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FolderPlace {
    /// Where tasks see it.
    at: String,
}

pub(super) async fn list(
    who: Who,
    State(app): State<App>,
    Query(asked): Query<ListedFoldersQuery>,
) -> JsonResult<ListedFolders> {
    let (config, home, caller) = (app.0.drive.newest_config(), app.0.drive.home.clone(), who.caller());
    let look = move || {
        let open = match &asked.session {
            Some(session) => config.visible_folders(&home, session, caller)?,
            None => Vec::new(),
        };
        let entries = config.folders.iter().filter(|entry| entry.is_open_to(caller));
        let items = entries.map(|entry| ListedFolder {
            name: entry.name.clone(),
            path: (caller == CallerScope::Admin).then(|| entry.path.to_string_lossy().into_owned()),
            write: entry.write,
            available: entry.path.is_dir(),
            at: open.iter().find(|folder| entry.leads_to(&folder.path)).map(|folder| folder.at.clone()),
        });
        Ok::<_, HomeError>(items.collect())
    };
    let items = tokio::task::spawn_blocking(look).await.map_err(|panic| ApiError::internal(&panic))?;
    Ok(Json(ListedFolders { items: items.map_err(|error| ApiError::internal(&error))? }))
}

pub(super) async fn open(
    who: Who,
    State(app): State<App>,
    Path(session): Path<SessionName>,
    Body(request): Body<FolderName>,
) -> JsonResult<OpenedFolder> {
    let drive = app.0.drive.newest();
    let (of, most) = (session.clone(), drive.config.limits.max_sessions);
    drive.store.read(move |view| view.may_open(&of, most)).await?;
    let (of, name, caller) = (session.clone(), request.name.clone(), who.caller());
    let opened = drive.open_listed_folder(&of, caller, &name).await?;
    drive.store.write(move |tx| tx.open_session(&of, now_ms())).await?;
    tracing::info!(%session, by = who.name(), name = request.name, at = opened.at, "a folder was opened");
    Ok(Json(OpenedFolder { name: request.name, at: opened.at, write: opened.write }))
}

pub(super) async fn close(
    who: Who,
    State(app): State<App>,
    Path(session): Path<SessionName>,
    Body(request): Body<FolderPlace>,
) -> Result<NoContent, ApiError> {
    let drive = app.0.drive.newest();
    let folders = drive.folders_for(&session, Some(&request.at), who.caller()).await?;
    let view = folders.iter().next().ok_or_else(|| ApiError::not_found("the session has no folder at this path"))?;
    drive.close_folder(&session, view)?;
    tracing::info!(%session, by = who.name(), at = request.at, "a folder was closed");
    Ok(NoContent)
}

impl From<FolderRefusal> for ApiError {
    fn from(refusal: FolderRefusal) -> ApiError {
        let message = refusal.to_string();
        match refusal {
            FolderRefusal::Unlisted(_) => {
                ApiError::not_found(message).hint("GET /folders lists what there is; an administrator adds to it")
            }
            // The path of the machine is for administrators, who read it in the log.
            FolderRefusal::Missing(path) => {
                tracing::warn!("a folder of config.toml cannot be opened: {} is not a directory", path.display());
                ApiError::not_found("the folder is not on this machine now")
            }
            FolderRefusal::Protected { .. } | FolderRefusal::Sensitive { .. } => {
                tracing::warn!("a folder of config.toml cannot be opened: {message}");
                ApiError::new(StatusCode::CONFLICT, "taken", "the folder may not be opened; the daemon's log says why")
            }
            FolderRefusal::Path { .. } | FolderRefusal::TooMany => {
                ApiError::new(StatusCode::CONFLICT, "taken", message)
            }
            FolderRefusal::Home(HomeError::Busy { .. }) => {
                ApiError::new(StatusCode::CONFLICT, "busy", "a run works in the session; try again when it has ended")
            }
            FolderRefusal::Home(error) => ApiError::internal(&error),
        }
    }
}
