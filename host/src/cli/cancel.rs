//! `kiso cancel`: stops a run, wherever it runs.

use super::{Exit, Failure, Opened, Shared, block_on, environment_secrets};
use crate::home::HomeError;
use crate::skill::Quiet;
use crate::store::StoreError;
use serde_json::json;
use std::sync::Arc;

#[derive(Debug, clap::Args)]
pub struct Cancel {
    /// A run's id, the beginning of one, or "last" for the newest
    run: String,
}

impl Cancel {
    pub fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let opened = Opened::new(shared, Arc::new(Quiet))?;
        let run = opened.store.read_blocking(|view| {
            let id = view.resolve_run(&self.run)?;
            view.run(&id)?.ok_or(StoreError::NoRun { text: self.run.clone() })
        })?;
        if !run.status.is_open() {
            let message = format!("run {} has already ended ({})", run.id, run.status.as_str());
            return Err(Failure::new(Exit::Usage, message));
        }
        let id = run.id.clone();
        opened.store.write_blocking(move |tx| tx.request_cancel(&id))?;
        // Where nobody drives it, its session is free: it is ended here, with what it has done on record.
        let state = match opened.home.lock_session(&run.session) {
            Ok(_lock) => {
                let drive = opened.drive()?;
                block_on(async {
                    match drive.end_cancelled(&run.id, environment_secrets()).await {
                        Err(error) if error.is_final() => drive.abandon(&run.id, &error).await.map(|_| "given up"),
                        ended => ended.map(|()| "cancelled"),
                    }
                })??
            }
            Err(HomeError::Busy { .. }) => "stopping",
            Err(error) => return Err(error.into()),
        };
        if shared.json {
            outln!("{}", json!({ "type": "cancelled", "run": run.id.to_string(), "state": state }));
        } else {
            outln!("run {} is {state}", run.id);
        }
        Ok(Exit::Done)
    }
}
