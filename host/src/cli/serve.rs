//! `kiso serve`: the daemon.

use super::{Exit, Failure, Opened, Shared, block_on, environment_secrets};
use crate::daemon::{Daemon, StartError};
use crate::skill::Quiet;
use serde_json::json;
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};

#[derive(Debug, clap::Args)]
pub struct Serve {
    /// Port to listen on, instead of the configured one; 0 lets the system choose
    #[arg(long, short, value_name = "PORT")]
    port: Option<u16>,
}

impl Serve {
    pub fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let opened = Opened::new(shared, Arc::new(Quiet))?;
        crate::node::role::check_prompts(&opened.home)?;
        let drive = opened.drive()?;
        block_on(async {
            let signals = [SignalKind::terminate(), SignalKind::interrupt()].map(signal);
            let [Ok(mut terminate), Ok(mut interrupt)] = signals else {
                return Err(Failure::new(Exit::Failed, "signals cannot be received"));
            };
            let daemon = Daemon::start(drive, environment_secrets(), self.port).await?;
            let address = daemon.address();
            if shared.json {
                outln!("{}", json!({ "type": "listening", "url": format!("http://{address}") }));
            } else {
                eprintln!("kiso serves {} on http://{address}", opened.home.path().display());
            }
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            eprintln!("ending: what is under way may finish its step; a second signal ends at once");
            tokio::select! {
                () = daemon.stop() => {}
                _ = terminate.recv() => std::process::exit(130),
                _ = interrupt.recv() => std::process::exit(130),
            }
            Ok(Exit::Done)
        })?
    }
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Failure {
        match error {
            StartError::Home(error) => error.into(),
            StartError::Store(error) => error.into(),
            StartError::Webhook(error) => error.into(),
            StartError::Listen(error) => Failure::new(Exit::Config, error.to_string()),
        }
    }
}
