//! Errors in the format of OpenAI's API: `{"error": {"message", "type", "param", "code"}}`.

use axum::body::Body;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use super::ApiError;

/// Returns whether the route at this path belongs to OpenAI's API.
pub(crate) fn serves(path: &str) -> bool {
    path.starts_with("/v1/")
}

/// Every error below `/v1/` has this form.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "OpenAiError")]
pub(crate) struct ErrorBody {
    error: ErrorDetails,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "OpenAiErrorDetails")]
struct ErrorDetails {
    /// Includes the hint.
    message: String,
    #[serde(rename = "type")]
    #[schemars(extend("enum" = ["invalid_request_error", "authentication_error", "permission_error", "rate_limit_error", "server_error"]))]
    kind: &'static str,
    /// The invalid member of the request.
    param: Option<String>,
    /// A stable identifier for programs, the same as in the rest of the API.
    code: &'static str,
}

impl ErrorBody {
    pub(crate) fn from_error(error: &ApiError) -> ErrorBody {
        let kind = match error.status {
            StatusCode::UNAUTHORIZED => "authentication_error",
            StatusCode::FORBIDDEN => "permission_error",
            StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
            status if status.is_client_error() => "invalid_request_error",
            _ => "server_error",
        };
        let message = match &error.hint {
            Some(hint) => format!("{} ({hint})", error.message),
            None => error.message.clone(),
        };
        ErrorBody { error: ErrorDetails { message, kind, param: error.param.clone(), code: error.code } }
    }
}

/// Returns the body of an error in this format.
pub(crate) fn body(error: &ApiError) -> Body {
    Body::from(kiso_base::json::bytes(&ErrorBody::from_error(error)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_error_says_what_kind_it_is_and_what_to_do() {
        let error = ApiError::bad_request("`n` is 2").hint("send one request for each").param("n");
        assert_eq!(
            serde_json::to_value(ErrorBody::from_error(&error)).unwrap(),
            json!({ "error": { "message": "`n` is 2 (send one request for each)", "type": "invalid_request_error",
                "param": "n", "code": "bad_request" } })
        );
        let full = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "queue_full", "full");
        assert_eq!(ErrorBody::from_error(&full).error.kind, "rate_limit_error");
        assert_eq!(ErrorBody::from_error(&ApiError::internal(&"x")).error.kind, "server_error");
    }
}
