//! The row of a task in the store.

use kiso_graph::run::{BoardTask, TaskState};
use kiso_plan::clip::clip;
use kiso_store::secret::Secrets;
use kiso_store::store::{self, TaskRow};

/// Maximum length in characters of a task's output in the table of tasks; the event has all of it.
const MAX_OUTPUT: usize = 16_000;

/// Converts a task's state to that of the store.
pub(super) fn state(state: TaskState) -> store::TaskState {
    match state {
        TaskState::Planned => store::TaskState::Planned,
        TaskState::Running => store::TaskState::Running,
        TaskState::Done => store::TaskState::Done,
        TaskState::Failed => store::TaskState::Failed,
        TaskState::Interrupted => store::TaskState::Interrupted,
        TaskState::Dropped => store::TaskState::Dropped,
    }
}

/// Returns the row of the task at `position` of the plan.
pub(super) fn row(
    entry: &BoardTask<'_>,
    position: usize,
    old: Option<&TaskRow>,
    secrets: &Secrets,
    at: i64,
) -> TaskRow {
    let report = entry.report;
    let output = report.map(|report| secrets.redact(&clip(&report.text, MAX_OUTPUT)));
    let error = entry.rejected.map(str::to_owned).or_else(|| report.and_then(|report| report.trouble()));
    let running = entry.state != TaskState::Planned && entry.state != TaskState::Dropped;
    TaskRow {
        id: entry.id,
        position: u32::try_from(position).unwrap_or(u32::MAX),
        kind: entry.task.kind,
        label: secrets.redact(&entry.task.label()),
        task: secrets.redact_to_json(entry.task).unwrap_or_default(),
        status: state(entry.state),
        output: output.filter(|text| !text.is_empty()),
        error: error.map(|error| secrets.redact(&error)),
        started_ms: old.and_then(|row| row.started_ms).or(running.then_some(at)),
        ended_ms: (!matches!(entry.state, TaskState::Planned | TaskState::Running)).then_some(at),
    }
}
