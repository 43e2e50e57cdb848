//! The summarizer: shortens what grew too long.

use super::Cell::{Old, Yes};
use super::{Declaration, Duty, Piece};
use serde_json::{Value, json};

pub(super) const ROLE: Declaration = Declaration {
    does: "Shortens messages and facts.",
    prompt: include_str!("../../../roles/summarizer.md"),
    temperature: Some(0.2),
    max_tokens: 2_048,
    // A summary is text; only facts have a form.
    schema: None,
    sees: &[(Piece::Summary, Old), (Piece::Compress, Yes), (Piece::Consolidate, Yes)],
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
