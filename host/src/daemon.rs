//! The daemon: builds everything, serves until it is told to end, and ends everything in good order.
//!
//! The end: the schedule fires nothing more, intake refuses with a clear error, streams are told, what is under way may
//! finish its step, and then the store is closed. Runs that are not over go on at the next start.

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

/// A daemon that is running.
#[derive(Debug)]
pub struct Daemon {
    drive: RunExecutor,
    queue: Queue,
    workers: Workers,
    schedule: Scheduler,
    ending: watch::Sender<bool>,
    channels: Mutex<Channels>,
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
    Channel(#[from] ChannelError),
    #[error("the threads for runs cannot be started: {0}")]
    Threads(std::io::Error),
    #[error(
        "connect_ports of [mcp.{server}] in config.toml names {port}, which is kiso's own port; take it out there, or use another port"
    )]
    OwnPort { server: String, port: u16 },
}

impl Daemon {
    /// Starts in the runtime of the caller. `secrets` are those of the environment.
    pub async fn start(drive: RunExecutor, secrets: Secrets, port: Port) -> Result<Daemon, StartError> {
        let lock = drive.home.lock_daemon()?;
        for path in drive.home.remove_unfinished() {
            tracing::info!("{} was left by a process that was killed, and is removed", path.display());
        }
        let limits = QueueLimits::of(&drive.config);
        let (ending, ended) = watch::channel(false);
        // Before any run is taken up: one that is cut off again and again is given up in the end.
        let open = OpenChannels::open(&drive, port).await?;
        let address = open.address();
        if let Some(server) = drive.config.server_that_connects_to(address.port()) {
            return Err(StartError::OwnPort { server: server.to_owned(), port: address.port() });
        }
        // Programs that are started as servers are kept from it. A full disk must not keep anybody from making room.
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

    /// Where HTTP is served.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Reads `config.toml` again and has everything go by it that begins from now on; a run that is under way goes on as
    /// it began. Where something is wrong with the file, everything stays as it was. The log says what has changed.
    pub async fn reload(&self) -> Result<(), ReloadError> {
        let changes = reload::reload(&self.drive, &self.queue.intake, &mut *self.channels.lock().await).await?;
        reload::log(&changes);
        Ok(())
    }

    /// The configuration that is in force.
    pub fn config(&self) -> Arc<Config> {
        self.drive.newest_config()
    }

    /// Ends in good order.
    pub async fn stop(self) {
        let Daemon { drive, queue, workers, schedule, ending, channels, lock, .. } = self;
        let grace = Duration::from_secs(drive.newest_config().daemon.shutdown_timeout_s);
        schedule.stop().await;
        queue.intake.close();
        ending.send_replace(true);
        let (served, delivered) = channels.into_inner().ended();
        // A delivery that has no end by then is made again at the next start.
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
