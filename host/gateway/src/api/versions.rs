//! Versions of a turn: answering it again, editing it, and switching between versions.

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::App;
use crate::auth::Who;
use crate::document::routes;
use crate::error::ApiError;
use crate::wire::{AcceptedMessage, Admission, Body, JsonResult, Path, Queued};
use kiso_agent::drive::UndoFailure;
use kiso_agent::session::intake::{IntakeError, IntakeOutcome, Revision};
use kiso_agent::session::version::show_version;
use kiso_base::home::SessionName;
use kiso_sandbox::effect::undo::{ChangeLine, UndoChoice, UndoError, UndoKind};
use kiso_store::store::RunId;

routes! {
    /// A turn: the messages that a replacement would remove from the conversation, and the file changes that it could undo
    GET "/messages/{id}/turn" Chat => turn,
        404 "No such message was sent",
        409 "No run has answered it yet, or it belongs to another version";
    /// Replace a turn, and everything after it, by another version: the same message again, or another text
    /// The replaced messages leave the context and stay in the session. The new version is answered before queued messages.
    POST "/messages/{id}/replace" Chat => replace,
        202 "The message is on disk and will be answered",
        404 "No such message was sent",
        409 "A run has not ended in the session, no run has answered the message yet, it belongs to another version, or there are too many versions",
        413 "The message or the body is too large",
        429 "Too many messages are waiting, or too many wrong tokens came from this address; Retry-After says when to try again",
        503 "The daemon is shutting down",
        507 "The storage limit is reached, or the disk is full; nothing was saved";
    /// Switch to the version of the conversation that has this message
    /// If several versions have it, the one with the newest message is shown.
    POST "/messages/{id}/show" Chat => show,
        200 "The session, which now shows that version",
        404 "No such message was sent",
        409 "A run has not ended in the session, or a message waits there";
}

/// Number of newest runs whose changes are listed.
const LOOKED_AT: usize = 20;

/// Maximum number of listed changes.
const LISTED: usize = 500;

/// A turn, and everything that a replacement would affect.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Turn")]
pub(super) struct TurnView {
    session: SessionName,
    /// The user's messages, oldest first: all of them are sent again.
    messages: Vec<i64>,
    /// The run of the turn and those after it, oldest first.
    runs: Vec<RunId>,
    /// Whether a run is still active in the session.
    at_work: bool,
    /// File changes that an undo of these runs would make: at most 500, of the last 20 runs.
    changes: Vec<ChangeLine>,
    /// Changes that somebody has made since, one sentence each.
    conflicts: Vec<String>,
}

/// Options of a replacement.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Replace {
    /// The new text of the message, at most 1 MiB; by default, the same message is answered again.
    #[serde(default)]
    #[schemars(length(max = 1_048_576), regex(pattern = r"\S"))]
    text: Option<String>,
    /// Cancel an active run first. Without it, an active run causes an error.
    #[serde(default)]
    cancel: bool,
    /// First restore the files that the replaced runs changed, even those that have changed since. A redo restores what is
    /// overwritten.
    #[serde(default)]
    undo: bool,
    /// Idempotency key: the same message with the same key is not processed twice.
    #[serde(default)]
    #[schemars(length(min = 1, max = 128))]
    key: Option<String>,
}

/// A session that shows another version.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ShownSession {
    session: SessionName,
}

pub(super) async fn turn(_: Who, State(app): State<App>, Path(id): Path<i64>) -> JsonResult<TurnView> {
    let turn = app.0.drive.store.read(move |view| view.turn(id)).await?.map_err(IntakeError::from)?;
    let (mut changes, mut conflicts) = (Vec::<ChangeLine>::new(), Vec::new());
    for run in turn.runs.iter().rev().take(LOOKED_AT) {
        let choice = UndoChoice { run: Some(run.to_string()), task: None };
        let plan = match app.0.drive.undo_plan(&turn.session, UndoKind::Undo, choice).await {
            Err(UndoFailure::Undo(UndoError::Nothing(_))) => continue,
            plan => plan?,
        };
        // The change comes from a later one of these runs, which is undone first.
        let is_undone = |why: &String, path: &str| why.strip_prefix(path).is_some_and(|rest| rest.starts_with(' '));
        let since = plan.conflicts.into_iter().filter(|why| !changes.iter().any(|one| is_undone(why, &one.path)));
        let since: Vec<_> = since.chain(plan.missing).collect();
        for change in plan.changes {
            if changes.len() < LISTED && !changes.iter().any(|known| known.path == change.path) {
                changes.push(change);
            }
        }
        conflicts.extend(since);
    }
    conflicts.truncate(LISTED);
    let messages = turn.asked.iter().map(|message| message.id).collect();
    Ok(Json(TurnView {
        session: turn.session,
        messages,
        runs: turn.runs,
        at_work: turn.is_at_work,
        changes,
        conflicts,
    }))
}

pub(super) async fn replace(
    who: Who,
    State(app): State<App>,
    Path(id): Path<i64>,
    Body(given): Body<Replace>,
) -> Result<Queued<AcceptedMessage>, ApiError> {
    let Replace { text, cancel, undo, key } = given;
    let revision = Revision { message: id, text, caller: who.caller(), client_key: key, cancel, undo };
    let (session, outcome) = app.intake().revise(revision).await?;
    match outcome {
        IntakeOutcome::Queued { message, again } => {
            let status = if again { Admission::Known } else { Admission::Queued };
            Ok(Queued(AcceptedMessage { session, message, status }))
        }
        IntakeOutcome::Answered { text } => Err(ApiError::bad_request(text)),
    }
}

pub(super) async fn show(_: Who, State(app): State<App>, Path(id): Path<i64>) -> JsonResult<ShownSession> {
    let session = show_version(&app.0.drive, id).await?.map_err(IntakeError::from)?;
    Ok(Json(ShownSession { session }))
}
