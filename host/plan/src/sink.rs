//! What was decided where data leaves the sandbox.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::label::Label;

/// What an argument of an effect is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ArgumentRole {
    /// Where it goes, or to whom.
    Address,
    /// How much, when, which.
    Value,
    /// Words that somebody reads.
    Content,
}

/// What an effect came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SinkVerdict {
    /// The rules allow it.
    Allowed,
    /// A person has accepted it.
    Accepted,
    /// It would have been refused, but `[policy] effects` only warns.
    Warned,
    Denied,
}

impl SinkVerdict {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Accepted => "accepted",
            Self::Warned => "warned",
            Self::Denied => "denied",
        }
    }
}

/// An argument of an effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SinkArgument {
    pub name: String,
    pub role: ArgumentRole,
    pub label: Label,
}

/// A line of the sink log: something that was to leave the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SinkDecision {
    /// "tool", "request", "publish", "schedule", "memory" or "mount".
    pub sink: String,
    /// Who does it, such as "bank.send_money" or "fetch".
    pub tool: String,
    /// Where it goes, such as "mcp:bank" or "host:example.org".
    pub destination: String,
    /// The label of what it was decided from.
    pub decision: Label,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<SinkArgument>,
    pub verdict: SinkVerdict,
    /// Why, in words.
    pub because: String,
}

/// What an administrator says that a tool does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected \"read\", or a table with lists of arguments: address, value, content")]
pub enum ToolEffect {
    /// It changes nothing outside: "read".
    Reads(ReadsWord),
    Changes(ArgumentRoles),
}

/// The word "read".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReadsWord {
    Read,
}

/// What the arguments of a tool are. One that stands nowhere here is an address.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ArgumentRoles {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub address: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub value: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<String>,
}

impl ArgumentRoles {
    pub fn of(&self, argument: &str) -> ArgumentRole {
        let among = |names: &[String]| names.iter().any(|name| name == argument);
        match () {
            () if among(&self.address) => ArgumentRole::Address,
            () if among(&self.content) => ArgumentRole::Content,
            () if among(&self.value) => ArgumentRole::Value,
            () => ArgumentRole::Address,
        }
    }
}
