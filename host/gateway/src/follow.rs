//! What happens, as one stream for every channel: what is in the feed has an id, by which a client that was away goes on;
//! what a model is writing at the moment has none.

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

/// Notices that are read at once.
const BATCH: u32 = 64;

/// Bytes of texts after which a batch ends before it is full: it waits in memory for a client that may read slowly, and
/// there are as many of them as clients.
const BATCH_BYTES: usize = 1 << 20;

/// Notices, of all sessions, that are read without going to another thread, which takes longer than reading them.
const SHORT: i64 = 4;

/// Bytes of an event's body that is sent along; of a larger one, `GET /runs/ID/trace` has it.
const MAX_BODY: usize = 64 << 10;

/// What a client wants to hear.
#[derive(Debug, Clone, Default)]
pub(crate) struct Subscription {
    /// Only this session's; without it, all.
    pub session: Option<SessionName>,
    /// Begin after this id; without it, with what happens from now on.
    pub after: Option<i64>,
    /// Whether pieces of texts are told while they are written.
    pub live: bool,
    /// Only of sessions that this caller began; without it, of all.
    pub owner: Option<SessionOwner>,
}

/// Something that happened, in the form in which every channel tells it.
#[derive(Debug, Clone)]
pub(crate) struct Notification {
    /// "message", "run", "event", "notify", "session", "live", "deleted", "gap" or, as the last, "shutdown".
    pub name: &'static str,
    /// Of the feed's notice; a client that was away goes on behind it.
    pub id: Option<i64>,
    pub data: Value,
    /// Of a reply: the messages that it answers. Empty for one behind which its run goes on.
    pub answers: Vec<i64>,
}

impl Notification {
    /// Something that is worth nothing later.
    pub(crate) fn now(name: &'static str, data: Value) -> Notification {
        Notification { name, id: None, data, answers: Vec::new() }
    }
}

/// A stream that is being told. Ends after "shutdown".
pub(crate) struct Following {
    app: App,
    wanted: Subscription,
    /// The last notice that there was when it began.
    pub newest: i64,
    last: i64,
    ready: VecDeque<Notification>,
    /// Whether the feed may hold something that was not read.
    behind: bool,
    feed: watch::Receiver<i64>,
    /// `None` before it is listened to, and where it is not wanted.
    live: Option<broadcast::Receiver<Live>>,
    /// Whether what was said so far in the steps that runs are at is to be told: behind what is in the feed.
    so_far: bool,
    /// A piece whose session is not checked yet.
    piece: Option<Live>,
    /// Sessions that the subscriber began.
    owned: HashSet<SessionName>,
    deleted: broadcast::Receiver<SessionName>,
    ending: watch::Receiver<bool>,
    over: bool,
    _counted: StreamCount,
}

/// Counts the streams that are open.
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
    /// Begins to listen. What happens from here on is told by [`Following::next`].
    pub(crate) async fn new(app: App, wanted: Subscription) -> Result<Following, StoreError> {
        let store = &app.0.drive.store;
        // Before the feed is read, so that nothing falls between.
        let feed = store.feed_changes();
        let (start, end) = store.read(|view| Ok((view.feed_start()?, view.feed_end()?))).await?;
        let last = wanted.after.unwrap_or(end).clamp(0, end);
        let mut ready = VecDeque::new();
        // What was forgotten meanwhile cannot be told; the client has to look for itself.
        if wanted.after.is_some_and(|after| after > end) {
            // An older store was put in the place of the one that the client knew.
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

    /// How much of what was read together has not been given out yet.
    pub(crate) fn waiting(&self) -> usize {
        self.ready.len()
    }

    /// Waits for what comes next; `None` when nothing more will. Whoever stops waiting misses nothing.
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
                // The texts of a step come before the notice that the step is over, where both wait; a deleted session comes before
                // the texts of one that was begun with its name.
                biased;
                _ = self.ending.wait_for(|ending| *ending) => {
                    self.over = true;
                    return Some(Notification::now("shutdown", json!({})));
                }
                name = self.deleted.recv() => match name {
                    // The store no longer has its owner, so only sessions that this stream has told of can be compared. From here on,
                    // one of the same name may be somebody else's.
                    Ok(name) if self.wanted.owner.is_some() && !self.owned.remove(&name) => {}
                    Ok(name) if self.wanted.session.as_ref().is_none_or(|session| *session == name) => {
                        return Some(Notification::now("deleted", json!({ "name": name })));
                    }
                    Ok(_) => {}
                    // Some were missed: whoever listens has to look for itself what there is.
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
                    // It begins again with all of it; and the events of the meantime have waited long enough.
                    Err(RecvError::Lagged(_)) => (self.so_far, self.behind) = (true, true),
                    Err(RecvError::Closed) => return None,
                },
                // The sender lives as long as the store.
                _ = self.feed.changed() => self.behind = true,
            }
        }
    }

    /// Makes ready what runs have said so far, and listens from there on.
    async fn begin_live(&mut self) {
        let (pieces, so_far) = self.app.0.hub.subscribe(self.wanted.session.as_ref());
        let mut shown = Vec::new();
        for said in &so_far {
            if self.may_read(&said.session).await {
                shown.push(live(said));
            }
        }
        // Nothing is awaited from here on: whoever stopped waiting before starts over.
        self.so_far = false;
        self.live = Some(pieces);
        self.ready.extend(shown);
    }

    /// Whether the subscriber may read this session. One that cannot be checked now is not told.
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

    /// Makes ready what is in the feed since the last notice; whether there is more.
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

/// The next piece; none ever comes where none is wanted.
async fn heard(live: &mut Option<broadcast::Receiver<Live>>) -> Result<Live, RecvError> {
    match live {
        Some(live) => live.recv().await,
        None => std::future::pending().await,
    }
}

fn live(said: &Live) -> Notification {
    Notification::now("live", value(said))
}

/// What is told of a notice, with the bytes of its text; nothing if what it is about has gone. The last one has its id, so
/// that a client that has it has all.
fn tell(view: &View<'_>, vault: &Vault, notice: Notice) -> Result<Vec<(Notification, usize)>, StoreError> {
    let Notice { id, session, kind, run, seq, message } = notice;
    let (mut answers, mut before) = (Vec::new(), None);
    let told = match (kind, run, seq, message) {
        (NoticeKind::Message, _, _, Some(message)) => match view.message(message)? {
            None => None,
            // Its number was used again.
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

/// What an event of a run says to the user at once: the output of a task with `notify: true`, or a notice. For those who
/// do not read events; it has no id of its own, and comes again with its event.
fn notification(session: &SessionName, run: &RunId, event: &store::Event) -> Option<Notification> {
    // Most events say nothing, and are not read for it.
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

/// The JSON of a shape of ours, which has one.
fn value(shape: &impl Serialize) -> Value {
    serde_json::to_value(shape).unwrap_or_default()
}
