//! Decisions about data that leaves the sandbox.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::label::Label;

/// The role of an effect's argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ArgumentRole {
    /// A destination or recipient.
    Address,
    /// A value such as an amount, a time or a choice.
    Value,
    /// Text that somebody reads.
    Content,
}

/// The decision about an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SinkVerdict {
    /// The rules allow it.
    Allowed,
    /// A person has accepted it.
    Accepted,
    /// It violates the rules, but `[policy] effects` is set to warn.
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

/// An entry of the sink log: an attempt to send something out of the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SinkDecision {
    /// "tool", "request", "publish", "schedule", "memory" or "mount".
    pub sink: String,
    /// The tool, such as "bank.send_money" or "fetch".
    pub tool: String,
    /// The destination, such as "mcp:bank" or "host:example.org".
    pub destination: String,
    /// The label of the data that the decision to do it was based on.
    pub decision: Label,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<SinkArgument>,
    pub verdict: SinkVerdict,
    /// The reason, in words.
    pub because: String,
}

/// The effect of a tool, as declared by an administrator.
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

/// The roles of a tool's arguments. One that is not listed is an address.
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
    pub fn role_of(&self, argument: &str) -> ArgumentRole {
        let among = |names: &[String]| names.iter().any(|name| name == argument);
        match () {
            () if among(&self.address) => ArgumentRole::Address,
            () if among(&self.content) => ArgumentRole::Content,
            () if among(&self.value) => ArgumentRole::Value,
            () => ArgumentRole::Address,
        }
    }
}
