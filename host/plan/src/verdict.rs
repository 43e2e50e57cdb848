//! The reviewer's verdict about a task.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::Task;

/// The reviewer's decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "VerdictStatus")]
pub enum Status {
    /// The output meets the expectation.
    Ok,
    /// Wrong, but the injected tasks can fix it.
    NeedsFix,
    /// The strategy is broken; local fixes will not help.
    Replan,
}

/// The reviewer's whole answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verdict {
    pub status: Status,
    /// Tasks to run next; only with `needs_fix`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inject: Vec<Task>,
    /// The reason; always present with `replan`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// A fact to remember.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learn: Option<String>,
    /// Whether the goal of the whole plan is met, according to the reviewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal_met: Option<bool>,
    /// Why no plan can reach the goal, such as a missing tool. The run then fails after its messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked: Option<String>,
}
