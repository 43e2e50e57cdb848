//! Undo and redo: restores the workspace to its state before a run, or before one of its tasks.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;

use super::sessions::no_session;
use crate::App;
use crate::auth::Who;
use crate::document::routes;
use crate::error::ApiError;
use crate::wire::{Body, JsonResult, Page, Path, Query, page_size};
use kiso_agent::drive::UndoFailure;
use kiso_base::home::SessionName;
use kiso_sandbox::effect::undo::{ChangeLine, UndoChoice, UndoEntry, UndoError, UndoKind, UndoPlan};
use kiso_store::store::RunId;

routes! {
    /// Runs of a session that can be undone and redone, latest first
    GET "/sessions/{session}/undo" Chat => list, 404 "The session does not exist";
    /// Restore files to their state before the newest work in a session, or before the named work
    POST "/sessions/{session}/undo" Chat => undo_newest,
        404 "There is nothing to undo",
        409 "A run works in the session, or files have changed since; nothing was changed";
    /// Changes that an undo or redo of a run would make
    GET "/runs/{run}/undo" Chat => plan, 404 "The run does not exist";
    /// Restore the workspace to its state before a run, or before one of its tasks
    POST "/runs/{run}/undo" Chat => undo,
        404 "The run does not exist, or there is nothing to undo",
        409 "A run works in the session, or files have changed since; nothing was changed";
    /// Redo a run that was undone
    POST "/runs/{run}/redo" Chat => redo,
        404 "The run does not exist, or there is nothing to redo",
        409 "A run works in the session, or files have changed since; nothing was changed";
}

/// Work that can be undone or redone.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Undo")]
pub struct UndoLine {
    /// Number of the entry.
    pub id: u64,
    /// Whether the entry is for an undo or a redo.
    pub kind: UndoKind,
    pub run: String,
    /// Tasks of the run, counted from 1, in the order of execution.
    pub tasks: Vec<usize>,
    /// Milliseconds since 1970 (UTC).
    pub at_ms: i64,
    pub changes: usize,
    /// Number of changed files that were too large to keep.
    pub lost: usize,
    /// Size in bytes of the data that is kept for it.
    pub bytes: u64,
}

impl From<&UndoEntry> for UndoLine {
    fn from(entry: &UndoEntry) -> UndoLine {
        let mut tasks: Vec<usize> = entry.header.of.iter().map(|origin| origin.task).collect();
        tasks.dedup();
        UndoLine {
            id: entry.id,
            kind: entry.header.kind,
            run: entry.run().unwrap_or_default().to_owned(),
            tasks,
            at_ms: entry.header.at_ms,
            changes: entry.changes,
            lost: entry.lost,
            bytes: entry.bytes,
        }
    }
}

/// Page of the listing.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UndoPart {
    /// The `next` of the previous page.
    before: Option<u64>,
    /// Number of entries per page; 50 by default.
    #[schemars(range(min = 1, max = 500))]
    limit: Option<u32>,
}

/// Selects an undo or redo.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PlanPart {
    /// "undo" by default.
    kind: Option<UndoKind>,
    /// Only this task of the run and later ones; counted from 1.
    task: Option<NonZeroUsize>,
}

/// Extent of an undo, and whether it overwrites files that have changed since.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UndoRequest {
    /// Only this task of the run and later ones; counted from 1.
    #[serde(default)]
    task: Option<NonZeroUsize>,
    /// Also overwrite files that have changed since. They are kept, and a redo restores them.
    #[serde(default)]
    force: bool,
}

/// The work of a session to undo, and whether to overwrite files that have changed since.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SessionUndoRequest {
    /// The `run` of the listing, or of a change to the shared files; the newest work by default.
    #[serde(default)]
    #[schemars(length(min = 1, max = 64))]
    run: Option<String>,
    /// Also overwrite files that have changed since. They are kept, and a redo restores them.
    #[serde(default)]
    force: bool,
}

/// Whether to overwrite files that have changed since.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RedoRequest {
    /// Also overwrite files that have changed since. They are kept, and an undo restores them.
    #[serde(default)]
    force: bool,
}

/// The changes that were made, or would be made.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct UndoView {
    run: String,
    changes: Vec<ChangeLine>,
    /// Changes that somebody has made since, as sentences.
    conflicts: Vec<String>,
    /// Data that was not kept, as sentences.
    missing: Vec<String>,
    /// Files that could not be changed although `force` was given, as sentences.
    problems: Vec<String>,
}

impl UndoView {
    fn new(plan: UndoPlan, problems: Vec<String>) -> UndoView {
        let UndoPlan { run, changes, conflicts, missing } = plan;
        UndoView { run, changes, conflicts, missing, problems }
    }
}

pub(super) async fn list(
    _: Who,
    State(app): State<App>,
    Path(session): Path<SessionName>,
    Query(part): Query<UndoPart>,
) -> JsonResult<Page<UndoLine>> {
    let limit = page_size(part.limit)? as usize;
    let of = session.clone();
    if !app.0.drive.store.read(move |view| view.has_session(&of)).await? {
        return Err(no_session(&session));
    }
    let entries = app.0.drive.undo_entries(&session).await?;
    let older = entries.iter().rev().filter(|entry| part.before.is_none_or(|before| entry.id < before));
    let mut items: Vec<UndoLine> = older.take(limit + 1).map(UndoLine::from).collect();
    let more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| more).map(|last| last.id.to_string());
    Ok(Json(Page { items, next }))
}

pub(super) async fn undo_newest(
    who: Who,
    State(app): State<App>,
    Path(session): Path<SessionName>,
    Body(request): Body<SessionUndoRequest>,
) -> JsonResult<UndoView> {
    let of = session.clone();
    if !app.0.drive.store.read(move |view| view.has_session(&of)).await? {
        return Err(no_session(&session));
    }
    tracing::info!(%session, by = who.name(), force = request.force, "work of a session is to be undone");
    let choice = UndoChoice { run: request.run, task: None };
    let done = app.0.drive.newest().undo(&session, UndoKind::Undo, choice, request.force).await?;
    Ok(Json(UndoView::new(done.plan, done.problems)))
}

pub(super) async fn plan(
    _: Who,
    State(app): State<App>,
    Path(run): Path<RunId>,
    Query(part): Query<PlanPart>,
) -> JsonResult<UndoView> {
    let session = session_of(&app, &run).await?;
    let choice = UndoChoice { run: Some(run.to_string()), task: part.task.map(NonZeroUsize::get) };
    let plan = match app.0.drive.undo_plan(&session, part.kind.unwrap_or(UndoKind::Undo), choice).await {
        // Nothing to undo is not an error here: the plan has no changes.
        Err(UndoFailure::Undo(UndoError::Nothing(_))) => {
            UndoPlan { run: run.to_string(), changes: Vec::new(), conflicts: Vec::new(), missing: Vec::new() }
        }
        plan => plan?,
    };
    Ok(Json(UndoView::new(plan, Vec::new())))
}

pub(super) async fn undo(
    who: Who,
    State(app): State<App>,
    Path(run): Path<RunId>,
    Body(request): Body<UndoRequest>,
) -> JsonResult<UndoView> {
    change(who, &app, UndoKind::Undo, run, request).await
}

pub(super) async fn redo(
    who: Who,
    State(app): State<App>,
    Path(run): Path<RunId>,
    Body(request): Body<RedoRequest>,
) -> JsonResult<UndoView> {
    change(who, &app, UndoKind::Redo, run, UndoRequest { task: None, force: request.force }).await
}

async fn change(who: Who, app: &App, kind: UndoKind, run: RunId, request: UndoRequest) -> JsonResult<UndoView> {
    let session = session_of(app, &run).await?;
    tracing::info!(%run, by = who.name(), force = request.force, "a run is to be {}", kind.participle());
    let choice = UndoChoice { run: Some(run.to_string()), task: request.task.map(NonZeroUsize::get) };
    let done = app.0.drive.newest().undo(&session, kind, choice, request.force).await?;
    Ok(Json(UndoView::new(done.plan, done.problems)))
}

async fn session_of(app: &App, run: &RunId) -> Result<SessionName, ApiError> {
    let wanted = run.clone();
    let row = app.0.drive.store.read(move |view| view.run(&wanted)).await?;
    row.map(|row| row.session).ok_or_else(|| ApiError::not_found(format!("there is no run {:?}", run.as_str())))
}

impl From<UndoFailure> for ApiError {
    fn from(failure: UndoFailure) -> ApiError {
        let message = failure.to_string();
        match failure {
            UndoFailure::AtWork { .. } => ApiError::new(StatusCode::CONFLICT, "at_work", message),
            UndoFailure::Undo(UndoError::Nothing(_)) => ApiError::not_found(message),
            UndoFailure::Undo(UndoError::Selection(_)) => ApiError::bad_request(message),
            UndoFailure::Undo(UndoError::Conflict(_)) | UndoFailure::Accepted { .. } => {
                ApiError::new(StatusCode::CONFLICT, "changed_since", message)
                    .hint("with `force` it is done all the same")
            }
            UndoFailure::Undo(UndoError::Io(error)) if error.kind() == std::io::ErrorKind::StorageFull => {
                ApiError::disk_full()
            }
            UndoFailure::Undo(UndoError::Io(error)) => ApiError::internal(&error),
            UndoFailure::Drive(error) => error.into(),
        }
    }
}
