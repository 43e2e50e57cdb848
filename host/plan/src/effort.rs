//! The effort spent on a message.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{Display, IntoStaticStr};

/// The effort spent on a message.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema, Display, IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Effort {
    /// An answer without tools.
    Low,
    /// Tools, but no plan.
    Medium,
    /// A plan; also used if the routing fails.
    High,
}

impl Effort {
    /// The word in the router's `effort` field and in a pill's configuration.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Parses the word, in upper or lower case.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Low, Self::Medium, Self::High].into_iter().find(|effort| effort.name().eq_ignore_ascii_case(name.trim()))
    }
}
