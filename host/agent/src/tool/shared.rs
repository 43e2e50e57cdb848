//! Copies files of the workspace to the files that all sessions share.

use super::Tools;
use super::builtin::folders;
use super::builtin::{CallContext, ToolFault};
use super::deliver::{DeliveryError, DeliveryRequest, SHARED_FOLDER};
use kiso_base::home::FolderRefusal;
use kiso_sandbox::skill::Caller;

impl Tools {
    /// Copies a file of the workspace to the files that all sessions share, at the request of a model.
    pub(super) async fn share_file(
        &self,
        request: DeliveryRequest,
        caller: &Caller<'_>,
        at: &CallContext,
    ) -> Result<String, ToolFault> {
        if !caller.shared {
            return Err(folders::fault(FolderRefusal::Unlisted(SHARED_FOLDER.to_owned()).into(), &[]));
        }
        // Nothing else may write there meanwhile.
        let held = self.workspaces.get_lock(caller.session).write_owned().await;
        let (home, session, decision) = (self.skills.home().clone(), caller.session.clone(), at.label.clone());
        let (work, limit_mib) = (caller.transaction.cloned(), self.skills.config().engine.shared_mib);
        let share = move || {
            let shared = request.share(&home, &session, &decision, work.as_deref(), limit_mib);
            if let Some(work) = work {
                work.commit();
            }
            drop(held);
            shared
        };
        let shared = tokio::task::spawn_blocking(share).await.map_err(|error| ToolFault::new(error.to_string()))?;
        let file = shared.map_err(|error: DeliveryError| folders::fault(error, &[]))?;
        Ok(folders::saved(&file, "/shared"))
    }
}
