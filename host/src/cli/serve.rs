//! `kiso serve`: the daemon.

use super::{Exit, Failure, Opened, Shared, block_on, environment_secrets, log};
use crate::channel::ChannelError;
use crate::config::Config;
use crate::daemon::{Daemon, StartError, systemd};
use crate::home::Home;
use crate::skill::Quiet;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

#[derive(Debug, clap::Args)]
#[command(after_help = SIGNALS)]
pub struct ServeArgs {
    /// Port to listen on, instead of the configured one; 0 picks a free port
    #[arg(long, short, value_name = "PORT")]
    port: Option<u16>,
    /// Log format, instead of the configured one
    #[arg(long, value_name = "FORMAT", value_parser = ["text", "json"])]
    log: Option<String>,
}

const SIGNALS: &str = "SIGHUP (or kiso config reload) reloads config.toml. SIGTERM and Ctrl-C stop the daemon when work in progress has finished its current step; a second one stops it immediately, and runs resume at the next start.";

impl ServeArgs {
    pub fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        crate::daemon::check_after_crash(&Home::open(&Home::locate(shared.home.as_deref())?)?)?;
        let opened = Opened::new(shared, Arc::new(Quiet))?;
        self.configure_log(&opened.config);
        log::catch_panics();
        crate::node::prompt::check_prompts(&opened.home)?;
        let drive = opened.drive()?;
        block_on(async {
            let signals = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()].map(signal);
            let [Ok(mut terminate), Ok(mut interrupt), Ok(mut hangup)] = signals else {
                return Err(Failure::new(Exit::Failed, "signals cannot be received"));
            };
            let daemon = Daemon::start(drive, environment_secrets(), self.port).await?;
            let address = daemon.address();
            let status = format!("serves http://{address}");
            if shared.json {
                let socket = opened.home.socket_path();
                outln!("{}", json!({ "type": "listening", "url": format!("http://{address}"), "socket": socket }));
            }
            tracing::info!(
                "kiso {} serves {} on http://{address}",
                env!("CARGO_PKG_VERSION"),
                opened.home.path().display()
            );
            tracing::info!("page: http://{address}/; `kiso open` logs a browser in");
            systemd::ready(&status);
            loop {
                tokio::select! {
                    _ = terminate.recv() => break,
                    _ = interrupt.recv() => break,
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
                    // Whatever it was to change, it is too late.
                    _ = hangup.recv() => {}
                    _ = terminate.recv() => std::process::exit(130),
                    _ = interrupt.recv() => std::process::exit(130),
                }
            }
            tracing::info!("ended");
            Ok(Exit::Done)
        })?
    }

    async fn reload(&self, daemon: &Daemon) {
        match daemon.reload().await {
            Ok(()) => self.configure_log(&daemon.config()),
            Err(error) => {
                // A file may have several mistakes, each with its line.
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
        }
    }
}
