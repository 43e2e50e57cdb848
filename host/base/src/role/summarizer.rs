//! The summarizer: shortens what grew too long.

use super::Cell::{Old, Yes};
use super::schema::{list, object, text};
use super::{Declaration, Duty, Piece};
use serde_json::{Value, json};

pub(super) const ROLE: Declaration = Declaration {
    does: "Shortens messages and facts.",
    prompt: include_str!("../../../../roles/summarizer.md"),
    temperature: Some(0.2),
    max_tokens: 2_048,
    // A summary is text; facts have a form.
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

/// The form of its answer where facts are consolidated: an object, because providers take schemas of nothing else.
pub fn facts_schema() -> Value {
    json!({
        "type": "object",
        "properties": { "facts": { "type": "array", "items": { "type": "string" } } },
        "required": ["facts"],
        "additionalProperties": false,
    })
}

/// The form of its answer where a turn is remembered: new facts, and the numbers of those that are true no more.
pub fn learned_schema() -> Value {
    let number = json!({ "type": "integer", "minimum": 1 });
    object([("facts", list(text(MAX_LEARNED), MOST_LEARNED)), ("outdated", list(number, MOST_OUTDATED))], [])
}

/// Characters of a fact that is made of a turn.
pub const MAX_LEARNED: usize = 300;

/// Facts that are made of one turn.
pub const MOST_LEARNED: usize = 4;

/// Facts that one turn makes outdated.
pub const MOST_OUTDATED: usize = 8;
