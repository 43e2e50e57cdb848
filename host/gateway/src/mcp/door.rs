//! `/mcp`: the protocol over Streamable HTTP, in both eras.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{FromRequest, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::future::BoxFuture;
use futures_util::stream::unfold;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::changes::{Changes, changed, list_changed};
use super::era::Era;
use super::headers::{accepts, check_origin, read_meta};
use super::http_session::HttpSession;
use super::progress::ProgressTeller;
use super::queued::QueuedRunner;
use super::server::{Asker, session_for};
use super::{method, tools};
use crate::auth::{self, Via, Who};
use crate::document::signature::Describe;
use crate::document::{Operation, routes};
use crate::error::ApiError;
use crate::wire::{NoContent, Query, read_body};
use crate::{App, count};
use kiso_base::home::SessionName;
use kiso_base::rpc::{self, INTERNAL_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, RequestId, RpcError, RpcMessage};

routes! {
    /// Model Context Protocol: a message of a client
    /// JSON-RPC 2.0, in the versions 2026-07-28 and 2025-11-25 to 2024-11-05. Errors of the protocol are JSON-RPC errors.
    POST "/mcp" Chat => post,
        200 "The result, or an error of the method; as events if the call reports progress",
        202 "The message was a notification, which has no response",
        400 "The body is not a JSON-RPC message, or the headers do not match it",
        404 "The method (2026-07-28), the session (older versions) or the folder does not exist, or the token may not open the folder",
        406 "The client accepts neither JSON nor events",
        409 "A run works in the session, or another folder is in the way of this one";
    /// Model Context Protocol, older versions: notifications outside of requests, as events
    GET "/mcp" Chat => listen,
        200 "Notifications, until the session ends",
        404 "The session does not exist",
        405 "No Mcp-Session-Id was sent; version 2026-07-28 has no such stream",
        409 "The session has this stream already",
        503 "Too many streams are open";
    /// Model Context Protocol, older versions: end a session
    DELETE "/mcp" Chat => end,
        404 "The session does not exist",
        405 "No Mcp-Session-Id was sent; version 2026-07-28 has no sessions";
}

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// Idle time after which a comment shows that the connection is alive.
const ALIVE: Duration = Duration::from_secs(15);

/// How often to check whether a stream's token is still valid.
const LOOK_AUTH: Duration = Duration::from_secs(5);

/// Maximum number of unread progress messages for a slow client.
const MAX_UNREAD: usize = 64;

/// Error code of kiso for a request that the client itself has cancelled.
const CANCELLED: i64 = 499;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct McpQuery {
    /// The session of kiso to work in; by default, one for each combination of token and program.
    session: Option<SessionName>,
    /// A folder of `[folders]` in config.toml to open in the session; the token must be allowed to open it.
    folder: Option<String>,
}

/// The bytes of a received message.
pub(super) struct MessageBody(Bytes);

impl FromRequest<App> for MessageBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<MessageBody, ApiError> {
        let max = usize::try_from(app.0.drive.newest_config().gateway.max_body_kib << 10).unwrap_or(usize::MAX);
        Ok(MessageBody(read_body(request, app, max, "gateway.max_body_kib in config.toml raises this limit").await?))
    }
}

impl Describe for MessageBody {
    fn describe(operation: &mut Operation<'_>) {
        operation.takes(true, "application/json", json!({ "type": "object" }));
    }
}

/// The response to a message, in any of its forms.
pub(super) struct DoorAnswer(Response);

impl IntoResponse for DoorAnswer {
    fn into_response(self) -> Response {
        self.0
    }
}

impl Describe for DoorAnswer {
    fn describe(operation: &mut Operation<'_>) {
        operation.answers(200, "application/json", json!({ "type": "object" }));
        operation.answers(200, "text/event-stream", json!({ "type": "string" }));
        operation.sends(&[202]);
        // Errors of the protocol have their own format.
        for status in [400, 404, 406, 503] {
            operation.answers(status, "application/json", json!({ "type": "object" }));
        }
    }
}

/// A stream of messages.
pub(super) struct EventStream(Response);

impl IntoResponse for EventStream {
    fn into_response(self) -> Response {
        self.0
    }
}

impl Describe for EventStream {
    fn describe(operation: &mut Operation<'_>) {
        operation.answers(200, "text/event-stream", json!({ "type": "string" }));
    }
}

/// Returns a refusal.
fn refused(status: StatusCode, id: Option<&RequestId>, error: RpcError) -> DoorAnswer {
    DoorAnswer((status, Json(rpc::refusal(id, error))).into_response())
}

pub(super) async fn post(
    who: Who,
    State(app): State<App>,
    Query(McpQuery { session, folder }): Query<McpQuery>,
    headers: HeaderMap,
    MessageBody(bytes): MessageBody,
) -> Result<DoorAnswer, ApiError> {
    check_origin(&headers)?;
    let (json, events) = accepts(&headers);
    if !json && !events {
        let message = "the client must take application/json and text/event-stream (Accept)";
        return Ok(refused(StatusCode::NOT_ACCEPTABLE, None, RpcError::new(INVALID_REQUEST, message)));
    }
    let (id, method, params) = match rpc::read(&bytes) {
        Ok(RpcMessage::Request { id, method, params }) => (id, method, params),
        Ok(RpcMessage::Notification { method, params }) => {
            cancel(&app, &who, &headers, &method, &params);
            return Ok(DoorAnswer(StatusCode::ACCEPTED.into_response()));
        }
        Ok(RpcMessage::Response { .. }) => return Ok(DoorAnswer(StatusCode::ACCEPTED.into_response())),
        Err((id, error)) => return Ok(refused(StatusCode::BAD_REQUEST, id.as_ref(), error)),
    };
    let meta = match read_meta(&headers, &method, &params) {
        Ok(meta) => meta,
        Err(error) => return Ok(refused(StatusCode::BAD_REQUEST, Some(&id), error)),
    };
    let place = match app.0.mcp.place() {
        Ok(place) => place,
        Err(error) => return Ok(refused(StatusCode::SERVICE_UNAVAILABLE, Some(&id), error)),
    };
    let token = who.token.as_deref();
    let (http, session, begun) = match (meta.era, method.as_str()) {
        (Era::Modern, _) => (None, session.unwrap_or_else(|| session_for(token, meta.client.as_deref())), None),
        (Era::Legacy, "initialize") => {
            let client = params.get("clientInfo").and_then(|client| client["name"].as_str());
            let session = session.unwrap_or_else(|| session_for(token, client));
            match app.0.mcp_sessions.begin(owner(&who), session.clone()) {
                Ok(begun) => (None, session, Some(begun)),
                Err(error) => return Ok(refused(StatusCode::SERVICE_UNAVAILABLE, Some(&id), error)),
            }
        }
        (Era::Legacy, _) => match find(&app, &who, &headers) {
            Ok((_, found)) => (Some(found.clone()), session.unwrap_or_else(|| found.session.clone()), None),
            Err((status, error)) => return Ok(refused(status, Some(&id), error)),
        },
    };
    if (meta.era, method.as_str()) == (Era::Modern, "subscriptions/listen") {
        return subscribe(&app, who, &id, &params).await;
    }
    if method == "tools/call" {
        who.claim_session(&app, &session).await?;
    }
    if let Some(folder) = folder.filter(|_| method == "tools/call") {
        open_folder(&app, &who, &session, &folder).await?;
    }
    let streams = events && method == "tools/call" && (meta.progress.is_some() || tools::is_run(&params));
    let asker = Asker { caller: who.caller(), session, owner: who.owner.clone() };
    let asked = ClientCall { era: meta.era, method, params, asker, progress: meta.progress };
    let (progress, told) = mpsc::channel(MAX_UNREAD);
    let answer = asked.answer(app.clone(), who, progress);
    let answer: BoxFuture<'static, Result<Value, RpcError>> = match http {
        // When the connection closes, a call of the newer era is cancelled; a call of the older era continues until it is
        // cancelled explicitly.
        None => Box::pin(answer),
        Some(http) => match in_session(&http, &id, answer) {
            Ok(answer) => answer,
            Err(error) => return Ok(refused(StatusCode::OK, Some(&id), error)),
        },
    };
    let answer = Box::pin(async move {
        let answer = answer.await;
        drop(place);
        answer
    });
    if streams {
        let sending = Sending { id, told, answer: Some(answer), ready: VecDeque::new() };
        return Ok(DoorAnswer(events_of(unfold(sending, |mut sending| async move {
            Some((sending.next().await?, sending))
        }))));
    }
    let result = answer.await;
    let status = match (&result, meta.era) {
        (Err(error), Era::Modern) if error.code == METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        _ => StatusCode::OK,
    };
    let mut response = (status, Json(rpc::response(&id, result))).into_response();
    if let Some(begun) = begun.and_then(|begun| HeaderValue::from_str(&begun).ok()) {
        response.headers_mut().insert(SESSION, begun);
    }
    Ok(DoorAnswer(response))
}

/// Opens a folder of `config.toml` in a session, unless it is open already.
async fn open_folder(app: &App, who: &Who, session: &SessionName, name: &str) -> Result<(), ApiError> {
    let drive = app.0.drive.newest();
    let open = drive.config.visible_folders(&drive.home, session, who.caller());
    let open = open.map_err(|error| ApiError::internal(&error))?;
    if open.iter().any(|folder| folder.entry.as_deref() == Some(name)) {
        return Ok(());
    }
    drive.open_listed_folder(session, who.caller(), name).await?;
    tracing::info!(%session, by = who.name(), name, "a folder was opened");
    Ok(())
}

/// A request that is being answered.
struct ClientCall {
    era: Era,
    method: String,
    params: Map<String, Value>,
    asker: Asker,
    progress: Option<Value>,
}

impl ClientCall {
    async fn answer(self, app: App, who: Who, progress: mpsc::Sender<Value>) -> Result<Value, RpcError> {
        let ClientCall { era, method: said, params, asker, progress: token } = self;
        let progress = ProgressTeller::new(token, progress);
        let runner = QueuedRunner { app: app.clone(), who };
        method::answer(&app.0.mcp, (era, &said), &params, &asker, &runner, &progress).await
    }
}

/// Answers a request of a session in a separate task, which `notifications/cancelled` ends.
fn in_session(
    http: &Arc<HttpSession>,
    id: &RequestId,
    answer: impl Future<Output = Result<Value, RpcError>> + Send + 'static,
) -> Result<BoxFuture<'static, Result<Value, RpcError>>, RpcError> {
    let under_way = http.admit(id.clone())?;
    let task = tokio::spawn(async move {
        let _under_way = under_way;
        answer.await
    });
    http.is_done_by(id, task.abort_handle());
    Ok(Box::pin(async move {
        match task.await {
            Ok(answer) => answer,
            Err(error) if error.is_cancelled() => Err(RpcError::new(CANCELLED, "the request was cancelled")),
            Err(panic) => Err(RpcError::new(INTERNAL_ERROR, RpcError::internal(&panic).message)),
        }
    }))
}

/// The messages of a request: its progress, then its answer.
struct Sending {
    id: RequestId,
    told: mpsc::Receiver<Value>,
    answer: Option<BoxFuture<'static, Result<Value, RpcError>>>,
    ready: VecDeque<Value>,
}

impl Sending {
    async fn next(&mut self) -> Option<Value> {
        if let Some(message) = self.ready.pop_front() {
            return Some(message);
        }
        let answer = self.answer.as_mut()?;
        let result = tokio::select! {
            biased;
            Some(told) = self.told.recv() => return Some(told),
            result = answer => result,
        };
        self.answer = None;
        while let Ok(told) = self.told.try_recv() {
            self.ready.push_back(told);
        }
        // A cancelled request gets no answer.
        if !matches!(&result, Err(error) if error.code == CANCELLED) {
            self.ready.push_back(rpc::response(&self.id, result));
        }
        self.ready.pop_front()
    }
}

/// Returns messages as server-sent events.
fn events_of(messages: impl futures_util::Stream<Item = Value> + Send + 'static) -> Response {
    use futures_util::StreamExt as _;
    let events = messages.map(|message| Ok::<_, Infallible>(Event::default().data(message.to_string())));
    let mut response = Sse::new(events).keep_alive(KeepAlive::new().interval(ALIVE)).into_response();
    // Makes proxies pass on each event at once.
    response.headers_mut().insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

/// A stream of changes for a client of the newer era.
async fn subscribe(app: &App, who: Who, id: &RequestId, params: &Map<String, Value>) -> Result<DoorAnswer, ApiError> {
    let counted = stream_slot(app)?;
    let changes = match Changes::new(&app.0.mcp, id, params).await {
        Ok(changes) => changes,
        Err(error) => return Ok(refused(StatusCode::OK, Some(id), error)),
    };
    let listening = Listener { app: app.clone(), who, session: None, _counted: counted };
    let begun = (listening, changes, id.clone(), StreamStage::Begin);
    Ok(DoorAnswer(events_of(unfold(begun, |(listening, mut changes, id, stage)| async move {
        let (message, stage) = match stage {
            StreamStage::Begin => (changes.acknowledged(), StreamStage::Open),
            StreamStage::Open => tokio::select! {
                change = changes.next(&listening.app.0.mcp) => (change, StreamStage::Open),
                () = listening.over() => (changes.closed(&id), StreamStage::Over),
            },
            StreamStage::Over => return None,
        };
        Some((message, (listening, changes, id, stage)))
    }))))
}

/// State of a stream of changes.
enum StreamStage {
    Begin,
    Open,
    Over,
}

/// The client of a stream, which may lose its authorization.
struct Listener {
    app: App,
    who: Who,
    /// Its session of the older era.
    session: Option<(String, super::http_session::Listening)>,
    _counted: Box<dyn Send + Sync>,
}

impl Listener {
    /// Completes when the stream must end: with the daemon, with its session, or because the token is no longer valid.
    async fn over(&self) {
        let mut ending = self.app.0.ending.clone();
        let mut ended = std::pin::pin!(async move { drop(ending.wait_for(|ending| *ending).await) });
        let mut look = tokio::time::interval(LOOK_AUTH);
        loop {
            tokio::select! {
                () = &mut ended => return,
                _ = look.tick() => {
                    let has_session =
                        self.session.as_ref().is_none_or(|(id, _)| self.app.0.mcp_sessions.has(id));
                    if !has_session || !auth::still_may(&self.app, &self.who).await.unwrap_or(false) {
                        return;
                    }
                }
            }
        }
    }
}

pub(super) async fn listen(who: Who, State(app): State<App>, headers: HeaderMap) -> Result<EventStream, ApiError> {
    check_origin(&headers)?;
    if !headers.contains_key(SESSION) {
        return Err(no_session_sent());
    }
    let (id, session) = find(&app, &who, &headers).map_err(|(_, error)| ApiError::not_found(error.message))?;
    let counted = stream_slot(&app)?;
    let Some(listening) = session.begin_listening() else {
        return Err(ApiError::new(StatusCode::CONFLICT, "taken", "the session has this stream already"));
    };
    let known = app.0.mcp.revision().await;
    let listener = Listener { app, who, session: Some((id, listening)), _counted: counted };
    Ok(EventStream(events_of(unfold((listener, known), |(listener, mut known)| async move {
        tokio::select! {
            () = listener.over() => return None,
            now = changed(&listener.app.0.mcp, known) => known = now,
        }
        Some((list_changed(), (listener, known)))
    }))))
}

pub(super) async fn end(who: Who, State(app): State<App>, headers: HeaderMap) -> Result<NoContent, ApiError> {
    check_origin(&headers)?;
    let Some(id) = headers.get(SESSION) else { return Err(no_session_sent()) };
    match id.to_str().is_ok_and(|id| app.0.mcp_sessions.end(id, &owner(&who))) {
        true => Ok(NoContent),
        false => Err(ApiError::not_found(no_such_session().message)),
    }
}

/// Takes a place among the open streams.
fn stream_slot(app: &App) -> Result<Box<dyn Send + Sync>, ApiError> {
    let counted = count::counted(app, |counters| &counters.http_streams);
    let max = app.0.drive.newest_config().gateway.max_streams;
    if app.0.counters.http_streams.load(Ordering::Relaxed) > max {
        let message = format!("{max} streams are already open (gateway.max_streams)");
        return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "too_many_streams", message));
    }
    Ok(Box::new(counted))
}

/// Returns a string that identifies the caller.
fn owner(who: &Who) -> String {
    match &who.via {
        Via::Token { handle } => format!("token {handle}"),
        Via::Machine | Via::Page { .. } => who.name().to_owned(),
    }
}

/// Returns the session of the older era that a request belongs to, with its id.
fn find(app: &App, who: &Who, headers: &HeaderMap) -> Result<(String, Arc<HttpSession>), (StatusCode, RpcError)> {
    let Some(id) = headers.get(SESSION) else {
        let message =
            "Mcp-Session-Id is missing: `initialize` begins a session, or `_meta` says the version 2026-07-28";
        return Err((StatusCode::BAD_REQUEST, RpcError::new(INVALID_REQUEST, message)));
    };
    let id = id.to_str().unwrap_or_default();
    let found = app.0.mcp_sessions.find(id, &owner(who));
    found.map(|session| (id.to_owned(), session)).ok_or((StatusCode::NOT_FOUND, no_such_session()))
}

fn no_such_session() -> RpcError {
    RpcError::new(INVALID_REQUEST, "there is no such session; begin a new one with `initialize`")
}

fn no_session_sent() -> ApiError {
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "wrong_method", "without Mcp-Session-Id, /mcp takes POST only")
}

/// Cancels a request of a client of the older era.
fn cancel(app: &App, who: &Who, headers: &HeaderMap, method: &str, params: &Map<String, Value>) {
    let id = params.get("requestId").and_then(|id| RequestId::deserialize(id).ok());
    if let (true, Some(id), Ok((_, session))) = (method == "notifications/cancelled", id, find(app, who, headers)) {
        session.cancel(&id);
    }
}
