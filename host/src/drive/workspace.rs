//! The workspace of a run's session, as prompts show it.

use super::DriveError;
use super::perform::AtWork;
use crate::compute;
use crate::llm::prompt::FileCard;
use crate::tool::files;

impl AtWork<'_> {
    /// The files of the workspace, whose writer may have made them hard to read.
    pub(super) async fn files(&self) -> Result<Vec<FileCard>, DriveError> {
        let work = self.drive.home.open_work(&self.session)?;
        let read = compute::run("reading the files of the workspace", move || files::cards(&work)).await;
        Ok(read.unwrap_or_else(|overdue| {
            // They are of use for a plan, and no plan fails for the lack of them.
            tracing::warn!(session = %self.session, "{overdue}");
            Vec::new()
        }))
    }
}
