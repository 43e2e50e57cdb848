//! Types of requests and responses. Times are milliseconds since 1970 (UTC).

mod path;

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Json;
use axum::body::HttpBody as _;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub(crate) use self::path::{Path, Segments};
use super::App;
use super::error::ApiError;
use super::trouble::RunTrouble;
use kiso_agent::session::search::message_text;
use kiso_base::home::SessionName;
use kiso_base::json;
use kiso_plan::block::Block;
use kiso_plan::report::FileNote;
use kiso_store::secret::Vault;
use kiso_store::secret::vault::SEALED;
use kiso_store::store::{self, JobState, MessageRole, Placement, RunId, RunLine, RunStatus};

/// Default number of entries per page.
pub(crate) const PAGE: u32 = 50;

/// Maximum number of entries per page.
pub(crate) const MAX_PAGE: u32 = 500;

/// A message that was stored.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Accepted")]
pub(crate) struct AcceptedMessage {
    pub session: SessionName,
    /// Id of the message; `GET /messages/{id}` returns its state.
    pub message: i64,
    pub status: Admission,
}

/// Whether a message is new.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Admission {
    Queued,
    /// A message with the same key was accepted before.
    Known,
}

/// A message of a session.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Message {
    pub id: i64,
    pub session: SessionName,
    pub role: MessageRole,
    pub text: String,
    /// Milliseconds since 1970 (UTC).
    pub at_ms: i64,
    /// The run that the message started, or that wrote it.
    pub run: Option<RunId>,
    /// `#tags` of the text, without the `#`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The first messages of all versions of the turn that this message begins, oldest first, including this one; absent if there
    /// is only one version.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<i64>,
    /// The same versions, each with its run and the number of its wording; absent if there is only one version.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub version_runs: Vec<VersionRun>,
    /// Whether it belongs to a version of the conversation that is not shown; absent if it does not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub replaced: bool,
    /// Number of the approval that it asks for; `text` is the same question for programs without buttons.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<i64>,
    #[serde(flatten)]
    pub reply: Option<Reply>,
}

/// A version of a turn.
#[derive(Debug, Serialize, JsonSchema)]
pub struct VersionRun {
    /// Its first message.
    pub message: i64,
    /// The run that answers it, once it has started.
    pub run: Option<RunId>,
    /// Number of its wording, from 0: versions with the same number are different answers to the same text.
    pub wording: usize,
}

/// Data of a reply besides its text; only for the last message of a run that has ended.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Reply {
    /// The status with which the run ended.
    pub status: RunStatus,
    /// The content of `text` in parts, without its list of files; absent if all of it is Markdown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<Block>,
    /// Files that the run created.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileNote>,
    /// Milliseconds that models thought before they answered; absent if they did not. `GET /runs/{run}` returns the thoughts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thought_ms: Option<u64>,
    /// The reason why the work was not done, with the next step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<RunTrouble>,
}

/// A notification for a receiver that is not connected. As JSON, it is the body of a webhook request (docs/webhooks.md).
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Told")]
pub struct Letter {
    /// The same for all attempts.
    pub id: String,
    #[schemars(extend("enum" = ["reply", "notify", "run", "test"]))]
    pub event: &'static str,
    pub session: Option<SessionName>,
    /// The reply; null for other events.
    pub message: Option<Message>,
    /// Text that a run sent before its end; absent in other events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Whether the text was truncated.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    pub run: Option<RunId>,
    /// Final status of a run; absent in other events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<RunStatus>,
    /// Milliseconds since 1970 (UTC).
    pub at_ms: i64,
    /// Counted from 1.
    pub attempt: u32,
    /// Whether the content is left out because it may not be sent there.
    #[serde(skip)]
    pub withheld: bool,
    /// Epoch of the fleet member that sends it; it increases with each owner of the home.
    #[serde(skip)]
    pub epoch: Option<u64>,
}

impl Letter {
    /// Creates the test notification that a person requested.
    pub fn test(now_ms: i64) -> Letter {
        Letter {
            id: format!("test-{now_ms}"),
            event: "test",
            session: None,
            message: None,
            text: None,
            truncated: false,
            run: None,
            status: None,
            at_ms: now_ms,
            attempt: 1,
            withheld: false,
            epoch: None,
        }
    }

    /// Returns the JSON.
    pub fn bytes(&self) -> Vec<u8> {
        kiso_base::json::bytes(self)
    }
}

/// The state of a message.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Job {
    pub message: i64,
    pub session: SessionName,
    pub status: JobState,
    pub run: Option<RunId>,
    /// The message that answers it.
    pub reply: Option<Message>,
}

/// The status of a session.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Status {
    pub session: SessionName,
    pub title: Option<String>,
    /// Time of its last message, in milliseconds since 1970 (UTC).
    pub active_ms: i64,
    pub placement: Placement,
    /// The session's model for plans.
    pub model: String,
    /// The model of every role.
    pub models: BTreeMap<&'static str, String>,
    /// The message after which the current segment begins; 0 for the first segment.
    pub segment_start: i64,
    /// The message that began the current branch; 0 for the first branch. A different value means that a version of a turn was
    /// added, or switched to.
    pub branch: i64,
    /// The active run.
    pub running: Option<RunId>,
    /// Number of queued messages.
    pub queued: usize,
}

/// A page of a listing.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "{T}Page")]
pub(crate) struct Page<T> {
    pub items: Vec<T>,
    /// The `before` of the next page; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Page of a listing whose entries have ids.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Part {
    /// The `next` of the previous page.
    pub before: Option<i64>,
    /// Number of entries per page; 50 by default.
    #[schemars(range(min = 1, max = 500))]
    pub limit: Option<u32>,
}

/// Prepares a run for clients: the message is left out until a model has checked it for secrets. A sealed text is truncated here
/// and cannot be decrypted; the session's messages contain the whole text.
pub fn shown(mut run: RunLine) -> RunLine {
    if run.message.starts_with(SEALED) {
        run.message.clear();
    }
    run
}

/// Decrypts a message for its owner. If that fails, the text says so.
pub fn open_message(vault: &Vault, session: SessionName, message: store::Message) -> Message {
    let text = message_text(vault, &message.text);
    plain_message(session, store::Message { text, ..message })
}

/// Returns a message whose text is decrypted already.
pub fn plain_message(session: SessionName, message: store::Message) -> Message {
    let store::Message { id, role, text, at_ms, run, tags } = message;
    Message {
        id,
        session,
        role,
        text,
        at_ms,
        run,
        tags,
        versions: Vec::new(),
        version_runs: Vec::new(),
        replaced: false,
        approval: None,
        reply: None,
    }
}

/// Returns the number of entries per page: the requested one, if it is allowed.
pub(crate) fn page_size(asked: Option<u32>) -> Result<u32, ApiError> {
    match asked {
        None => Ok(PAGE),
        Some(asked @ 1..=MAX_PAGE) => Ok(asked),
        Some(asked) => {
            Err(ApiError::bad_request(format!("`limit` is {asked}, and a page has 1 to {MAX_PAGE} entries")))
        }
    }
}

/// The query of a request.
#[derive(Debug)]
pub(crate) struct Query<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Query<T>, ApiError> {
        match axum::extract::Query::from_request_parts(parts, state).await {
            Ok(axum::extract::Query(value)) => Ok(Query(value)),
            Err(error) => {
                let why = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
                Err(ApiError::bad_request(format!("the query is not what is expected here: {why}")))
            }
        }
    }
}

/// A JSON body, read within the limits of size and time.
#[derive(Debug)]
pub(crate) struct Body<T>(pub T);

impl<T: DeserializeOwned> FromRequest<App> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Body<T>, ApiError> {
        let max = usize::try_from(app.0.drive.newest_config().gateway.max_body_kib << 10).unwrap_or(usize::MAX);
        let bytes = read_body(request, app, max, "gateway.max_body_kib in config.toml raises this limit").await?;
        Ok(Body(json::parse(&bytes).map_err(ApiError::from)?))
    }
}

/// A JSON body with embedded files, which may be larger than usual.
#[derive(Debug)]
pub(crate) struct LargeBody<T>(pub T);

/// Maximum size in bytes of such a body. The whole body and its files are in memory; a larger file needs its own request.
pub(crate) const MAX_LARGE_BODY: usize = 16 << 20;

impl<T: DeserializeOwned + Send + 'static> FromRequest<App> for LargeBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<LargeBody<T>, ApiError> {
        // Large bodies share the places of file uploads; others wait. A body that announces a small size needs no place.
        let usual = app.0.drive.newest_config().gateway.max_body_kib << 10;
        let is_small = request.body().size_hint().upper().is_some_and(|bytes| bytes <= usual);
        let _place = match is_small {
            true => None,
            false => Some(app.0.uploads.clone().acquire_owned().await.map_err(|closed| ApiError::internal(&closed))?),
        };
        let hint = "upload a larger file with PUT /sessions/SESSION/files/PATH, and use the model kiso/SESSION";
        let bytes = read_body(request, app, MAX_LARGE_BODY, hint).await?;
        let value = kiso_base::compute::run("reading the request", move || json::parse(&bytes)).await??;
        Ok(LargeBody(value))
    }
}

impl From<json::JsonError> for ApiError {
    fn from(error: json::JsonError) -> ApiError {
        ApiError::bad_request(format!("the body is not the JSON that is expected here: {error}"))
    }
}

/// Returns the bytes of a body of at most `max` bytes, within the time limit of a request.
pub(crate) async fn read_body(request: Request, app: &App, max: usize, hint: &str) -> Result<Bytes, ApiError> {
    // A body that announces an excessive size is refused before it is received.
    if request.body().size_hint().lower() > max as u64 {
        return Err(too_large(max, hint));
    }
    let wait = Duration::from_secs(app.0.drive.newest_config().gateway.request_timeout_s);
    let read = tokio::time::timeout(wait, collect(request.into_body(), max)).await;
    let late = |_| {
        let message = format!("the body did not arrive within {} s", wait.as_secs());
        ApiError::new(StatusCode::REQUEST_TIMEOUT, "timeout", message)
    };
    // A broken connection gets no response anyway.
    let bytes = read.map_err(late)?.map_err(|_| ApiError::bad_request("the body is incomplete"))?;
    bytes.ok_or_else(|| too_large(max, hint))
}

/// Returns all bytes of a body; `None` if there are more than `max`.
async fn collect(mut body: axum::body::Body, max: usize) -> Result<Option<Bytes>, axum::Error> {
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        if bytes.len() + data.len() > max {
            return Ok(None);
        }
        bytes.extend_from_slice(&data);
    }
    Ok(Some(bytes.freeze()))
}

fn too_large(max: usize, hint: &str) -> ApiError {
    let message = format!("the body has more than {max} bytes");
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message).hint(hint)
}

/// A JSON response, or an error.
pub(crate) type JsonResult<T> = Result<Json<T>, ApiError>;

macro_rules! json_answers {
    ($($(#[$about:meta])* $answer:ident $status:ident)*) => {$(
        $(#[$about])*
        #[derive(Debug)]
        pub(crate) struct $answer<T>(pub T);

        impl<T: Serialize> IntoResponse for $answer<T> {
            fn into_response(self) -> Response {
                (StatusCode::$status, Json(self.0)).into_response()
            }
        }
    )*};
}

json_answers! {
    /// A JSON response for something that was created.
    Created CREATED
    /// A JSON response for something that was queued.
    Queued ACCEPTED
}

/// A response that confirms success without a body.
#[derive(Debug)]
pub(crate) struct NoContent;

impl IntoResponse for NoContent {
    fn into_response(self) -> Response {
        StatusCode::NO_CONTENT.into_response()
    }
}

/// One of two responses.
#[derive(Debug)]
pub(crate) enum Either<A, B> {
    A(A),
    B(B),
}

impl<A: IntoResponse, B: IntoResponse> IntoResponse for Either<A, B> {
    fn into_response(self) -> Response {
        match self {
            Either::A(answer) => answer.into_response(),
            Either::B(answer) => answer.into_response(),
        }
    }
}

macro_rules! media {
    ($($(#[$about:meta])* $answer:ident)*) => {$(
        $(#[$about])*
        #[derive(Debug)]
        pub(crate) struct $answer(pub Response);

        impl IntoResponse for $answer {
            fn into_response(self) -> Response {
                self.0
            }
        }
    )*};
}

media! {
    /// A file, whole or in part.
    SentFile
    /// The document of the page.
    Html
    /// Another file of the page.
    PageFile
    /// Samples in the text format of Prometheus.
    Metrics
    /// Lines of JSON, one object each.
    JsonLines
}

macro_rules! raw_bodies {
    ($($(#[$about:meta])* $body:ident)*) => {$(
        $(#[$about])*
        #[derive(Debug)]
        pub(crate) struct $body(pub Request);

        impl FromRequest<App> for $body {
            type Rejection = std::convert::Infallible;

            async fn from_request(request: Request, _: &App) -> Result<$body, Self::Rejection> {
                Ok($body(request))
            }
        }
    )*};
}

raw_bodies! {
    /// A body that is a file, streamed.
    FileBody
    /// A body that is an event of another program; read after its maximum size is known.
    EventBody
    /// A body that is a component, streamed.
    WasmBody
}
