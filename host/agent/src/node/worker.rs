//! The worker, or another role that writes: produces the text of a `msg` task.

use super::conversation::{self, NewMessage};
use crate::context;
use kiso_base::role::Role;
use kiso_graph::banner;
use kiso_graph::brief::Brief;
use kiso_graph::step::Call;
use kiso_llm::{Answer, Image, LlmError, Model, Request, Sink, Turn, reflex};
use kiso_plan::clip::clip;
use kiso_plan::code::ErrorCode;
use kiso_plan::plan::{Task, TaskKind};
use kiso_plan::prompt::{Piece, Pieces};
use kiso_plan::report::{TaskError, TaskReport, TaskStatus};

/// Maximum length of a message: nobody reads a longer one, and a model that repeats itself endlessly could fill the store.
const MAX_TEXT: usize = 64_000;

/// Returns the role whose model writes this task: the worker, unless the task names another.
pub fn model_role(task: &Task) -> Role {
    super::model_role(task.model.as_deref(), Role::Worker)
}

/// Returns the role that writes this task: the named one if it can write, or else the worker.
pub fn writer(task: &Task) -> Role {
    let named = model_role(task);
    if named.declaration().writes { named } else { Role::Worker }
}

/// Returns the writer's prompt. `given` contains the session's knowledge: summary, messages and facts. The brief describes the
/// writer's task besides the user's message: goal, evidence, expectation, and the one thing to do.
pub fn request(system: &str, given: &Pieces, message: NewMessage<'_>, brief: &Brief, boundary: &str) -> Request {
    let all = Pieces {
        original_message: Some(message.text.to_owned()),
        goal: Some(brief.goal.clone()),
        evidence: Some(brief.evidence.clone()),
        feedback: Some(brief.feedback.clone()),
        expect: brief.expect.clone(),
        task: Some(brief.task.clone()),
        ..given.clone()
    };
    let mut request = super::request(writer(&brief.task), system, &all, boundary);
    request.turns = message.attached(boundary);
    let found: Vec<_> = brief.evidence.iter().flat_map(|report| &report.pictures).map(Image::from_picture).collect();
    if !found.is_empty() {
        request.turns.push(Turn::Pictures(found));
    }
    match &brief.task.schema {
        Some(schema) => Request { answer: Answer::Json(schema.clone().into()), ..request },
        None => request,
    }
}

/// Precedes the time in a conversation, after the user's message. It is the host's own text.
const NOW: &str = "The host adds, not the user: it is now";

/// Pieces that are in the turns of a conversation and not before them.
const APART: [Piece; 4] = [Piece::Messages, Piece::Memory, Piece::Now, Piece::Task];

/// Returns the writer's prompt for a conversation: the session's knowledge, then the earlier messages, and the message as the
/// last turn.
pub fn talk(system: &str, given: &Pieces, message: NewMessage<'_>, boundary: &str) -> Request {
    let task =
        Task { notify: true, ..Task::new(TaskKind::Msg, format!("Answer the user, who wrote: {}", message.text)) };
    let all = Pieces { task: Some(task), ..given.clone() };
    let mut request = super::request_beside(Role::Worker, system, &all, &APART, boundary);
    let said = request.pieces.messages.as_deref().unwrap_or_default();
    request.turns = conversation::turns(said, message.foreign, boundary);
    request.spare_turns = request.turns.len();
    // Memory differs for each message, so everything before it stays the same in the next request.
    if let Some(memory) = context::section(Piece::Memory, &request.pieces, boundary) {
        request.turns.push(super::declared(&request.user, memory, boundary));
    }
    request.turns.extend(message.turns(boundary));
    // After the message, which the next request has at this position.
    if let Some(now) = request.pieces.now.as_deref().map(str::trim).filter(|now| !now.is_empty()) {
        request.turns.push(Turn::Note(format!("({NOW} {})", context::without_marks(now, boundary))));
    }
    super::prompt::resolve(request, boundary)
}

/// Calls the model. `sink` receives the text as it arrives. The report has no duration yet, because the caller measures it.
pub async fn call(
    model: &dyn Model,
    request: &Request,
    task: &Task,
    sink: &mut dyn Sink,
) -> (TaskReport, Option<Call>) {
    let completion = match model.complete(request, sink).await {
        Ok(completion) => completion,
        Err(error) => {
            let retryable = matches!(error, LlmError::Unavailable { retryable: true, .. });
            return (failed(task, ErrorCode::ModelFailed, error.to_string(), retryable), None);
        }
    };
    let call = super::call_of(&completion);
    // Banners belong to a self-assessment at the step limit, and the evidence may contain one.
    let text = banner::strip(&completion.text);
    let text = text.trim();
    let report = if text.is_empty() {
        let why = super::why_cut_off(&completion).map(|why| format!(": it was cut off {why}")).unwrap_or_default();
        failed(task, ErrorCode::EmptyAnswer, format!("the model {} answered with nothing{why}", call.model), true)
    } else {
        let mut text = clip(text, MAX_TEXT);
        if let Some(note) = super::cut_off(&completion) {
            sink.text(&note);
            text.push_str(&note);
        }
        let mut report = TaskReport::new(task.clone(), TaskStatus::Done, text);
        if completion.model == reflex::NAME {
            report.blocks = reflex::blocks(&request.pieces);
        }
        report
    };
    (report, Some(call))
}

fn failed(task: &Task, code: ErrorCode, message: String, retryable: bool) -> TaskReport {
    let error = TaskError { code, message, limit: None, retryable, policy: false };
    TaskReport::failed(task.clone(), error)
}
