//! Callers that may read only sessions that they created: tokens of scope chat, and browsers that were logged in by a link with
//! that scope. Sessions of others look as if they did not exist.
//!
//! Paths that name a session, a run, a message or an approval are checked here, before their handlers. If the name is in a body
//! or a query, or if the route lists many, the handler checks. A route that is not in [`subject`] is refused.

use axum::RequestPartsExt;
use axum::extract::{MatchedPath, RawPathParams};
use axum::http::Method;
use axum::http::request::Parts;

use super::Who;
use crate::App;
use crate::error::ApiError;
use kiso_base::clock::now_ms;
use kiso_base::home::SessionName;
use kiso_store::store::{SessionOwner, StoreError, Tx, View};

/// The part of a request that determines whether such a caller may use the route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    /// The session in its path.
    Session,
    /// The session of the run in its path.
    Run,
    /// The session of the message in its path.
    Message,
    /// The session of the approval in its path.
    Approval,
    /// Its handler checks each session that it reads.
    Handler,
    /// The route shows no session.
    Nothing,
}

/// Returns the subject of a route; `None` if such callers may not use the route.
fn subject(path: &str) -> Option<Subject> {
    Some(match path {
        "/messages/{id}" | "/messages/{id}/turn" | "/messages/{id}/replace" | "/messages/{id}/show" => Subject::Message,
        "/approvals/{id}" => Subject::Approval,
        "/msg"
        | "/events"
        | "/search"
        | "/sessions"
        | "/runs"
        | "/approvals"
        | "/remembered_approvals"
        | "/remembered_approvals/{id}"
        | "/schedules"
        | "/schedules/{name}"
        | "/schedules/{name}/receipts"
        | "/schedules/{name}/run"
        | "/schedules/{name}/pause"
        | "/schedules/{name}/resume"
        | "/skills/{name}/call"
        | "/files/{*path}"
        | "/folders"
        | "/mcp"
        | "/v1/chat/completions"
        | "/v1/models"
        | "/v1/models/{*model}"
        | "/v1/responses"
        | "/v1/responses/{id}"
        | "/v1/responses/{id}/cancel" => Subject::Handler,
        "/files" | "/health/details" | "/input" | "/logout" | "/me" | "/metrics" | "/models" | "/pills"
        | "/pills/{name}" | "/skills" | "/skills/{name}" | "/usage" => Subject::Nothing,
        path if path.contains("{session}") => Subject::Session,
        path if path.contains("{run}") => Subject::Run,
        _ => return None,
    })
}

impl Who {
    /// Returns whether the caller may read this session.
    pub(crate) fn may_read(&self, view: &View<'_>, session: &SessionName) -> Result<bool, StoreError> {
        match &self.owner {
            Some(owner) => view.owns_session(owner, session),
            None => Ok(true),
        }
    }

    /// Fails as if the session did not exist if the caller may not read it.
    pub(crate) async fn check_session(&self, app: &App, session: &SessionName) -> Result<(), ApiError> {
        let Some(owner) = self.owner.clone() else { return Ok(()) };
        let of = session.clone();
        match app.0.drive.store.peek(move |view| view.owns_session(&owner, &of)).await? {
            true => Ok(()),
            false => Err(ApiError::no_session(session)),
        }
    }

    /// The same, but creates the session for the caller if it does not exist; returns true if it was created.
    pub(crate) async fn claim_session(&self, app: &App, session: &SessionName) -> Result<bool, ApiError> {
        let Some(owner) = self.owner.clone() else { return Ok(false) };
        if self.check_session(app, session).await.is_ok() {
            return Ok(false);
        }
        let (of, most) = (session.clone(), app.0.drive.newest_config().limits.max_sessions);
        let write = move |tx: &Tx<'_>| {
            let is_new = !tx.has_session(&of)?;
            Ok(tx.claim_session(&owner, &of, most, now_ms())?.then_some(is_new))
        };
        app.0.drive.store.write(write).await?.ok_or_else(|| ApiError::no_session(session))
    }

    /// Makes the caller the owner of a session without one. Only for session names that nobody but the caller can have created.
    pub(crate) async fn adopt_session(&self, app: &App, session: &SessionName) -> Result<(), ApiError> {
        let Some(owner) = self.owner.clone() else { return Ok(()) };
        if self.check_session(app, session).await.is_ok() {
            return Ok(());
        }
        let (of, most) = (session.clone(), app.0.drive.newest_config().limits.max_sessions);
        match app.0.drive.store.write(move |tx| tx.adopt_session(&owner, &of, most, now_ms())).await? {
            true => Ok(()),
            false => Err(ApiError::no_session(session)),
        }
    }
}

/// Removes a session that was created for a message that was then refused, unless the session has other content by now.
pub(crate) async fn abandon_session(app: &App, session: &SessionName) {
    let of = session.clone();
    let write = move |tx: &Tx<'_>| match tx.last_messages(&of, 1)?.is_empty() {
        true => tx.delete_session(&of).map(|_| ()),
        false => Ok(()),
    };
    if let Err(error) = app.0.drive.store.write(write).await {
        tracing::warn!(%session, "an empty session stays: {error}");
    }
}

/// Checks the session, run, message or approval that the path of a request names.
pub(super) async fn check(app: &App, who: &Who, asked: &mut Parts) -> Result<(), ApiError> {
    let Some(owner) = who.owner.clone() else { return Ok(()) };
    let path = asked.extensions.get::<MatchedPath>().map(|path| path.as_str().to_owned()).unwrap_or_default();
    let params = asked.extract::<RawPathParams>().await.map_err(|error| ApiError::bad_request(error.to_string()))?;
    let param = |name: &str| {
        let found = params.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| value.to_owned()).unwrap_or_default()
    };
    match subject(&path) {
        Some(Subject::Nothing | Subject::Handler) => Ok(()),
        Some(Subject::Session) => {
            // The handler refuses a name that is not valid.
            let Ok(session) = SessionName::parse(&param("session")) else { return Ok(()) };
            let begins = asked.method == Method::PUT && path.starts_with("/sessions/{session}/files/");
            match begins || path == "/sessions/{session}/folders" && asked.method == Method::POST {
                true => who.claim_session(app, &session).await.map(|_| ()),
                false => who.check_session(app, &session).await,
            }
        }
        Some(Subject::Run) => {
            let Ok(run) = param("run").parse() else { return Ok(()) };
            let message = format!("there is no run {:?}", param("run"));
            require_owned(app, owner, message, move |view| Ok(view.run(&run)?.map(|run| run.session))).await
        }
        Some(Subject::Message) => {
            let Ok(id) = param("id").parse() else { return Ok(()) };
            let message = format!("no message {id} was sent here");
            require_owned(app, owner, message, move |view| Ok(view.job(id)?.map(|job| job.session))).await
        }
        Some(Subject::Approval) => {
            let Ok(id) = param("id").parse() else { return Ok(()) };
            let message = format!("there is no approval {id}");
            require_owned(app, owner, message, move |view| Ok(view.approval(id)?.map(|approval| approval.session)))
                .await
        }
        None => {
            let message = "this needs a login or a token that may read every session";
            Err(ApiError::new(axum::http::StatusCode::FORBIDDEN, "forbidden", message))
        }
    }
}

/// Fails with this message unless the session exists and the caller created it.
async fn require_owned(
    app: &App,
    owner: SessionOwner,
    message: String,
    session: impl FnOnce(&View<'_>) -> Result<Option<SessionName>, StoreError> + Send + 'static,
) -> Result<(), ApiError> {
    let read = app.0.drive.store.peek(move |view| match session(view)? {
        Some(session) => view.owns_session(&owner, &session),
        None => Ok(false),
    });
    match read.await? {
        true => Ok(()),
        false => Err(ApiError::not_found(message)),
    }
}

/// Returns whether a route for callers without administrator rights has a subject.
#[cfg(test)]
pub(crate) fn is_known(path: &str) -> bool {
    subject(path).is_some()
}
