//! The reviewer: the critic's model call, for tasks with `review: true`.

use crate::graph::limits::Limits;
use crate::graph::plan::Catalog;
use crate::graph::report::Correction;
use crate::graph::run::Run;
use crate::graph::step::{ReviewAsk, StepResult};
use crate::graph::verdict;
use crate::llm::prompt::Pieces;
use crate::llm::{Completion, Request, Role};

/// The reviewer's prompt; `boundary` is drawn for this call.
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

/// Reads the answer.
pub fn read(completion: &Completion, catalog: &dyn Catalog, limits: &Limits) -> StepResult {
    let call = super::call_of(completion);
    match verdict::parse(&completion.text, catalog, limits.max_tasks) {
        Ok(verdict) => StepResult::Reviewed { verdict, call },
        Err(unusable) => {
            let violations = unusable.violations.iter().map(ToString::to_string).collect();
            StepResult::Unreviewed { correction: Correction { broken: unusable.broken, violations }, call }
        }
    }
}
