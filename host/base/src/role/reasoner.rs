//! The reasoner: writes the brief of a task whose calls are not yet known.

use super::Cell::{Retry, Writes, Yes};
use super::schema::{Lengths, MAX_WORD, at_least_one, list, object, one_of, text};
use super::{Declaration, Duty, Piece};
use serde_json::Value;

pub(super) const ROLE: Declaration = Declaration {
    does: "Writes the brief of a task whose calls are not known in advance.",
    prompt: include_str!("../../../../roles/reasoner.md"),
    temperature: Some(0.2),
    max_tokens: 2_048,
    schema: Some(schema),
    sees: &[
        (Piece::SkillEnvironment, Yes),
        (Piece::Memory, Yes),
        (Piece::Replies, Yes),
        (Piece::OriginalMessage, Yes),
        (Piece::Plan, Yes),
        (Piece::Readiness, Yes),
        (Piece::Evidence, Yes),
        (Piece::ReasoningLane, Yes),
        (Piece::Feedback, Yes),
        (Piece::Now, Yes),
        (Piece::Goal, Yes),
        (Piece::Task, Yes),
        (Piece::Expect, Yes),
        (Piece::Brief, Writes),
        (Piece::Correction, Retry),
    ],
    duty: Duty::Message,
    guided: true,
    speaks: false,
    writes: false,
};

/// The schema of a brief.
fn schema(lengths: &Lengths) -> Value {
    let lines = || list(text(lengths.item), lengths.items);
    let credentials = list(text(MAX_WORD), lengths.items);
    let context = object(
        [("discovery", lines()), ("credentials", credentials), ("artifacts", lines()), ("blockers", lines())],
        [("recheck", one_of(&["none", "before", "after"]))],
    );
    object(
        [
            ("goal", text(lengths.sentence)),
            ("required", lines()),
            ("delta", text(lengths.sentence)),
            ("success", at_least_one(lines())),
            ("context", context),
            ("action", text(lengths.action)),
        ],
        [],
    )
}
