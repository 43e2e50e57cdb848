//! The end of a guest that gave no answer, explained to people.

use super::error::SkillError;
use super::trap;
use crate::engine::limits::{Budget, Limit, cut};
use kiso_plan::code::{Blame, ErrorCode};
use wasmtime::Trap;
use wasmtime::component::ResourceTableError;
use wasmtime_wasi::I32Exit;

/// Longest message of a failure that is kept.
const FAILURE_BYTES: usize = 4 << 10;

/// The ways in which a guest can stop without an answer.
pub(super) enum GuestStop {
    /// It returned a failure, or was not called.
    Failure { code: ErrorCode, message: String, retryable: bool },
    /// It ended with an exit code other than 0, and this standard output.
    Exit(i32, String),
    /// It trapped, or a host function ended it.
    Trap(wasmtime::Error),
}

impl From<wasmtime::Error> for GuestStop {
    fn from(error: wasmtime::Error) -> Self {
        Self::Trap(error)
    }
}

impl GuestStop {
    pub(super) fn failure(code: ErrorCode, message: String) -> Self {
        Self::Failure { code, message, retryable: false }
    }

    /// Explains what happened. The most certain cause is checked first.
    pub(super) fn explain(self, skill: &str, budget: &Budget, stderr: &str) -> SkillError {
        let error = match self {
            Self::Failure { code, message, retryable } => {
                let error = SkillError::new(skill, Blame::Skill, code, cut(&message, FAILURE_BYTES));
                return SkillError { retryable, ..error };
            }
            Self::Exit(code, stdout) => {
                let said = last_lines(stderr, 3);
                let said = if said.is_empty() { last_lines(&stdout, 3) } else { said };
                let said = if said.is_empty() { String::new() } else { format!(": {said}") };
                return SkillError::new(
                    skill,
                    Blame::Skill,
                    ErrorCode::Exit,
                    format!("it ended with exit code {code}{said}"),
                );
            }
            Self::Trap(error) => error,
        };
        if let Some(Trap::StackOverflow) = error.downcast_ref() {
            return SkillError::limit(skill, budget.hit(Limit::Stack));
        }
        if matches!(error.downcast_ref(), Some(ResourceTableError::Full)) {
            return SkillError::limit(skill, budget.hit(Limit::OpenFiles));
        }
        if error.downcast_ref::<std::str::Utf8Error>().is_some() {
            return SkillError::new(skill, Blame::Skill, ErrorCode::BadReply, "it returned text that is not UTF-8");
        }
        // The engine does not export the types of these errors.
        let root = error.root_cause().to_string();
        if root.contains("fuel allocated for hostcalls") {
            return SkillError::limit(skill, budget.hit(Limit::Transfer));
        }
        if root.contains("store handle limit exceeded") {
            return SkillError::limit(skill, budget.hit(Limit::OpenFiles));
        }
        if root.contains("total size of fields exceeds limit") {
            return SkillError::limit(skill, budget.hit(Limit::Headers));
        }
        if let Some(exit) = error.downcast_ref::<I32Exit>() {
            return Self::Exit(exit.0, String::new()).explain(skill, budget, stderr);
        }
        // A panic prints its reason on standard error before it traps.
        let said = cut(&trap::said(stderr), FAILURE_BYTES).to_owned();
        let why = if said.is_empty() { trap::reason(&error) } else { said };
        SkillError::new(skill, Blame::Skill, ErrorCode::Trap, format!("it crashed: {why}"))
    }
}

fn last_lines(text: &str, n: usize) -> String {
    let lines: Vec<&str> =
        text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with("note: run with")).collect();
    cut(&lines[lines.len().saturating_sub(n)..].join(" "), FAILURE_BYTES).to_owned()
}
