//! The routes, and what stands behind each. docs/api.md describes them; `GET /openapi.json` does so for programs.

mod files;
mod messages;
mod range;
mod runs;
mod sessions;
mod state;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, header};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{get, post};
use std::sync::atomic::Ordering;

use super::error::ApiError;
use super::{App, auth, events};

pub(super) use self::messages::open_message;

/// Everything that is served.
pub(super) fn router(app: App) -> Router {
    let guarded = Router::new()
        .route("/msg", post(messages::send))
        .route("/messages/{id}", get(messages::job))
        .route("/sessions", get(sessions::list))
        .route("/sessions/{session}/messages", get(sessions::of_session))
        .route("/status/{session}", get(sessions::status))
        .route("/runs", get(runs::list))
        .route("/runs/{run}", get(runs::show))
        .route("/runs/{run}/trace", get(runs::trace))
        .route("/runs/{run}/cancel", post(runs::cancel))
        .route("/events", get(events::follow))
        .route("/metrics", get(state::metrics))
        .layer(middleware::from_fn_with_state(app.clone(), auth::authenticate));
    Router::new()
        .route("/health", get(state::health))
        .route("/openapi.json", get(state::openapi))
        // Who knows the id may see the file.
        .route("/pub/{id}", get(files::published))
        .merge(guarded)
        .fallback(nothing)
        .method_not_allowed_fallback(wrong_method)
        .layer(middleware::from_fn_with_state(app.clone(), every))
        .with_state(app)
}

/// What holds for every answer.
async fn every(State(app): State<App>, request: Request, next: Next) -> Response {
    app.0.counters.requests.fetch_add(1, Ordering::Relaxed);
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

async fn nothing(request: Request) -> ApiError {
    ApiError::not_found(format!("there is nothing at {}", request.uri().path()))
        .hint("GET /openapi.json lists what there is")
}

async fn wrong_method(request: Request) -> ApiError {
    let what = format!("{} cannot be asked with {}", request.uri().path(), request.method());
    ApiError::new(axum::http::StatusCode::METHOD_NOT_ALLOWED, "wrong_method", what)
}
