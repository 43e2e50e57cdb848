//! Whether the next undo reaches behind the last run of a session, which nobody expects who has just seen that run.

use super::{DriveError, RunExecutor, UndoFailure};
use kiso_base::home::SessionName;
use kiso_sandbox::effect::undo::{UndoEntry, UndoKind};
use kiso_store::store::RunLine;

/// The last run, which changed no files, and the earlier work that an undo would take back.
#[derive(Debug)]
pub struct EarlierWork {
    pub last: RunLine,
    pub entry: UndoEntry,
}

impl RunExecutor {
    /// The earlier work that an undo of this session would take back although the last run changed nothing.
    pub async fn earlier_work(&self, session: &SessionName) -> Result<Option<EarlierWork>, UndoFailure> {
        let mut entries = self.undo_entries(session).await?;
        let of = session.clone();
        let last =
            self.store.read(move |view| view.list_runs(Some(&of), None, 1)).await.map_err(DriveError::from)?.pop();
        let Some(last) = last else { return Ok(None) };
        // What was undone can be redone: then the run before it is meant.
        if entries.iter().any(|entry| entry.run() == Some(last.id.as_str())) {
            return Ok(None);
        }
        let newest = entries.iter().rposition(|entry| entry.header.kind == UndoKind::Undo);
        let entry = newest.map(|at| entries.swap_remove(at));
        Ok(entry.filter(|entry| entry.header.at_ms < last.started_ms).map(|entry| EarlierWork { last, entry }))
    }
}
