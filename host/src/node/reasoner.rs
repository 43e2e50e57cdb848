//! The reasoner: the brief of a task whose calls are not known yet.

use serde_json::json;

use crate::graph::execution_brief;
use crate::graph::report::Correction;
use crate::graph::step::{ReasonAsk, StepResult};
use crate::llm::prompt::Pieces;
use crate::llm::{Answer, Completion, Request, Role};

/// The reasoner's prompt. `readiness` says what there is to execute with, a line each.
pub fn request(system: &str, ask: &ReasonAsk, readiness: Vec<String>, boundary: &str) -> Request {
    let all = Pieces {
        plan: Some(ask.plan.clone()),
        goal: Some(ask.goal.clone()),
        task: Some(ask.task.clone()),
        expect: ask.task.expect.clone(),
        skill_environment: Some(ask.skill_environment.clone()),
        readiness: Some(readiness),
        evidence: Some(ask.evidence.clone()),
        feedback: Some(ask.feedback.clone()),
        memory: some(&ask.memory),
        replies: some(&ask.replies),
        reasoning_lane: Some(ask.lane.clone()),
        correction: ask.correction.clone(),
        ..Pieces::default()
    };
    let list = json!({ "type": "array", "items": { "type": "string" } });
    let schema = json!({
        "type": "object",
        "properties": {
            "goal": { "type": "string" },
            "required": list,
            "delta": { "type": "string" },
            "success": list,
            "context": {
                "type": "object",
                "properties": {
                    "discovery": list,
                    "credentials": list,
                    "artifacts": list,
                    "blockers": list,
                    "recheck": { "type": "string", "enum": ["none", "before", "after"] },
                },
                "required": ["discovery", "credentials", "artifacts", "blockers"],
            },
            "action": { "type": "string" },
        },
        "required": ["goal", "required", "delta", "success", "context", "action"],
    });
    Request { answer: Answer::Json(schema), ..super::request(Role::Reasoner, system, &all, boundary) }
}

/// The lines, if there are any.
fn some(lines: &[String]) -> Option<Vec<String>> {
    (!lines.is_empty()).then(|| lines.to_vec())
}

/// Reads the answer.
pub fn read(completion: &Completion) -> StepResult {
    let call = super::call_of(completion);
    match execution_brief::parse(&completion.text) {
        Ok(brief) => StepResult::Briefed { brief, call },
        Err(unusable) => {
            let violations = super::violations(completion, &unusable.violations);
            StepResult::Unbriefed { correction: Correction { broken: unusable.broken, violations }, call }
        }
    }
}
