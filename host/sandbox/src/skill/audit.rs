//! `kiso skill audit`: the imports of a component, its needs and grants, their use by its calls, and the least grant that would
//! have been enough. Grants are only ever reduced here.

use super::error::SkillError;
use super::grant::{EffectiveGrant, Grant, RequestedGrant};
use super::placing::not_locked;
use super::shown::GrantView;
use super::{InstalledSkill, Skills, loader};
use kiso_plan::code::{Blame, ErrorCode};
use kiso_store::store::SkillUse;
use schemars::JsonSchema;
use serde::Serialize;

/// The reserve beyond the largest use so far is that use divided by this: the next call may need a little more.
const SPARE: u64 = 4;

/// Everything that an audit shows.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Audit")]
pub struct AuditView {
    pub skill: String,
    pub version: String,
    /// SHA-256 of its component. The use by another component of the same name is not counted.
    pub digest: String,
    /// The interfaces that it imports.
    pub imports: Vec<String>,
    /// Its needs beyond what every skill gets.
    pub asks: Vec<String>,
    /// The permissions of a call, a line each.
    pub allowed: Vec<String>,
    /// The use by its calls so far; null if none was recorded.
    pub used: Option<SkillUse>,
    /// The least grant that would have done; null if no call was recorded.
    pub least: Option<GrantView>,
    /// The permissions of a call with that grant, a line each.
    pub least_allowed: Vec<String>,
    /// The permissions that it removes, and those that replace them, a line each; empty if nothing can be removed.
    pub narrower: Vec<String>,
}

impl Skills {
    /// Compares the grant of a component with its use.
    pub fn audit(&self, skill: &InstalledSkill) -> Result<AuditView, SkillError> {
        let host = |error: &dyn std::fmt::Display| SkillError::host(skill.name().as_str(), error);
        let bytes = skill.wasm().map_err(|error| host(&error))?;
        let (imports, _, _) = loader::names(&bytes).map_err(|error| host(&error))?;
        let (used, granted) = (self.used_by(skill)?, self.grant(skill)?);
        let allowed = self.allowed_under(skill, &granted);
        let asks = RequestedGrant::from_manifest(&skill.manifest, &self.config().engine).sentences();
        let least = used.as_ref().map(|used| self.least(skill, &granted, used));
        let (mut narrower, mut least_allowed) = (Vec::new(), Vec::new());
        if let Some(least) = &least {
            let with = self.allowed_under(skill, least);
            narrower = difference(&allowed, &with);
            least_allowed = with.lines();
        }
        Ok(AuditView {
            skill: skill.name().to_string(),
            version: skill.manifest.version.clone(),
            digest: skill.digest().to_owned(),
            imports,
            asks,
            allowed: allowed.lines(),
            used,
            least: least.map(|least| least.shown()),
            least_allowed,
            narrower,
        })
    }

    /// Grants only what would have been enough. Returns the changes as in [`AuditView::narrower`]; empty if there are none.
    pub fn tighten(&self, skill: &InstalledSkill) -> Result<Vec<String>, SkillError> {
        let name = skill.name();
        let _lock = self.home().lock_install().map_err(|error| not_locked(name, &error))?;
        let now = self.find(name.as_str())?;
        let Some(used) = self.used_by(&now)? else {
            let message = format!(
                "no call of {name} {} was recorded, so nothing says what it needs; call it first, or narrow it with `kiso skill grant {name}`",
                now.manifest.version
            );
            return Err(SkillError::new(name.as_str(), Blame::Caller, ErrorCode::NotUsed, message));
        };
        let granted = self.grant(&now)?;
        let least = self.least(&now, &granted, &used);
        let (before, after) = (self.allowed_under(&now, &granted), self.allowed_under(&now, &least));
        let narrower = difference(&before, &after);
        if least != granted {
            self.write_grant(name, &least)?;
        }
        Ok(narrower)
    }

    /// The recorded use of the installed component; `None` if no call was recorded.
    fn used_by(&self, skill: &InstalledSkill) -> Result<Option<SkillUse>, SkillError> {
        let (store, name) = (&self.0.store, skill.name().as_str());
        self.0.uses.write(store);
        let used = store.read_blocking(|view| view.skill_use(name)).map_err(|error| SkillError::host(name, error))?;
        Ok(used.filter(|used| used.digest == skill.digest() && used.calls > 0))
    }

    /// The part of a grant that would have been enough.
    fn least(&self, skill: &InstalledSkill, granted: &Grant, used: &SkillUse) -> Grant {
        let engine = &self.config().engine;
        let spare = |used: u64| used.saturating_add(used.div_ceil(SPARE));
        let beyond = |needed: u64, default: u64| (needed > default).then_some(needed);
        let memory = beyond(spare(used.memory_bytes).div_ceil(1 << 20), engine.default_memory_mib);
        let time = beyond(spare(used.longest_ms).div_ceil(1_000), engine.default_timeout_s);
        let least = granted.least(&skill.manifest.needs, used, memory, time);
        // Each capability reduces its own grant. If one does not, the grant stays as it was.
        let beyond = Grant { workspace: None, ..least.beyond(granted) };
        if beyond == Grant::default() { least } else { granted.clone() }
    }
}

/// The permissions that were removed and those that replace them.
fn difference(before: &EffectiveGrant, after: &EffectiveGrant) -> Vec<String> {
    let (before, after) = (before.lines(), after.lines());
    let gone = before.iter().filter(|line| !after.contains(line)).map(|line| format!("- {line}"));
    let new = after.iter().filter(|line| !before.contains(line)).map(|line| format!("+ {line}"));
    gone.chain(new).collect()
}
