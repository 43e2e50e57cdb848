//! The rules of `reflex`, the model that is built in. They need no network and no key, always give the same answer to the same
//! pieces, and say that they are not a language model. They are listed in docs/reflex.md, each with an example that a test runs.
//! Their only input is [`Pieces`](kiso_plan::prompt::Pieces), the fields that other models get as text.
//!
//! A message becomes a plan in this order: [`kiso_plan::attached`] (attached files) → [`explicit`] (explicit steps) → [`noted`]
//! (statements) → [`agent_skill`] (a script or the text of a named Agent Skill) → [`everyday`] (questions about files) → [`text`]
//! (questions about text files) → [`clause`] (the steps) → [`chain`] (which file each step reads) → [`draft`] (which skill, from
//! the [`template`]s of its [`vocabulary`]) → [`fill`] (its arguments: captures of a template, and the [`rest`]: [`choice`]s,
//! [`column`](mod@column)s by [`axes`], and a [`phrase`] as a [`query`], by [`condition`], [`rank`], [`group`] and [`aggregate`])
//! → [`mod@plan`], with its [`closing`]. [`leftover`] decides about unused words, and [`effort`] limits the work. If there is no
//! plan, [`honest`] says so; after a failure, [`retry`] plans again. [`mod@review`] verifies what [`expect`] can check in a
//! [`table`] or a report; [`mod@reply`] writes to the user.

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
