//! A call of a tool, as a model wants it.

use serde::{Deserialize, Serialize};

/// A tool that a model wants called.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Ties the result to the call; unique within one answer.
    pub id: String,
    pub name: String,
    /// JSON as the model wrote it, which may be none.
    pub args: String,
    /// Why its end is missing. A call without its end is never made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<String>,
}

impl ToolCall {
    /// A call that is whole.
    pub fn new(id: impl Into<String>, name: impl Into<String>, args: impl Into<String>) -> Self {
        Self { id: id.into(), name: name.into(), args: args.into(), cut: None }
    }
}
