//! The daemon's interfaces to programs and people: HTTP on a port, JSON lines on a socket, and MCP over standard streams for
//! clients that start kiso themselves.
//!
//! A request is authenticated, checked against limits, and passed on. This crate knows about runs and skills only what the store
//! contains.

mod api;
mod attachment;
mod auth;
mod connection_slots;
mod count;
mod document;
mod error;
mod events;
mod failures;
mod follow;
mod form;
mod home_check;
mod hook;
mod listen;
pub mod mcp;
mod message;
mod openai;
mod page;
mod patient;
mod polls;
pub mod progress;
mod reply;
mod request_body;
mod socket;
mod trouble;
mod wire;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use kiso_agent::drive::RunExecutor;
use kiso_agent::session::intake::Intake;
use kiso_agent::session::live::Hub;
use kiso_agent::session::queue::Queue;
use kiso_agent::session::workspace::Incoming;
use kiso_base::home::SessionName;
use kiso_sandbox::effect::label::LabelId;
use kiso_store::secret::Secrets;
use tokio::sync::{broadcast, watch};

use self::count::Counters;
use self::failures::Failures;
use self::home_check::{HomeCheck, HomeFault};
use self::polls::Polls;

pub use self::api::UndoLine;
pub use self::attachment::{Attachment, MAX_ATTACHMENTS, put};
pub use self::hook::{HookError, HookKey, HookMeter, OutsideEvent, render, take_files};
pub use self::listen::{HttpListener, ListenError, TunnelledConnection, notice_death};
pub use self::message::whole_message;
pub use self::reply::{ReplyWriter, TurnAnswer, standing};
pub use self::socket::lines::{Lines, NoLine};
pub use self::socket::{Socket, SocketError};
pub use self::wire::{Letter, Message, open_message, plain_message, shown};

/// Shared state of all requests.
#[derive(Debug, Clone)]
pub struct App(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    drive: RunExecutor,
    intake: Intake,
    hub: Hub,
    /// Secrets from the environment, for manual calls of skills.
    secrets: Secrets,
    began_ms: i64,
    /// Address of the HTTP server.
    address: SocketAddr,
    /// Allows one upload at a time: each takes as much memory as a skill is large.
    upload: Arc<tokio::sync::Semaphore>,
    /// Places for uploads of files into workspaces.
    uploads: Arc<tokio::sync::Semaphore>,
    /// Requests of OpenAI's API are admitted one at a time, because earlier requests determine the conversation of a later one.
    conversations: Arc<tokio::sync::Mutex<()>>,
    /// Answers MCP clients.
    mcp: mcp::Server,
    mcp_sessions: mcp::HttpSessions,
    /// Notifies streams of deleted sessions, because the feed keeps nothing of them.
    deleted: broadcast::Sender<SessionName>,
    /// Whether the daemon is shutting down; streams end with it.
    ending: watch::Receiver<bool>,
    counters: Counters,
    failures: Failures,
    home_check: HomeCheck,
    provider_calls: api::ProviderCalls,
    hooks: HookMeter,
    polls: Polls,
}

/// Maximum number of concurrent uploads into workspaces; others wait. Each occupies a thread while a piece is written.
const MAX_UPLOADS: usize = 8;

/// Maximum number of queued deletions for a stream with a slow client.
const MAX_DELETED: usize = 256;

impl App {
    /// `secrets` are from the environment, `address` is that of the HTTP server; `ending` becomes true when the daemon ends.
    pub fn new(
        drive: RunExecutor,
        queue: &Queue,
        secrets: Secrets,
        began_ms: i64,
        address: SocketAddr,
        ending: watch::Receiver<bool>,
    ) -> App {
        let (intake, hub) = (queue.intake.clone(), queue.hub.clone());
        let (counters, failures) = (Counters::default(), Failures::default());
        let upload = Arc::new(tokio::sync::Semaphore::new(1));
        let uploads = Arc::new(tokio::sync::Semaphore::new(MAX_UPLOADS));
        let conversations = Arc::default();
        let (mcp, mcp_sessions) = (mcp::Server::new(drive.clone(), secrets.clone()), mcp::HttpSessions::default());
        let (deleted, _) = broadcast::channel(MAX_DELETED);
        let home_check = HomeCheck::new(&drive.home);
        App(Arc::new(Inner {
            drive,
            intake,
            hub,
            secrets,
            began_ms,
            address,
            upload,
            uploads,
            conversations,
            mcp,
            mcp_sessions,
            deleted,
            ending,
            counters,
            failures,
            home_check,
            provider_calls: api::ProviderCalls::default(),
            hooks: HookMeter::default(),
            polls: Polls::default(),
        }))
    }
}

impl App {
    /// Returns the intake for messages, for channels that are not connections.
    pub fn intake(&self) -> &Intake {
        &self.0.intake
    }

    /// Checks that the home is usable. May block on the disk.
    fn check_home(&self) -> Result<(), HomeFault> {
        let drive = &self.0.drive;
        self.0.home_check.run(&drive.store, drive.newest_config().limits.reserve_mib)
    }

    /// Writes files of a message to the workspace of its session; returns their names there. `label` is the sender's label. The
    /// error is a text for a person.
    pub async fn put_files(
        &self,
        session: &SessionName,
        files: Vec<(String, Vec<u8>)>,
        label: LabelId,
    ) -> Result<Vec<String>, String> {
        let files = files.into_iter().map(|(name, bytes)| Attachment::of_bytes(&name, bytes)).collect();
        put(&self.0.drive.newest(), session, files, label, Incoming::begin).await.map_err(|error| error.message)
    }
}

/// Time limits of a connection.
#[derive(Debug, Clone, Copy)]
struct ConnectionTimeouts {
    /// For a request's head, and separately for its body.
    request: Duration,
    /// For a client that does not read its response.
    stalled: Duration,
}

/// Returns whether only programs of this machine can reach an address.
fn is_local(address: &SocketAddr) -> bool {
    address.ip().is_loopback()
}
