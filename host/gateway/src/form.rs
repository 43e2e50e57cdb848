//! Checks for every request, and headers for every response.

use std::sync::atomic::Ordering;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, Version, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::App;
use super::error::{ApiError, Refusal, openai};

/// Maximum length in bytes of a request's target. Larger inputs belong in the body.
const MAX_TARGET: usize = 8 << 10;

/// Refuses ambiguous requests, which two programs could read in two ways, and sets the headers of every response.
pub(crate) async fn check(State(app): State<App>, request: Request, next: Next) -> Response {
    let counters = &app.0.counters;
    counters.requests.fetch_add(1, Ordering::Relaxed);
    // A program that reads such a body by its length would take the rest for another request. So the connection is closed after
    // it.
    let last = request.headers().contains_key(header::TRANSFER_ENCODING);
    let speaks_openai = openai::serves(request.uri().path());
    let (mut response, malformed) = match malformed(&request) {
        Some(error) => (error.into_response(), true),
        None => (next.run(request).await, false),
    };
    if let Some(Refusal(error)) = response.extensions().get() {
        counters.refused(error.code);
        if speaks_openai {
            *response.body_mut() = openai::body(error);
        }
    }
    let headers = response.headers_mut();
    if last || malformed {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

fn malformed(request: &Request) -> Option<ApiError> {
    let headers = request.headers();
    let target = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
    if target > MAX_TARGET {
        let message = format!("the request's target has {target} bytes; at most {MAX_TARGET} are taken");
        return Some(ApiError::new(StatusCode::URI_TOO_LONG, "too_long", message));
    }
    let hosts = headers.get_all(header::HOST).iter().count();
    if hosts > 1 || (hosts == 0 && request.version() >= Version::HTTP_11) {
        return Some(ApiError::bad_request("a request must have one Host header"));
    }
    if headers.contains_key(header::TRANSFER_ENCODING) && headers.contains_key(header::CONTENT_LENGTH) {
        return Some(ApiError::bad_request("a body has either Content-Length or Transfer-Encoding"));
    }
    None
}
