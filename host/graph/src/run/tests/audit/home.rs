//! Which node each result belongs to.

use super::*;

/// Where a result belongs; `None` where several nodes have it.
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
