//! The actor: calls tools until the brief is done (seed 003, phase 4).

use crate::graph::lane::ActionTurn;
use crate::graph::step::{ActAsk, StepResult};
use crate::llm::prompt::Pieces;
use crate::llm::{Completion, Request, Role, ToolSpec, Turn};

/// Asks for the self-assessment at the round limit (seed 003, "Step-Limit Status Contract"); the prompt says its form.
const ASSESS: &str = "The limit of tool calls is reached, and no tool can be called any more. Give your self-assessment now: \
    the first line is exactly one of the three GOAL banners, then what was done, what was found and what is missing.";

/// The actor's prompt: the brief, then everything that was called and found since.
pub fn request(system: &str, ask: &ActAsk, tools: Vec<ToolSpec>, boundary: &str) -> Request {
    let all = Pieces { brief: Some(ask.brief.text()), ..Pieces::default() };
    let turns = ask.lane.turns().iter().map(|turn| match turn {
        ActionTurn::Assistant { text, calls } => Turn::Assistant { text: text.clone(), calls: calls.clone() },
        ActionTurn::Tool { id, name, text, .. } => {
            Turn::Tool { id: id.clone(), name: name.clone(), text: fenced(text, boundary) }
        }
        ActionTurn::Reflection { text } => Turn::Note(text.clone()),
        summary @ ActionTurn::Summary { .. } => Turn::Note(fenced(&summary.text(), boundary)),
    });
    let turns = turns.collect();
    Request { turns, tools, ..super::request(Role::Actor, system, &all, boundary) }
}

/// The same for the self-assessment, without tools.
pub fn assessment(system: &str, ask: &ActAsk, boundary: &str) -> Request {
    let mut request = request(system, ask, Vec::new(), boundary);
    request.turns.push(Turn::Note(ASSESS.to_owned()));
    request
}

/// Reads the answer.
pub fn read(completion: Completion) -> StepResult {
    let call = super::call_of(&completion);
    // An answer with calls is not the last; what is missing of the calls is told by their results.
    let note = if completion.calls.is_empty() { super::cut_off(&completion) } else { None };
    let text = completion.text + &note.unwrap_or_default();
    StepResult::Acted { text, calls: completion.calls, call }
}

/// Output of a tool may come from strangers.
fn fenced(text: &str, boundary: &str) -> String {
    format!("<<<{boundary}\n{}\n{boundary}>>>", text.replace(boundary, "[fence]"))
}
