//! The reviewer: the critic's model call, for tasks with `review: true`.

use serde_json::json;

use crate::graph::limits::Limits;
use crate::graph::plan::Catalog;
use crate::graph::report::Correction;
use crate::graph::run::Run;
use crate::graph::step::{ReviewAsk, StepResult};
use crate::graph::verdict;
use crate::llm::prompt::Pieces;
use crate::llm::{Answer, Completion, Request, Role};

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
    let text = json!({ "type": "string" });
    let flag = json!({ "type": "boolean" });
    let task = json!({
        "type": "object",
        "properties": {
            "type": { "type": "string", "enum": ["exec", "skill", "msg", "act"] },
            "detail": text,
            "expect": text,
            "model": text,
            "skill": text,
            "args": { "type": "object" },
            "notify": flag,
            "review": flag,
        },
        "required": ["type"],
    });
    let schema = json!({
        "type": "object",
        "properties": {
            "status": { "type": "string", "enum": ["ok", "needs_fix", "replan"] },
            "inject": { "type": "array", "items": task },
            "reason": text,
            "learn": text,
            "goal_met": flag,
        },
        "required": ["status"],
    });
    Request { answer: Answer::Json(schema), ..super::request(Role::Reviewer, system, &all, boundary) }
}

/// Reads the answer.
pub fn read(completion: &Completion, catalog: &dyn Catalog, limits: &Limits) -> StepResult {
    let call = super::call_of(completion);
    match verdict::parse(&completion.text, catalog, limits.max_tasks) {
        Ok(verdict) => StepResult::Reviewed { verdict, call },
        Err(unusable) => {
            let violations = super::violations(completion, &unusable.violations);
            StepResult::Unreviewed { correction: Correction { broken: unusable.broken, violations }, call }
        }
    }
}
