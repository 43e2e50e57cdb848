//! Errors as clients receive them: `{"error": {"code", "message", "hint"}}`.

pub(crate) mod openai;

use axum::Json;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;

use kiso_agent::drive::DriveError;
use kiso_agent::session::intake::{IntakeError, RETRY_AFTER_S};
use kiso_base::home::SessionName;
use kiso_sandbox::skill::{GrantView, LimitHit};
use kiso_store::secret::VaultError;
use kiso_store::store::{NotReplaced, StoreError};

/// The body of an error response.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "ErrorDetails")]
pub struct ApiError {
    #[serde(skip)]
    pub status: StatusCode,
    /// A stable identifier for programs.
    pub code: &'static str,
    pub message: String,
    /// The next step for the reader of the error.
    pub hint: Option<String>,
    /// The invalid member of the request; only OpenAI's API reports it.
    #[serde(skip)]
    pub param: Option<String>,
    /// Whether the request took effect despite the error, so that it must not be sent again.
    #[serde(skip)]
    pub accepted: bool,
    #[serde(flatten)]
    pub grant: Option<Box<GrantNeeded>>,
}

/// Every error has this form.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Error")]
pub(crate) struct ErrorBody {
    error: ApiError,
}

/// With the code `grant_needed`: the permissions that an installation requires.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct GrantNeeded {
    /// The skill's name.
    pub skill: String,
    /// The requested permissions.
    pub asks: GrantView,
    /// Why the file is not accepted as the next version of the installed skill; absent if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
    /// Changes to the texts for models and to what is checked: `- ` before removed lines, `+ ` before added ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub change: Vec<String>,
}

/// The error of a response, attached to it: for the counters, and for other error formats.
#[derive(Debug, Clone)]
pub(crate) struct Refusal(pub Box<ApiError>);

impl ApiError {
    pub fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> ApiError {
        ApiError { status, code, message: message.into(), hint: None, param: None, accepted: false, grant: None }
    }

    pub fn hint(mut self, hint: impl Into<String>) -> ApiError {
        self.hint = Some(hint.into());
        self
    }

    pub fn param(mut self, param: impl Into<String>) -> ApiError {
        self.param = Some(param.into());
        self
    }

    pub fn not_found(what: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::NOT_FOUND, "not_found", what)
    }

    /// The session does not exist, or the caller may not read it.
    pub(crate) fn no_session(name: &SessionName) -> ApiError {
        ApiError::not_found(format!("there is no session {:?}", name.as_str()))
            .hint("a session begins with its first message; a token of scope chat reads those that it began")
    }

    pub fn bad_request(why: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::BAD_REQUEST, "bad_request", why)
    }

    pub fn disk_full() -> ApiError {
        let message = "the disk is full; nothing was saved";
        ApiError::new(StatusCode::INSUFFICIENT_STORAGE, "disk_full", message).hint("free some space and try again")
    }

    /// The sessions and the store have reached their storage limit.
    pub fn home_full(hit: &LimitHit) -> ApiError {
        let message = format!("storage limit reached: {hit}");
        ApiError::new(StatusCode::INSUFFICIENT_STORAGE, "home_full", message)
            .hint("delete sessions or files that you no longer need")
    }

    /// An internal error of the host. The details are for the log, not for the client.
    pub fn internal(error: &dyn std::fmt::Display) -> ApiError {
        tracing::error!("a request failed: {error}");
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "internal error").hint("the daemon's log says why")
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let (status, accepted, refusal) = (self.status, self.accepted, Refusal(Box::new(self.clone())));
        let mut response = (status, Json(ErrorBody { error: self })).into_response();
        response.extensions_mut().insert(refusal);
        let headers = response.headers_mut();
        if accepted {
            // The official clients for OpenAI's API retry failed requests unless this header forbids it.
            headers.insert(HeaderName::from_static("x-should-retry"), HeaderValue::from_static("false"));
        } else if matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(RETRY_AFTER_S));
        }
        if status == StatusCode::UNAUTHORIZED {
            // Makes the next guess cost a new connection.
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

impl From<IntakeError> for ApiError {
    fn from(refused: IntakeError) -> ApiError {
        let message = refused.to_string();
        match refused {
            IntakeError::Empty | IntakeError::BadKey { .. } => ApiError::bad_request(message),
            IntakeError::TooLarge { .. } => ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
                .hint("put the text into a file of the session's workspace"),
            IntakeError::Full { .. } | IntakeError::HookFull { .. } => {
                ApiError::new(StatusCode::TOO_MANY_REQUESTS, "queue_full", message)
            }
            IntakeError::NotReplaced(why) => {
                let conflict = |code| ApiError::new(StatusCode::CONFLICT, code, message);
                match why {
                    NotReplaced::Unknown => ApiError::not_found(why.to_string()),
                    NotReplaced::IsReply => ApiError::bad_request(why.to_string()),
                    NotReplaced::Unanswered => conflict("unanswered"),
                    NotReplaced::Elsewhere => conflict("other_version"),
                    NotReplaced::AtWork(_) => conflict("at_work").hint("`cancel` cancels it"),
                    NotReplaced::TooMany => conflict("too_many_versions"),
                }
            }
            IntakeError::ShuttingDown => ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "shutting_down", message),
            IntakeError::Drive(error) => error.into(),
        }
    }
}
