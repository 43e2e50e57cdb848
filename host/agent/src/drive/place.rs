//! Places for active runs: "Enforces 10-job concurrency limit". The limit applies to the home, so `kiso run` beside a daemon has
//! no places of its own.

use super::{Cancel, DriveError, RunExecutor};
use kiso_base::home::HomeLock;
use std::time::Duration;
use tokio::time::sleep;

/// How often a waiting run checks for a free place: another process may free one.
const LOOK: Duration = Duration::from_millis(200);

impl RunExecutor {
    /// Waits for a place, which is returned when the result is dropped. `full` is called once if none is free at first. `None` if
    /// the wait was cancelled, or the daemon is shutting down.
    pub async fn place(&self, cancel: &Cancel, full: impl FnOnce(u64)) -> Result<Option<HomeLock>, DriveError> {
        let mut full = Some(full);
        loop {
            let max = self.newest_config().daemon.max_jobs;
            if let Some(place) = self.home.lock_job(usize::try_from(max).unwrap_or(usize::MAX))? {
                return Ok(Some(place));
            }
            if let Some(full) = full.take() {
                full(max);
            }
            if cancel.is_cancelled() || self.pause.is_paused() {
                return Ok(None);
            }
            sleep(LOOK).await;
        }
    }
}
