//! Changes to the shared files by a person.

use super::undo::{UndoFailure, limits};
use super::{DriveError, RunExecutor};
use crate::tool::author::author;
use kiso_base::clock::now_ms;
use kiso_base::home::SessionName;
use kiso_plan::label::Label;
use kiso_plan::plan::CallerScope;
use kiso_sandbox::effect::overlay::{Overlay, ShareError, SharedChanges, SharedEdit};
use kiso_sandbox::effect::undo::{Origin, Transaction};

/// Why the shared files were not changed.
#[derive(Debug, thiserror::Error)]
pub enum SharedFailure {
    #[error(transparent)]
    Share(#[from] ShareError),
    #[error(transparent)]
    Undo(#[from] UndoFailure),
    #[error(transparent)]
    Drive(#[from] DriveError),
}

/// A completed change of the shared files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedEditDone {
    /// The name of the change in the session, for undoing it.
    pub run: String,
    /// One sentence for each conflict with somebody else's change.
    pub notes: Vec<String>,
}

impl RunExecutor {
    /// Makes a change, which the session can undo.
    pub async fn edit_shared(
        &self,
        session: &SessionName,
        caller: CallerScope,
        edit: SharedEdit,
    ) -> Result<SharedEditDone, SharedFailure> {
        // A file from a person may contain anybody's text.
        let (author, limit_mib) = (author(caller, Label::attached()), self.config.engine.shared_mib);
        let (home, of) = (self.home.clone(), session.clone());
        let edited =
            self.change_shared(session, move |work| Overlay::edit_shared(&home, &of, &edit, (author, work), limit_mib));
        let (run, changes) = edited.await?;
        let SharedChanges { changes, notes, .. } = changes?;
        tracing::info!(%session, changes, "the shared files were changed by hand");
        Ok(SharedEditDone { run, notes })
    }

    /// Runs work that changes the shared files, for an idle session. Returns the name of the change in the session, and the
    /// result of the work.
    pub(super) async fn change_shared<T: Send + 'static>(
        &self,
        session: &SessionName,
        change: impl FnOnce(Option<&Transaction>) -> T + Send + 'static,
    ) -> Result<(String, T), SharedFailure> {
        self.home.create_session(session).map_err(DriveError::from)?;
        let lock = self.lock_at_rest(session).await?;
        self.undo.quiet(session).await;
        let run = format!("files-{}", now_ms());
        let origin = Origin { run: run.clone(), task: 1, seq: 0, place: 0 };
        let work = self.undo.begin(session, origin, limits(&self.config));
        // Runs to its end even if the caller stops waiting, because the lock is held until then.
        let done = tokio::task::spawn_blocking(move || {
            let done = change(work.as_deref());
            if let Some(work) = work {
                work.commit();
            }
            drop(lock);
            done
        });
        let done = done.await.map_err(|error| ShareError::Accept(std::io::Error::other(error).into()))?;
        self.count_undo(session);
        Ok((run, done))
    }
}
