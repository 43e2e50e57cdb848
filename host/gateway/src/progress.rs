//! Describes the events of a run for a reader; chat clients show this as thoughts.

use std::fmt::Write as _;

use kiso_graph::step::{Event, StepResult};
use kiso_plan::plan::TaskKind;
use kiso_plan::report::TaskStatus;
use kiso_plan::verdict::Status;

/// Returns a few lines of Markdown about an event; `None` if the event is not interesting to a reader.
pub fn describe(event: &Event) -> Option<String> {
    let mut text = String::new();
    match &event.result {
        StepResult::Planned { plan, .. } => {
            let _ = writeln!(text, "Plan: {}", plan.goal.trim());
            for (number, task) in (1..).zip(&plan.tasks) {
                let _ = writeln!(text, "{number}. {}", task.label());
            }
        }
        StepResult::Executed { report, .. } if report.task.kind != TaskKind::Msg => {
            let label = report.task.label();
            let _ = match (report.trouble(), report.status) {
                (Some(trouble), _) => writeln!(text, "✗ {label}: {}", first_line(&trouble)),
                (None, TaskStatus::Done) => writeln!(text, "✓ {label}"),
                (None, _) => writeln!(text, "✗ {label}"),
            };
        }
        StepResult::Called { results } => {
            for result in results {
                let mark = if result.code.is_some() { "✗" } else { "✓" };
                let _ = writeln!(text, "{mark} {}", result.name);
            }
        }
        StepResult::Reviewed { verdict, .. } if verdict.status != Status::Ok => {
            let what = if verdict.status == Status::Replan { "a new plan is needed" } else { "not right yet" };
            let _ = match &verdict.reason {
                Some(reason) => writeln!(text, "Review: {what}: {}", first_line(reason)),
                None => writeln!(text, "Review: {what}"),
            };
        }
        StepResult::Told { text: told } => text = format!("{}\n", told.trim()),
        _ => {}
    }
    (!text.is_empty()).then_some(text)
}

fn first_line(text: &str) -> &str {
    text.trim().lines().next().unwrap_or_default()
}
