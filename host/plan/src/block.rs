//! The parts of a reply, for clients that show more than text: a page shows a table as a table.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A part of a reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    /// Markdown.
    Text { text: String },
    /// Output of a program, with its line breaks and spaces.
    Output { text: String },
    /// A command line and its output.
    Command {
        command: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        output: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        stderr: String,
        /// Absent if it did not finish.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
        /// Why it did not finish.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// A table: each row has a value for each column.
    Table { columns: Vec<String>, rows: Vec<Vec<Value>>, total: u64 },
    /// The beginning of a text that a model was writing when it was interrupted.
    Partial { text: String },
}
