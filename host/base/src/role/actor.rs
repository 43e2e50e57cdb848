//! The actor: calls tools until the brief is done.

use super::Cell::{Brief, Yes};
use super::{Declaration, Duty, Piece};

pub(super) const ROLE: Declaration = Declaration {
    does: "Calls tools until the brief is done.",
    prompt: include_str!("../../../../roles/actor.md"),
    temperature: Some(0.2),
    max_tokens: 4_096,
    schema: None,
    sees: &[
        (Piece::Guidance, Yes),
        (Piece::Core, Yes),
        (Piece::Facts, Yes),
        (Piece::Summary, Yes),
        (Piece::AgentSkills, Yes),
        (Piece::Environment, Yes),
        (Piece::Messages, Yes),
        (Piece::Memory, Yes),
        (Piece::OriginalMessage, Yes),
        (Piece::Evidence, Brief),
        (Piece::Instructions, Yes),
        (Piece::Now, Yes),
        (Piece::Brief, Yes),
    ],
    duty: Duty::Message,
    guided: true,
    speaks: true,
    writes: false,
};
