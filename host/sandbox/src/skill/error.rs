//! What a person reads when a skill did not do its work: whose fault, what happened, and the way out.

use super::limits::LimitHit;
use kiso_plan::plan::Violation;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Who has to change something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Blame {
    /// The one who called: wrong arguments, no such skill.
    Caller,
    /// The skill: it failed, trapped, or went over a limit.
    Skill,
    /// The administrator's rules: not granted.
    Policy,
    /// This machine or kiso itself: disk full, corrupt file.
    Host,
}

/// Why a call, a load or an install did not work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SkillError {
    /// Name of the skill, or of the file where the name is not known yet.
    pub skill: String,
    /// Version from the manifest; empty where it is not known.
    pub version: String,
    /// Who has to change something.
    pub blame: Blame,
    /// Stable code: those of `kiso:skill` failures, and "limit", "trap", "exit", "bad-reply", "bad-args", "unknown-skill", "wrong-machine", "io", "busy".
    pub code: String,
    /// What happened and what to do, as sentences without the skill's name.
    pub message: String,
    /// The limit that ended the call.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub limit: Option<Box<LimitHit>>,
    /// Whether the same call may work later without any change.
    pub retryable: bool,
}

impl SkillError {
    /// An error that is not a limit; not retryable.
    pub fn new(skill: &str, blame: Blame, code: &str, message: impl Into<String>) -> Self {
        Self {
            skill: skill.to_owned(),
            version: String::new(),
            blame,
            code: code.to_owned(),
            message: message.into(),
            limit: None,
            retryable: false,
        }
    }

    /// A call that a limit ended.
    pub fn limit(skill: &str, hit: LimitHit) -> Self {
        Self { message: hit.to_string(), limit: Some(Box::new(hit)), ..Self::new(skill, Blame::Skill, "limit", "") }
    }

    /// Something of this machine went wrong.
    pub fn host(skill: &str, error: impl fmt::Display) -> Self {
        Self::new(skill, Blame::Host, "io", error.to_string())
    }

    /// A call whose arguments do not fit, with every violation.
    pub fn bad_args(skill: &str, violations: &[Violation]) -> Self {
        let told: Vec<String> = violations.iter().map(ToString::to_string).collect();
        Self::new(skill, Blame::Caller, "bad-args", told.join("; "))
    }

    /// Names the version of the skill.
    pub fn version(mut self, version: &str) -> Self {
        version.clone_into(&mut self.version);
        self
    }
}

impl fmt::Display for SkillError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.skill)?;
        if !self.version.is_empty() {
            write!(f, " {}", self.version)?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for SkillError {}
