//! What a reply is made of, for those who show more than text: a page shows a table as a table.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A part of a reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    /// Markdown.
    Text { text: String },
    /// What a program wrote, whose lines and columns count.
    Output { text: String },
    /// A command line and what it wrote.
    Command {
        command: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        output: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        stderr: String,
        /// Absent where it did not come to its end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
        /// Why it did not come to its end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// A table: each row has a value for each column.
    Table { columns: Vec<String>, rows: Vec<Vec<Value>>, total: u64 },
    /// The beginning of a text that a model was writing when it was stopped.
    Partial { text: String },
}
