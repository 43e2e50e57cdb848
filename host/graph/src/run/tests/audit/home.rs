//! The node and the kind of each result.

use super::*;

/// Returns the node of a result; `None` if several nodes produce it.
pub(super) fn home(result: &StepResult) -> Option<Node> {
    Some(match result {
        StepResult::Admitted { .. } => Node::Input,
        StepResult::Retrieved { .. } | StepResult::Routed { .. } => Node::Retrieval,
        StepResult::Planned { .. } | StepResult::Unplanned { .. } => Node::Planner,
        StepResult::Briefed { .. } | StepResult::Unbriefed { .. } | StepResult::Started { .. } => Node::Reasoning,
        StepResult::Executed { .. }
        | StepResult::Acted { .. }
        | StepResult::Compressed { .. }
        | StepResult::CallsStarted
        | StepResult::Called { .. }
        | StepResult::Assessed { .. } => Node::Action,
        StepResult::Reviewed { .. } | StepResult::Unreviewed { .. } => Node::Critic,
        StepResult::ApprovalGiven { .. } => Node::Approval,
        StepResult::ApprovalWanted { .. } => return None,
        StepResult::Conversed { .. } | StepResult::Finished { .. } => Node::Output,
        StepResult::ModelFailed { .. } | StepResult::Stopped { .. } => return None,
        StepResult::Cancelled | StepResult::Told { .. } => return None,
    })
}

/// Whether no model has written a message.
pub(super) fn is_unwritten(report: &TaskReport) -> bool {
    let gave_none = |code: &ErrorCode| matches!(code, ErrorCode::ModelFailed | ErrorCode::EmptyAnswer);
    report.task.kind == TaskKind::Msg && report.error.as_ref().is_some_and(|error| gave_none(&error.code))
}
