//! The reviewer: judges the result of a task.

use super::Cell::{Message, Retry, Yes};
use super::schema::{Lengths, flag, list, object, one_of, task, text};
use super::{Declaration, Duty, Piece};
use serde_json::Value;

pub(super) const ROLE: Declaration = Declaration {
    does: "Reviews the result of a task.",
    prompt: include_str!("../../../../roles/reviewer.md"),
    temperature: Some(0.0),
    max_tokens: 2_048,
    schema: Some(schema),
    sees: &[
        (Piece::Environment, Yes),
        (Piece::OriginalMessage, Yes),
        (Piece::Evidence, Message),
        (Piece::Goal, Yes),
        (Piece::Task, Yes),
        (Piece::Expect, Yes),
        (Piece::Transcript, Yes),
        (Piece::Output, Yes),
        (Piece::LookedAt, Yes),
        (Piece::Correction, Retry),
    ],
    duty: Duty::Message,
    guided: false,
    speaks: false,
    writes: false,
};

/// The schema of a verdict, or of a request to see a file first.
fn schema(lengths: &Lengths) -> Value {
    let sentence = || text(lengths.sentence);
    object(
        [("status", one_of(&["ok", "needs_fix", "replan", "look"]))],
        [
            ("file", sentence()),
            ("reason", sentence()),
            ("inject", list(task(lengths), lengths.injected)),
            ("learn", sentence()),
            ("goal_met", flag()),
            ("blocked", sentence()),
        ],
    )
}
