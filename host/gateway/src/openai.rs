//! OpenAI's interface, for every program that speaks it: chat completions and responses (docs/clients.md).
//!
//! ```text
//!  chat completion ─┐                    ┌─ the session that the program's conversation is
//!                   ├─▶ prompt ─▶ intake ┤
//!         response ─┘                    └─▶ turn: follows the message to its reply ─▶ JSON, or events while it happens
//! ```
//!
//! What a program sends is a message to a session, through the intake that every message passes. The earlier messages that it
//! sends along are compared with the session's, and are never messages again.

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
