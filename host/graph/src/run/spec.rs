//! The parameters of a run.

use serde::{Deserialize, Serialize};

use kiso_plan::label::{Integrity, Label};
use kiso_plan::limits::Limits;
use kiso_plan::plan::CallerScope;

/// The parameters of a run. They are stored with it, so that a replay has the same limits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSpec {
    pub id: String,
    pub session: String,
    pub message: String,
    /// The messages that `message` joins, if one of them after the first may begin with a pill.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub joined: Vec<String>,
    pub caller: CallerScope,
    pub limits: Limits,
    #[serde(default)]
    pub policy: Policy,
    #[serde(default)]
    pub segment: Segment,
    /// The label of the message.
    #[serde(default, skip_serializing_if = "Label::is_default")]
    pub label: Label,
    /// The label of what the session knew before, as the working roles see it: conversation, facts, core memory.
    #[serde(default, skip_serializing_if = "Label::is_default")]
    pub context: Label,
    /// The lowest integrity in the part of `context` that the router and the planner see; for example that of a file attached to
    /// an earlier message.
    #[serde(default, skip_serializing_if = "Integrity::is_user")]
    pub shown: Integrity,
}

/// Parts that the prompts of a segment of a session share, so that each prompt begins with the same bytes as the one before. It
/// is passed from run to run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Segment {
    /// Marks data from outside in prompts: random letters and digits that no guest knows. Empty in older runs.
    pub boundary: String,
    /// The message of the session with which its window begins; 0 for the first one of the segment.
    pub window: i64,
}

/// How a run is routed, as configured when it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Policy {
    /// Whether short conceptual messages bypass the router.
    pub fast_path: bool,
    /// In percent; a message with a lower estimated need for tools is treated as conversation.
    pub tool_need_threshold: u8,
    /// Maximum tokens of the action lane; its beginning is compressed beyond that.
    pub lane_tokens: usize,
    /// Whether nobody is waiting for it: it has a small window, lower priority, and does not change the memory.
    #[serde(default)]
    pub subagent: bool,
    /// Whether the router and the planner see text from outside, too: labels are not enforced.
    #[serde(default)]
    pub shows_all: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self { fast_path: true, tool_need_threshold: 30, lane_tokens: 6_000, subagent: false, shows_all: false }
    }
}
