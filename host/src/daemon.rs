//! The daemon: builds everything, serves until it is told to end, and ends everything in good order.
//!
//! The end: intake refuses with a clear error, streams are told, what is under way may finish its step, and then the store
//! is closed. Runs that are not over go on at the next start.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::sync::watch;

use crate::clock::now_ms;
use crate::drive::Drive;
use crate::gateway::webhook::{Courier, Webhook, WebhookError};
use crate::gateway::{App, ListenError};
use crate::home::{HomeError, HomeLock};
use crate::secret::Secrets;
use crate::session::queue::{Limits, Queue};
use crate::store::StoreError;

/// A daemon that is running.
#[derive(Debug)]
pub struct Daemon {
    drive: Drive,
    queue: Queue,
    ending: watch::Sender<bool>,
    http: tokio::task::JoinHandle<()>,
    socket: tokio::task::JoinHandle<()>,
    courier: Courier,
    address: SocketAddr,
    /// Held as long as the daemon lives: one for each home.
    lock: HomeLock,
}

/// Why it does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Home(#[from] HomeError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Webhook(#[from] WebhookError),
    #[error(transparent)]
    Listen(#[from] ListenError),
}

impl Daemon {
    /// Starts in the runtime of the caller. `secrets` are those of the environment; `port` stands in for the configured one.
    pub async fn start(drive: Drive, secrets: Secrets, port: Option<u16>) -> Result<Daemon, StartError> {
        let lock = drive.home.lock_daemon()?;
        let config = &drive.config.daemon;
        let limits = Limits {
            debounce_ms: config.debounce_ms,
            max_jobs: usize::try_from(config.max_jobs).unwrap_or(usize::MAX),
            max_queued: config.max_queued,
        };
        let (ending, ended) = watch::channel(false);
        // Before anything is written that somebody is to be told of.
        let webhooks = Webhook::open_all(&drive.home, &drive.config, |variable| std::env::var(variable).ok())?;
        let courier = Courier::start(drive.store.clone(), drive.vault.clone(), webhooks, ended.clone()).await?;
        let queue = Queue::start(drive.clone(), secrets, limits).await?;
        let app = App::new(drive.clone(), queue.intake.clone(), queue.hub.clone(), now_ms(), ended.clone());
        let bound = app.listen(port).await?;
        let address = bound.address();
        let socket = tokio::spawn(app.socket()?.serve(ended.clone()));
        let http = tokio::spawn(bound.serve(ended));
        Ok(Daemon { drive, queue, ending, http, socket, courier, address, lock })
    }

    /// Where HTTP is served.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends in good order.
    pub async fn stop(self) {
        let Daemon { drive, queue, ending, http, socket, courier, lock, .. } = self;
        let grace = Duration::from_secs(drive.config.daemon.shutdown_timeout_s);
        queue.intake.close();
        ending.send_replace(true);
        let served = tokio::time::timeout(grace, async { (http.await, socket.await) });
        // A delivery that has no end by then is made again at the next start.
        let delivered = tokio::time::timeout(grace, courier.ended());
        let (_, served, _) = tokio::join!(queue.stop(grace), served, delivered);
        if served.is_err() {
            tracing::warn!("connections were still open at the end");
        }
        drive.store.close();
        drop(lock);
    }
}
