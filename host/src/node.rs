//! The nodes of the graph: each builds the prompt of its role and reads the answer. None decides where the run goes
//! next, and none does I/O except by calling the model that it is given.

pub mod actor;
pub mod guidance;
pub mod output;
pub mod planner;
pub mod reasoner;
pub mod retrieval;
pub mod reviewer;
pub mod role;
pub mod router;
pub mod summarizer;
pub mod titler;
pub mod worker;

pub use self::role::{RoleError, built_in_prompt, prompt_of};

use crate::context;
use crate::graph::plan::Violation;
use crate::graph::step::{Call, StepResult};
use crate::llm::estimate::request_tokens;
use crate::llm::prompt::Pieces;
use crate::llm::{Completion, LlmError, Request, Role, Stop};

/// The call of `role`, with the pieces of its column out of `all`.
fn request(role: Role, system: &str, all: &Pieces, boundary: &str) -> Request {
    let pieces = context::select(role, all);
    // A plan and a verdict want the likeliest words, a letter to a person the provider's own idea of style.
    let (temperature, max_tokens) = match role {
        Role::Planner => (Some(0.2), 4_096),
        Role::Reviewer => (Some(0.0), 2_048),
        Role::Worker => (None, 2_048),
        Role::Router => (Some(0.0), 512),
        Role::Reasoner => (Some(0.2), 2_048),
        Role::Actor => (Some(0.2), 4_096),
        Role::Summarizer => (Some(0.2), 2_048),
        Role::Titler => (Some(0.2), 64),
    };
    let user = context::render(&pieces, boundary, usize::MAX);
    Request { pieces, temperature, max_tokens, ..Request::new(role, system.to_owned(), user) }
}

/// `request`, complete with its tools and turns, for a model whose context has `context_budget` tokens: the answer
/// leaves room for the question, and the pieces share what is left.
pub fn fit(request: Request, boundary: &str, context_budget: usize) -> Request {
    let max_tokens = u32::try_from(context::answer(context_budget, &request)).unwrap_or(u32::MAX);
    let request = Request { max_tokens, ..request };
    let room = context::room(context_budget, &request);
    // Most prompts fit as they are.
    if context::tokens(&request.user) <= room {
        return request;
    }
    let mut request = Request { user: context::render(&request.pieces, boundary, room), ..request };
    // What is never cut may take more than its room; the answer gets what it leaves.
    let left = context_budget.saturating_sub(request_tokens(&request)).max(1);
    request.max_tokens = request.max_tokens.min(u32::try_from(left).unwrap_or(u32::MAX));
    request
}

/// The role whose model is called: the one that the task names, else `own`.
fn model_role(named: Option<&str>, own: Role) -> Role {
    named.and_then(Role::named).unwrap_or(own)
}

fn call_of(completion: &Completion) -> Call {
    Call { model: completion.model.clone(), usage: completion.usage }
}

/// What the user has to know of a text that was cut off; it follows the text.
pub fn cut_off(completion: &Completion) -> Option<String> {
    let why = why_cut_off(completion)?;
    Some(format!("\n\n[This text was cut off {why}]"))
}

fn why_cut_off(completion: &Completion) -> Option<String> {
    (completion.stop == Stop::Length).then(|| {
        format!(
            "after {} tokens; max_output_tokens in [model_settings.{:?}] raises the limit, up to a quarter of \
             context_budget",
            completion.usage.output_tokens, completion.model
        )
    })
}

/// What is wrong with an answer that could not be read, as its correction says it. That it was cut off comes first,
/// since the rest follows from that.
fn violations(completion: &Completion, found: &[Violation]) -> Vec<String> {
    let cut_off = why_cut_off(completion).map(|why| format!("the answer was cut off {why}; answer shorter"));
    cut_off.into_iter().chain(found.iter().map(ToString::to_string)).collect()
}

fn no_answer(error: &LlmError) -> StepResult {
    StepResult::ModelFailed { message: error.to_string() }
}

#[cfg(test)]
mod tests;
