//! Folders that an administrator lists in `[folders]` of `config.toml`: opened in a session by name, and closed. Requests never
//! contain a path of the machine.

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
use kiso_agent::drive::FolderFailure;
use kiso_agent::tool::deliver::{DeliveredFile, DeliveryError, DeliveryRequest};
use kiso_base::clock::now_ms;
use kiso_base::home::{FolderRefusal, HomeError, SessionName};
use kiso_plan::plan::CallerScope;

routes! {
    /// The folders of `config.toml` that the caller may open
    GET "/folders" Chat => list;
    /// Open a folder of `config.toml` in a session; creates the session if needed
    POST "/sessions/{session}/folders" Chat => open,
        404 "No such folder is listed for the caller, or it is not on this machine",
        409 "A run works in the session, or another folder is in the way";
    /// Close a folder that has no changes
    POST "/sessions/{session}/folders/close" Chat => close,
        404 "The session has no such folder",
        409 "A run works in the session, or changes wait";
    /// Copy a file of the workspace into a folder of `config.toml`, or with `shared` to the shared files, at once. An existing file is not replaced: the copy gets another name
    POST "/sessions/{session}/deliver" Chat => deliver,
        403 "The folder is for reading only",
        404 "No such folder is listed for the caller, or it is not on this machine",
        409 "A run works in the session, or the folder cannot be changed",
        507 "The file does not fit on the disk or among the shared files";
}

/// Selects the session.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListedFoldersQuery {
    /// Also list where this session has each folder open.
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
    /// Path on the machine; only for administrators.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    /// Whether tasks can change the session's copy of it.
    write: bool,
    /// Whether the folder exists on the machine now.
    available: bool,
    /// Path for tasks of the session, such as "/project". Absent if the folder is not open there.
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<String>,
}

/// A folder of `config.toml`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FolderName {
    name: String,
}

/// An opened folder.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct OpenedFolder {
    name: String,
    /// Path for tasks, such as "/project".
    at: String,
    /// Whether tasks can change the session's copy of it.
    write: bool,
}

/// A folder of a session.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FolderPlace {
    /// Path for tasks.
    at: String,
}

/// A file of the workspace, and its destination.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DeliverRequest {
    /// Path in the workspace.
    file: String,
    /// Name of the folder; `shared` for the files that all sessions share.
    folder: String,
    /// Name of the copy; by default, the name of the file.
    #[serde(default)]
    name: Option<String>,
}

/// A file that was copied into a folder.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SavedFile {
    folder: String,
    /// Name of the copy.
    name: String,
    bytes: u64,
}

pub(super) async fn list(
    who: Who,
    State(app): State<App>,
    Query(asked): Query<ListedFoldersQuery>,
) -> JsonResult<ListedFolders> {
    // A session that the caller may not read looks like a session that does not exist: nothing is open in it.
    let session = match asked.session {
        Some(session) => who.check_session(&app, &session).await.is_ok().then_some(session),
        None => None,
    };
    let (config, home, caller) = (app.0.drive.newest_config(), app.0.drive.home.clone(), who.caller());
    let look = move || {
        let open = match &session {
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

pub(super) async fn deliver(
    who: Who,
    State(app): State<App>,
    Path(session): Path<SessionName>,
    Body(request): Body<DeliverRequest>,
) -> JsonResult<SavedFile> {
    let DeliverRequest { file, folder, name } = request;
    let wanted = DeliveryRequest { caller: who.caller(), file, folder: folder.clone(), name };
    let DeliveredFile { name, bytes } = app.0.drive.newest().deliver(&session, wanted).await?;
    tracing::info!(%session, by = who.name(), folder, bytes, "a file was saved in a folder");
    Ok(Json(SavedFile { folder, name, bytes }))
}

impl From<DeliveryError> for ApiError {
    fn from(error: DeliveryError) -> ApiError {
        match error {
            DeliveryError::File { .. } | DeliveryError::Name(_) => ApiError::bad_request(error.to_string()),
            DeliveryError::Folder(refusal) => refusal.into(),
            DeliveryError::Accept(error) => FolderFailure::Accept(error).into(),
            DeliveryError::Share(error) => error.into(),
        }
    }
}

impl From<FolderRefusal> for ApiError {
    fn from(refusal: FolderRefusal) -> ApiError {
        let message = refusal.to_string();
        match refusal {
            FolderRefusal::Unlisted(_) => {
                ApiError::not_found(message).hint("GET /folders lists what there is; an administrator adds to it")
            }
            // Only administrators may see the path on the machine; they find it in the log.
            FolderRefusal::Missing(path) => {
                tracing::warn!("a folder of config.toml cannot be opened: {} is not a directory", path.display());
                ApiError::not_found("the folder is not on this machine now")
            }
            FolderRefusal::Protected { .. } | FolderRefusal::Sensitive { .. } => {
                tracing::warn!("a folder of config.toml cannot be opened: {message}");
                ApiError::new(StatusCode::CONFLICT, "taken", "the folder may not be opened; the daemon's log says why")
            }
            FolderRefusal::ReadOnly(_) => ApiError::new(StatusCode::FORBIDDEN, "forbidden", message),
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
