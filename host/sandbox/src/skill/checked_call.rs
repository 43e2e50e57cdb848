//! A call with checked arguments.

use super::installed::InstalledSkill;
use super::manifest::Workspace;
use super::{SkillError, Skills};
use kiso_plan::plan::Violation;
use serde_json::Value;
use std::sync::Arc;

/// A call of a tool with arguments that fit its schema.
#[derive(Debug)]
pub struct CheckedCall {
    pub(super) skill: Arc<InstalledSkill>,
    /// The index of the tool.
    pub(super) tool: usize,
    /// The arguments, with defaults filled in.
    pub(super) args: Value,
}

impl CheckedCall {
    /// The name of the tool.
    pub fn name(&self) -> &str {
        &self.skill.tools[self.tool].name
    }

    /// The skill's access to the session's workspace.
    pub fn workspace(&self) -> Workspace {
        self.skill.manifest.needs.workspace
    }
}

impl Skills {
    /// Checks the arguments for a tool. Returns the call, or every violation of the schema.
    pub fn check(&self, tool: &str, args: &Value) -> Result<CheckedCall, SkillError> {
        let (skill, tool) = self.find_tool(tool)?;
        match skill.tools[tool].args.check(args) {
            Ok(args) => Ok(CheckedCall { skill, tool, args }),
            Err(violations) => {
                let error = SkillError::bad_args(skill.name().as_str(), &violations);
                Err(error.version(&skill.manifest.version))
            }
        }
    }

    /// Checks some of the arguments of a plan.
    pub fn check_some(&self, tool: &str, args: &Value) -> Result<(), Vec<Violation>> {
        let found = self.find_tool(tool);
        let (skill, index) = found.map_err(|e| vec![Violation { path: "tool".to_owned(), message: e.to_string() }])?;
        skill.tools[index].args.check_some(args)
    }

    /// Checks the arguments of a plan whose refs are not resolved yet. Returns the arguments with defaults filled in.
    pub fn check_planned(&self, tool: &str, args: &Value) -> Result<Value, Vec<Violation>> {
        let found = self.find_tool(tool);
        let (skill, index) = found.map_err(|e| vec![Violation { path: "skill".to_owned(), message: e.to_string() }])?;
        skill.tools[index].args.check_planned(args)
    }
}
