//! Lanes: the lists of messages that nodes read and write (seed 004, sections 2 and 4).

use serde::{Deserialize, Serialize};

/// A tool that a model wants called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Ties the result to the call; unique within one answer.
    pub id: String,
    pub name: String,
    /// JSON as the model wrote it, which may be none.
    pub args: String,
}
