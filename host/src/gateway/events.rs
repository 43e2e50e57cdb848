//! `GET /events`: what happens, as server-sent events.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::{Query, State};
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::Stream;
use futures_util::stream::unfold;
use serde::Deserialize;

use super::App;
use super::auth::Who;
use super::error::ApiError;
use super::follow::{self, Following, Told};
use crate::home::SessionName;

/// Seconds without anything, after which a comment shows that the connection stands.
const ALIVE: Duration = Duration::from_secs(15);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    /// Only this session's; without it, all.
    session: Option<String>,
    /// Begin after this id, as the header `Last-Event-ID` says it, which counts more.
    after: Option<i64>,
}

pub async fn follow(
    _: Who,
    State(app): State<App>,
    Query(wanted): Query<Wanted>,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, ApiError> {
    let session = wanted.session.as_deref().map(SessionName::parse).transpose();
    let session = session.map_err(|error| ApiError::bad_request(error.to_string()))?;
    let given = headers.get("last-event-id").and_then(|id| id.to_str().ok()).map(str::parse).transpose();
    let after = given.map_err(|_| ApiError::bad_request("Last-Event-ID is no number"))?.or(wanted.after);
    let following = Following::new(app, follow::Wanted { session, after, live: true }).await?;
    let stream =
        unfold(following, |mut following| async move { Some((Ok(event(following.next().await?)), following)) });
    Ok(Sse::new(stream).keep_alive(KeepAlive::new().interval(ALIVE)))
}

fn event(told: Told) -> Event {
    let Told { name, id, data, .. } = told;
    let event = Event::default().event(name).data(data.to_string());
    match id {
        Some(id) => event.id(id.to_string()),
        None => event,
    }
}
