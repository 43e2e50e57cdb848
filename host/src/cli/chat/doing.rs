//! The state of the current run.

use crate::cli::show::told::LastError;
use kiso_graph::Why;
use kiso_graph::step::{Event, StepResult};
use kiso_plan::plan::TaskKind;
use kiso_plan::report::FileNote;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The current run.
#[derive(Debug)]
pub(super) struct Doing {
    pub id: String,
    pub since_ms: i64,
    pub thought: String,
    /// Number of shown lines of reasoning.
    pub reasoned: usize,
    /// The last line of its command's output in this step.
    pub output: String,
    pub cancelled: bool,
    /// The error of its last task.
    pub last: Option<LastError>,
    pub limit: bool,
}

impl Doing {
    /// Records the parts of an event that matter at the end of the run.
    pub(super) fn note(&mut self, event: &Event) {
        self.limit |= matches!(event.result, StepResult::Stopped { .. })
            || event.moves.iter().any(|step| step.why == Why::LimitReached);
        if let StepResult::Executed { report, .. } = &event.result
            && report.task.kind != TaskKind::Msg
        {
            self.last = LastError::from_report(report);
        }
    }
}

/// Returns whether the text of an event was written by a model for the user, or is a notice.
pub(super) fn is_written(event: &Event) -> bool {
    matches!(&event.result, StepResult::Told { .. })
        || matches!(&event.result, StepResult::Executed { report, .. } if report.task.kind == TaskKind::Msg)
}

pub(super) fn made_by(event: &Event) -> Vec<FileNote> {
    match &event.result {
        StepResult::Executed { report, .. } => report.files.clone(),
        StepResult::Called { results } => results.iter().flat_map(|result| result.files.clone()).collect(),
        _ => Vec::new(),
    }
}

/// Parses data of the daemon. A later daemon may have changed its form: data that cannot be read is skipped.
pub(super) fn read<T: DeserializeOwned>(data: Value) -> Option<T> {
    serde_json::from_value(data).ok()
}
