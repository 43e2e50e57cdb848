//! Errors as clients get them: `{"error": {"code", "message", "hint"}}`.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::drive::DriveError;
use crate::secret::VaultError;
use crate::session::intake::{RETRY_AFTER_S, Refused};
use crate::skill::LimitHit;
use crate::store::StoreError;

/// What goes back instead of an answer.
#[derive(Debug, Clone)]
pub struct ApiError {
    pub status: StatusCode,
    /// A stable word for programs.
    pub code: &'static str,
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// What a program needs to know beside it, by name.
    pub more: Vec<(&'static str, Value)>,
}

/// The code of an error, beside the answer that it became: for the counters.
#[derive(Debug, Clone, Copy)]
pub struct Code(pub &'static str);

impl ApiError {
    pub fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> ApiError {
        ApiError { status, code, message: message.into(), hint: None, more: Vec::new() }
    }

    pub fn hint(mut self, hint: impl Into<String>) -> ApiError {
        self.hint = Some(hint.into());
        self
    }

    /// With another field.
    pub fn with(mut self, name: &'static str, value: Value) -> ApiError {
        self.more.push((name, value));
        self
    }

    pub fn not_found(what: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::NOT_FOUND, "not_found", what)
    }

    pub fn bad_request(why: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::BAD_REQUEST, "bad_request", why)
    }

    /// A mistake or misfortune of the host. What it was is for the log, not for the client.
    pub fn disk_full() -> ApiError {
        let message = "the disk is full; nothing was saved";
        ApiError::new(StatusCode::INSUFFICIENT_STORAGE, "disk_full", message).hint("free some space and try again")
    }

    /// All sessions and the store together hold as much as they may.
    pub fn home_full(hit: &LimitHit) -> ApiError {
        let message = format!("storage limit reached: {hit}");
        ApiError::new(StatusCode::INSUFFICIENT_STORAGE, "home_full", message)
            .hint("delete sessions or files that you no longer need")
    }

    pub fn internal(error: &dyn std::fmt::Display) -> ApiError {
        tracing::error!("a request failed: {error}");
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "internal error").hint("the daemon's log says why")
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut body = json!({ "error": { "code": self.code, "message": self.message, "hint": self.hint } });
        for (name, value) in self.more {
            body["error"][name] = value;
        }
        let mut response = (self.status, Json(body)).into_response();
        response.extensions_mut().insert(Code(self.code));
        let headers = response.headers_mut();
        if matches!(self.status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(RETRY_AFTER_S));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            // The next guess costs a connection.
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> ApiError {
        match &error {
            StoreError::NoRun { .. } => ApiError::not_found(error.to_string()),
            StoreError::Ambiguous { .. } => ApiError::bad_request(error.to_string()),
            StoreError::Quota { .. } => ApiError::new(StatusCode::INSUFFICIENT_STORAGE, "quota", error.to_string()),
            StoreError::Sessions { max } => {
                let message = format!("the limit of {max} sessions is reached");
                ApiError::new(StatusCode::INSUFFICIENT_STORAGE, "too_many_sessions", message).hint(
                    "delete sessions that you no longer need; limits.max_sessions in config.toml raises this limit",
                )
            }
            StoreError::DiskFull { .. } => {
                tracing::error!("a request failed: {error}");
                ApiError::disk_full()
            }
            StoreError::Ended { .. } => ApiError::new(StatusCode::CONFLICT, "ended", error.to_string()),
            StoreError::Locked { .. } => {
                tracing::error!("a request failed: {error}");
                ApiError::new(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "busy",
                    "another program keeps kiso's store from being written",
                )
            }
            _ => ApiError::internal(&error),
        }
    }
}

impl From<DriveError> for ApiError {
    fn from(error: DriveError) -> ApiError {
        match error {
            DriveError::Store(error) | DriveError::Vault(VaultError::Store(error)) => error.into(),
            DriveError::HomeFull(hit) => ApiError::home_full(&hit),
            error => ApiError::internal(&error),
        }
    }
}

impl From<Refused> for ApiError {
    fn from(refused: Refused) -> ApiError {
        let message = refused.to_string();
        match refused {
            Refused::Empty | Refused::BadKey { .. } => ApiError::bad_request(message),
            Refused::TooLarge { .. } => ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
                .hint("put the text into a file of the session's workspace"),
            Refused::Full { .. } => ApiError::new(StatusCode::TOO_MANY_REQUESTS, "queue_full", message),
            Refused::ShuttingDown => ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "shutting_down", message),
            Refused::Drive(error) => error.into(),
        }
    }
}
