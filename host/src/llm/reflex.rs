//! `reflex`: the model that is built in. It follows rules, needs no network and no key, gives the same answer to the
//! same pieces, and says that it is not a language model. Its rules are listed in docs/reflex.md, each with an example
//! that a test runs.
//!
//! It reads `Request::pieces`, the fields that other models get as text, and nothing else.
//!
//! A message becomes a plan in this order: [`attachment`] (what came with it) → [`explicit`] (what is spelt out) → [`noted`]
//! (what is only told) → [`text`] (what is asked of a file that is no table) → [`clause`] (the steps) → [`chain`] (which
//! file each step reads) → [`draft`] (which skill, from the [`template`]s of its [`vocabulary`]) → [`fill`] (its arguments: [`column`](mod@column)s by
//! [`axes`], [`choice`]s, and phrases by [`query`], which asks [`condition`], [`rank`], [`group`] and [`aggregate`]) → [`plan`].
//! Words that nothing took are judged by [`leftover`], and [`effort`] bounds how much may be tried. Where that ends nowhere, [`honest`] says so, and [`retry`] after a failure. [`review`] judges what [`expect`] can
//! read off a [`table`] or a report; [`reply`] writes to the user.

use super::prompt::Pieces;
use super::{Completing, Completion, LlmError, Model, Request, Role, Sink, Usage};
use crate::compute;
use crate::graph::block::Block;

mod aggregate;
mod asked;
mod attachment;
mod axes;
mod chain;
mod choice;
mod chores;
mod clause;
mod column;
mod condition;
mod draft;
mod effort;
mod expect;
mod explicit;
mod fill;
mod group;
mod honest;
mod leftover;
mod noted;
mod plan;
mod query;
mod rank;
mod reply;
mod retry;
mod review;
mod scene;
mod schema;
mod spelling;
mod table;
mod template;
mod text;
mod vocabulary;
mod word;

#[cfg(test)]
mod tests;

/// The model's name in `config.toml`.
pub const NAME: &str = "reflex";

/// The built-in rule-based model.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reflex;

impl Model for Reflex {
    fn name(&self) -> &str {
        NAME
    }

    fn complete<'a>(&'a self, request: &'a Request, sink: &'a mut dyn Sink) -> Completing<'a> {
        Box::pin(async move {
            let (role, pieces) = (request.role, request.pieces.clone());
            let text = compute::run("reading the message by the built-in rules", move || answer(role, &pieces)).await;
            let text = text.map_err(|overdue| LlmError::Unavailable {
                model: NAME.to_owned(),
                message: overdue.to_string(),
                retryable: false,
                retry_after: None,
            })?;
            for line in text.split_inclusive('\n') {
                sink.text(line);
            }
            let usage = Usage {
                input_tokens: tokens(&request.system) + tokens(&request.user),
                output_tokens: tokens(&text),
                cost_micros: 0,
            };
            Ok(Completion { text, usage, model: NAME.to_owned(), ..Completion::default() })
        })
    }
}

/// The answer in the form that the role's prompt asks for.
fn answer(role: Role, pieces: &Pieces) -> String {
    match role {
        Role::Planner => {
            let plan = serde_json::to_string_pretty(&plan::plan(pieces)).expect("a plan has only string keys");
            format!("<FINAL_PRD>\n{plan}\n</FINAL_PRD>")
        }
        Role::Reviewer => serde_json::to_string(&review::review(pieces)).expect("a verdict has only string keys"),
        Role::Worker => reply::reply(pieces),
        Role::Router => chores::route(pieces),
        Role::Titler => chores::title(pieces),
        Role::Summarizer => chores::summarize(pieces),
        Role::Reasoner | Role::Actor => chores::cannot(),
    }
}

/// A reply of the worker in parts, for those who show more than text; none where all of it is Markdown.
pub fn blocks(pieces: &Pieces) -> Vec<Block> {
    reply::blocks(pieces)
}

/// An estimate: four characters to a token.
fn tokens(text: &str) -> u64 {
    text.chars().count().div_ceil(4) as u64
}
