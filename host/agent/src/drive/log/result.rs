//! The effect of steps' results on the log.

use kiso_graph::step::{Event, StepResult};
use kiso_plan::effort::Effort;

/// Returns whether a model has checked the message for secrets, or the run continues without a model that could: from then on the
/// log is in plain text. If a run ends without it, everything stays sealed.
pub(super) fn looked_at(event: &Event) -> bool {
    match &event.result {
        StepResult::Planned { .. } | StepResult::Conversed { .. } | StepResult::Acted { .. } => true,
        StepResult::Executed { .. } => true,
        StepResult::Routed { routing, call: Some(_), .. } => routing.effort != Effort::High,
        _ => false,
    }
}

/// Returns whether a step with this result may have changed files of the session.
pub(super) fn may_change_files(result: &StepResult) -> bool {
    use StepResult::{Acted, Admitted, Called, Cancelled, Executed, Finished};
    matches!(result, Admitted { .. } | Executed { .. } | Called { .. } | Acted { .. } | Cancelled | Finished { .. })
}
