//! Sessions and their messages.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::App;
use crate::auth::Who;
use crate::document::routes;
use crate::error::ApiError;
use crate::message::whole_message;
use crate::wire::{Body, JsonResult, MAX_PAGE, Message, NoContent, Page, Part, Path, Query, Status, page_size};
use kiso_agent::drive::{RunExecutor, clean_title};
use kiso_agent::session::removal::{self, NotRemoved};
use kiso_base::home::SessionName;
use kiso_base::role::Role;
use kiso_sandbox::effect::member::{ANY_MACHINE, MACHINE_LABEL, is_machine_label};
use kiso_store::store::{Placement, SessionLine, View, is_full};

routes! {
    /// Sessions, most recently active first
    GET "/sessions" Chat => list;
    /// Rename, pin or archive a session
    PATCH "/sessions/{session}" Chat => change, 200 "The session", 404 "The session does not exist";
    /// Delete a session with all its data, and the subagents that it spawned
    DELETE "/sessions/{session}" Admin => delete,
        200 "The deleted sessions",
        404 "The session does not exist",
        409 "A message is waiting there, or a run is working on one";
    /// Mark a session as read up to a message
    /// The mark only moves forward.
    POST "/sessions/{session}/read" Chat => read,
        204 "The mark is saved; other clients receive the event `session`",
        404 "The session does not exist";
    /// Messages: the newest page first, each page oldest first
    GET "/sessions/{session}/messages" Chat => of_session, 404 "The session does not exist";
    /// The status of a session
    GET "/status/{session}" Chat => status, 404 "The session does not exist";
}

/// Page of the listing of sessions. The order is by activity, and two sessions may have the same time.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SessionsPart {
    /// The `next` of the previous page.
    #[schemars(regex(pattern = "^[0-9]{1,18}-[0-9]{1,18}$"))]
    before: Option<String>,
    /// Number of entries per page; 50 by default.
    #[schemars(range(min = 1, max = 500))]
    limit: Option<u32>,
    /// Only sessions with this placement, or one of several separated by commas; all by default.
    #[schemars(regex(pattern = "^(listed|pinned|archived)(,(listed|pinned|archived))*$"))]
    placement: Option<String>,
}

pub(super) async fn list(
    who: Who,
    State(app): State<App>,
    Query(part): Query<SessionsPart>,
) -> JsonResult<Page<SessionLine>> {
    let before = match part.before.as_deref() {
        None => None,
        Some(text) => {
            let parsed = text.split_once('-').and_then(|(at, id)| Some((at.parse().ok()?, id.parse().ok()?)));
            Some(parsed.ok_or_else(|| ApiError::bad_request("`before` is not a `next` of this listing"))?)
        }
    };
    let placements = match part.placement.as_deref() {
        None => Placement::ALL.to_vec(),
        Some(names) => names.split(',').map(placement).collect::<Result<_, _>>()?,
    };
    let limit = page_size(part.limit)?;
    let read = move |view: &View<'_>| view.list_sessions_of(who.owner.as_ref(), &placements, before, limit);
    let rows = app.0.drive.store.read(read).await?;
    let full = rows.len() == limit as usize;
    let next = rows.last().filter(|_| full).map(|row| format!("{}-{}", row.active_ms, row.id));
    Ok(Json(Page { items: rows, next }))
}

pub(super) async fn of_session(
    _: Who,
    State(app): State<App>,
    Path(session): Path<SessionName>,
    Query(part): Query<Part>,
) -> JsonResult<Page<Message>> {
    let (limit, before) = (page_size(part.limit)?, part.before);
    let (vault, of) = (app.0.drive.vault.clone(), session.clone());
    let read = app.0.drive.store.read(move |view| {
        if !view.has_session(&of)? {
            return Ok(None);
        }
        let messages = view.messages_before(&of, before, limit)?;
        let more = is_full(&messages, limit);
        let whole = |message| whole_message(view, &vault, of.clone(), message);
        Ok(Some((messages.into_iter().map(whole).collect::<Result<Vec<_>, _>>()?, more)))
    });
    let (items, more) = read.await?.ok_or_else(|| no_session(&session))?;
    let next = items.first().filter(|_| more).map(|message| message.id.to_string());
    Ok(Json(Page { items, next }))
}

pub(super) async fn status(_: Who, State(app): State<App>, Path(session): Path<SessionName>) -> JsonResult<Status> {
    Ok(Json(status_of(&app, session).await?))
}

/// Returns the status of a session.
pub(crate) async fn status_of(app: &App, session: SessionName) -> Result<Status, ApiError> {
    let drive = app.0.drive.for_session(&session).await?;
    let of = session.clone();
    let read = app.0.drive.store.read(move |view| {
        let Some(line) = view.session(&of)? else { return Ok(None) };
        let queued = view.queued_jobs(&of, MAX_PAGE)?.len();
        let (begins, branch) = (view.segment_start(&of)?, view.branch_in_use(&of)?);
        Ok(Some((line, (begins, branch), view.unfinished_runs(Some(&of))?, queued)))
    });
    let (SessionLine { title, active_ms, placement, .. }, (segment_start, branch), running, queued) =
        read.await?.ok_or_else(|| no_session(&session))?;
    let model = drive.models.for_role(Role::Planner).name().to_owned();
    let running = running.into_iter().next();
    let models = drive.models.by_role();
    Ok(Status { session, title, active_ms, placement, model, models, segment_start, branch, running, queued })
}

/// A title has a visible character, and no character for which [`is_hidden`] is true.
const TITLE: &str = r"^[^\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]*[^\s\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff][^\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]*$";

/// Changes of a session.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("anyOf" = [
    { "required": ["title"], "properties": { "title": { "type": "string" } } },
    { "required": ["placement"], "properties": { "placement": { "type": "string" } } },
    { "required": ["runs_on"], "properties": { "runs_on": { "type": "string" } } },
]))]
pub(super) struct SessionChange {
    /// 1 to 200 visible characters on one line.
    #[schemars(length(min = 1, max = 200), regex(pattern = TITLE))]
    title: Option<String>,
    placement: Option<Placement>,
    /// A label of machines of a fleet that its runs prefer, or "any".
    #[schemars(length(min = 1, max = 32), regex(pattern = "^[a-z0-9-]+$"))]
    runs_on: Option<String>,
}

/// Characters of a title.
const MAX_TITLE: usize = 200;

pub(super) async fn change(
    _: Who,
    State(app): State<App>,
    Path(session): Path<SessionName>,
    Body(change): Body<SessionChange>,
) -> JsonResult<SessionLine> {
    let SessionChange { title, placement, runs_on } = change;
    if title.is_none() && placement.is_none() && runs_on.is_none() {
        return Err(ApiError::bad_request("nothing is to be changed: give `title`, `placement` or `runs_on`"));
    }
    if !runs_on.as_deref().is_none_or(|label| label == ANY_MACHINE || is_machine_label(label)) {
        return Err(ApiError::bad_request(format!(
            "`runs_on` must be \"any\" for all machines, or a machine label: {MACHINE_LABEL}"
        )));
    }
    let title = match title {
        Some(title) => {
            let secrets = app.0.drive.with_session(&session, app.0.secrets.clone()).await?;
            Some(clean_title(&title, &secrets))
        }
        None => None,
    };
    let fits = |title: &String| (1..=MAX_TITLE).contains(&title.chars().count()) && !title.chars().any(is_hidden);
    if !title.as_ref().is_none_or(fits) {
        return Err(ApiError::bad_request(format!(
            "a title has 1 to {MAX_TITLE} characters, and none that is invisible"
        )));
    }
    let of = session.clone();
    let write = app.0.drive.store.write(move |tx| {
        if let Some(title) = title {
            tx.set_title(&of, &title, true)?;
        }
        if let Some(placement) = placement {
            tx.set_placement(&of, placement)?;
        }
        if let Some(label) = runs_on {
            tx.set_runs_on(&of, (label != ANY_MACHINE).then_some(label.as_str()))?;
        }
        tx.session(&of)
    });
    Ok(Json(write.await?.ok_or_else(|| no_session(&session))?))
}

fn placement(name: &str) -> Result<Placement, ApiError> {
    let wrong = || {
        ApiError::bad_request(format!(
            "`placement` is {name:?}, and may be listed, pinned or archived, or several of them with commas between them"
        ))
    };
    Placement::named(name).ok_or_else(wrong)
}

/// The position up to which a session was read.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadPosition {
    /// Id of the last read message.
    message: i64,
}

/// A mark that another tab has moved further stays.
pub(super) async fn read(
    _: Who,
    State(app): State<App>,
    Path(session): Path<SessionName>,
    Body(reading): Body<ReadPosition>,
) -> Result<NoContent, ApiError> {
    let of = session.clone();
    let write = app.0.drive.store.write(move |tx| {
        tx.mark_read(&of, reading.message)?;
        tx.has_session(&of)
    });
    match write.await? {
        true => Ok(NoContent),
        false => Err(no_session(&session)),
    }
}

/// Deleted sessions.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct DeletedSessions {
    deleted: Vec<SessionName>,
    /// Some files could not be removed yet; the daemon tries again. Absent if all were removed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    files_left: bool,
}

pub(super) async fn delete(
    who: Who,
    State(app): State<App>,
    Path(session): Path<SessionName>,
) -> JsonResult<DeletedSessions> {
    let (this, of) = (app.clone(), session.clone());
    // Runs in a separate task: if the client disconnects, files must still be removed and listeners notified.
    let removing = tokio::spawn(async move {
        let RunExecutor { home, store, .. } = &this.0.drive;
        let told = |gone: &[SessionName]| {
            for name in gone {
                // An error only means that nobody listens.
                let _ = this.0.deleted.send(name.clone());
            }
        };
        removal::remove(home, store, &of, told).await
    });
    let removed = match removing.await.map_err(|panic| ApiError::internal(&panic))? {
        Ok(removed) => removed,
        Err(NotRemoved::Unknown { .. }) => return Err(no_session(&session)),
        Err(error @ NotRemoved::AtWork { .. }) => {
            return Err(ApiError::new(StatusCode::CONFLICT, "at_work", error.to_string()));
        }
        Err(NotRemoved::Store(error)) => return Err(error.into()),
        Err(error) => return Err(ApiError::internal(&error)),
    };
    tracing::info!(%session, by = who.name(), "a session was deleted");
    // The paths are for the log, not for the client.
    Ok(Json(DeletedSessions { deleted: removed.sessions, files_left: !removed.left.is_empty() }))
}

/// Returns true for control characters, for characters without width, and for those that change the direction of text around
/// them. Joiners are allowed: emoji and Persian need them.
fn is_hidden(c: char) -> bool {
    let turning = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || turning || matches!(c, '\u{200b}' | '\u{2028}' | '\u{2029}' | '\u{feff}')
}

pub(super) fn no_session(name: &SessionName) -> ApiError {
    ApiError::no_session(name)
}
