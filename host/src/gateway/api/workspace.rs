//! The files of a session's workspace.

use std::time::Duration;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};

use super::files::{Opened, answer};
use super::messages::session;
use super::sessions::no_session;
use super::upload;
use crate::clock::now_ms;
use crate::gateway::App;
use crate::gateway::auth::Who;
use crate::gateway::error::ApiError;
use crate::gateway::wire::{Made, Path, Query, page_size};
use crate::home::HomeError;
use crate::session::workspace::{self, FileError, FilePath, Incoming};
use crate::skill::limits::{Budget, HitCell, Limit};
use crate::skill::media_type;

/// Which part of the listing.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Path of the last file of the page before.
    before: Option<String>,
    limit: Option<u32>,
}

/// `GET /sessions/{session}/files`, by path.
pub async fn list(_: Who, State(app): State<App>, Path(name): Path<String>, Query(part): Query<Part>) -> Made<Value> {
    let session = session(&name)?;
    let limit = page_size(part.limit)? as usize;
    let of = session.clone();
    if !app.0.drive.store.read(move |view| view.has_session(&of)).await? {
        return Err(no_session(&name));
    }
    let home = app.0.drive.home.clone();
    let (mut files, whole) = blocking(move || workspace::list(&home, &session)).await?;
    if let Some(before) = part.before {
        files.drain(..files.partition_point(|file| file.path <= before));
    }
    let more = files.len() > limit;
    files.truncate(limit);
    let items = files.iter().map(|file| {
        let media_type = media_type(&file.path);
        json!({ "path": file.path, "bytes": file.bytes, "modified_ms": file.modified_ms, "media_type": media_type })
    });
    let mut page = json!({ "items": items.collect::<Vec<_>>() });
    if let Some(last) = files.last().filter(|_| more) {
        page["next"] = last.path.clone().into();
    }
    if !whole {
        page["incomplete"] = true.into();
    }
    Ok(Json(page))
}

/// `GET /sessions/{session}/files/{path}`, whole or in part, as `Range` asks.
pub async fn show(
    _: Who,
    State(app): State<App>,
    Path((name, path)): Path<(String, String)>,
    asked: HeaderMap,
) -> Result<Response, ApiError> {
    let (session, path) = (session(&name)?, FilePath::parse(&path)?);
    let home = app.0.drive.home.clone();
    let opened = blocking(move || {
        let (file, meta) = workspace::open(&home, &session, &path)?;
        let media_type = media_type(path.as_str()).to_owned();
        Ok(Opened { file, meta, path: path.as_str().to_owned(), media_type })
    });
    Ok(answer(opened.await?, &asked))
}

/// What becomes of a file that is there.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Putting {
    #[serde(default)]
    replace: bool,
}

/// `PUT /sessions/{session}/files/{path}`: the body becomes the file. A session that is new is made. Also while the
/// session is at work: a person adds what a task may wait for.
pub async fn put(
    who: Who,
    State(app): State<App>,
    Path((name, path)): Path<(String, String)>,
    Query(putting): Query<Putting>,
    request: Request,
) -> Result<(StatusCode, Json<Value>), ApiError> {
    let (session, path) = (session(&name)?, FilePath::parse(&path)?);
    let gateway = &app.0.drive.config_now().gateway;
    let wait = Duration::from_secs(gateway.request_timeout_s);
    let place = tokio::time::timeout(wait, app.0.uploads.clone().acquire_owned()).await;
    let _place = place
        .ok()
        .and_then(Result::ok)
        .ok_or_else(|| ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "busy", "too many files are being uploaded"))?;
    let max = gateway.max_upload_mib;
    let too_large = ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", format!("a file has at most {max} MiB"))
        .hint("gateway.max_upload_mib in config.toml raises this limit");
    let (drive, of) = (app.0.drive.now(), session.clone());
    // Before it comes, for it may be large; made is the session with the file.
    let most = drive.config.limits.max_sessions;
    drive.store.read(move |view| view.may_open(&of, most)).await?;
    let budget = Budget::upload(&drive.config.engine);
    let quota = drive.tools.skills().exec_quota(&session, &budget, HitCell::default());
    let (of, charged) = (session.clone(), quota.clone());
    let incoming = blocking(move || Incoming::begin(&drive.home, &of, charged));
    let write = |incoming: &mut Incoming, piece: &[u8]| incoming.write(piece).map_err(ApiError::from);
    let (incoming, _) = upload::pour(&app, request, incoming.await?, write, (max << 20, too_large)).await?;
    let (at, replace) = (path.clone(), putting.replace);
    let (store, of) = (app.0.drive.store.clone(), session.clone());
    // In a task of its own: a client that hangs up leaves no file in a session that nobody finds. It may be the first that is
    // heard of the session.
    let finishing = tokio::spawn(async move {
        let bytes = blocking(move || incoming.finish(&at, replace)).await?;
        store.write(move |tx| tx.open_session(&of, now_ms())).await?;
        // What the workspace holds is kept with the session, which is there only now.
        drop(quota);
        Ok::<_, ApiError>(bytes)
    });
    let bytes = finishing.await.map_err(|panic| ApiError::internal(&panic))??;
    tracing::info!(%session, path = path.as_str(), bytes, by = who.name(), "a file was uploaded");
    let media_type = media_type(path.as_str());
    Ok((StatusCode::CREATED, Json(json!({ "path": path.as_str(), "bytes": bytes, "media_type": media_type }))))
}

/// `DELETE /sessions/{session}/files/{path}`
pub async fn remove(
    who: Who,
    State(app): State<App>,
    Path((name, path)): Path<(String, String)>,
) -> Result<StatusCode, ApiError> {
    let (session, path) = (session(&name)?, FilePath::parse(&path)?);
    let drive = app.0.drive.now();
    let quota = drive.tools.skills().exec_quota(&session, &Budget::upload(&drive.config.engine), HitCell::default());
    let (of, at) = (session.clone(), path.clone());
    blocking(move || workspace::remove(&drive.home, &of, &at, &quota)).await?;
    tracing::info!(%session, path = path.as_str(), by = who.name(), "a file was deleted");
    Ok(StatusCode::NO_CONTENT)
}

/// Reads and writes files on a thread where that may take its time.
async fn blocking<T: Send + 'static>(
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
