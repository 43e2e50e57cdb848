//! The parameters in a request's path.

use axum::extract::FromRequestParts;
use axum::extract::path::ErrorKind;
use axum::extract::rejection::PathRejection;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use crate::error::ApiError;
use kiso_base::home::SessionName;
use kiso_store::store::RunId;

/// The parameters in a request's path. A path whose parameters cannot be parsed gets "not found".
#[derive(Debug)]
pub(crate) struct Path<T>(pub T);

/// The type of path parameters: names with rules, and numbers.
pub(crate) trait Segments: DeserializeOwned + Send {
    /// Returns the error for a name that violates its rule.
    fn refused(rule: String) -> ApiError {
        ApiError::bad_request(rule)
    }
}

impl Segments for i64 {}
impl Segments for String {}
impl Segments for SessionName {}
impl<A: Segments, B: Segments> Segments for (A, B) {}
impl<A: Segments, B: Segments, C: Segments> Segments for (A, B, C) {}

impl Segments for RunId {
    fn refused(rule: String) -> ApiError {
        ApiError::not_found(rule)
    }
}

impl<T: Segments, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Path<T>, ApiError> {
        match axum::extract::Path::from_request_parts(parts, state).await {
            Ok(axum::extract::Path(value)) => Ok(Path(value)),
            Err(PathRejection::FailedToDeserializePathParams(error)) => Err(match error.into_kind() {
                ErrorKind::Message(rule) | ErrorKind::DeserializeError { message: rule, .. } => T::refused(rule),
                _ => nothing(),
            }),
            Err(_) => Err(nothing()),
        }
    }
}

fn nothing() -> ApiError {
    ApiError::not_found("there is nothing of that name")
}
