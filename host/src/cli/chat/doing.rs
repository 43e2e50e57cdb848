//! The state of the run that is under way.

use crate::cli::show::told::LastError;
use kiso_graph::Why;
use kiso_graph::step::{Event, StepResult};
use kiso_plan::plan::TaskKind;
use kiso_plan::report::FileNote;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A run that is under way.
#[derive(Debug)]
pub(super) struct Doing {
    pub id: String,
    pub since_ms: i64,
    pub thought: String,
    /// Lines of what its models think that were shown.
    pub reasoned: usize,
    /// The last line that its command has written in this step.
    pub output: String,
    pub cancelled: bool,
    /// The error of its last task.
    pub last: Option<LastError>,
    pub limit: bool,
}

impl Doing {
    /// Keeps what matters at its end.
    pub(super) fn note(&mut self, event: &Event) {
        self.limit |= matches!(event.result, StepResult::Stopped { .. })
            || event.moves.iter().any(|step| step.why == Why::LimitReached);
        if let StepResult::Executed { report, .. } = &event.result
            && report.task.kind != TaskKind::Msg
        {
            self.last = LastError::of(report);
        }
    }
}

/// Whether the text of an event was written by a model for the user, or is a notice.
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

/// A shape that a later daemon may have changed: what cannot be read is left out.
pub(super) fn read<T: DeserializeOwned>(data: Value) -> Option<T> {
    serde_json::from_value(data).ok()
}
