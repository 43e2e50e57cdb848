//! Events as one stream for every channel. Entries of the feed have an id, from which a client can resume after a pause; text
//! that a model is writing at the moment has none.

use std::collections::{HashSet, VecDeque};
use std::sync::atomic::Ordering;

use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};

use super::App;
use super::message::whole_message;
use super::wire::shown;
use kiso_agent::session::live::Live;
use kiso_base::home::SessionName;
use kiso_graph::step::Event;
use kiso_store::secret::Vault;
use kiso_store::secret::vault::is_sealed;
use kiso_store::store::{self, MessageRole, Notice, NoticeKind, RunId, SessionOwner, StoreError, View};

/// Number of notices per read.
const BATCH: u32 = 64;

/// Bytes of text after which a batch ends early: each client has a batch in memory and may read it slowly.
const BATCH_BYTES: usize = 1 << 20;

/// Up to this number of notices, of all sessions, the feed is read on the current thread, because switching threads takes longer.
const SHORT: i64 = 4;

/// Maximum size in bytes of an event's body in the stream; `GET /runs/ID/trace` returns larger ones.
const MAX_BODY: usize = 64 << 10;

/// Filter of a client's event stream.
#[derive(Debug, Clone, Default)]
pub(crate) struct Subscription {
    /// Only events of this session; all sessions if `None`.
    pub session: Option<SessionName>,
    /// Start after this id; with new events if `None`.
    pub after: Option<i64>,
    /// Whether to include text while a model writes it.
    pub live: bool,
    /// Only events of sessions that this caller created; all sessions if `None`.
    pub owner: Option<SessionOwner>,
}

/// An event, in the form that all channels use.
#[derive(Debug, Clone)]
pub(crate) struct Notification {
    /// "message", "run", "event", "notify", "session", "live", "deleted", "gap" or, as the last, "shutdown".
    pub name: &'static str,
    /// Id of the feed's notice; a client can resume after it.
    pub id: Option<i64>,
    pub data: Value,
    /// For a reply: the messages that it answers. Empty if the run continues after the reply.
    pub answers: Vec<i64>,
}

impl Notification {
    /// Creates an event without an id, which is useless later.
    pub(crate) fn now(name: &'static str, data: Value) -> Notification {
        Notification { name, id: None, data, answers: Vec::new() }
    }
}

/// A stream of events. Ends after "shutdown".
pub(crate) struct Following {
    app: App,
    wanted: Subscription,
    /// The last notice at the start of the stream.
    pub newest: i64,
    last: i64,
    ready: VecDeque<Notification>,
    /// Whether the feed may contain unread notices.
    behind: bool,
    feed: watch::Receiver<i64>,
    /// `None` before the first read, and if live text is not wanted.
    live: Option<broadcast::Receiver<Live>>,
    /// Whether the text of the current steps so far must be sent first, after the notices of the feed.
    so_far: bool,
    /// Live text whose session was not checked yet.
    piece: Option<Live>,
    /// Sessions that belong to the subscriber.
    owned: HashSet<SessionName>,
    deleted: broadcast::Receiver<SessionName>,
    ending: watch::Receiver<bool>,
    over: bool,
    _counted: StreamCount,
}

/// Counts open streams.
struct StreamCount(App);

impl StreamCount {
    fn new(app: &App) -> StreamCount {
        app.0.counters.streams.fetch_add(1, Ordering::Relaxed);
        StreamCount(app.clone())
    }
}

impl Drop for StreamCount {
    fn drop(&mut self) {
        self.0.0.counters.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Following {
    /// Starts a stream. [`Following::next`] returns the events from now on.
    pub(crate) async fn new(app: App, wanted: Subscription) -> Result<Following, StoreError> {
        let store = &app.0.drive.store;
        // Subscribes before the feed is read, so that no notice is missed in between.
        let feed = store.feed_changes();
        let (start, end) = store.read(|view| Ok((view.feed_start()?, view.feed_end()?))).await?;
        let last = wanted.after.unwrap_or(end).clamp(0, end);
        let mut ready = VecDeque::new();
        // Deleted notices cannot be sent; the client must reload.
        if wanted.after.is_some_and(|after| after > end) {
            // The store was replaced by an older one since the client's last request.
            let data = json!({ "missed_from": 0, "to": end });
            ready.push_back(Notification { name: "gap", id: Some(last), data, answers: Vec::new() });
        } else if last + 1 < start {
            let data = json!({ "missed_from": last + 1, "to": start - 1 });
            ready.push_back(Notification { name: "gap", id: Some(last), data, answers: Vec::new() });
        }
        Ok(Following {
            piece: None,
            owned: HashSet::new(),
            deleted: app.0.deleted.subscribe(),
            ending: app.0.ending.clone(),
            _counted: StreamCount::new(&app),
            so_far: wanted.live,
            app,
            wanted,
            newest: end,
            last,
            ready,
            behind: true,
            feed,
            live: None,
            over: false,
        })
    }

    /// Returns the number of events that were read and not yet returned.
    pub(crate) fn waiting(&self) -> usize {
        self.ready.len()
    }

    /// Waits for the next event; `None` at the end of the stream. Cancel-safe: no event is lost.
    pub(crate) async fn next(&mut self) -> Option<Notification> {
        loop {
            if let Some(told) = self.ready.pop_front() {
                return Some(told);
            }
            if self.over {
                return None;
            }
            if self.behind {
                match self.read().await {
                    Ok(more) => self.behind = more,
                    Err(error) => {
                        tracing::warn!("an event stream ends: {error}");
                        return None;
                    }
                }
                continue;
            }
            if self.so_far {
                self.begin_live().await;
                continue;
            }
            if let Some(session) = self.piece.as_ref().map(|piece| piece.session.clone()) {
                let may_read = self.may_read(&session).await;
                if let Some(piece) = self.piece.take().filter(|_| may_read) {
                    return Some(live(&piece));
                }
            }
            tokio::select! {
                // If both are ready, the text of a step comes before the notice about the step's end, and the deletion of a
                // session before text of a new session of the same name.
                biased;
                _ = self.ending.wait_for(|ending| *ending) => {
                    self.over = true;
                    return Some(Notification::now("shutdown", json!({})));
                }
                name = self.deleted.recv() => match name {
                    // The store no longer knows the owner, so only sessions that this stream has reported are considered. A later
                    // session of the same name may belong to somebody else.
                    Ok(name) if self.wanted.owner.is_some() && !self.owned.remove(&name) => {}
                    Ok(name) if self.wanted.session.as_ref().is_none_or(|session| *session == name) => {
                        return Some(Notification::now("deleted", json!({ "name": name })));
                    }
                    Ok(_) => {}
                    // Some deletions were missed, so the client must reload.
                    Err(RecvError::Lagged(_)) => {
                        self.owned.clear();
                        let data = json!({ "missed_from": self.last, "to": self.last });
                        return Some(Notification { name: "gap", id: Some(self.last), data, answers: Vec::new() });
                    }
                    Err(RecvError::Closed) => return None,
                },
                said = heard(&mut self.live) => match said {
                    Ok(said) if self.wanted.session.as_ref().is_none_or(|session| *session == said.session) => {
                        self.piece = Some(said);
                    }
                    Ok(_) => {}
                    // Live text restarts with the whole text so far. The feed is read first, because its events have waited.
                    Err(RecvError::Lagged(_)) => (self.so_far, self.behind) = (true, true),
                    Err(RecvError::Closed) => return None,
                },
                // No error: the sender lives as long as the store.
                _ = self.feed.changed() => self.behind = true,
            }
        }
    }

    /// Queues the text of the current steps so far, and subscribes to live text from there on.
    async fn begin_live(&mut self) {
        let (pieces, so_far) = self.app.0.hub.subscribe(self.wanted.session.as_ref());
        let mut shown = Vec::new();
        for said in &so_far {
            if self.may_read(&said.session).await {
                shown.push(live(said));
            }
        }
        // No await from here on, so a cancelled call is simply repeated.
        self.so_far = false;
        self.live = Some(pieces);
        self.ready.extend(shown);
    }

    /// Returns whether the subscriber may read this session. If that cannot be checked now, the event is not sent.
    async fn may_read(&mut self, session: &SessionName) -> bool {
        let Some(owner) = self.wanted.owner.clone() else { return true };
        if self.owned.contains(session) {
            return true;
        }
        let of = session.clone();
        let owns = self.app.0.drive.store.peek(move |view| view.owns_session(&owner, &of)).await.unwrap_or(false);
        if owns {
            self.owned.insert(session.clone());
        }
        owns
    }

    /// Queues the notices since the last one; returns whether there are more.
    async fn read(&mut self) -> Result<bool, StoreError> {
        let (session, last, owner) = (self.wanted.session.clone(), self.last, self.wanted.owner.clone());
        let (vault, end) = (self.app.0.drive.vault.clone(), *self.feed.borrow_and_update());
        let read = move |view: &View<'_>| {
            let (mut told, mut owned, mut read_to, mut bytes) = (Vec::new(), Vec::new(), last, 0);
            let notices = view.feed(session.as_ref(), last, BATCH)?;
            let mut more = notices.len() == BATCH as usize;
            for notice in notices {
                if bytes >= BATCH_BYTES {
                    more = true;
                    break;
                }
                read_to = notice.id;
                if let Some(owner) = &owner {
                    if !view.owns_session(owner, &notice.session)? {
                        continue;
                    }
                    owned.push(notice.session.clone());
                }
                for (one, size) in tell(view, &vault, notice)? {
                    told.push(one);
                    bytes += size;
                }
            }
            Ok((told, owned, read_to, more))
        };
        let store = &self.app.0.drive.store;
        let is_short = end.saturating_sub(last) <= SHORT;
        let (told, owned, read_to, more) = if is_short { store.peek(read).await? } else { store.read(read).await? };
        self.owned.extend(owned);
        self.last = if more { read_to } else { read_to.max(end) };
        self.ready.extend(told);
        Ok(more)
    }
}

/// Waits for live text; never returns if live text is not wanted.
async fn heard(live: &mut Option<broadcast::Receiver<Live>>) -> Result<Live, RecvError> {
    match live {
        Some(live) => live.recv().await,
        None => std::future::pending().await,
    }
}

fn live(said: &Live) -> Notification {
    Notification::now("live", value(said))
}

/// Returns the events of a notice, with the size of their texts; nothing if their subject was deleted. The last event has the id,
/// so a client that knows the id has received all of them.
fn tell(view: &View<'_>, vault: &Vault, notice: Notice) -> Result<Vec<(Notification, usize)>, StoreError> {
    let Notice { id, session, kind, run, seq, message } = notice;
    let (mut answers, mut before) = (Vec::new(), None);
    let told = match (kind, run, seq, message) {
        (NoticeKind::Message, _, _, Some(message)) => match view.message(message)? {
            None => None,
            // The message's number was reused by another session.
            Some((of, _)) if of != session => None,
            Some((_, message)) => {
                if let (MessageRole::Assistant, Some(run)) = (message.role, &message.run) {
                    answers = view.answered_by(run, message.id)?;
                }
                let message = whole_message(view, vault, session, message)?;
                Some(("message", message.text.len(), value(&message)))
            }
        },
        (NoticeKind::Event, Some(run), Some(seq), _) => view.event(&run, seq)?.map(|event| {
            before = notification(&session, &run, &event);
            let shown = !is_sealed(&event.body) && event.body.len() <= MAX_BODY;
            let body: Value = if shown { serde_json::from_str(&event.body).unwrap_or_default() } else { Value::Null };
            let (run, size) = (run.to_string(), if shown { event.body.len() } else { 0 });
            let (kind, at_ms) = (event.kind, event.at_ms);
            let data =
                json!({ "session": session, "run": run, "seq": seq, "kind": kind, "at_ms": at_ms, "body": body });
            ("event", size, data)
        }),
        (NoticeKind::Run, Some(run), ..) => view.run_line(&run)?.map(|run| {
            let run = shown(run);
            ("run", run.message.len(), value(&run))
        }),
        (NoticeKind::Session, ..) => view.session(&session)?.map(|line| ("session", 0, value(&line))),
        _ => None,
    };
    let told = told.map(|(name, size, data)| (Notification { name, id: Some(id), data, answers }, size));
    Ok(before.map(|before| (before, 0)).into_iter().chain(told).collect())
}

/// Returns what an event of a run tells the user at once: the output of a task with `notify: true`, or a notice. It is for
/// clients that do not read events, has no id, and precedes the event itself.
fn notification(session: &SessionName, run: &RunId, event: &store::Event) -> Option<Notification> {
    // Most events contain no such text, so they are not parsed.
    if is_sealed(&event.body) || event.kind != "told" && !event.body.contains("\"say\":") {
        return None;
    }
    let read: Event = serde_json::from_str(&event.body).ok()?;
    let text = read.notification()?;
    let shown = &text[..text.floor_char_boundary(MAX_BODY)];
    let data = json!({
        "session": session, "run": run.to_string(), "seq": event.seq, "text": shown, "truncated": shown.len() < text.len(),
    });
    Some(Notification::now("notify", data))
}

/// Serializes one of our own types, which cannot fail.
fn value(shape: &impl Serialize) -> Value {
    serde_json::to_value(shape).unwrap_or_default()
}
