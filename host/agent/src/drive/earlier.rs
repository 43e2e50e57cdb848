//! Detects whether the next undo would affect work before the last run of a session, which a person who has just seen that run
//! does not expect.

use super::{DriveError, RunExecutor, UndoFailure};
use kiso_base::home::SessionName;
use kiso_sandbox::effect::undo::{UndoEntry, UndoKind};
use kiso_store::store::{RunId, RunLine};

/// The last run, which changed no files, and the earlier work that an undo would affect.
#[derive(Debug)]
pub struct EarlierWork {
    pub last: RunLine,
    pub entry: UndoEntry,
}

impl RunExecutor {
    /// Returns the earlier run that an undo of this session would affect because the last run changed nothing.
    pub async fn earlier_work(&self, session: &SessionName) -> Result<Option<EarlierWork>, UndoFailure> {
        let mut entries = self.undo_entries(session).await?;
        let Some(at) = entries.iter().rposition(|entry| entry.header.kind == UndoKind::Undo) else { return Ok(None) };
        // A manual change, such as one to the shared files, has a name that is not a run id.
        let Some(named) = entries[at].run().and_then(|run| run.parse::<RunId>().ok()) else { return Ok(None) };
        let of = session.clone();
        let read = self.store.read(move |view| {
            let is_run = view.run(&named)?.is_some();
            Ok(view.list_runs(Some(&of), None, 1)?.pop().filter(|_| is_run))
        });
        let Some(last) = read.await.map_err(DriveError::from)? else { return Ok(None) };
        // The last run was already undone, so the run before it is next.
        if entries.iter().any(|entry| entry.run() == Some(last.id.as_str())) {
            return Ok(None);
        }
        let entry = entries.swap_remove(at);
        Ok((entry.header.at_ms < last.started_ms).then_some(EarlierWork { last, entry }))
    }
}
