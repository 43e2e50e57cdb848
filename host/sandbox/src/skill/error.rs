//! The error of a skill for people: whose fault it is, what happened, and what to do.

use crate::engine::limits::LimitHit;
use kiso_plan::code::{Blame, ErrorClass, ErrorCode};
use kiso_plan::plan::Violation;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Why a call, a load or an install did not work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SkillError {
    /// Name of the skill, or of the file where the name is not known yet.
    pub skill: String,
    /// Version from the manifest; empty where it is not known.
    pub version: String,
    /// Who has to change something.
    pub blame: Blame,
    /// Stable word: of `kiso:skill` failures, or of the host, such as "limit", "trap" or "bad-args".
    pub code: ErrorCode,
    /// The cause and what to do, as sentences without the skill's name.
    pub message: String,
    /// The limit that ended the call.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub limit: Option<Box<LimitHit>>,
    /// Whether the same call may work later without any change.
    pub retryable: bool,
}

impl SkillError {
    /// An error that is not a limit; not retryable.
    pub fn new(skill: &str, blame: Blame, code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            skill: skill.to_owned(),
            version: String::new(),
            blame,
            code,
            message: message.into(),
            limit: None,
            retryable: false,
        }
    }

    /// A call that a limit ended.
    pub fn limit(skill: &str, hit: LimitHit) -> Self {
        Self {
            message: hit.to_string(),
            limit: Some(Box::new(hit)),
            ..Self::new(skill, Blame::Skill, ErrorCode::Limit, "")
        }
    }

    /// Something of this machine went wrong.
    pub fn host(skill: &str, error: impl fmt::Display) -> Self {
        Self::new(skill, Blame::Host, ErrorCode::Io, error.to_string())
    }

    /// A call whose arguments do not fit, with every violation.
    pub fn bad_args(skill: &str, violations: &[Violation]) -> Self {
        let told: Vec<String> = violations.iter().map(ToString::to_string).collect();
        Self::new(skill, Blame::Caller, ErrorCode::BadArgs, told.join("; "))
    }

    /// The kind of this error, from which a status and an exit code follow.
    pub fn class(&self) -> ErrorClass {
        self.code.class(self.blame)
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
