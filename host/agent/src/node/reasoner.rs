//! The reasoner: writes the brief of a task whose calls are not known yet.

use kiso_base::role::Role;
use kiso_graph::execution_brief;
use kiso_graph::step::{ReasonAsk, StepResult};
use kiso_llm::{Completion, Request};
use kiso_plan::prompt::Pieces;
use kiso_plan::report::Correction;

/// Returns the reasoner's prompt. `readiness` lists the available means, one line each, and `now` is the time and location of the
/// user.
pub fn request(
    system: &str,
    message: &str,
    ask: &ReasonAsk,
    readiness: Vec<String>,
    now: &str,
    boundary: &str,
) -> Request {
    let all = Pieces {
        original_message: Some(message.to_owned()),
        plan: Some(ask.plan.clone()),
        goal: Some(ask.goal.clone()),
        task: Some(ask.task.clone()),
        expect: ask.task.expect.clone(),
        skill_environment: Some(ask.skill_environment.clone()),
        readiness: Some(readiness),
        now: Some(now.to_owned()),
        evidence: Some(ask.evidence.clone()),
        feedback: Some(ask.feedback.clone()),
        memory: some(&ask.memory),
        replies: some(&ask.replies),
        reasoning_lane: Some(ask.lane.clone()),
        correction: ask.correction.clone(),
        ..Pieces::default()
    };
    super::request(Role::Reasoner, system, &all, boundary)
}

/// Returns the lines, if there are any.
fn some(lines: &[String]) -> Option<Vec<String>> {
    (!lines.is_empty()).then(|| lines.to_vec())
}

/// Returns the answer for later prompts of the reasoner: only the parsed parts, because the rest may contain anything.
pub fn again(briefed: &StepResult) -> Option<String> {
    match briefed {
        StepResult::Briefed { brief, .. } => serde_json::to_string(brief).ok(),
        StepResult::Unbriefed { correction, .. } => Some(correction.broken.clone()),
        _ => None,
    }
}

/// Parses the answer.
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
