//! Files of a session's workspace.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::files::{Download, answer};
use super::sessions::no_session;
use super::upload;
use crate::App;
use crate::auth::Who;
use crate::document::routes;
use crate::error::ApiError;
use crate::wire::{Created, FileBody, JsonResult, NoContent, Path, Query, Segments, SentFile, page_size};
use kiso_agent::session::workspace::{self, FileError, FilePath, Incoming};
use kiso_base::clock::now_ms;
use kiso_base::home::{HomeError, SessionName};
use kiso_sandbox::engine::limits::{Budget, HitCell, Limit};
use kiso_sandbox::skill::media_type;

routes! {
    /// The files of the session's workspace, by path; without hidden ones
    GET "/sessions/{session}/files" Chat => list, 404 "The session does not exist";
    /// A file of the workspace, whole or one part of it (Range)
    GET "/sessions/{session}/files/{*path}" Chat => show, 200 "The file", 404 "The file does not exist";
    /// Write a file of the workspace; creates the session if needed
    PUT "/sessions/{session}/files/{*path}" Chat => put,
        408 "The file did not arrive in time",
        409 "The path exists and `replace` is not true, or it is a directory",
        413 "The file is larger than gateway.max_upload_mib",
        503 "Too many files are being uploaded, or the daemon is shutting down",
        507 "The file does not fit into the workspace or the storage limit, there are too many sessions, or the disk is full; nothing was saved";
    /// Delete a file of the workspace
    DELETE "/sessions/{session}/files/{*path}" Chat => remove, 404 "The file does not exist", 409 "The path is a directory";
}

/// Page of the listing.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FilesPart {
    /// The `next` of the previous page.
    before: Option<String>,
    /// Number of entries per page; 50 by default.
    #[schemars(range(min = 1, max = 500))]
    limit: Option<u32>,
}

/// A page of the files of a workspace.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct FilesPage {
    items: Vec<WorkspaceFile>,
    /// The `before` of the next page; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    /// True if the workspace has more than 20,000 entries; otherwise absent.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    incomplete: bool,
}

/// A file of a workspace.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct WorkspaceFile {
    path: String,
    bytes: u64,
    /// Milliseconds since 1970 (UTC).
    modified_ms: i64,
    media_type: String,
}

/// An uploaded file.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct UploadedFile {
    path: String,
    bytes: u64,
    media_type: String,
}

impl Segments for FilePath {}

pub(super) async fn list(
    _: Who,
    State(app): State<App>,
    Path(session): Path<SessionName>,
    Query(part): Query<FilesPart>,
) -> JsonResult<FilesPage> {
    let limit = page_size(part.limit)? as usize;
    let of = session.clone();
    if !app.0.drive.store.read(move |view| view.has_session(&of)).await? {
        return Err(no_session(&session));
    }
    let home = app.0.drive.home.clone();
    let (mut files, whole) = blocking(move || workspace::list(&home, &session)).await?;
    if let Some(before) = part.before {
        files.drain(..files.partition_point(|file| file.path <= before));
    }
    let more = files.len() > limit;
    files.truncate(limit);
    let next = files.last().filter(|_| more).map(|last| last.path.clone());
    let items = files.into_iter().map(|file| {
        let media_type = media_type(&file.path).to_owned();
        WorkspaceFile { path: file.path, bytes: file.bytes, modified_ms: file.modified_ms, media_type }
    });
    Ok(Json(FilesPage { items: items.collect(), next, incomplete: !whole }))
}

pub(super) async fn show(
    _: Who,
    State(app): State<App>,
    Path((session, path)): Path<(SessionName, FilePath)>,
    asked: HeaderMap,
) -> Result<SentFile, ApiError> {
    let home = app.0.drive.home.clone();
    let opened = blocking(move || {
        let (file, meta) = workspace::open(&home, &session, &path)?;
        let media_type = media_type(path.as_str()).to_owned();
        Ok(Download { file, meta, path: path.as_str().to_owned(), media_type })
    });
    Ok(answer(opened.await?, &asked))
}

/// Options of an upload.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PutQuery {
    /// Replace an existing file.
    #[serde(default)]
    replace: bool,
}

/// Writes the body to the file, even while a run works in the session: a task may be waiting for the file.
pub(super) async fn put(
    who: Who,
    State(app): State<App>,
    Path((session, path)): Path<(SessionName, FilePath)>,
    Query(putting): Query<PutQuery>,
    FileBody(request): FileBody,
) -> Result<Created<UploadedFile>, ApiError> {
    let _place = upload::place(&app).await?;
    let (drive, of) = (app.0.drive.newest(), session.clone());
    // Checked before the body is received, because it may be large. The session is created together with the file.
    let most = drive.config.limits.max_sessions;
    drive.store.read(move |view| view.may_open(&of, most)).await?;
    let budget = Budget::upload(&drive.config.engine);
    let quota = drive.tools.skills().exec_quota(&session, &budget, HitCell::default(), None);
    let (of, charged) = (session.clone(), quota.clone());
    let incoming = blocking(move || Incoming::begin(&drive.home, &of, charged));
    let write = |incoming: &mut Incoming, piece: &[u8]| incoming.write(piece).map_err(ApiError::from);
    let (incoming, _) = upload::pour(&app, request, incoming.await?, write, upload::limit(&app)).await?;
    let (at, replace) = (path.clone(), putting.replace);
    let (drive, of) = (app.0.drive.newest(), session.clone());
    // Runs in a separate task: if the client disconnects, the file must not end up in a session that nobody can find. The session
    // may be new.
    let finishing = tokio::spawn(async move {
        let bytes = blocking(move || incoming.finish(&at, replace, workspace::attached_label(&at))).await?;
        let opened = of.clone();
        drive.store.write(move |tx| tx.open_session(&opened, now_ms())).await?;
        // The quota of the workspace is stored in the session, which exists only now.
        drop(quota);
        drive.keep_files(&of).await?;
        Ok::<_, ApiError>(bytes)
    });
    let bytes = finishing.await.map_err(|panic| ApiError::internal(&panic))??;
    tracing::info!(%session, path = path.as_str(), bytes, by = who.name(), "a file was uploaded");
    let media_type = media_type(path.as_str()).to_owned();
    Ok(Created(UploadedFile { path: path.into(), bytes, media_type }))
}

pub(super) async fn remove(
    who: Who,
    State(app): State<App>,
    Path((session, path)): Path<(SessionName, FilePath)>,
) -> Result<NoContent, ApiError> {
    let drive = app.0.drive.newest();
    let quota =
        drive.tools.skills().exec_quota(&session, &Budget::upload(&drive.config.engine), HitCell::default(), None);
    let (of, at) = (session.clone(), path.clone());
    let home = drive.home.clone();
    blocking(move || workspace::remove(&home, &of, &at, &quota)).await?;
    drive.keep_files(&session).await?;
    tracing::info!(%session, path = path.as_str(), by = who.name(), "a file was deleted");
    Ok(NoContent)
}

/// Runs file operations on a thread that may block.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, FileError> + Send + 'static,
) -> Result<T, ApiError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => Ok(done?),
        Err(panic) => Err(ApiError::internal(&panic)),
    }
}

impl From<FileError> for ApiError {
    fn from(error: FileError) -> ApiError {
        let message = error.to_string();
        let taken = |message| ApiError::new(StatusCode::CONFLICT, "taken", message);
        match error {
            FileError::BadPath { .. } => ApiError::bad_request(message),
            FileError::Missing { .. } => ApiError::not_found(message),
            FileError::Taken { .. } => taken(message).hint("`?replace=true` replaces it"),
            FileError::Directory { .. } | FileError::NoDirectory { .. } => taken(message),
            FileError::Home(HomeError::SameName { .. }) => taken(message),
            FileError::Full(hit) if hit.limit == Limit::Home => ApiError::home_full(&hit),
            FileError::Full(_) => ApiError::new(StatusCode::INSUFFICIENT_STORAGE, "quota", message)
                .hint("delete files that you no longer need"),
            FileError::Io(error) => upload::failed(error),
            FileError::Home(error) => ApiError::internal(&error),
        }
    }
}
