//! Work that a crash interrupted, and how the run continues without its result.

use super::{Run, Stage, State};
use crate::step::{Event, IllegalResult, StepResult, ToolResult};
use kiso_plan::call::ToolCall;
use kiso_plan::code::ErrorCode;
use kiso_plan::plan::{Task, TaskKind};
use kiso_plan::report::{INTERRUPTED, INTERRUPTED_OUTSIDE, TaskReport, TaskStatus};

/// Work that has started and has no result.
#[derive(Debug, Clone, Copy)]
pub enum PendingStep<'a> {
    Task(&'a Task),
    Calls(&'a [ToolCall]),
}

impl Run {
    /// Returns the work that has started and has no result.
    pub fn pending(&self) -> Option<PendingStep<'_>> {
        // Work that waits for an approval was rolled back before.
        if self.card().is_some() {
            return None;
        }
        match &self.state {
            State::Acting { task, .. } if task.kind != TaskKind::Msg => Some(PendingStep::Task(task)),
            State::Looping { stage: Stage::Calling { calls, .. }, .. } => Some(PendingStep::Calls(calls)),
            _ => None,
        }
    }

    /// Number of finished tasks.
    pub fn tasks_recorded(&self) -> usize {
        self.records.len()
    }

    /// Handles interrupted work; called once after a replay. Work that may have taken effect is not repeated but reported as
    /// interrupted, with its files restored or not. A message has no effect until it is accepted, so it is written again; the
    /// same is done with work that the host has rolled back.
    pub fn interrupt(&mut self, files_undone: bool) -> Result<Option<Event>, IllegalResult> {
        let why = if files_undone { INTERRUPTED_OUTSIDE } else { INTERRUPTED };
        let result = match self.pending() {
            Some(PendingStep::Task(task)) => {
                let report = TaskReport::new(task.clone(), TaskStatus::Interrupted, why);
                let report = Box::new(TaskReport { label: self.decision_label(), ..report });
                StepResult::Executed { task: self.records.len(), report, call: None }
            }
            Some(PendingStep::Calls(calls)) => {
                // Its arguments are part of later prompts, too.
                let result = |call| ToolResult { label: self.label(), ..interrupted(call, why) };
                StepResult::Called { results: calls.iter().map(result).collect() }
            }
            None => return Ok(None),
        };
        self.accept(result).map(Some)
    }
}

/// Returns the result of a call that was interrupted.
pub(super) fn interrupted(call: &ToolCall, why: &str) -> ToolResult {
    ToolResult { text: why.to_owned(), code: Some(ErrorCode::Interrupted), ..ToolResult::blank(call) }
}
