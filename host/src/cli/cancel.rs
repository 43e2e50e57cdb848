//! `kiso cancel`: stops a run in any process.

use super::{Exit, Failure, Opened, Shared, block_on, environment_secrets};
use kiso_base::home::{HomeError, SessionName};
use kiso_sandbox::skill::Quiet;
use kiso_store::store::{RunId, StoreError};
use serde_json::json;
use std::sync::Arc;

#[derive(Debug, clap::Args)]
pub(super) struct CancelArgs {
    /// A run's id, the beginning of one, or "last" for the newest
    run: String,
}

impl CancelArgs {
    pub(super) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let opened = Opened::new(shared, Arc::new(Quiet))?;
        let run = opened.store.read_blocking(|view| {
            let id = view.resolve_run(&self.run)?;
            view.run(&id)?.ok_or(StoreError::NoRun { text: self.run.clone() })
        })?;
        if !run.status.is_open() {
            let message = format!("run {} has already ended ({})", run.id, run.status.as_str());
            return Err(Failure::new(Exit::Usage, message));
        }
        let state = stop(&opened, &run.id, &run.session)?;
        if shared.json {
            outln!("{}", json!({ "type": "cancelled", "run": run.id.to_string(), "state": state }));
        } else {
            outln!("run {} is {state}", run.id);
        }
        Ok(Exit::Done)
    }
}

/// Stops an unfinished run. Returns its state afterwards.
pub(super) fn stop(opened: &Opened, run: &RunId, session: &SessionName) -> Result<&'static str, Failure> {
    let id = run.clone();
    opened.store.write_blocking(move |tx| tx.request_cancel(&id))?;
    // If no process executes the run, its session is not locked. Then it is ended here, and its work so far stays recorded.
    match opened.home.lock_session(session) {
        Ok(_lock) => {
            // Its process may have ended it since the request.
            let now = opened.store.read_blocking(|view| view.run(run))?;
            if let Some(ended) = now.filter(|run| !run.status.is_open()) {
                return Ok(ended.status.as_str());
            }
            let drive = opened.drive()?;
            let ended = block_on(async {
                match drive.end_cancelled(run, environment_secrets()).await {
                    Err(error) if error.is_final() => drive.abandon(run, &error).await.map(|_| "given up"),
                    ended => ended.map(|()| "cancelled"),
                }
            })?;
            Ok(ended?)
        }
        Err(HomeError::Busy { .. }) => Ok("stopping"),
        Err(error) => Err(error.into()),
    }
}
