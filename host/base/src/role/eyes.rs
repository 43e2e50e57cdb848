//! The eyes: describe pictures for models that cannot see any.

use super::{Declaration, Duty};

pub(super) const ROLE: Declaration = Declaration {
    does: "Describes pictures for models that take none.",
    prompt: include_str!("../../../../roles/eyes.md"),
    temperature: Some(0.2),
    max_tokens: 1_024,
    schema: None,
    // Its turns contain the picture and the message.
    sees: &[],
    duty: Duty::Background,
    guided: false,
    speaks: false,
    writes: false,
};
