//! A call of a tool that a model requests.

use serde::{Deserialize, Serialize};

/// A call of a tool that a model requests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Connects the result with the call; unique within one answer.
    pub id: String,
    pub name: String,
    /// The arguments as the model wrote them; possibly invalid JSON.
    pub args: String,
    /// Why the call is incomplete. An incomplete call is never executed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<String>,
}

impl ToolCall {
    /// A complete call.
    pub fn new(id: impl Into<String>, name: impl Into<String>, args: impl Into<String>) -> Self {
        Self { id: id.into(), name: name.into(), args: args.into(), cut: None }
    }
}
