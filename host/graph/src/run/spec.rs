//! What a run is made from.

use serde::{Deserialize, Serialize};

use kiso_plan::label::{Integrity, Label};
use kiso_plan::limits::Limits;
use kiso_plan::plan::CallerScope;

/// What a run is made from; stored with it, so that a replay has the same limits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSpec {
    pub id: String,
    pub session: String,
    pub message: String,
    /// The messages that `message` joins, where one of them but the first may begin with a pill.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub joined: Vec<String>,
    pub caller: CallerScope,
    pub limits: Limits,
    #[serde(default)]
    pub policy: Policy,
    #[serde(default)]
    pub segment: Segment,
    /// Of the message: whose words it is.
    #[serde(default, skip_serializing_if = "Label::is_default")]
    pub label: Label,
    /// Of what the session knew before, as the roles that work see it: the conversation, facts, core memory.
    #[serde(default, skip_serializing_if = "Label::is_default")]
    pub context: Label,
    /// The worst of `context` that the router and the planner are shown: what the user attached to an earlier message, perhaps.
    #[serde(default, skip_serializing_if = "Integrity::is_user")]
    pub shown: Integrity,
}

/// What the prompts of a segment of a session have in common, so that each begins with the bytes of the one before. It goes
/// from run to run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Segment {
    /// Fences what comes from outside: letters and digits that nobody can guess, and no guest is told. Empty in runs from before
    /// it was kept.
    pub boundary: String,
    /// The message of the session with which its window begins; 0 for the first of the segment.
    pub window: i64,
}

/// How a run finds its way, as configured when it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Policy {
    /// Whether short conceptual messages go without the router.
    pub fast_path: bool,
    /// Per cent; a message whose need for tools is estimated lower is conversation.
    pub tool_need_threshold: u8,
    /// Tokens of the action lane over which its beginning is compressed.
    pub lane_tokens: usize,
    /// Whether nobody waits for it: it has a small window, gives way to others, and does not change what is remembered.
    #[serde(default)]
    pub subagent: bool,
    /// Whether router and planner are shown what anybody has written, too: labels are not enforced.
    #[serde(default)]
    pub shows_all: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self { fast_path: true, tool_need_threshold: 30, lane_tokens: 6_000, subagent: false, shows_all: false }
    }
}
