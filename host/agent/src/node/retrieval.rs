//! Retrieval: collects the available data and means.

use kiso_graph::step::StepResult;
use kiso_plan::attached::AttachedFiles;
use kiso_plan::prompt::FileCard;

/// Maximum number of files: a workspace can hold thousands, and a planner that needs more uses a skill.
const MAX_FILES: usize = 100;

/// Maximum number of columns per table, which may have thousands.
const MAX_COLUMNS: usize = 50;

/// The result of retrieval.
#[derive(Debug, Clone, PartialEq)]
pub struct Retrieval {
    pub result: StepResult,
    /// The shared context "environment": refreshed for each call of the planner, never appended.
    pub environment: Vec<FileCard>,
}

/// Builds the environment from the files of the workspace, in any order. `memory` contains relevant passages, `credentials` the
/// names of the session's secrets, `attached` the files of the message.
pub fn retrieve(
    files: Vec<FileCard>,
    memory: Vec<String>,
    credentials: Vec<String>,
    attached: AttachedFiles,
) -> Retrieval {
    let environment = environment(files);
    let files = environment.iter().map(|file| file.path.clone()).collect();
    Retrieval { result: StepResult::Retrieved { files, memory, credentials, attached }, environment }
}

/// Returns the files for a planner: those near the top of the workspace first, without hidden ones.
pub fn environment(mut files: Vec<FileCard>) -> Vec<FileCard> {
    files.retain(|file| !file.path.split('/').any(|part| part.starts_with('.')));
    files.sort_by(|a, b| {
        let depth = |file: &FileCard| file.path.matches('/').count();
        (depth(a), &a.path).cmp(&(depth(b), &b.path))
    });
    files.truncate(MAX_FILES);
    for columns in files.iter_mut().filter_map(|file| file.columns.as_mut()) {
        columns.truncate(MAX_COLUMNS);
    }
    files
}
