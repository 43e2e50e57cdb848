//! The summarizer: shortens long texts.

use super::Cell::{Old, Yes};
use super::schema::{list, object, text};
use super::{Declaration, Duty, Piece};
use serde_json::{Value, json};

pub(super) const ROLE: Declaration = Declaration {
    does: "Shortens messages and facts.",
    prompt: include_str!("../../../../roles/summarizer.md"),
    temperature: Some(0.2),
    max_tokens: 2_048,
    // A summary is text; the schema of facts is passed with the call.
    schema: None,
    sees: &[
        (Piece::Summary, Old),
        (Piece::Compress, Yes),
        (Piece::Consolidate, Yes),
        (Piece::Turn, Yes),
        (Piece::Known, Yes),
    ],
    duty: Duty::Background,
    guided: false,
    speaks: false,
    writes: false,
};

/// The schema of its answer when facts are consolidated: an object, because providers accept no other type at the top.
pub fn facts_schema() -> Value {
    json!({
        "type": "object",
        "properties": { "facts": { "type": "array", "items": { "type": "string" } } },
        "required": ["facts"],
        "additionalProperties": false,
    })
}

/// The schema of its answer when a turn is remembered: new facts, and the numbers of outdated ones.
pub fn learned_schema() -> Value {
    let number = json!({ "type": "integer", "minimum": 1 });
    object([("facts", list(text(MAX_LEARNED), MOST_LEARNED)), ("outdated", list(number, MOST_OUTDATED))], [])
}

/// Maximum characters of a fact from a turn.
pub const MAX_LEARNED: usize = 300;

/// Maximum new facts from one turn.
pub const MOST_LEARNED: usize = 4;

/// Maximum facts that one turn makes outdated.
pub const MOST_OUTDATED: usize = 8;
