//! Fleet: storing the files of a session for the other members, after a change that was not made by a run.

use super::{DriveError, RunExecutor};
use kiso_base::home::SessionName;
use kiso_store::store::StoreError;

impl RunExecutor {
    /// Stores a session's files in their current state, before the change is acknowledged. While a run works in the session, the
    /// run stores them with its next step, because the state in the middle of a step must not be used.
    pub async fn keep_files(&self, session: &SessionName) -> Result<(), DriveError> {
        let Some(member) = self.member.clone() else { return Ok(()) };
        let Ok(_lock) = self.home.lock_session(session) else { return Ok(()) };
        let of = session.clone();
        let kept = tokio::task::spawn_blocking(move || member.keep_files(&of)).await;
        let root = kept.unwrap_or_else(|failed| Err(failed.to_string())).map_err(|why| StoreError::Fenced { why })?;
        let of = session.clone();
        Ok(self.store.write(move |tx| tx.set_tree(&of, &root)).await?)
    }
}
