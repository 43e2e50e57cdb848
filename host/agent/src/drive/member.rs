//! Of a fleet: keeping the files of a session for the other members, after somebody else than a run has changed them.

use super::{DriveError, RunExecutor};
use kiso_base::home::SessionName;
use kiso_store::store::StoreError;

impl RunExecutor {
    /// Keeps a session's files as they are now, before whoever changed them hears that it is done. While a run works in the session,
    /// that run keeps them with its next step: what is there in the middle of one is not a state to go on from.
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
