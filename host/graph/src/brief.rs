//! The technical execution brief of one task, passed from the reasoning node to the action node.
//!
//! A task that is ready to run (a command, a skill with args, a message) gets its brief without a model call.

use kiso_plan::clip::clip;
use serde_json::Value;

use kiso_plan::plan::Task;
use kiso_plan::report::TaskReport;

/// Everything that is needed for one task.
#[derive(Debug, Clone, PartialEq)]
pub struct Brief {
    /// The objective of the plan.
    pub goal: String,
    /// Required properties of the result.
    pub expect: Option<String>,
    /// The outputs of earlier tasks, oldest first.
    pub evidence: Vec<TaskReport>,
    /// The task to do now.
    pub task: Task,
    /// Position in the plan, from 1, as in "task 2 of 4".
    pub number: usize,
    /// Number of tasks in the current plan, including injected ones.
    pub of: usize,
    /// The text of a `msg`, if the actor before it has written it.
    pub written: Option<String>,
    /// The critic's objections, oldest first.
    pub feedback: Vec<String>,
}

/// Maximum characters of a report's text, and of its data as JSON. The output guard allows less: it saves larger texts under a
/// ref.
const MAX_REPORT: usize = 40_000;

/// Maximum files of a report that models see.
const MAX_FILES: usize = 20;

/// Maximum reports: repeated fixes can produce many, and the latest ones matter.
const MAX_REPORTS: usize = 16;

/// Returns the latest reports as evidence, each shortened.
pub fn evidence<'a>(reports: impl DoubleEndedIterator<Item = &'a TaskReport>) -> Vec<TaskReport> {
    let mut evidence: Vec<_> = reports.rev().take(MAX_REPORTS).map(shorten).collect();
    evidence.reverse();
    evidence
}

fn shorten(report: &TaskReport) -> TaskReport {
    let keep = |data: &&Value| data.to_string().len() <= MAX_REPORT;
    // Field by field: a clone would copy a large text that is not needed.
    TaskReport {
        task: report.task.clone(),
        status: report.status,
        text: clip(&report.text, MAX_REPORT),
        whole: None,
        blocks: Vec::new(),
        data: report.data.as_ref().filter(keep).cloned(),
        files: report.files.iter().take(MAX_FILES).cloned().collect(),
        more_files: 0,
        // For people, never in a prompt.
        changed: Vec::new(),
        more_changed: 0,
        outside: false,
        pictures: report.pictures.clone(),
        error: report.error.clone(),
        exit_code: report.exit_code,
        stderr: clip(&report.stderr, MAX_REPORT),
        failed_command: report.failed_command.clone(),
        millis: report.millis,
        // For the trace, never in a prompt.
        used: None,
        log: Vec::new(),
        skill_digest: report.skill_digest.clone(),
        grant: None,
        limits: None,
        label: report.label.clone(),
        sinks: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiso_plan::plan::TaskKind;
    use kiso_plan::report::TaskStatus;

    #[test]
    fn evidence_is_the_latest_and_bounded() {
        let task = Task::new(TaskKind::Msg, "d");
        let mut reports: Vec<_> =
            (0..40).map(|n| TaskReport::new(task.clone(), TaskStatus::Done, n.to_string())).collect();
        reports[38].text = "y".repeat(32_000);
        reports[39].text = "x".repeat(100_000);
        reports[39].data = Some(Value::from("y".repeat(100_000)));
        let evidence = evidence(reports.iter());
        assert_eq!((evidence.len(), evidence[0].text.as_str()), (16, "24"));
        assert_eq!(evidence[14].text.len(), 32_000);
        assert!(evidence[15].text.len() < 40_100 && evidence[15].data.is_none());
    }
}
