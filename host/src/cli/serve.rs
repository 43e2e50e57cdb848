//! `kiso serve`: the daemon.

mod membership;
mod standby;

use self::membership::Membership;
use super::{Exit, Failure, Opened, Shared, block_on, environment_secrets, log};
use crate::channel::{ChannelError, Port};
use crate::daemon::{Daemon, StartError, systemd};
use kiso_base::config::Config;
use kiso_base::home::Home;
use kiso_sandbox::skill::Quiet;
use kiso_store::store::Store;
use serde_json::json;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

#[derive(Debug, clap::Args)]
#[command(after_help = SIGNALS)]
pub(super) struct ServeArgs {
    /// Port to listen on, instead of the configured one; 0 picks a free port
    #[arg(long, short, value_name = "PORT")]
    port: Option<u16>,
    /// Log format, instead of the configured one
    #[arg(long, value_name = "FORMAT", value_parser = ["text", "json"])]
    log: Option<String>,
}

const SIGNALS: &str = "SIGHUP (or kiso config reload) reloads config.toml. SIGTERM and Ctrl-C stop the daemon when work in progress has finished its current step; a second one stops it immediately, and runs resume at the next start.";

impl ServeArgs {
    pub(super) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let home = Home::open(&Home::locate(shared.home.as_deref())?)?;
        let config = Config::load(&home)?;
        self.configure_log(&config);
        log::catch_panics();
        let membership = Membership::join(&home, &config, self.port, |address| self.say_where(shared, &home, address))?;
        let store = match &membership {
            Some(membership) => membership.store.clone(),
            None => {
                crate::daemon::check_before_start(&home)?;
                Store::open(&home.store_path())?
            }
        };
        let opened = Opened::with_store(home, config, store, Arc::new(Quiet))?;
        kiso_agent::node::prompt::check_prompts(&opened.home)?;
        let mut drive = opened.daemon_drive()?;
        for error in drive.models.unready() {
            tracing::warn!("{error}; set it and restart, or connect a model in the page");
        }
        drive.member = membership.as_ref().map(Membership::member);
        block_on(async {
            let signals = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()].map(signal);
            let [Ok(mut terminate), Ok(mut interrupt), Ok(mut hangup)] = signals else {
                return Err(Failure::new(Exit::Failed, "signals cannot be received"));
            };
            let port = match &membership {
                Some(membership) => membership.port()?,
                None => self.port.map_or(Port::Configured, Port::Instead),
            };
            let daemon = Daemon::start(drive, environment_secrets(), port).await?;
            let address = daemon.address();
            let status = format!("serves http://{address}");
            if membership.is_none() {
                self.say_where(shared, &opened.home, address);
            }
            tracing::info!(
                "kiso {} serves {} on http://{address}",
                env!("CARGO_PKG_VERSION"),
                opened.home.path().display()
            );
            tracing::info!("page: http://{address}/; `kiso open` logs a browser in");
            systemd::ready(&status);
            let mut given_up = None;
            loop {
                let asked = async {
                    match &membership {
                        Some(membership) => membership.asked().await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    _ = terminate.recv() => break,
                    _ = interrupt.recv() => break,
                    asked = asked => {
                        tracing::info!("the home is given up, because somebody asked for that");
                        given_up = Some(asked);
                        break;
                    }
                    _ = hangup.recv() => {
                        systemd::reloading();
                        self.reload(&daemon).await;
                        systemd::ready(&status);
                    }
                }
            }
            systemd::stopping(Duration::from_secs(daemon.config().daemon.shutdown_timeout_s));
            tracing::info!(
                "shutting down: work in progress finishes its current step; send the signal again to stop immediately"
            );
            let stop = daemon.stop();
            let mut stop = std::pin::pin!(stop);
            loop {
                tokio::select! {
                    () = &mut stop => break,
                    // It is too late to reload.
                    _ = hangup.recv() => {}
                    _ = terminate.recv() => std::process::exit(130),
                    _ = interrupt.recv() => std::process::exit(130),
                }
            }
            if let Some(membership) = membership {
                membership.give_up(given_up).await?;
            }
            tracing::info!("ended");
            Ok(Exit::Done)
        })?
    }

    /// Prints where the daemon listens, for programs; a standby listens, too.
    fn say_where(&self, shared: &Shared, home: &Home, address: SocketAddr) {
        if shared.json {
            let socket = home.socket_path();
            outln!("{}", json!({ "type": "listening", "url": format!("http://{address}"), "socket": socket }));
        }
    }

    async fn reload(&self, daemon: &Daemon) {
        match daemon.reload().await {
            Ok(()) => self.configure_log(&daemon.config()),
            Err(error) => {
                // A file may have several mistakes, each on its own line.
                error.to_string().lines().for_each(|line| tracing::error!("{line}"));
                tracing::error!("the configuration is unchanged");
            }
        }
    }

    fn configure_log(&self, config: &Config) {
        log::configure(&config.log.level, self.log.as_deref().unwrap_or(&config.log.format));
    }
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Failure {
        match error {
            StartError::Home(error) => error.into(),
            StartError::Store(error) => error.into(),
            StartError::Channel(ChannelError::Webhook(error)) => error.into(),
            StartError::Channel(ChannelError::Hook(error)) => error.into(),
            StartError::Channel(error) => Failure::new(Exit::Config, error.to_string()),
            StartError::Threads(_) => Failure::new(Exit::Failed, error.to_string()),
            StartError::OwnPort { .. } => Failure::new(Exit::Config, error.to_string()),
        }
    }
}
