//! Checks that a result fits the current step.

use super::super::route::RoutedBy;
use super::super::step::{IllegalResult, Step, StepResult};
use super::Run;
use kiso_plan::approval::MAX_EFFECTS;
use kiso_plan::verdict::Status;

impl Run {
    /// Checks whether `result` answers the current step. Changes nothing.
    pub(super) fn check(&self, result: &StepResult) -> Result<(), IllegalResult> {
        let step = self.next_step();
        let waiting = step.name();
        let malformed = |message: &str| Err(IllegalResult::Malformed { waiting, message: message.to_owned() });
        let calls_model = matches!(
            step,
            Step::Route { .. }
                | Step::Plan(_)
                | Step::Reason(_)
                | Step::Act(_)
                | Step::Compress(_)
                | Step::Assess(_)
                | Step::Review(_)
                | Step::Converse { .. }
                | Step::Execute { .. }
        );
        match (&step, result) {
            (Step::Finish(_) | Step::Ended, StepResult::Cancelled) => {
                Err(IllegalResult::Unexpected { waiting, got: result.name() })
            }
            (_, StepResult::Cancelled) => Ok(()),
            (_, StepResult::Stopped { .. }) if calls_model => Ok(()),
            (Step::Tell { text }, StepResult::Told { text: told }) if text == told => Ok(()),
            (Step::Admit { .. }, StepResult::Admitted { .. }) => Ok(()),
            (Step::Retrieve { .. }, StepResult::Retrieved { .. }) => Ok(()),
            (Step::Route { .. }, StepResult::Routed { by: RoutedBy::Pill, .. }) => malformed("no pill"),
            (Step::Route { .. }, StepResult::Routed { .. }) => Ok(()),
            (Step::Plan(_), StepResult::Planned { plan, .. }) => match plan.shape(self.spec.limits.max_tasks).first() {
                Some(violation) => malformed(&violation.to_string()),
                None => Ok(()),
            },
            (Step::Plan(_), StepResult::Unplanned { .. } | StepResult::ModelFailed { .. }) => Ok(()),
            (
                Step::Reason(_),
                StepResult::Briefed { .. } | StepResult::Unbriefed { .. } | StepResult::ModelFailed { .. },
            ) => Ok(()),
            (Step::Start { task, .. }, StepResult::Started { task: started }) if task == started => Ok(()),
            (Step::Execute { task, brief }, StepResult::Executed { task: done, report, .. }) => {
                match *task == *done && brief.task == report.task {
                    true => Ok(()),
                    false => malformed("it reports about another task"),
                }
            }
            // Work that turned out to need more was rolled back, and is done again after the answer.
            (
                Step::Start { .. } | Step::StartCalls { .. } | Step::Execute { .. } | Step::Call { .. },
                StepResult::ApprovalWanted { card },
            ) => match (1..=MAX_EFFECTS).contains(&card.effects.len()) {
                true => Ok(()),
                false => malformed("a card without effects, or with too many"),
            },
            (Step::Approve { card }, StepResult::ApprovalGiven { answer }) => {
                match answer.accepted.iter().all(|number| (1..=card.effects.len()).contains(number)) {
                    true => Ok(()),
                    false => malformed("it accepts what was not asked"),
                }
            }
            (Step::Act(_), StepResult::Acted { .. } | StepResult::ModelFailed { .. }) => Ok(()),
            (Step::Compress(_), StepResult::Compressed { .. }) => Ok(()),
            (Step::StartCalls { .. }, StepResult::CallsStarted) => Ok(()),
            (Step::Call { calls }, StepResult::Called { results }) => {
                let same = calls.len() == results.len()
                    && calls.iter().zip(results).all(|(call, result)| call.id == result.id && call.name == result.name);
                if same { Ok(()) } else { malformed("it has the results of other calls") }
            }
            (Step::Assess(_), StepResult::Assessed { .. } | StepResult::ModelFailed { .. }) => Ok(()),
            (Step::Review(_), StepResult::Reviewed { verdict, .. }) => match verdict.status {
                Status::NeedsFix if verdict.inject.is_empty() => malformed("needs_fix without tasks"),
                Status::Replan if verdict.reason.is_none() => malformed("replan without a reason"),
                Status::Ok | Status::Replan if !verdict.inject.is_empty() => malformed("tasks without needs_fix"),
                _ => Ok(()),
            },
            (Step::Review(_), StepResult::Unreviewed { .. } | StepResult::ModelFailed { .. }) => Ok(()),
            (Step::Converse { .. }, StepResult::Conversed { .. } | StepResult::ModelFailed { .. }) => Ok(()),
            (Step::Finish(_), StepResult::Finished { .. }) => Ok(()),
            _ => Err(IllegalResult::Unexpected { waiting, got: result.name() }),
        }
    }
}
