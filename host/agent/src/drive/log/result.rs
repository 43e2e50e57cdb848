//! How the log treats the results of steps.

use kiso_graph::step::{Event, StepResult};
use kiso_plan::effort::Effort;

/// Whether a model has looked for secrets in the message, or the run goes on without one that could: from here on the
/// log is in clear. Of a run that ends without it, all stays sealed.
pub(super) fn looked_at(event: &Event) -> bool {
    match &event.result {
        StepResult::Planned { .. } | StepResult::Conversed { .. } | StepResult::Acted { .. } => true,
        StepResult::Executed { .. } => true,
        StepResult::Routed { routing, call: Some(_), .. } => routing.effort != Effort::High,
        _ => false,
    }
}

/// Whether a step with this result may have changed files of the session.
pub(super) fn may_change_files(result: &StepResult) -> bool {
    use StepResult::{Acted, Admitted, Called, Cancelled, Executed, Finished};
    matches!(result, Admitted { .. } | Executed { .. } | Called { .. } | Acted { .. } | Cancelled | Finished { .. })
}
