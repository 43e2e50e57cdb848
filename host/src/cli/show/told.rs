//! What the steps of a run look like to a person, in `kiso run` and in the chat alike.

use super::{Paint, duration, printable, printable_line};
use crate::cli::Exit;
use kiso_graph::reflection;
use kiso_graph::step::{Event, StepResult};
use kiso_plan::clip::clip;
use kiso_plan::plan::{Task, TaskKind};
use kiso_plan::report::TaskReport;
use kiso_plan::verdict::{Status, Verdict};
use kiso_sandbox::skill::Skills;

/// Characters of a call's arguments that are shown.
const ARGS: usize = 160;

/// The lines about an event; none for one that shows itself or says nothing to a person.
pub fn lines(paint: Paint, event: &Event, skills: &Skills) -> Vec<String> {
    match &event.result {
        StepResult::Admitted { unknown, .. } => {
            unknown.iter().map(|tag| paint.dim(&printable(&tag.to_string()))).collect()
        }
        StepResult::Planned { plan, .. } => plan_lines(paint, &plan.goal, &plan.tasks, skills),
        StepResult::Unplanned { correction, .. } => {
            vec![format!("the plan could not be used: {}", printable_line(&correction.violations.join("; ")))]
        }
        StepResult::Executed { report, .. } => task(paint, report).into_iter().collect(),
        StepResult::Reviewed { verdict, .. } => {
            let reason = verdict.reason.as_deref().map(|r| format!(": {}", printable_line(r))).unwrap_or_default();
            vec![format!("  review {}{reason}", status_of(verdict))]
        }
        StepResult::ModelFailed { message } => vec![paint.red(&printable_line(message))],
        StepResult::Told { text } => vec![printable(text)],
        StepResult::Acted { calls, .. } => calls
            .iter()
            .map(|call| {
                paint.dim(&format!("  → {} {}", printable_line(&call.name), printable_line(&clip(&call.args, ARGS))))
            })
            .collect(),
        StepResult::Called { results } => results
            .iter()
            .filter_map(|result| match (result.status, result.exit_code) {
                (reflection::Status::Ok, None | Some(0)) => None,
                (reflection::Status::Ok, Some(code)) => Some(format!("  {} exit code {code}", result.name)),
                (status, _) => {
                    let line = result.text.lines().next().unwrap_or_default();
                    Some(format!("  {} {}: {line}", result.name, status.name()))
                }
            })
            .map(|line| printable_line(&line))
            .collect(),
        _ => Vec::new(),
    }
}

fn plan_lines(paint: Paint, goal: &str, tasks: &[Task], skills: &Skills) -> Vec<String> {
    let head = format!("{} {}", paint.bold("Plan:"), printable_line(goal));
    let tasks = tasks.iter().enumerate().map(|(i, task)| {
        let review = if task.review { paint.dim("  (reviewed)") } else { String::new() };
        format!("  {}. {}{review}", i + 1, printable_line(&describe(task, skills)))
    });
    std::iter::once(head).chain(tasks).collect()
}

/// The line of a task that has ended. What is written for the user shows itself.
pub fn task(paint: Paint, report: &TaskReport) -> Option<String> {
    if report.task.kind == TaskKind::Msg || report.task.kind == TaskKind::Act && report.task.notify {
        return None;
    }
    let (mark, rest) = match report.trouble() {
        None => (paint.green("✓"), String::new()),
        Some(trouble) => (paint.red("✗"), format!("  {}", printable_line(&trouble))),
    };
    let time = paint.dim(&duration(report.millis));
    Some(format!("{mark} {}  {time}{rest}", printable_line(&report.task.label())))
}

pub fn status_of(verdict: &Verdict) -> &'static str {
    match verdict.status {
        Status::Ok => "ok",
        Status::NeedsFix => "needs_fix",
        Status::Replan => "replan",
    }
}

/// A task on one line: "data file=weather.csv group=month(date)".
fn describe(task: &Task, skills: &Skills) -> String {
    match task.kind {
        TaskKind::Skill => {
            let name = task.skill.as_deref().unwrap_or("skill");
            let args = task.args.as_ref().and_then(|a| a.as_object()).into_iter().flatten();
            // What the schema filled in says nothing about this task.
            let default =
                |key: &str| skills.find_tool(name).ok().and_then(|(s, i)| s.tools[i].args.default_of(key).cloned());
            let args =
                args.filter(|(key, value)| default(key).as_ref() != Some(*value)).map(|(key, value)| match value {
                    serde_json::Value::String(text) => format!(" {key}={text}"),
                    other => format!(" {key}={other}"),
                });
            format!("{name}{}", args.collect::<String>())
        }
        TaskKind::Exec => format!("$ {}", task.detail),
        TaskKind::Msg => "reply".to_owned(),
        TaskKind::Act => task.detail.clone(),
    }
}

/// What the last task of a run that was more than a message ran into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastError {
    Limit,
    Policy,
}

impl LastError {
    pub fn of(report: &TaskReport) -> Option<LastError> {
        report.error.as_ref().and_then(|error| match error {
            error if error.limit.is_some() => Some(LastError::Limit),
            error if error.policy => Some(LastError::Policy),
            _ => None,
        })
    }

    /// How a command ends whose run has failed.
    pub fn exit(last: Option<LastError>) -> Exit {
        match last {
            Some(LastError::Limit) => Exit::Limit,
            Some(LastError::Policy) => Exit::Policy,
            None => Exit::Failed,
        }
    }
}
