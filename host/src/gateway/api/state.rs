//! How the daemon is.

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use serde_json::{Value, json};

use crate::gateway::App;
use crate::gateway::error::ApiError;
use crate::gateway::wire::Made;

/// What the API offers, for programs.
pub(super) const OPENAPI: &str = include_str!("../../../../docs/openapi.json");

/// `GET /health`: whether messages are taken in. That needs a store that can be read, and a daemon that is not ending.
pub async fn health(State(app): State<App>) -> Made<Value> {
    let not_ready = |message: &str| ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "not_ready", message);
    if *app.0.ending.borrow() {
        return Err(not_ready("the daemon is ending"));
    }
    if let Err(error) = app.0.drive.store.read(|view| view.feed_end()).await {
        tracing::error!("the store cannot be read: {error}");
        return Err(not_ready("the store cannot be read").hint("the daemon's log says why"));
    }
    Ok(Json(json!({ "status": "ok", "version": env!("CARGO_PKG_VERSION") })))
}

/// `GET /health/live`: the process answers, whatever else does not work.
pub async fn live() -> Json<Value> {
    Json(json!({ "status": "alive" }))
}

/// `GET /openapi.json`
pub async fn openapi() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], OPENAPI)
}
