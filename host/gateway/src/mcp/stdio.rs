//! The protocol over standard streams, with one message per line. One thread reads, another writes, and requests are answered
//! concurrently.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Deserialize as _;
use serde_json::{Map, Value};
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc};
use tokio::task::AbortHandle;

use super::changes::{Changes, LOOK, list_changed};
use super::era::{Era, RequestMeta};
use super::local::LocalRunner;
use super::progress::ProgressTeller;
use super::roots::ClientRoots;
use super::server::{Asker, Server, session_for, session_for_folder};
use super::{method, tools};
use kiso_agent::drive::RunExecutor;
use kiso_base::home::SessionName;
use kiso_base::rpc::{self, BUSY, INVALID_REQUEST, RequestId, RpcError, RpcMessage};
use kiso_plan::plan::CallerScope;
use kiso_store::secret::Secrets;

/// Maximum number of concurrent requests of the client.
const MAX_UNDER_WAY: usize = 64;

/// Maximum number of streams of changes among them.
const MAX_LISTENING: usize = 8;

/// How long active requests may continue after the client has closed its end: a script that sends requests and closes must get
/// its answers.
const GRACE: Duration = Duration::from_secs(30);

/// The client's session, if the command line names one.
#[derive(Debug, Default)]
pub struct ClientPlace {
    pub session: Option<SessionName>,
    /// Whether folders are already open in the session, so that the client is not asked for its roots.
    pub has_folders: bool,
}

/// Serves the client at `input` and `output` until it closes its end.
pub async fn serve(
    drive: RunExecutor,
    secrets: Secrets,
    place: ClientPlace,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
) -> io::Result<()> {
    let max_line = drive.config.gateway.max_body_kib << 10;
    let runner = LocalRunner { drive: drive.clone(), secrets: secrets.clone() };
    let (out, writer) = rpc::stream::write(output)?;
    let connection = Arc::new(Connection {
        server: Server::new(drive, secrets),
        runner,
        session: place.session,
        has_roots: !place.has_folders,
        client: Mutex::default(),
        roots: ClientRoots::default(),
        under_way: Mutex::default(),
        out,
        ended: Notify::new(),
        tells_changes: AtomicBool::new(false),
    });
    let (runtime, reading) = (Handle::current(), connection.clone());
    let (ended, end) = tokio::sync::oneshot::channel();
    std::thread::Builder::new().name("kiso-mcp-in".into()).spawn(move || {
        reading.read(&runtime, input, max_line);
        let _ = ended.send(());
    })?;
    // A client that no longer reads is gone, too.
    let gone = connection.out.clone();
    tokio::select! {
        _ = end => connection.finish().await,
        () = gone.closed() => connection.abort(),
    }
    drop((connection, gone));
    writer.finish().await
}

/// The client and its active requests.
struct Connection {
    server: Server,
    runner: LocalRunner,
    session: Option<SessionName>,
    /// Whether the client's roots are to be opened.
    has_roots: bool,
    /// The client's name from `initialize`.
    client: Mutex<Option<String>>,
    /// The client's folders.
    roots: ClientRoots,
    under_way: Mutex<HashMap<RequestId, UnderWay>>,
    out: mpsc::Sender<Value>,
    /// Notified when a request has ended.
    ended: Notify,
    /// Whether changes of the tools are already being reported.
    tells_changes: AtomicBool,
}

/// An active request.
#[derive(Default)]
struct UnderWay {
    task: Option<AbortHandle>,
    /// Whether the request is a stream of changes.
    listens: bool,
}

impl Connection {
    /// Reads messages until the input ends.
    fn read(self: &Arc<Self>, runtime: &Handle, input: impl Read, max_line: u64) {
        rpc::stream::read(input, max_line, "gateway.max_body_kib in config.toml", |message| {
            match message {
                Ok(RpcMessage::Request { id, method, params }) => self.begin(runtime, id, method, params),
                Ok(RpcMessage::Notification { method, params }) if method == "notifications/cancelled" => {
                    self.cancel(&params);
                }
                // The protocol forbids requests to the client before this notification.
                Ok(RpcMessage::Notification { method, .. })
                    if matches!(method.as_str(), "notifications/initialized" | "notifications/roots/list_changed") =>
                {
                    self.roots.ask().into_iter().for_each(|request| self.say(request));
                }
                Ok(RpcMessage::Response { id, result }) => self.roots.answer(id.as_ref(), result),
                Ok(RpcMessage::Notification { .. }) => {}
                Err((id, error)) => self.say(rpc::refusal(id.as_ref(), error)),
            }
            true
        });
        self.roots.close();
    }

    /// Sends a message from the reading thread: if the client does not read, kiso stops reading from it.
    fn say(&self, message: Value) {
        let _ = self.out.blocking_send(message);
    }

    fn begin(self: &Arc<Self>, runtime: &Handle, id: RequestId, method: String, params: Map<String, Value>) {
        let listens = method == "subscriptions/listen";
        if let Err(error) = self.admit(&id, listens) {
            return self.say(rpc::refusal(Some(&id), error));
        }
        let (this, of) = (self.clone(), id.clone());
        let task = runtime.spawn(async move {
            let result = this.answer(&of, &method, &params).await;
            // A request that was cancelled in the meantime gets no answer.
            let answer = this.under_way().remove(&of).is_some().then(|| rpc::response(&of, result));
            if let Some(answer) = answer {
                let _ = this.out.send(answer).await;
            }
            this.ended.notify_waiters();
        });
        // The request may have ended before.
        if let Some(under_way) = self.under_way().get_mut(&id) {
            under_way.task = Some(task.abort_handle());
        }
    }

    fn admit(&self, id: &RequestId, listens: bool) -> Result<(), RpcError> {
        let mut under_way = self.under_way();
        if under_way.contains_key(id) {
            return Err(RpcError::new(INVALID_REQUEST, "a request with this id is still under way"));
        }
        let listening = under_way.values().filter(|other| other.listens).count();
        if listens && listening >= MAX_LISTENING {
            return Err(RpcError::new(BUSY, format!("{MAX_LISTENING} streams of changes are already open")));
        }
        if under_way.len() >= MAX_UNDER_WAY {
            return Err(RpcError::new(BUSY, format!("{MAX_UNDER_WAY} requests are already under way")));
        }
        under_way.insert(id.clone(), UnderWay { task: None, listens });
        Ok(())
    }

    async fn answer(
        self: &Arc<Self>,
        id: &RequestId,
        method: &str,
        params: &Map<String, Value>,
    ) -> Result<Value, RpcError> {
        let meta = RequestMeta::read(params)?;
        if (method, meta.era) == ("initialize", Era::Legacy) {
            let name = params.get("clientInfo").and_then(|client| client["name"].as_str()).map(str::to_owned);
            *self.client.lock().unwrap_or_else(PoisonError::into_inner) = name;
            if self.has_roots {
                self.roots.announce(params);
            }
            if !self.tells_changes.swap(true, Ordering::Relaxed) {
                // Read before the response, so that skills installed after the response are reported as changes.
                let known = self.server.revision().await;
                tokio::spawn(Arc::clone(self).tell_changes(known));
            }
        }
        if (method, meta.era) == ("subscriptions/listen", Era::Modern) {
            return self.listen(id, params).await;
        }
        let client = match meta.era {
            Era::Modern => meta.client,
            Era::Legacy => self.client.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        };
        let session = self.session_of(meta.era, method, client.as_deref()).await?;
        // Whoever starts the program has the rights of its user.
        let asker = Asker { caller: CallerScope::Admin, session, owner: None };
        let progress = ProgressTeller::new(meta.progress, self.out.clone());
        let mut answer =
            method::answer(&self.server, (meta.era, method), params, &asker, &self.runner, &progress).await;
        if let (Ok(result), "tools/call") = (&mut answer, method) {
            for why in self.roots.take_refused() {
                tools::add_text(result, format!("A folder of this client is not open: {why}."));
            }
        }
        answer
    }

    /// Returns the session of a request, with the client's roots opened there.
    async fn session_of(&self, era: Era, method: &str, client: Option<&str>) -> Result<SessionName, RpcError> {
        let own = || self.session.clone().unwrap_or_else(|| session_for(None, client));
        if !self.has_roots || era == Era::Modern || matches!(method, "initialize" | "ping") {
            return Ok(own());
        }
        let roots = self.roots.known().await;
        let session = match (&self.session, roots.first()) {
            (None, Some(first)) => session_for_folder(client, first),
            _ => own(),
        };
        if self.roots.is_new(&session, &roots) && !roots.is_empty() {
            let home = &self.server.drive().home;
            let hold = self.server.holds().take(home, &session).await;
            let _hold = hold.map_err(|error| RpcError::new(BUSY, error.to_string()))?;
            self.roots.open(home, &session, &roots);
        }
        Ok(session)
    }

    /// Notifies a client of the older era of changes of the tools, until the client is gone.
    async fn tell_changes(self: Arc<Self>, mut known: u64) {
        let (this, out) = (Arc::downgrade(&self), self.out.downgrade());
        drop(self);
        loop {
            tokio::time::sleep(LOOK).await;
            let Some(this) = this.upgrade() else { return };
            let now = this.server.revision().await;
            drop(this);
            if std::mem::replace(&mut known, now) != now {
                let Some(out) = out.upgrade() else { return };
                if out.send(list_changed()).await.is_err() {
                    return;
                }
            }
        }
    }

    /// Serves an endless stream of changes of the newer era.
    async fn listen(&self, id: &RequestId, params: &Map<String, Value>) -> Result<Value, RpcError> {
        let mut changes = Changes::new(&self.server, id, params).await?;
        let _ = self.out.send(changes.acknowledged()).await;
        loop {
            let change = changes.next(&self.server).await;
            let _ = self.out.send(change).await;
        }
    }

    /// Cancels a request, if it is still active.
    fn cancel(&self, params: &Map<String, Value>) {
        let id = params.get("requestId").and_then(|id| RequestId::deserialize(id).ok());
        let under_way = id.and_then(|id| self.under_way().remove(&id));
        if let Some(task) = under_way.and_then(|under_way| under_way.task) {
            task.abort();
        }
        self.ended.notify_waiters();
    }

    /// Waits a while for active requests to end, then cancels the rest.
    async fn finish(&self) {
        let idle = async {
            loop {
                let ended = self.ended.notified();
                if self.under_way().values().all(|request| request.listens) {
                    return;
                }
                ended.await;
            }
        };
        let _ = tokio::time::timeout(GRACE, idle).await;
        self.abort();
    }

    fn abort(&self) {
        let left = std::mem::take(&mut *self.under_way());
        left.into_values().filter_map(|request| request.task).for_each(|task| task.abort());
    }

    fn under_way(&self) -> MutexGuard<'_, HashMap<RequestId, UnderWay>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
