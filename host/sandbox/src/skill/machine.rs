//! Skills that run only on machines with a label, such as "gpu": `runs_on` of a manifest, `fleet.labels` of a machine.

use super::Skills;
use super::error::SkillError;
use super::manifest::Manifest;
use kiso_plan::code::{Blame, ErrorCode};

impl Skills {
    /// The label that a skill requires and this machine lacks.
    pub fn missing_label<'a>(&self, manifest: &'a Manifest) -> Option<&'a str> {
        let label = manifest.runs_on.as_deref()?;
        (!self.config().fleet.labels.iter().any(|has| has == label)).then_some(label)
    }

    /// The same for a tool, by its name in plans.
    pub fn label_missing_for(&self, tool: &str) -> Option<String> {
        let (skill, _) = self.find_tool(tool).ok()?;
        self.missing_label(&skill.manifest).map(str::to_owned)
    }

    /// The error for a call on this machine.
    pub(super) fn wrong_machine(&self, manifest: &Manifest, label: &str) -> SkillError {
        let is_member = self.config().fleet.url.is_some();
        let others = if is_member { ", and no standby member of the fleet has it" } else { "" };
        let message = format!(
            "it runs only on a machine with the label {label}, which this one has not{others}: fleet.labels in config.toml says what a machine has"
        );
        let error = SkillError::new(manifest.name.as_str(), Blame::Host, ErrorCode::WrongMachine, message);
        SkillError { retryable: is_member, ..error }
    }
}
