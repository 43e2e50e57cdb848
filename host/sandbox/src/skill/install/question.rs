//! The question before a skill is installed: its needs, and the changes in the text for models.

use super::super::entry;
use super::super::surface_change::{SurfaceChange, component_facts};
use super::{ErrorCode, InstallCandidate, InstalledSkill, Manifest, Shape, SkillError, Skills, tools};
use crate::skill::installed::Tool;
use kiso_plan::code::Blame;

impl InstallCandidate {
    /// Whether it is installed without a question: it has no new needs, changes nothing in the text for models, and comes from
    /// the same source as the version before.
    pub fn needs_no_answer(&self) -> bool {
        self.beyond.is_empty() && self.doubt.is_none() && self.change.is_empty()
    }

    /// The question to a person before it is installed: lines, the last one ended.
    pub fn question(&self) -> String {
        let Manifest { name, version, .. } = &self.manifest;
        let mut question = String::new();
        if let Some(doubt) = &self.doubt {
            let more = self.beyond.without(&self.granted_before);
            question = format!("{doubt}.\nNothing that was granted goes on to it, no stored value either.\n");
            if self.beyond.is_empty() {
                question += &format!("{name} {version} asks for nothing beyond what every skill gets.\n");
            }
            if !self.granted_before.is_empty() {
                question +=
                    &format!("{name} {version} asks to, as the one before was allowed to:\n{}", self.granted_before);
            }
            if !more.is_empty() {
                let also = if self.granted_before.is_empty() { "" } else { "also " };
                question += &format!("{name} {version} {also}asks to:\n{more}");
            }
        } else if !self.beyond.is_empty() {
            let asks = if self.replaces.is_some() { "asks for what it was not granted" } else { "asks to" };
            question = format!("{name} {version} {asks}:\n{}", self.beyond);
        }
        if !self.change.is_empty() {
            question += &format!("{name} {version} changes what models are told and what is checked:\n{}", self.change);
        }
        question
    }
}

impl Skills {
    /// Completes the changes of a component of plain functions, whose tools are known only after compiling. Call it before
    /// [`InstallCandidate::question`].
    pub async fn complete_change(&self, candidate: &mut InstallCandidate) -> Result<(), SkillError> {
        if candidate.parsed.shape != Shape::Functions || candidate.replaces.is_none() {
            return Ok(());
        }
        let manifest = &candidate.manifest;
        let component = self.compile(manifest, &candidate.parsed.wasm).await?;
        let sandbox = self.sandbox().map_err(|error| SkillError::host(manifest.name.as_str(), error))?;
        let (_, found) =
            entry::entry(sandbox, &component, candidate.parsed.shape).map_err(|m| self.unfit(manifest, m))?;
        let named = tools(manifest, candidate.parsed.shape, found).map_err(|m| self.unfit(manifest, m))?;
        candidate.change = self.change_now(candidate, &named)?;
        Ok(())
    }

    /// Refuses a candidate if its compiled tools differ in more than was shown.
    pub(super) fn check_change(&self, candidate: &InstallCandidate, tools: &[Tool]) -> Result<(), SkillError> {
        let change = self.change_now(candidate, tools)?;
        if change.is_empty() {
            return Ok(());
        }
        let Manifest { name, version, .. } = &candidate.manifest;
        let message =
            format!("{version} changes what models are told and what is checked:\n{change}nothing was installed");
        Err(SkillError::new(name.as_str(), Blame::Policy, ErrorCode::OtherSurface, message))
    }

    fn change_now(&self, candidate: &InstallCandidate, tools: &[Tool]) -> Result<SurfaceChange, SkillError> {
        let old = self.read_installed(&candidate.manifest.name)?;
        Ok(old
            .map(|old| SurfaceChange::between(&facts(&old.manifest, &old.tools), &facts(&candidate.manifest, tools)))
            .unwrap_or_default())
    }
}

/// The changes that are known before a component of plain functions is compiled.
pub(super) fn change(old: &InstalledSkill, manifest: &Manifest, shape: Shape) -> SurfaceChange {
    if shape == Shape::Functions {
        return SurfaceChange::default();
    }
    let name = manifest.name.as_str();
    let new = component_facts(manifest, [(name, name, &manifest.args)].into_iter());
    SurfaceChange::between(&facts(&old.manifest, &old.tools), &new)
}

fn facts(manifest: &Manifest, tools: &[Tool]) -> Vec<String> {
    component_facts(manifest, tools.iter().map(|tool| (tool.name.as_str(), tool.inner.as_str(), tool.args.schema())))
}
