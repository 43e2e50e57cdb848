//! `GET /events`: what happens, as server-sent events. What is in the feed has an id, by which a client that was away goes
//! on; what a model is writing at the moment has none.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::Stream;
use futures_util::stream::unfold;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{broadcast, watch};
use tokio::time::Interval;

use super::api::open_message;
use super::auth::{self, Who};
use super::error::ApiError;
use super::wire::Query;
use super::{App, count};
use crate::home::SessionName;
use crate::secret::vault::is_sealed;
use crate::session::live::Live;
use crate::store::{Notice, NoticeKind, StoreError};

/// Notices that are read at once.
const BATCH: u32 = 64;

/// Bytes of an event's body that is sent along; of a larger one, `GET /runs/ID/events/SEQ` has it.
const MAX_BODY: usize = 64 << 10;

/// Seconds without anything, after which a comment shows that the connection stands.
const ALIVE: Duration = Duration::from_secs(15);

/// How often a stream looks whether its client may still have it. It does so too before it sends what has happened.
const LOOK: Duration = Duration::from_secs(5);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    /// Only this session's; without it, all.
    session: Option<String>,
    /// Begin after this id, as the header `Last-Event-ID` says it, which counts more.
    after: Option<i64>,
}

/// A stream that is being sent.
struct Following {
    app: App,
    session: Option<SessionName>,
    last: i64,
    ready: VecDeque<Event>,
    feed: watch::Receiver<i64>,
    live: broadcast::Receiver<Live>,
    ending: watch::Receiver<bool>,
    over: bool,
    /// Whose stream it is, who may lose the right to it.
    who: Who,
    look: Interval,
    /// Whether it is time to look whether he has.
    doubted: bool,
    _counted: Box<dyn Send>,
}

pub async fn follow(
    who: Who,
    State(app): State<App>,
    Query(wanted): Query<Wanted>,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, ApiError> {
    let open = app.0.counters.streams.load(Ordering::Relaxed);
    if open >= app.0.drive.config.gateway.max_streams {
        let message = format!("{open} streams are open already (gateway.max_streams)");
        return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "too_many_streams", message));
    }
    let session = wanted.session.as_deref().map(SessionName::parse).transpose();
    let session = session.map_err(|error| ApiError::bad_request(error.to_string()))?;
    let store = &app.0.drive.store;
    // Before the feed is read, so that nothing falls between.
    let (feed, live) = (store.feed_changes(), app.0.hub.subscribe());
    let given = headers.get("last-event-id").and_then(|id| id.to_str().ok()).map(str::parse).transpose();
    let given: Option<i64> = given.map_err(|_| ApiError::bad_request("Last-Event-ID is no number"))?.or(wanted.after);
    let (start, end) = store.read(|view| Ok((view.feed_start()?, view.feed_end()?))).await?;
    let last = given.unwrap_or(end).clamp(0, end);
    let mut ready = VecDeque::new();
    // What was forgotten meanwhile cannot be told; the client has to look for itself.
    if last + 1 < start {
        ready.push_back(event("gap", &json!({ "missed_from": last + 1, "to": start - 1 })).id(last.to_string()));
    }
    let following = Following {
        ending: app.0.ending.clone(),
        who,
        look: tokio::time::interval(LOOK),
        doubted: false,
        _counted: Box::new(count::counted(&app, |counters| &counters.streams)),
        app,
        session,
        last,
        ready,
        feed,
        live,
        over: false,
    };
    let stream = unfold(following, |mut following| async move { Some((Ok(following.next().await?), following)) });
    Ok(Sse::new(stream).keep_alive(KeepAlive::new().interval(ALIVE)))
}

impl Following {
    async fn next(&mut self) -> Option<Event> {
        loop {
            if std::mem::take(&mut self.doubted) && !matches!(auth::still_may(&self.app, &self.who).await, Ok(true)) {
                // Nothing that waits is sent.
                self.over = true;
                self.ready.clear();
                return Some(event("unauthorized", &json!({})));
            }
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            if self.over {
                return None;
            }
            match self.read().await {
                Ok(true) => {
                    self.doubted = true;
                    continue;
                }
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!("an event stream ends: {error}");
                    return None;
                }
            }
            tokio::select! {
                _ = self.ending.wait_for(|ending| *ending) => {
                    self.over = true;
                    return Some(event("shutdown", &json!({})));
                }
                _ = self.look.tick() => self.doubted = true,
                // The sender lives as long as the store.
                _ = self.feed.changed() => {}
                said = self.live.recv() => match said {
                    Ok(said) if self.session.as_ref().is_none_or(|session| *session == said.session) => {
                        return Some(event("live", &said));
                    }
                    // What was missed were pieces of texts that come whole later.
                    Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
                    Err(broadcast::error::RecvError::Closed) => return None,
                },
            }
        }
    }

    /// Makes events of what is in the feed since the last one; false if nothing is.
    async fn read(&mut self) -> Result<bool, StoreError> {
        let (session, last) = (self.session.clone(), self.last);
        let (vault, end) = (self.app.0.drive.vault.clone(), *self.feed.borrow_and_update());
        let read = self.app.0.drive.store.read(move |view| {
            let notices = view.feed(session.as_ref(), last, BATCH)?;
            let mut events = Vec::with_capacity(notices.len());
            for notice in notices {
                let id = notice.id;
                events.extend(body(view, &vault, notice)?.map(|(name, body)| (id, name, body)));
            }
            Ok(events)
        });
        let events = read.await?;
        let Some((id, ..)) = events.last() else {
            self.last = self.last.max(end);
            return Ok(false);
        };
        self.last = *id;
        self.ready.extend(events.iter().map(|(id, name, body)| event(name, body).id(id.to_string())));
        Ok(true)
    }
}

fn event(name: &str, body: &impl serde::Serialize) -> Event {
    // Everything that is sent has a JSON form.
    Event::default().event(name).json_data(body).unwrap_or_default()
}

/// What is sent of a notice; `None` if what it is about has gone.
fn body(
    view: &crate::store::View<'_>,
    vault: &crate::secret::Vault,
    notice: Notice,
) -> Result<Option<(&'static str, Value)>, StoreError> {
    let Notice { session, kind, run, seq, message, .. } = notice;
    Ok(match (kind, run, seq, message) {
        (NoticeKind::Message, _, _, Some(id)) => {
            view.message(id)?.map(|(_, message)| ("message", json!(open_message(vault, session, message))))
        }
        (NoticeKind::Event, Some(run), Some(seq), _) => view.event(&run, seq)?.map(|event| {
            let shown = !is_sealed(&event.body) && event.body.len() <= MAX_BODY;
            let body: Value = if shown { serde_json::from_str(&event.body).unwrap_or_default() } else { Value::Null };
            let run = run.to_string();
            ("event", json!({ "session": session, "run": run, "seq": seq, "kind": event.kind, "at_ms": event.at_ms, "body": body }))
        }),
        (NoticeKind::Run, Some(run), ..) => view.run_line(&run)?.map(|run| ("run", json!(super::wire::Run::of(run)))),
        (NoticeKind::Session, ..) => {
            let (title, model) = (view.title(&session)?, view.session_model(&session)?);
            Some(("session", json!({ "name": session, "title": title, "model": model })))
        }
        _ => None,
    })
}
