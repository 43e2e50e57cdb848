//! The daemon: starts all parts, serves until it is stopped, and shuts down in order.
//!
//! Shutdown: the schedule starts nothing more, intake refuses messages with a clear error, streams are closed, running steps
//! may finish, and then the store is closed. Unfinished runs continue at the next start.

mod reload;
pub mod systemd;
mod upkeep;
mod workers;

pub use self::reload::ReloadError;
pub use self::upkeep::check_before_start;
use self::workers::Workers;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, watch};

use crate::channel::{ChannelError, Channels, OpenChannels, Port};
use kiso_agent::drive::RunExecutor;
use kiso_agent::schedule::Scheduler;
use kiso_agent::session::queue::Queue;
use kiso_agent::session::wake::QueueLimits;
use kiso_base::clock::now_ms;
use kiso_base::config::Config;
use kiso_base::home::{HomeError, HomeLock};
use kiso_gateway::App;
use kiso_store::secret::Secrets;
use kiso_store::store::StoreError;

/// A running daemon.
#[derive(Debug)]
pub struct Daemon {
    drive: RunExecutor,
    queue: Queue,
    workers: Workers,
    schedule: Scheduler,
    ending: watch::Sender<bool>,
    channels: Mutex<Channels>,
    address: SocketAddr,
    /// Held while the daemon lives: one daemon for each home.
    lock: HomeLock,
}

/// Reasons why the daemon does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Home(#[from] HomeError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Channel(#[from] ChannelError),
    #[error("the threads for runs cannot be started: {0}")]
    Threads(std::io::Error),
    #[error(
        "connect_ports of [mcp.{server}] in config.toml names {port}, which is kiso's own port; take it out there, or use another port"
    )]
    OwnPort { server: String, port: u16 },
}

impl Daemon {
    /// Starts the daemon in the caller's runtime. `secrets` come from the environment.
    pub async fn start(drive: RunExecutor, secrets: Secrets, port: Port) -> Result<Daemon, StartError> {
        let lock = drive.home.lock_daemon()?;
        for path in drive.home.remove_unfinished() {
            tracing::info!("{} was left by a process that was killed, and is removed", path.display());
        }
        let limits = QueueLimits::from_config(&drive.config);
        let (ending, ended) = watch::channel(false);
        // Before any run is resumed: a run that is interrupted again and again is given up in the end.
        let open = OpenChannels::open(&drive, port).await?;
        let address = open.address();
        if let Some(server) = drive.config.server_that_connects_to(address.port()) {
            return Err(StartError::OwnPort { server: server.to_owned(), port: address.port() });
        }
        // The note keeps programs that are started as servers away from this port. A full disk must not stop the daemon,
        // because the user may need it to free space.
        let _ = lock.note_port(address.port());
        let mut channels = open.dispatch(&drive, ended.clone()).await?;
        tokio::spawn(upkeep::check_behind(drive.store.clone()));
        kiso_agent::session::removal::sweep(&drive.home, &drive.store).await?;
        tokio::spawn(upkeep::index_messages(drive.store.clone(), ended.clone()));
        tokio::spawn(upkeep::look_after(drive.clone(), ended.clone()));
        let workers = Workers::start()?;
        let queue = Queue::start(drive.clone(), secrets.clone(), limits, workers.handle()).await?;
        let app = App::new(drive.clone(), &queue, secrets, now_ms(), address, ended.clone());
        channels.serve(app);
        let schedule = Scheduler::start(&drive);
        tokio::spawn(systemd::watch(queue.intake.clone(), drive.store.clone(), ended));
        Ok(Daemon { drive, queue, workers, schedule, ending, channels: Mutex::new(channels), address, lock })
    }

    /// Returns the address of HTTP.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Reads `config.toml` again and uses it for everything that starts from now on; runs in progress keep their
    /// configuration. If the file has an error, nothing changes. Changes are logged.
    pub async fn reload(&self) -> Result<(), ReloadError> {
        let changes = reload::reload(&self.drive, &self.queue.intake, &mut *self.channels.lock().await).await?;
        reload::log(&changes);
        Ok(())
    }

    /// Returns the configuration in effect.
    pub fn config(&self) -> Arc<Config> {
        self.drive.newest_config()
    }

    /// Shuts down in order.
    pub async fn stop(self) {
        let Daemon { drive, queue, workers, schedule, ending, channels, lock, .. } = self;
        let grace = Duration::from_secs(drive.newest_config().daemon.shutdown_timeout_s);
        schedule.stop().await;
        queue.intake.close();
        ending.send_replace(true);
        let (served, delivered) = channels.into_inner().ended();
        // A delivery that is not finished by then is repeated at the next start.
        let delivered = tokio::time::timeout(grace, delivered);
        let (_, served, _) = tokio::join!(queue.stop(grace), tokio::time::timeout(grace, served), delivered);
        if served.is_err() {
            tracing::warn!("connections were still open at the end");
        }
        drive.newest().tools.servers().stop().await;
        drop(workers);
        drive.tools.skills().write_uses();
        drive.store.close();
        drop(lock);
    }
}
