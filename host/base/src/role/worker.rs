//! The worker: writes texts for the user.

use super::Cell::{Brief, Yes};
use super::{Declaration, Duty, Piece};

pub(super) const ROLE: Declaration = Declaration {
    does: "Writes what the user reads.",
    prompt: include_str!("../../../../roles/worker.md"),
    // The provider's default suits texts for people.
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
