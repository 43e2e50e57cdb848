//! Changes to the shared files by a person.

use super::undo::{UndoFailure, limits};
use super::{DriveError, RunExecutor};
use crate::tool::shared::author;
use kiso_base::clock::now_ms;
use kiso_base::home::SessionName;
use kiso_plan::label::Label;
use kiso_plan::plan::CallerScope;
use kiso_sandbox::effect::overlay::{Overlay, ShareError, SharedChanges, SharedEdit};
use kiso_sandbox::effect::undo::Origin;

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

impl RunExecutor {
    /// Makes a change, which the session can undo.
    pub async fn edit_shared(
        &self,
        session: &SessionName,
        caller: CallerScope,
        edit: SharedEdit,
    ) -> Result<SharedChanges, SharedFailure> {
        self.home.create_session(session).map_err(DriveError::from)?;
        let lock = self.lock_at_rest(session).await?;
        self.undo.quiet(session).await;
        let origin = Origin { run: format!("files-{}", now_ms()), task: 1, seq: 0, place: 0 };
        let work = self.undo.begin(session, origin, limits(&self.config));
        let (home, of, limit_mib) = (self.home.clone(), session.clone(), self.config.engine.shared_mib);
        // A file that somebody brings may hold the words of anybody.
        let author = author(caller, Label::attached());
        let done = tokio::task::spawn_blocking(move || {
            let done = Overlay::edit_shared(&home, &of, &edit, (author, work.as_deref()), limit_mib);
            if let Some(work) = work {
                work.commit();
            }
            drop(lock);
            done
        });
        let changes = done.await.map_err(|error| ShareError::Accept(std::io::Error::other(error).into()))??;
        self.count_undo(session);
        tracing::info!(%session, changes = changes.changes, "the shared files were changed by hand");
        Ok(changes)
    }
}
