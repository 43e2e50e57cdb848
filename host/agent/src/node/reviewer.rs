//! The reviewer: the critic's model call, for tasks with `review: true`.

use kiso_base::role::Role;
use kiso_graph::lane::SAID;
use kiso_graph::plan::Secrets;
use kiso_graph::run::Run;
use kiso_graph::step::{Call, ReviewAsk, StepResult};
use kiso_graph::verdict::Review;
use kiso_graph::{plan, verdict};
use kiso_llm::{Completion, Request};
use kiso_plan::label::Label;
use kiso_plan::limits::Limits;
use kiso_plan::plan::Catalog;
use kiso_plan::prompt::{FileCard, Pieces};
use kiso_plan::report::Correction;
use kiso_plan::verdict::Status;

/// The shortest verdict.
const OK: &str = r#"{"status": "ok"}"#;

/// A reviewer's answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Reviewing {
    /// `Reviewed` or `Unreviewed`.
    Decided(Box<StepResult>),
    /// The reviewer requests this file of the workspace first.
    Look { path: String, answer: String, call: Call },
}

/// Returns the reviewer's prompt. `files` are those of the workspace; `looked_at` is the requested one.
pub fn request(
    system: &str,
    run: &Run,
    ask: &ReviewAsk,
    files: &[FileCard],
    looked_at: Option<String>,
    boundary: &str,
) -> Request {
    let all = Pieces {
        original_message: Some(run.message().to_owned()),
        goal: Some(ask.goal.clone()),
        expect: ask.report.task.expect.clone(),
        task: Some(ask.report.task.clone()),
        output: Some(ask.report.clone()),
        transcript: Some(transcript(ask)),
        evidence: Some(ask.evidence.clone()),
        environment: Some(files.to_vec()),
        looked_at,
        correction: ask.correction.clone(),
        ..Pieces::default()
    };
    let mut request = super::request(Role::Reviewer, system, &all, boundary);
    request.turns = super::conversation::attached(run.attached(), boundary);
    request
}

/// Returns the turns of the task, except its output, which is a separate piece.
fn transcript(ask: &ReviewAsk) -> Vec<String> {
    let mut texts: Vec<_> = ask.transcript.iter().map(|turn| turn.text.clone()).collect();
    let output = ask.report.text.trim();
    let is_output = |text: &String| text.strip_prefix(SAID).is_some_and(|said| said.trim() == output);
    if let Some(last) = texts.iter().rposition(is_output) {
        texts.remove(last);
    }
    texts
}

/// Returns the answer for later prompts of the reviewer: without praise, and only the repeatable parts of an unusable answer.
pub fn again(reviewed: &StepResult) -> Option<String> {
    match reviewed {
        StepResult::Reviewed { verdict, .. } if verdict.status == Status::Ok => Some(OK.to_owned()),
        StepResult::Reviewed { verdict, .. } => serde_json::to_string(verdict).ok(),
        StepResult::Unreviewed { correction, .. } => Some(correction.broken.clone()),
        _ => None,
    }
}

/// Parses the answer.
pub fn read(completion: &Completion, catalog: &dyn Catalog, limits: &Limits, may_look: bool) -> Reviewing {
    let (call, read) = (super::call_of(completion), Label::default());
    match verdict::parse(&completion.text, catalog, limits.max_tasks, may_look) {
        Ok(Review::Look(path)) => Reviewing::Look { path, answer: completion.text.clone(), call },
        Ok(Review::Verdict(verdict)) => {
            let violations = super::full_commands(completion, "inject", &verdict.inject);
            if violations.is_empty() {
                return Reviewing::Decided(Box::new(StepResult::Reviewed {
                    verdict,
                    instructions: Vec::new(),
                    read,
                    call,
                }));
            }
            let broken = plan::without_secrets(&completion.text, &Secrets::default());
            let correction = Correction { broken, violations };
            Reviewing::Decided(Box::new(StepResult::Unreviewed { correction, read, call }))
        }
        Err(unusable) => {
            let violations = super::violations(completion, &unusable.violations);
            let correction = Correction { broken: unusable.broken, violations };
            Reviewing::Decided(Box::new(StepResult::Unreviewed { correction, read, call }))
        }
    }
}
