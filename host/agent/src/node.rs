//! The nodes of the graph: each builds the prompt of its role and parses the answer. None decides the run's next step, and none
//! does I/O except calling its model.

pub mod actor;
pub mod conversation;
pub mod eyes;
pub mod guidance;
pub mod output;
pub mod planner;
pub mod prompt;
pub mod reasoner;
pub mod retrieval;
pub mod reviewer;
pub mod router;
pub mod summarizer;
pub mod titler;
pub mod worker;

pub use self::prompt::{RoleError, built_in_prompt, prompt_of};

use crate::context;
use kiso_base::role::{Lengths, Role};
use kiso_graph::step::{Call, StepResult};
use kiso_llm::estimate::request_tokens;
use kiso_llm::schema;
use kiso_llm::{Answer, Completion, LlmError, Request, Stop, Turn};
use kiso_plan::attached::AttachedFiles;
use kiso_plan::estimate;
use kiso_plan::plan::{Task, TaskKind, Violation};
use kiso_plan::prompt::{Piece, Pieces};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

/// Returns the request of `role`, with the pieces of its column from `all`.
fn request(role: Role, system: &str, all: &Pieces, boundary: &str) -> Request {
    prompt::resolve(request_beside(role, system, all, &[], boundary), boundary)
}

/// Returns the form of a role's answers for a small model, which is built once. [`formed`] builds those for others.
fn form(role: Role) -> Answer {
    static FORMS: LazyLock<HashMap<Role, Arc<Value>>> = LazyLock::new(|| {
        let schema = |role: Role| role.declaration().schema.map(|schema| (role, Arc::new(schema(&Lengths::SHORT))));
        Role::ALL.into_iter().filter_map(schema).collect()
    });
    FORMS.get(&role).cloned().map_or(Answer::Text, Answer::Json)
}

/// [`request`] for a caller that puts the pieces `apart` into turns, and then [resolves](prompt::resolve) the prompt.
fn request_beside(role: Role, system: &str, all: &Pieces, apart: &'static [Piece], boundary: &str) -> Request {
    let declared = role.declaration();
    let pieces = context::select(role, all);
    let user = context::render_beside(&pieces, apart, boundary, usize::MAX);
    Request {
        pieces,
        apart,
        answer: form(role),
        temperature: declared.temperature,
        max_tokens: declared.max_tokens,
        ..Request::new(role, system.to_owned(), user)
    }
}

/// Returns a section as a turn after the user part `user`. Declares the fence if `user` is empty and therefore does not.
fn declared(user: &str, section: String, boundary: &str) -> Turn {
    let declaration = if user.is_empty() { context::declaration(boundary) } else { String::new() };
    Turn::Note(format!("{declaration}{section}").trim_start().to_owned())
}

/// Fits `request`, complete with its tools and turns, into a context of `context_budget` tokens: the answer leaves space for the
/// question, and the pieces share the rest.
pub fn fit(request: Request, boundary: &str, context_budget: usize) -> Request {
    let max_tokens = u32::try_from(context::answer(context_budget, &request)).unwrap_or(u32::MAX);
    let mut request = Request { max_tokens, ..request };
    // Most prompts fit unchanged.
    if fits(&request, context_budget) {
        return request;
    }
    conversation::shorten(&mut request, context_budget);
    if fits(&request, context_budget) {
        return request;
    }
    let room = context::room(context_budget, &request);
    let user = context::render_beside(&request.pieces, request.apart, boundary, room);
    let mut request = Request { user, ..request };
    // Parts that are never cut may exceed their share; the answer gets the rest.
    let left = context_budget.saturating_sub(request_tokens(&request)).max(1);
    request.max_tokens = request.max_tokens.min(u32::try_from(left).unwrap_or(u32::MAX));
    request
}

/// Returns `request` with the form of the answer for its model, in a run whose plans have at most `max_tasks` tasks. `short`
/// means that the model has a small window or little space for an answer.
pub fn formed(mut request: Request, max_tasks: usize, short: bool) -> Request {
    request.short = short;
    let lengths = &Lengths::of_run(max_tasks, short);
    let (Some(schema), Answer::Json(known)) = (request.role.declaration().schema, &request.answer) else {
        return request;
    };
    match request.role {
        Role::Planner => return planner::formed(request, lengths),
        Role::Router => {
            let mut form = schema(lengths);
            form["properties"]["categories"] = known["properties"]["categories"].clone();
            request.answer = Answer::Json(form.into());
        }
        _ => request.answer = Answer::Json(schema(lengths).into()),
    }
    request
}

/// Returns `request` with an answer whose form lets it end before its limit, for a small model.
pub fn bounded(mut request: Request) -> Request {
    let tokens = request.max_tokens;
    if request.role.declaration().schema.is_some()
        && let Answer::Json(schema) = &mut request.answer
    {
        *schema = Arc::new(schema::bounded(schema, tokens));
        request.grammar = request.grammar.map(|grammar| Arc::new(schema::bounded(&grammar, tokens)));
    }
    request
}

/// Returns whether `request` fits unchanged into a context of `context_budget` tokens.
pub fn fits(request: &Request, context_budget: usize) -> bool {
    let (room, user) = (context::room(context_budget, request), estimate::tokens(&request.user));
    // With an empty user part, the turns are too long.
    user <= room && (room > 0 || request.turns.is_empty())
}

/// Returns the role whose model is called: the one that the task names, or else `own`.
fn model_role(named: Option<&str>, own: Role) -> Role {
    named.and_then(Role::named).unwrap_or(own)
}

fn call_of(completion: &Completion) -> Call {
    Call { model: completion.model.clone(), usage: completion.usage }
}

/// Returns the note after a text that was cut off.
pub fn cut_off(completion: &Completion) -> Option<String> {
    let why = why_cut_off(completion)?;
    Some(format!("\n\n[This text was cut off {why}]"))
}

/// Returns the notes after the answer to a message with `attached`.
pub fn notes(completion: &Completion, attached: &AttachedFiles) -> String {
    [cut_off(completion), blind(completion, attached)].into_iter().flatten().collect()
}

/// Returns the note after an answer to a message with pictures, from a model that does not accept any.
fn blind(completion: &Completion, attached: &AttachedFiles) -> Option<String> {
    let unseen = completion.blind && !attached.pictures.is_empty();
    unseen.then(|| {
        format!(
            "\n\n[{} cannot see pictures; `[models] eyes` in config.toml names a model that describes them for it]",
            completion.model
        )
    })
}

fn why_cut_off(completion: &Completion) -> Option<String> {
    let tokens = completion.usage.output_tokens;
    match completion.stop {
        Stop::Length => Some(format!(
            "after {tokens} tokens; max_output_tokens in [model_settings.{:?}] raises the limit, up to a quarter of \
             context_budget",
            completion.model
        )),
        Stop::Repetition => Some(format!("after {tokens} tokens, because the model only repeated itself")),
        Stop::End | Stop::Calls | Stop::Filter => None,
    }
}

/// Returns the faults of an unreadable answer, for its correction. A cut-off comes first, because it explains the others.
fn violations(completion: &Completion, found: &[Violation]) -> Vec<String> {
    let cut_off = why_cut_off(completion).map(|why| format!("the answer was cut off {why}; answer shorter"));
    cut_off.into_iter().chain(found.iter().map(ToString::to_string)).collect()
}

/// Returns errors for command lines in the field `list` of an answer that are exactly as long as the schema allows: the server
/// ended them for the model, and half of a command is a different command. A longer one shows that the server does not enforce
/// the schema.
fn full_commands(completion: &Completion, list: &str, tasks: &[Task]) -> Vec<String> {
    let Some(most) = completion.schema.as_ref().and_then(|schema| most_of_command(schema, list)) else {
        return Vec::new();
    };
    let is_full = |task: &Task| task.kind == TaskKind::Exec && task.detail.chars().count() as u64 == most;
    let full = tasks.iter().enumerate().filter(|(_, task)| is_full(task));
    let message = format!(
        "fills the {most} characters that it may have, so its end may be missing; write a shorter command, or several"
    );
    full.map(|(n, _)| Violation::new(format!("{list}[{n}].detail"), message.clone()).to_string()).collect()
}

/// Returns the maximum length in characters of a command line in a schema; `None` without a limit.
fn most_of_command(schema: &Value, list: &str) -> Option<u64> {
    let forms = schema["properties"][list]["items"]["anyOf"].as_array()?;
    let exec = forms.iter().find(|form| form["properties"]["type"]["enum"][0] == TaskKind::Exec.name())?;
    exec["properties"]["detail"]["maxLength"].as_u64()
}

fn no_answer(error: &LlmError) -> StepResult {
    StepResult::ModelFailed { message: error.to_string() }
}

#[cfg(test)]
mod tests;
