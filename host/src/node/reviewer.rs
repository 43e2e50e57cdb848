//! The reviewer: the critic's model call, for tasks with `review: true`.

use crate::graph::limits::Limits;
use crate::graph::plan::Catalog;
use crate::graph::report::Correction;
use crate::graph::run::Run;
use crate::graph::step::{ReviewAsk, StepResult};
use crate::graph::verdict::{self, Status};
use crate::llm::prompt::Pieces;
use crate::llm::{Completion, Request, Role};

/// The shortest verdict.
const OK: &str = r#"{"status": "ok"}"#;

/// The reviewer's prompt.
pub fn request(system: &str, run: &Run, ask: &ReviewAsk, boundary: &str) -> Request {
    let all = Pieces {
        original_message: Some(run.message().to_owned()),
        goal: Some(ask.goal.clone()),
        expect: ask.report.task.expect.clone(),
        task: Some(ask.report.task.clone()),
        output: Some(ask.report.clone()),
        transcript: (!ask.transcript.is_empty()).then(|| ask.transcript.clone()),
        correction: ask.correction.clone(),
        ..Pieces::default()
    };
    super::request(Role::Reviewer, system, &all, boundary)
}

/// The answer as the reviewer is shown it again: of praise nothing is kept, and of what could not be used what may be repeated.
pub fn again(reviewed: &StepResult) -> Option<String> {
    match reviewed {
        StepResult::Reviewed { verdict, .. } if verdict.status == Status::Ok => Some(OK.to_owned()),
        StepResult::Reviewed { verdict, .. } => serde_json::to_string(verdict).ok(),
        StepResult::Unreviewed { correction, .. } => Some(correction.broken.clone()),
        _ => None,
    }
}

/// Reads the answer.
pub fn read(completion: &Completion, catalog: &dyn Catalog, limits: &Limits) -> StepResult {
    let call = super::call_of(completion);
    match verdict::parse(&completion.text, catalog, limits.max_tasks) {
        Ok(verdict) => StepResult::Reviewed { verdict, instructions: Vec::new(), call },
        Err(unusable) => {
            let violations = super::violations(completion, &unusable.violations);
            StepResult::Unreviewed { correction: Correction { broken: unusable.broken, violations }, call }
        }
    }
}
