//! The titler: names a session after its first exchange.

use super::Cell::Yes;
use super::{Declaration, Duty, Piece};

pub(super) const ROLE: Declaration = Declaration {
    does: "Names a session.",
    prompt: include_str!("../../../../roles/titler.md"),
    temperature: Some(0.2),
    max_tokens: 64,
    schema: None,
    sees: &[(Piece::Exchange, Yes)],
    duty: Duty::Background,
    guided: false,
    speaks: false,
    writes: false,
};
