//! `GET /events`: server-sent events.

use std::convert::Infallible;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::Stream;
use futures_util::stream::unfold;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::time::Interval;

use super::auth::{self, Who};
use super::document::signature::Describe;
use super::document::{Operation, routes};
use super::error::ApiError;
use super::follow::{self, Following, Notification};
use super::wire::Query;
use super::{App, count};
use kiso_base::home::SessionName;

routes! {
    /// Events of all sessions, as server-sent events
    /// `message`, `run`, `event` and `session` have ids from which a client can resume after a pause; `notify`, `live`,
    /// `deleted`, `gap`, `alive`, `unauthorized` and `shutdown` have none. docs/api.md describes each.
    GET "/events" Chat => follow, 200 "A stream that does not end", 503 "Too many streams are open";
}

/// Idle time after which an event shows that the connection is alive. A comment would not do, because a browser does not pass
/// comments on to its page.
const ALIVE: Duration = Duration::from_secs(15);

/// How often a stream checks whether its client is still authorized. It also checks before it sends events.
const LOOK: Duration = Duration::from_secs(5);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventQuery {
    /// Only events of this session.
    session: Option<SessionName>,
    /// Start after this id.
    after: Option<i64>,
}

/// The header that a browser sends when it reconnects.
#[derive(Debug)]
pub(crate) struct LastEventId(Option<i64>);

impl<S: Send + Sync> FromRequestParts<S> for LastEventId {
    type Rejection = ApiError;

    async fn from_request_parts(asked: &mut Parts, _: &S) -> Result<LastEventId, ApiError> {
        let Some(given) = asked.headers.get("last-event-id") else { return Ok(LastEventId(None)) };
        let id = given.to_str().ok().and_then(|id| id.parse().ok());
        Ok(LastEventId(Some(id.ok_or_else(|| ApiError::bad_request("Last-Event-ID is not a number"))?)))
    }
}

impl Describe for LastEventId {
    fn describe(operation: &mut Operation<'_>) {
        let schema = json!({ "description": "Begin after this id; takes precedence over `after`.", "type": "integer", "format": "int64" });
        operation.parameter("header", "Last-Event-ID", false, schema);
    }
}

/// A stream whose client may lose its authorization.
struct Sending {
    app: App,
    who: Who,
    following: Following,
    look: Interval,
    over: bool,
    _counted: Box<dyn Send>,
}

pub(crate) async fn follow(
    who: Who,
    State(app): State<App>,
    Query(EventQuery { session, after }): Query<EventQuery>,
    LastEventId(last): LastEventId,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, ApiError> {
    let after = last.or(after);
    if let Some(session) = &session {
        who.check_session(&app, session).await?;
    }
    let counted = count::counted(&app, |counters| &counters.http_streams);
    if app.0.counters.http_streams.load(Ordering::Relaxed) > app.0.drive.newest_config().gateway.max_streams {
        let max = app.0.drive.newest_config().gateway.max_streams;
        let message = format!("{max} streams are already open (gateway.max_streams)");
        return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "too_many_streams", message));
    }
    let following =
        Following::new(app.clone(), follow::Subscription { session, after, live: true, owner: who.owner.clone() })
            .await?;
    let look = tokio::time::interval(LOOK);
    let sending = Sending { app, who, following, look, over: false, _counted: Box::new(counted) };
    let stream = unfold(sending, |mut sending| async move { Some((Ok(event(sending.next().await?)), sending)) });
    Ok(Sse::new(stream).keep_alive(KeepAlive::new().interval(ALIVE).event(Event::default().event("alive").data("{}"))))
}

impl Sending {
    async fn next(&mut self) -> Option<Notification> {
        if self.over {
            return None;
        }
        loop {
            // One check is enough for events that were read together.
            let is_new_batch = self.following.waiting() == 0;
            let told = tokio::select! {
                _ = self.look.tick() => None,
                told = self.following.next() => Some(told?),
            };
            // Live text arrives with each token of a model, so it relies on the last check.
            let live = told.as_ref().is_some_and(|told| told.name == "live");
            if told.is_none() || is_new_batch && !live {
                match auth::still_may(&self.app, &self.who).await {
                    Ok(true) => {}
                    Ok(false) => {
                        self.over = true;
                        return Some(Notification::now("unauthorized", json!({})));
                    }
                    Err(error) => {
                        tracing::warn!("an event stream ends: {error:?}");
                        return None;
                    }
                }
            }
            if told.is_some() {
                return told;
            }
        }
    }
}

fn event(told: Notification) -> Event {
    let Notification { name, id, data, .. } = told;
    let event = Event::default().event(name).data(data.to_string());
    match id {
        Some(id) => event.id(id.to_string()),
        None => event,
    }
}
