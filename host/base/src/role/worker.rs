//! The worker: writes what the user reads.

use super::Cell::{Brief, Yes};
use super::{Declaration, Duty, Piece};

pub(super) const ROLE: Declaration = Declaration {
    does: "Writes what the user reads.",
    prompt: include_str!("../../../../roles/worker.md"),
    // A letter to a person has the provider's own idea of style.
    temperature: None,
    max_tokens: 2_048,
    schema: None,
    sees: &[
        (Piece::Guidance, Yes),
        (Piece::Core, Yes),
        (Piece::Facts, Yes),
        (Piece::Summary, Yes),
        (Piece::Messages, Yes),
        (Piece::Memory, Yes),
        (Piece::OriginalMessage, Yes),
        (Piece::Evidence, Brief),
        (Piece::Feedback, Yes),
        (Piece::Instructions, Yes),
        (Piece::Now, Yes),
        (Piece::Goal, Brief),
        (Piece::Task, Yes),
        (Piece::Expect, Brief),
    ],
    duty: Duty::Message,
    guided: true,
    speaks: true,
    writes: true,
};
