//! Errors as clients get them: `{"error": {"code", "message", "hint"}}`.

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
    /// A stable word for programs.
    pub code: &'static str,
    pub message: String,
    /// The next step for whoever reads the error.
    pub hint: Option<String>,
    /// The member of the request that is wrong; only OpenAI's interface says it.
    #[serde(skip)]
    pub param: Option<String>,
    /// Whether what was asked is done all the same, so that it must not be sent again.
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

/// With the code `grant_needed`: what an installation would have to be granted.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct GrantNeeded {
    /// The skill's name.
    pub skill: String,
    /// What it asks for.
    pub asks: GrantView,
    /// Why the file is not taken for the next version of what is installed; absent where it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
    /// What models are told, and what is checked, otherwise than now: `- ` before what goes, `+ ` before what comes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub change: Vec<String>,
}

/// The error that an answer was made from, beside it: for the counters, and for those who say it in another form.
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

    /// There is no session of this name, or none that the caller may read.
    pub(crate) fn no_session(name: &SessionName) -> ApiError {
        ApiError::not_found(format!("there is no session {:?}", name.as_str()))
            .hint("a session begins with its first message; a token of scope chat reads those that it began")
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
        let (status, accepted, refusal) = (self.status, self.accepted, Refusal(Box::new(self.clone())));
        let mut response = (status, Json(ErrorBody { error: self })).into_response();
        response.extensions_mut().insert(refusal);
        let headers = response.headers_mut();
        if accepted {
            // The official clients of OpenAI's interface send again what failed, unless this says otherwise.
            headers.insert(HeaderName::from_static("x-should-retry"), HeaderValue::from_static("false"));
        } else if matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(RETRY_AFTER_S));
        }
        if status == StatusCode::UNAUTHORIZED {
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
