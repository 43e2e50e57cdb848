//! What a crash left without a result, and how the run goes on without it.

use super::{Run, Stage, State};
use crate::step::{Event, IllegalResult, StepResult, ToolResult};
use kiso_plan::call::ToolCall;
use kiso_plan::code::ErrorCode;
use kiso_plan::plan::{Task, TaskKind};
use kiso_plan::report::{INTERRUPTED, INTERRUPTED_OUTSIDE, TaskReport, TaskStatus};

/// What has started and has no result.
#[derive(Debug, Clone, Copy)]
pub enum PendingStep<'a> {
    Task(&'a Task),
    Calls(&'a [ToolCall]),
}

impl Run {
    /// What has started and has no result.
    pub fn pending(&self) -> Option<PendingStep<'_>> {
        // What asks for more than was foreseen has been rolled back before.
        if self.card().is_some() {
            return None;
        }
        match &self.state {
            State::Acting { task, .. } if task.kind != TaskKind::Msg => Some(PendingStep::Task(task)),
            State::Looping { stage: Stage::Calling { calls, .. }, .. } => Some(PendingStep::Calls(calls)),
            _ => None,
        }
    }

    /// Tasks that have come to something.
    pub fn tasks_recorded(&self) -> usize {
        self.records.len()
    }

    /// To be called once after a replay, where what had started may have taken effect: it is not done again but reported as
    /// interrupted, with its files as they were or not. A message has no effect until it is accepted, so it is simply written
    /// again; and so is whatever the host has rolled back.
    pub fn interrupt(&mut self, files_undone: bool) -> Result<Option<Event>, IllegalResult> {
        let why = if files_undone { INTERRUPTED_OUTSIDE } else { INTERRUPTED };
        let result = match self.pending() {
            Some(PendingStep::Task(task)) => {
                let report = TaskReport::new(task.clone(), TaskStatus::Interrupted, why);
                let report = Box::new(TaskReport { label: self.decision_label(), ..report });
                StepResult::Executed { task: self.records.len(), report, call: None }
            }
            Some(PendingStep::Calls(calls)) => {
                // Its arguments are words that stand in later prompts, too.
                let result = |call| ToolResult { label: self.label(), ..interrupted(call, why) };
                StepResult::Called { results: calls.iter().map(result).collect() }
            }
            None => return Ok(None),
        };
        self.accept(result).map(Some)
    }
}

/// The result of a call whose end the host did not see.
pub(super) fn interrupted(call: &ToolCall, why: &str) -> ToolResult {
    ToolResult { text: why.to_owned(), code: Some(ErrorCode::Interrupted), ..ToolResult::blank(call) }
}
