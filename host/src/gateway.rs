//! How programs and people reach the daemon: HTTP on a port, and JSON lines on a socket.
//!
//! A request is authenticated, checked against its limits, and then handed on; nothing here knows of runs or skills more
//! than what the store says about them.

mod api;
mod auth;
mod connection_slots;
mod count;
mod error;
mod events;
mod failures;
mod follow;
mod form;
mod listen;
mod page;
mod patient;
mod socket;
pub mod webhook;
mod wire;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::drive::RunExecutor;
use crate::home::SessionName;
use crate::secret::Secrets;
use crate::session::intake::Intake;
use crate::session::live::Hub;
use crate::session::queue::Queue;
use tokio::sync::{broadcast, watch};

use self::count::Counters;
use self::failures::Failures;

pub use self::listen::{Bound, ListenError};
pub use self::socket::lines::{Lines, NoLine};
pub use self::socket::{Socket, SocketError};

/// What every request needs.
#[derive(Debug, Clone)]
pub struct App(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    drive: RunExecutor,
    intake: Intake,
    hub: Hub,
    /// Of the environment, for skills that are called by hand.
    secrets: Secrets,
    began_ms: i64,
    /// Where HTTP is served.
    address: SocketAddr,
    /// An upload at a time: each takes as much memory as a skill is large.
    upload: Arc<tokio::sync::Semaphore>,
    /// Places for files that are uploaded into workspaces.
    uploads: Arc<tokio::sync::Semaphore>,
    /// Tells streams of sessions that were deleted: nothing of one is left in the feed.
    deleted: broadcast::Sender<SessionName>,
    /// Whether the daemon is shutting down; streams end with it.
    ending: watch::Receiver<bool>,
    counters: Counters,
    failures: Failures,
}

/// Files that are uploaded into workspaces at once; more wait. Each has a thread while a piece of it is written.
const MAX_UPLOADS: usize = 8;

/// Deletions that wait for a stream whose client is slow.
const MAX_DELETED: usize = 256;

impl App {
    /// `secrets` are those of the environment, `address` is where HTTP is served; `ending` becomes true when the daemon ends.
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
        let (deleted, _) = broadcast::channel(MAX_DELETED);
        App(Arc::new(Inner {
            drive,
            intake,
            hub,
            secrets,
            began_ms,
            address,
            upload,
            uploads,
            deleted,
            ending,
            counters,
            failures,
        }))
    }
}

/// The ways in, before anybody is served: what cannot be listened on is known before work begins.
#[derive(Debug)]
pub struct Listeners {
    pub http: Bound,
    pub socket: Socket,
}

impl Listeners {
    /// Opens the port that `config.toml` names, or `port` instead, and the home's unix socket. The caller holds the lock of
    /// the home's daemon.
    pub async fn open(drive: &RunExecutor, port: Option<u16>) -> Result<Listeners, ListenError> {
        let gateway = &drive.config.gateway;
        let port = port.unwrap_or(u16::try_from(gateway.port).unwrap_or(0));
        let http = Bound::bind(drive, &gateway.bind, port).await?;
        Ok(Listeners { http, socket: Socket::bind(&drive.home.socket_path())? })
    }
}

/// What one connection may take.
#[derive(Debug, Clone, Copy)]
struct ConnectionTimeouts {
    /// For a request's head, and again for its body.
    request: Duration,
    /// For a client that does not read what it asked for.
    stalled: Duration,
}

/// Whether only programs of this machine can reach an address.
fn is_local(address: &SocketAddr) -> bool {
    address.ip().is_loopback()
}
