//! The reviewer: checks the status and the exit code first, then the known expectations.

use kiso_plan::prompt::Pieces;
use kiso_plan::report::TaskStatus;
use kiso_plan::verdict::{Status, Verdict};

use crate::expect::{Expect, failing, parse};

/// Returns the verdict on `pieces.output`.
pub fn review(pieces: &Pieces) -> Verdict {
    let Some(report) = &pieces.output else {
        return verdict(Status::Replan, Some("there is no output to review".to_owned()));
    };
    if report.status != TaskStatus::Done
        && let Some(trouble) = report.trouble()
    {
        return verdict(Status::Replan, Some(trouble));
    }
    let text = pieces.expect.as_deref().or(report.task.expect.as_deref()).unwrap_or_default();
    let expects = parse(text);
    // The exit code of a command says whether it succeeded, unless another code is expected.
    let own_code = expects.iter().any(|e| matches!(e, Expect::Exit(_)));
    if let Some(code) = report.exit_code.filter(|code| *code != 0 && !own_code) {
        return verdict(Status::Replan, Some(format!("it ended with exit code {code}")));
    }
    let failed: Vec<String> = expects.iter().filter_map(|e| failing(e, report)).collect();
    if !failed.is_empty() {
        return verdict(Status::Replan, Some(failed.join("; ")));
    }
    let unknown: Vec<String> = expects
        .iter()
        .filter_map(|e| match e {
            Expect::Unknown(text) => Some(format!("\"{text}\"")),
            _ => None,
        })
        .collect();
    let reason = (!unknown.is_empty()).then(|| format!("checked by status only: {}", unknown.join(", ")));
    verdict(Status::Ok, reason)
}

fn verdict(status: Status, reason: Option<String>) -> Verdict {
    Verdict { status, inject: Vec::new(), reason, learn: None, goal_met: None, blocked: None }
}
