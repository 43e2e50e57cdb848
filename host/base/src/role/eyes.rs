//! The eyes: describe pictures for models that take none.

use super::{Declaration, Duty};

pub(super) const ROLE: Declaration = Declaration {
    does: "Describes pictures for models that take none.",
    prompt: include_str!("../../../../roles/eyes.md"),
    temperature: Some(0.2),
    max_tokens: 1_024,
    schema: None,
    // The picture and the message stand in its turns.
    sees: &[],
    duty: Duty::Background,
    guided: false,
    speaks: false,
    writes: false,
};
