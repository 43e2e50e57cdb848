//! OpenAI's API, for programs that support it: chat completions and responses (docs/clients.md).
//!
//! ```text
//!  chat completion ─┐                    ┌─ the session that the program's conversation is
//!                   ├─▶ prompt ─▶ intake ┤
//!         response ─┘                    └─▶ turn: follows the message to its reply ─▶ JSON, or events while it happens
//! ```
//!
//! A request of a program becomes a message to a session, through the same intake as every other message. Earlier messages in the
//! request are only compared with those of the session; they are not sent again.

pub(crate) mod chat;
mod chore;
mod content;
mod conversation;
mod history;
pub(crate) mod models;
mod prompt;
pub(crate) mod responses;
mod stream;
pub(crate) mod turn;
