//! The state of the fleet, if the home belongs to one.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use tokio::sync::Semaphore;

use crate::App;
use crate::auth::Who;
use crate::document::routes;
use crate::error::ApiError;
use crate::wire::JsonResult;
use kiso_sandbox::effect::member::FleetStatus;

routes! {
    /// The members of the fleet, and the owner of the home
    GET "/fleet" Admin => fleet,
        200 "The current state", 404 "The home does not belong to a fleet", 503 "NATS does not answer";
}

/// Limits concurrent requests to NATS; others wait. Each occupies a thread until NATS answers.
static PLACES: Semaphore = Semaphore::const_new(2);

pub(super) async fn fleet(_: Who, State(app): State<App>) -> JsonResult<FleetStatus> {
    let Some(member) = app.0.drive.member.clone() else {
        return Err(ApiError::not_found("this home is on one machine")
            .hint("[fleet] in config.toml makes it a member of a fleet: docs/fleet.md"));
    };
    let _place = PLACES.acquire().await.map_err(|closed| ApiError::internal(&closed))?;
    let read = tokio::task::spawn_blocking(move || member.status()).await;
    let status = read.map_err(|panic| ApiError::internal(&panic))?;
    status.map(Json).map_err(|why| {
        tracing::warn!("what the fleet is cannot be read: {why}");
        let message = "NATS does not say what the fleet is";
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "no_nats", message).hint("the daemon's log says why")
    })
}
