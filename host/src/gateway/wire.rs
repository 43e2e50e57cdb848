//! The shapes of requests and answers. Times are milliseconds since 1970 (UTC).

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Json;
use axum::body::to_bytes;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::App;
use super::error::ApiError;
use crate::graph::block::Block;
use crate::graph::report::FileNote;
use crate::home::SessionName;
use crate::json;
use crate::secret::vault::SEALED;
use crate::store::{self, JobState, Placement, RunLine, SessionLine};

/// Entries of a page, where the request does not say.
pub const PAGE: u32 = 50;

/// Entries of a page at most.
pub const MAX_PAGE: u32 = 500;

/// `POST /msg`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MessageIn {
    /// The conversation; made when it is new.
    #[serde(default = "default_session")]
    pub session: String,
    pub text: String,
    /// The client's name for the message: sent again with the same one, it is not done again.
    #[serde(default)]
    pub key: Option<String>,
}

/// The session of a request that names none.
pub fn default_session() -> String {
    "default".to_owned()
}

/// What `POST /msg` answers: 202 for a message, 200 for a command.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Accepted {
    Queued {
        session: SessionName,
        /// The message's id; `GET /messages/ID` says what became of it.
        message: i64,
        status: &'static str,
    },
    Answered {
        session: SessionName,
        answer: String,
    },
}

/// A message of a session.
#[derive(Debug, Serialize)]
pub struct Message {
    pub id: i64,
    pub session: SessionName,
    /// "user" or "assistant".
    pub role: &'static str,
    pub text: String,
    pub at_ms: i64,
    pub run: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    #[serde(flatten)]
    pub reply: Option<Reply>,
}

/// What is known of a reply beside its text: of the last message of a run that has ended.
#[derive(Debug, Serialize)]
pub struct Reply {
    /// How its run ended: "done", "failed" or "cancelled".
    pub status: &'static str,
    /// The same as `text` without the list of files, in parts; left out where all of it is Markdown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<Block>,
    /// What the run made.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileNote>,
}

/// What became of a message.
#[derive(Debug, Serialize)]
pub struct Job {
    pub message: i64,
    pub session: SessionName,
    /// "queued", "running", "held", "done", "failed" or "cancelled".
    pub status: &'static str,
    pub run: Option<String>,
    /// The message that answers it.
    pub reply: Option<Message>,
}

/// A run, as in a listing.
#[derive(Debug, Serialize)]
pub struct Run {
    pub id: String,
    pub session: SessionName,
    /// The beginning of the message; empty as long as no model has looked at it for secrets.
    pub message: String,
    /// "running", "held", "done", "failed" or "cancelled".
    pub status: &'static str,
    pub started_ms: i64,
    pub ended_ms: Option<i64>,
}

/// A session, as in a listing.
#[derive(Debug, Serialize)]
pub struct Session {
    pub name: SessionName,
    pub title: Option<String>,
    pub created_ms: i64,
    pub active_ms: i64,
    pub model: Option<String>,
    /// Replies that were not read, at most 99.
    pub unread: u32,
    /// The run that is under way.
    pub running: Option<String>,
    /// "listed", "pinned" or "archived".
    pub placement: Placement,
}

/// `GET /status/{session}`
#[derive(Debug, Serialize)]
pub struct Status {
    pub session: SessionName,
    pub title: Option<String>,
    pub active_ms: i64,
    /// "listed", "pinned" or "archived".
    pub placement: Placement,
    /// The model that makes plans here.
    pub model: String,
    /// The model of every role.
    pub models: BTreeMap<&'static str, String>,
    /// The message after which the segment begins; 0 for the first.
    pub segment_start: i64,
    pub running: Option<String>,
    pub queued: usize,
}

/// A part of a listing.
#[derive(Debug, Serialize)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// What to give as `before` for the next page; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl Run {
    pub fn of(line: RunLine) -> Run {
        let RunLine { id, session, mut message, status, started_ms, ended_ms } = line;
        // Cut off, it cannot be opened; the session's messages have it.
        if message.starts_with(SEALED) {
            message.clear();
        }
        Run { id: id.to_string(), session, message, status: status.as_str(), started_ms, ended_ms }
    }
}

impl Session {
    pub fn of(line: SessionLine) -> Session {
        let SessionLine { id: _, name, title, created_ms, active_ms, model, unread, running, placement } = line;
        let running = running.map(|run| run.to_string());
        Session { name, title, created_ms, active_ms, model, unread, running, placement }
    }
}

impl Message {
    pub fn of(session: SessionName, message: store::Message, text: String) -> Message {
        let role = match message.role {
            store::MessageRole::User => "user",
            store::MessageRole::Assistant => "assistant",
        };
        let run = message.run.map(|run| run.to_string());
        Message { id: message.id, session, role, text, at_ms: message.at_ms, run, tags: message.tags, reply: None }
    }
}

pub fn status_of(state: JobState) -> &'static str {
    state.as_str()
}

/// How many entries a page is to have: as many as were asked for, if that is allowed.
pub fn page_size(asked: Option<u32>) -> Result<u32, ApiError> {
    match asked {
        None => Ok(PAGE),
        Some(asked @ 1..=MAX_PAGE) => Ok(asked),
        Some(asked) => {
            Err(ApiError::bad_request(format!("`limit` is {asked}, and a page has 1 to {MAX_PAGE} entries")))
        }
    }
}

/// What stands in the path of a request. What cannot be read names nothing that there is.
#[derive(Debug)]
pub struct Path<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Path<T>, ApiError> {
        match axum::extract::Path::from_request_parts(parts, state).await {
            Ok(axum::extract::Path(value)) => Ok(Path(value)),
            Err(_) => Err(ApiError::not_found("there is nothing of that name")),
        }
    }
}

/// The query of a request.
#[derive(Debug)]
pub struct Query<T>(pub T);

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

/// A body of JSON, read within the limits of size and time.
#[derive(Debug)]
pub struct Body<T>(pub T);

impl<T: DeserializeOwned> FromRequest<App> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Body<T>, ApiError> {
        let gateway = &app.0.drive.config_now().gateway;
        let max = usize::try_from(gateway.max_body_kib << 10).unwrap_or(usize::MAX);
        let wait = Duration::from_secs(gateway.request_timeout_s);
        let too_large = || {
            ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", format!("the body has more than {max} bytes"))
                .hint("gateway.max_body_kib in config.toml raises this limit")
        };
        let read = tokio::time::timeout(wait, to_bytes(request.into_body(), max)).await;
        let bytes = read.map_err(|_| {
            ApiError::new(
                StatusCode::REQUEST_TIMEOUT,
                "timeout",
                format!("the body did not arrive within {} s", wait.as_secs()),
            )
        })?;
        // A limit that was passed is told apart from a connection that broke, which gets no answer anyway.
        let bytes = bytes.map_err(|error| {
            let limited =
                std::error::Error::source(&error).is_some_and(|source| source.is::<http_body_util::LengthLimitError>());
            if limited { too_large() } else { ApiError::bad_request("the body is incomplete") }
        })?;
        let value = json::parse(&bytes).map_err(|error| {
            ApiError::bad_request(format!("the body is not the JSON that is expected here: {error}"))
        })?;
        Ok(Body(value))
    }
}

/// JSON that was made.
pub type Made<T> = Result<Json<T>, ApiError>;
