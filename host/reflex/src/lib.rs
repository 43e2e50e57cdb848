//! The rules of `reflex`, the model that is built in. They need no network and no key, give the same answer to the same
//! pieces, and say that they are not a language model. They are listed in docs/reflex.md, each with an example that a test
//! runs. What a role is asked is read from [`Pieces`](kiso_plan::prompt::Pieces), the fields that other models get as text,
//! and nothing else.
//!
//! A message becomes a plan in this order: [`kiso_plan::attached`] (what came with it) → [`explicit`] (what is spelt out) → [`noted`]
//! (what is only told) → [`agent_skill`] (a script or the text of one that is named) → [`everyday`] (which files there are, what is in one) → [`text`] (what is asked of a file that is no table) → [`clause`] (the steps) → [`chain`] (which
//! file each step reads) → [`draft`] (which skill, from the [`template`]s of its [`vocabulary`]) → [`fill`] (its arguments:
//! what a template captured, and the [`rest`]: [`choice`]s, [`column`](mod@column)s by [`axes`], and a [`phrase`] as a
//! [`query`], by [`condition`], [`rank`], [`group`] and [`aggregate`]) → [`mod@plan`], with its [`closing`]. Words that nothing
//! took are judged by [`leftover`], and [`effort`] bounds how much may be tried. Where that ends nowhere, [`honest`] says
//! so, and [`retry`] after a failure. [`mod@review`] judges what [`expect`] can read off a [`table`] or a report;
//! [`mod@reply`] writes to the user.

mod agent_skill;
mod aggregate;
mod asked;
mod axes;
mod chain;
mod choice;
mod chores;
mod clause;
mod closing;
mod column;
mod condition;
mod draft;
mod effort;
mod everyday;
mod expect;
mod explicit;
mod fill;
mod group;
mod honest;
mod keyword;
mod leftover;
mod noted;
mod operator;
mod phrase;
mod plan;
mod query;
mod rank;
mod reply;
mod rest;
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

pub use chores::{cannot, route, summarize, title};
pub use explicit::is_explicit;
pub use plan::plan;
pub use reply::{blocks, reply};
pub use review::review;
