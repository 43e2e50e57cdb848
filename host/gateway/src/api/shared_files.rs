//! The files that all sessions share, which tasks see at `/shared`: listing, reading, writing and deleting them.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, Write};
use std::path::Path as FilePlace;

use super::files::{Download, answer};
use super::upload;
use crate::App;
use crate::auth::Who;
use crate::document::routes;
use crate::error::ApiError;
use crate::wire::{Created, FileBody, JsonResult, Path, Query, SentFile, page_size};
use kiso_agent::drive::{FolderFailure, SharedEditDone, SharedFailure, UndoFailure};
use kiso_agent::session::workspace::FilePath;
use kiso_base::clock::now_ms;
use kiso_base::home::{Home, SessionName, temp_name};
use kiso_plan::label::Integrity;
use kiso_sandbox::effect::overlay::{ShareError, SharedEdit, SharedEntry, SharedFiles};
use kiso_sandbox::skill::media_type;

routes! {
    /// The files and directories in a directory of the shared files, by name; without hidden entries and links
    GET "/files" Chat => list, 404 "The directory does not exist";
    /// A shared file, whole or one part of it (Range)
    GET "/files/{*path}" Chat => show, 200 "The file", 404 "The file does not exist";
    /// Write a shared file; creates missing directories
    PUT "/files/{*path}" Chat => put,
        408 "The file did not arrive in time",
        409 "The file exists and `replace` is not true, something else is in its place, or a run works in the session",
        413 "The file is larger than gateway.max_upload_mib",
        503 "Too many files are being uploaded, or the daemon is shutting down",
        507 "The shared files would be larger than engine.shared_mib, a limit of the home is reached, or the disk is full; nothing was saved";
    /// Delete a shared file, or a directory with everything in it
    DELETE "/files/{*path}" Chat => remove, 404 "The file does not exist", 409 "A run works in the session";
}

/// Maximum number of directory entries that are read.
const MAX_ENTRIES: usize = 20_000;

/// Selects a directory and a page of its entries.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SharedPart {
    /// The directory below `/shared`; `/shared` itself by default.
    path: Option<FilePath>,
    /// The `next` of the previous page.
    before: Option<String>,
    /// Number of entries per page; 50 by default.
    #[schemars(range(min = 1, max = 500))]
    limit: Option<u32>,
}

/// A page of directory entries.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SharedPage {
    items: Vec<SharedFile>,
    /// The `before` of the next page; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    /// True if the directory has more than 20,000 entries; otherwise absent.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    incomplete: bool,
}

/// A file or directory that all sessions share.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SharedFile {
    /// Path below `/shared`.
    path: String,
    is_directory: bool,
    /// 0 for a directory.
    bytes: u64,
    /// Milliseconds since 1970 (UTC).
    modified_ms: i64,
    /// Whether its content or its name comes from somebody other than the user: another person, a web page, a tool.
    from_outside: bool,
}

/// Selects the session that can undo the change.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RemoveQuery {
    /// The session that can undo the change; by default `default`, or one of the caller's sessions if the caller may not read
    /// `default`.
    #[serde(default)]
    session: SessionName,
}

/// Selects the session that can undo the change, and whether to replace a file.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SharePutQuery {
    /// The session that can undo the change; by default `default`, or one of the caller's sessions if the caller may not read
    /// `default`.
    #[serde(default)]
    session: SessionName,
    /// Replace an existing file.
    #[serde(default)]
    replace: bool,
}

/// A change to the shared files.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SharedChange {
    path: String,
    /// The session that can undo the change.
    session: SessionName,
    /// Name of the change in the session, for `POST /sessions/{session}/undo`.
    run: String,
    /// One sentence for each file that somebody else has changed in the meantime.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

impl From<SharedEntry> for SharedFile {
    fn from(entry: SharedEntry) -> SharedFile {
        SharedFile {
            path: entry.path.to_string_lossy().into_owned(),
            is_directory: entry.is_dir,
            bytes: entry.bytes,
            modified_ms: entry.modified_ms,
            from_outside: entry.label.integrity > Integrity::Attached,
        }
    }
}

pub(super) async fn list(_: Who, State(app): State<App>, Query(part): Query<SharedPart>) -> JsonResult<SharedPage> {
    let limit = page_size(part.limit)? as usize;
    let (home, dir) = (app.0.drive.home.clone(), part.path.map(String::from).unwrap_or_default());
    let missing = ApiError::not_found(format!("there is no directory {dir:?} among the shared files"));
    let read = move || {
        let (files, dir) = (SharedFiles::open(&home)?, FilePlace::new(&dir));
        let is_there = dir.as_os_str().is_empty() || files.find(dir)?.is_some_and(|found| found.is_dir);
        if is_there { files.list(dir, false, MAX_ENTRIES).map(Some) } else { Ok(None) }
    };
    let (entries, incomplete) = blocking(read).await?.ok_or(missing)?;
    // Requests cannot name paths with other characters.
    let is_named =
        |entry: &SharedEntry| !entry.is_link && entry.path.to_str().is_some_and(|path| FilePath::parse(path).is_ok());
    let mut items: Vec<SharedFile> = entries.into_iter().filter(is_named).map(SharedFile::from).collect();
    items.sort_unstable_by(|one, other| one.path.cmp(&other.path));
    if let Some(before) = part.before {
        items.drain(..items.partition_point(|file| file.path <= before));
    }
    let more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| more).map(|last| last.path.clone());
    Ok(Json(SharedPage { items, next, incomplete }))
}

pub(super) async fn show(
    _: Who,
    State(app): State<App>,
    Path(path): Path<FilePath>,
    asked: HeaderMap,
) -> Result<SentFile, ApiError> {
    let (home, at) = (app.0.drive.home.clone(), path.clone());
    let read = move || {
        let files = SharedFiles::open(&home)?;
        let place = FilePlace::new(at.as_str());
        match files.find(place)? {
            Some(found) if !found.is_dir && !found.is_link => files.open_file(place).map(Some),
            _ => Ok(None),
        }
    };
    let file = match blocking(read).await? {
        Some(file) => file,
        None => return Err(ApiError::not_found(format!("there is no shared file {:?}", path.as_str()))),
    };
    let meta = file.metadata().map_err(|error| ApiError::internal(&error))?;
    let media_type = media_type(path.as_str()).to_owned();
    Ok(answer(Download { file, meta, path: path.into(), media_type }, &asked))
}

/// Writes the body to an unnamed file in the home first: it may be large, and nobody may see half of it.
pub(super) async fn put(
    who: Who,
    State(app): State<App>,
    Path(path): Path<FilePath>,
    Query(putting): Query<SharePutQuery>,
    FileBody(request): FileBody,
) -> Result<Created<SharedChange>, ApiError> {
    let _place = upload::place(&app).await?;
    let session = keeper(&app, &who, putting.session).await?;
    may_change(&app, &session).await?;
    let home = app.0.drive.home.clone();
    let file = blocking(move || nameless(&home)).await?;
    let write = |file: &mut File, piece: &[u8]| file.write_all(piece).map_err(upload::failed);
    let (mut file, bytes) = upload::pour(&app, request, file, write, upload::limit(&app)).await?;
    file.rewind().map_err(upload::failed)?;
    let edit = SharedEdit::Put { file, path: path.as_str().into(), replaces: putting.replace };
    let change = change(&app, &who, session, path, edit).await?;
    tracing::info!(path = change.path, bytes, by = who.name(), "a shared file was uploaded");
    Ok(Created(change))
}

pub(super) async fn remove(
    who: Who,
    State(app): State<App>,
    Path(path): Path<FilePath>,
    Query(removing): Query<RemoveQuery>,
) -> JsonResult<SharedChange> {
    let session = keeper(&app, &who, removing.session).await?;
    may_change(&app, &session).await?;
    let edit = SharedEdit::Remove { path: path.as_str().into() };
    let change = change(&app, &who, session, path, edit).await?;
    tracing::info!(path = change.path, by = who.name(), "a shared file was deleted");
    Ok(Json(change))
}

/// Returns the session that keeps the change. A caller that may not read `default` gets another one.
async fn keeper(app: &App, who: &Who, wanted: SessionName) -> Result<SessionName, ApiError> {
    let Some(owner) = who.owner.as_ref().filter(|_| wanted == SessionName::default()) else {
        who.claim_session(app, &wanted).await?;
        return Ok(wanted);
    };
    if who.check_session(app, &wanted).await.is_ok() {
        return Ok(wanted);
    }
    let digest = ring::digest::digest(&ring::digest::SHA256, owner.as_str().as_bytes());
    let name = format!("shared-files-{}", data_encoding::HEXLOWER.encode(&digest.as_ref()[..8]));
    let own = SessionName::parse(&name).map_err(|error| ApiError::internal(&error))?;
    who.claim_session(app, &own).await?;
    Ok(own)
}

/// Checks that the session exists or may be created, and that the disk has space.
async fn may_change(app: &App, session: &SessionName) -> Result<(), ApiError> {
    let (drive, of) = (app.0.drive.newest(), session.clone());
    let most = drive.config.limits.max_sessions;
    drive.store.read(move |view| view.may_open(&of, most)).await?;
    Ok(drive.has_room().await?)
}

async fn change(
    app: &App,
    who: &Who,
    session: SessionName,
    path: FilePath,
    edit: SharedEdit,
) -> Result<SharedChange, ApiError> {
    let (drive, of, caller) = (app.0.drive.newest(), session.clone(), who.caller());
    // Runs in a separate task: if the client disconnects, the change must not end up in a session that nobody can find.
    let changing = tokio::spawn(async move {
        let done = drive.edit_shared(&of, caller, edit).await?;
        drive.store.write(move |tx| tx.open_session(&of, now_ms())).await?;
        Ok::<_, ApiError>(done)
    });
    let SharedEditDone { run, notes } = changing.await.map_err(|panic| ApiError::internal(&panic))??;
    Ok(SharedChange { path: path.into(), session, run, notes })
}

/// Creates an unnamed file in the home; it is deleted when it is closed.
fn nameless(home: &Home) -> io::Result<File> {
    let path = home.cache_dir().join(temp_name());
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(path)?;
    Ok(file)
}

/// Runs file operations on a thread that may block.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> Result<T, ApiError> {
    let done = tokio::task::spawn_blocking(work).await.map_err(|panic| ApiError::internal(&panic))?;
    done.map_err(upload::failed)
}

impl From<ShareError> for ApiError {
    fn from(error: ShareError) -> ApiError {
        let message = error.to_string();
        match error {
            ShareError::Path { .. } => ApiError::bad_request(message),
            ShareError::Taken { .. } => {
                ApiError::new(StatusCode::CONFLICT, "taken", message).hint("`?replace=true` replaces a file")
            }
            ShareError::Missing { .. } => ApiError::not_found(message),
            ShareError::Full { .. } => ApiError::new(StatusCode::INSUFFICIENT_STORAGE, "quota", message)
                .hint("delete shared files that you no longer need"),
            ShareError::Accept(error) => FolderFailure::Accept(error).into(),
        }
    }
}

impl From<SharedFailure> for ApiError {
    fn from(failure: SharedFailure) -> ApiError {
        match failure {
            SharedFailure::Share(error) => error.into(),
            SharedFailure::Undo(UndoFailure::AtWork { session }) => {
                let message = format!("a run works in the session {session}, which keeps this change to undo it");
                ApiError::new(StatusCode::CONFLICT, "at_work", message).hint("try again when the run has ended")
            }
            SharedFailure::Undo(failure) => failure.into(),
            SharedFailure::Drive(error) => error.into(),
        }
    }
}
