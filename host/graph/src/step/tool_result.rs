//! The result of a call of the action loop.

use serde::{Deserialize, Serialize};

use super::super::reflection;
use kiso_plan::call::ToolCall;
use kiso_plan::code::ErrorCode;
use kiso_plan::label::Label;
use kiso_plan::picture::Picture;
use kiso_plan::report::{Allowance, ChangedFile, FileNote, LimitUse};
use kiso_plan::sink::SinkDecision;

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The id of the call.
    pub id: String,
    pub name: String,
    pub status: reflection::Status,
    /// The text for the model, after the output guard.
    pub text: String,
    /// For errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<ErrorCode>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Key of the scratchpad entry with the whole text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived: Option<String>,
    /// For a command line that finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileNote>,
    /// Number of further files that it created in `/work/pub`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_files: u64,
    /// Files that it created, changed or deleted, as in a task's report. For people, never in a prompt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<ChangedFile>,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_changed: u64,
    /// Whether it read text of another person or of anybody. For people, never in a prompt.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outside: bool,
    /// Pictures that the model sees.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pictures: Vec<Picture>,
    #[serde(default)]
    pub millis: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<LimitUse>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill_digest: Option<String>,
    /// The component's grant at that time; for the trace, not for prompts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<serde_json::Value>,
    /// The limits of the values in `used`; for the trace, not for prompts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Allowance>,
    /// The label of the whole result, and decisions about data that left the sandbox.
    #[serde(default, skip_serializing_if = "Label::is_default")]
    pub label: Label,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sinks: Vec<SinkDecision>,
}

/// The line of a result before a command line's standard error.
pub const STDERR: &str = "[standard error]";

impl ToolResult {
    /// Returns the first line of a command line's standard error; for the traceback of a Python program the last one, which
    /// contains the error.
    pub fn error_line(&self) -> Option<&str> {
        let mut lines = self.text.lines().skip_while(|line| *line != STDERR).skip(1);
        let mut lines = lines.by_ref().map(str::trim_end).filter(|line| !line.is_empty());
        let first = lines.next()?;
        match first.starts_with("Traceback ") {
            true => lines.find(|line| !line.starts_with(' ')).or(Some(first)),
            false => Some(first),
        }
    }

    /// Creates an empty result of a call.
    pub fn blank(call: &ToolCall) -> ToolResult {
        ToolResult {
            id: call.id.clone(),
            name: call.name.clone(),
            status: reflection::Status::Error,
            text: String::new(),
            code: None,
            hint: None,
            archived: None,
            exit_code: None,
            files: Vec::new(),
            more_files: 0,
            changed: Vec::new(),
            more_changed: 0,
            outside: false,
            pictures: Vec::new(),
            millis: 0,
            used: None,
            skill_digest: None,
            grant: None,
            limits: None,
            label: Label::default(),
            sinks: Vec::new(),
        }
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}
