//! What the reviewer says about a task.

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
    /// Wrong, but the injected tasks can put it right.
    NeedsFix,
    /// The strategy is broken; local fixes will not help.
    Replan,
}

/// The whole answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verdict {
    pub status: Status,
    /// Tasks to run next; present with `needs_fix` only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inject: Vec<Task>,
    /// Why; always present with `replan`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// A fact worth keeping.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learn: Option<String>,
    /// Whether the goal of the whole plan is met, as far as the reviewer can see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal_met: Option<bool>,
    /// Why no other plan can reach the goal, such as a tool that is missing. The run ends as failed after its messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked: Option<String>,
}
