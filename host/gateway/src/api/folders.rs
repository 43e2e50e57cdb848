//! Folders of a session: the difference that its runs have made, accepted, discarded and taken back.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io::Read;
use std::path::{Path as FilePath, PathBuf};

use crate::App;
use crate::auth::Who;
use crate::document::routes;
use crate::error::ApiError;
use crate::wire::{Body, JsonResult, Path, Query};
use kiso_agent::drive::{FolderFailure, FolderView, RestingFolders};
use kiso_base::home::SessionName;
use kiso_sandbox::effect::overlay::{
    AcceptError, EntryKind, EntryLook, FolderChange, FolderChangeKind, FolderSelection,
};
use kiso_sandbox::effect::undo::UndoKind;

routes! {
    /// The folders of a session that the caller may see, with the changes that wait
    GET "/sessions/{session}/folders" Chat => list;
    /// Both sides of a changed file, if they are short texts
    GET "/sessions/{session}/folders/change" Chat => change,
        404 "The path has no change",
        409 "A run works in the session";
    /// Bring changes into a folder. What is replaced or deleted there is kept
    POST "/sessions/{session}/folders/accept" Chat => accept,
        404 "The paths have no changes",
        409 "A run works in the session, or the folder has changed since; nothing was changed";
    /// Drop changes
    POST "/sessions/{session}/folders/discard" Chat => discard,
        404 "The paths have no changes",
        409 "A run works in the session";
    /// Put the folder back as it was before the last acceptance
    POST "/sessions/{session}/folders/undo" Chat => undo,
        404 "There is nothing to undo",
        409 "A run works in the session, or files have changed since; nothing was changed";
}

/// Changes of a folder that are listed.
const MAX_LISTED: usize = 1_000;

/// Bytes of a text that is shown.
const MAX_TEXT: u64 = 256 << 10;

/// The folders that a session has open.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct FolderList {
    items: Vec<OpenFolder>,
    /// Whether a run works in the session: then none is listed.
    at_work: bool,
}

/// A folder that a session has open.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct OpenFolder {
    /// Where tasks see it, such as "/project".
    at: String,
    /// On the machine.
    path: String,
    /// Whether tasks can change their copy of it.
    write: bool,
    changes: Vec<ChangedEntry>,
    /// Changes that are not listed.
    more: usize,
}

/// A change that waits.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ChangedEntry {
    /// Below the folder.
    path: String,
    change: EntryChangeKind,
    /// Of a move: its old path.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    is_directory: bool,
    /// Bytes before and after, of files.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_before: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_after: Option<u64>,
    /// Files that are deleted with it.
    files: u64,
    /// Whether text from outside decided on it, or is in it.
    from_outside: bool,
    /// Why it cannot be accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    collision: Option<String>,
}

/// The kind of a change.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum EntryChangeKind {
    Added,
    Changed,
    Deleted,
    Moved,
}

/// A change of a folder.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ChangePart {
    /// The folder.
    at: String,
    /// Below it.
    path: String,
}

/// Both sides of a file; null for a side that is missing, long, or not a text.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct FileSides {
    before: Option<String>,
    after: Option<String>,
}

/// Changes of a folder.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ChangesRequest {
    /// The folder.
    at: String,
    /// Files and directories below it; all changes without it.
    #[serde(default)]
    paths: Option<Vec<String>>,
}

/// Whether also where files have changed since.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FolderUndoRequest {
    #[serde(default)]
    force: bool,
}

/// How many changes it was.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SettledChanges {
    /// The folder.
    at: String,
    changes: usize,
}

impl From<&FolderChange> for ChangedEntry {
    fn from(change: &FolderChange) -> Self {
        let bytes = |look: Option<EntryLook>| look.filter(|look| look.kind == EntryKind::File).map(|look| look.bytes);
        Self {
            path: change.path.to_string_lossy().into_owned(),
            change: match change.kind {
                FolderChangeKind::Added => EntryChangeKind::Added,
                FolderChangeKind::Changed => EntryChangeKind::Changed,
                FolderChangeKind::Deleted => EntryChangeKind::Deleted,
                FolderChangeKind::Moved(_) => EntryChangeKind::Moved,
            },
            from: change.moved_from().map(|from| from.to_string_lossy().into_owned()),
            is_directory: change.after.or(change.before).is_some_and(|look| look.is_dir()),
            bytes_before: bytes(change.before),
            bytes_after: bytes(change.after),
            files: change.files,
            from_outside: change.is_marked(),
            collision: change.collision.map(str::to_owned),
        }
    }
}

impl From<&FolderView> for OpenFolder {
    fn from(view: &FolderView) -> Self {
        let changes = &view.difference.changes;
        Self {
            at: view.folder.at.clone(),
            path: view.folder.path.to_string_lossy().into_owned(),
            write: view.folder.write,
            changes: changes.iter().take(MAX_LISTED).map(ChangedEntry::from).collect(),
            more: changes.len().saturating_sub(MAX_LISTED),
        }
    }
}

pub(super) async fn list(who: Who, State(app): State<App>, Path(session): Path<SessionName>) -> JsonResult<FolderList> {
    let folders = match app.0.drive.newest().folders_if_at_rest(&session, who.caller()).await {
        Err(FolderFailure::NoFolder { .. }) => return Ok(Json(FolderList { items: Vec::new(), at_work: false })),
        folders => folders?,
    };
    let items = folders.iter().flat_map(RestingFolders::iter).map(OpenFolder::from).collect();
    Ok(Json(FolderList { items, at_work: folders.is_none() }))
}

pub(super) async fn change(
    who: Who,
    State(app): State<App>,
    Path(session): Path<SessionName>,
    Query(part): Query<ChangePart>,
) -> JsonResult<FileSides> {
    let folders = app.0.drive.newest().folders_for(&session, Some(&part.at), who.caller()).await?;
    let view = first(&folders)?;
    let path = FilePath::new(&part.path);
    let change = view.difference.changes.iter().find(|change| change.path == path);
    let change = change.ok_or_else(|| ApiError::not_found(format!("{:?} has no change that waits", part.path)))?;
    let is_file = |look: Option<EntryLook>| {
        !change.is_secret && look.is_some_and(|look| look.kind == EntryKind::File && look.bytes <= MAX_TEXT)
    };
    let text = |file: std::io::Result<std::fs::File>| {
        let mut text = String::new();
        file.ok()?.take(MAX_TEXT).read_to_string(&mut text).ok()?;
        Some(text)
    };
    let before = is_file(change.before).then(|| text(view.overlay.open_before(change)));
    let after = is_file(change.after).then(|| text(view.overlay.open_after(change)));
    Ok(Json(FileSides { before: before.flatten(), after: after.flatten() }))
}

pub(super) async fn accept(
    who: Who,
    State(app): State<App>,
    Path(session): Path<SessionName>,
    Body(request): Body<ChangesRequest>,
) -> JsonResult<SettledChanges> {
    let drive = app.0.drive.newest();
    let folders = drive.folders_for(&session, Some(&request.at), who.caller()).await?;
    tracing::info!(%session, by = who.name(), at = request.at, "changes to a folder are to be accepted");
    let accepted = drive.accept(&session, first(&folders)?, &selection(request.paths))?;
    Ok(Json(SettledChanges { at: request.at, changes: accepted.changes }))
}

pub(super) async fn discard(
    who: Who,
    State(app): State<App>,
    Path(session): Path<SessionName>,
    Body(request): Body<ChangesRequest>,
) -> JsonResult<SettledChanges> {
    let drive = app.0.drive.newest();
    let folders = drive.folders_for(&session, Some(&request.at), who.caller()).await?;
    tracing::info!(%session, by = who.name(), at = request.at, "changes to a folder are to be discarded");
    let changes = drive.discard(&session, first(&folders)?, &selection(request.paths))?;
    Ok(Json(SettledChanges { at: request.at, changes }))
}

pub(super) async fn undo(
    who: Who,
    State(app): State<App>,
    Path(session): Path<SessionName>,
    Body(request): Body<FolderUndoRequest>,
) -> JsonResult<SettledChanges> {
    tracing::info!(%session, by = who.name(), "an acceptance is to be undone");
    let drive = app.0.drive.newest();
    let reverted = drive.revert_acceptance(&session, who.caller(), UndoKind::Undo, request.force).await?;
    let reverted = reverted.ok_or_else(|| ApiError::not_found("no acceptance is newer than the session's runs"))?;
    Ok(Json(SettledChanges { at: reverted.folder.at, changes: reverted.acceptance.changes }))
}

fn first(folders: &RestingFolders) -> Result<&FolderView, ApiError> {
    folders.iter().next().ok_or_else(|| ApiError::not_found("the session has no folder at this path"))
}

fn selection(paths: Option<Vec<String>>) -> FolderSelection {
    match paths {
        Some(paths) => FolderSelection::Paths(paths.into_iter().map(PathBuf::from).collect()),
        None => FolderSelection::All,
    }
}

impl From<FolderFailure> for ApiError {
    fn from(failure: FolderFailure) -> ApiError {
        let message = failure.to_string();
        match failure {
            FolderFailure::NoFolder { .. }
            | FolderFailure::OtherFolder { .. }
            | FolderFailure::Accept(AcceptError::Nothing | AcceptError::Missing(_)) => ApiError::not_found(message),
            FolderFailure::ReadOnly { .. } => ApiError::new(StatusCode::FORBIDDEN, "forbidden", message),
            FolderFailure::Refused(refusal) => refusal.into(),
            FolderFailure::HasChanges { .. } => ApiError::new(StatusCode::CONFLICT, "taken", message),
            FolderFailure::Accept(AcceptError::Dependent(_)) => ApiError::bad_request(message),
            FolderFailure::Accept(AcceptError::Collision(_)) => {
                ApiError::new(StatusCode::CONFLICT, "changed_since", message)
                    .hint("accept other paths, or discard these")
            }
            FolderFailure::Accept(AcceptError::Io(error)) if error.kind() == std::io::ErrorKind::StorageFull => {
                ApiError::disk_full()
            }
            FolderFailure::Accept(AcceptError::Io(_) | AcceptError::Partial { .. }) | FolderFailure::Unusable { .. } => {
                ApiError::new(StatusCode::CONFLICT, "failed", message)
            }
            FolderFailure::Rest(failure) => failure.into(),
        }
    }
}
