//! The router: estimates the effort for a message, and chooses the tools.

use super::Cell::Yes;
use super::schema::{Lengths, MAX_WORD, flag, list, object, one_of, secrets, text};
use super::{Declaration, Duty, Piece};
use serde_json::{Value, json};

pub(super) const ROLE: Declaration = Declaration {
    does: "Decides how much effort a message needs.",
    prompt: include_str!("../../../../roles/router.md"),
    temperature: Some(0.0),
    max_tokens: 512,
    schema: Some(schema),
    sees: &[
        (Piece::Categories, Yes),
        (Piece::AgentSkills, Yes),
        (Piece::Environment, Yes),
        (Piece::Tail, Yes),
        (Piece::NewMessage, Yes),
    ],
    duty: Duty::Message,
    guided: false,
    speaks: false,
    writes: false,
};

fn schema(lengths: &Lengths) -> Value {
    object(
        [
            ("effort", one_of(&["low", "medium", "high"])),
            ("categories", list(text(MAX_WORD), 6)),
            ("tool_need", json!({ "type": "number", "enum": [0, 0.25, 0.5, 0.75, 1] })),
            ("goal", text(lengths.sentence)),
            ("durable", flag()),
        ],
        [("secrets", secrets(lengths))],
    )
}
