//! The grants of an administrator to a skill: `grants/NAME.toml`. No tool and no skill can reach these files.
//!
//! Without a grant, a skill gets `/work` as its manifest asks, the default memory and time, and nothing else. A call gets the
//! overlap of the manifest's needs and the grant. A component without a manifest may be granted what it imports; until then, it
//! reads `/work` and reaches no host.
//!
//! Each [`super::capability`] defines its own grant; this file has the common parts.

pub use super::capability::{AskEffective, AskGrant, Capabilities, EffectiveGrant, Flag, FlagValues, Grant, Workspace};

use super::capability::add_host;
use super::error::SkillError;
use super::file_version::FileVersion;
use super::manifest::Manifest;
use super::{InstalledSkill, Skills, lock};
use kiso_base::config::Engine as EngineConfig;
use kiso_base::home::{Home, SkillName};
use kiso_plan::approval::CardAccess;
use kiso_plan::code::{Blame, ErrorCode};
use std::borrow::Cow;
use std::fmt;

/// The reason why a grant file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum GrantError {
    #[error("{path}: {message}")]
    Invalid { path: String, message: String },
    #[error("cannot read {path}: {error}")]
    Read { path: String, error: std::io::Error },
}

impl Grant {
    /// The grant of a skill; `None` if the administrator gave none.
    pub fn load(home: &Home, skill: &SkillName) -> Result<Option<Self>, GrantError> {
        let file = home.grant_path(skill);
        let path = file.display().to_string();
        let text = match std::fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(GrantError::Read { path, error }),
        };
        let grant: Self = toml::from_str(&text).map_err(|error| GrantError::Invalid {
            path: path.clone(),
            message: error.to_string().trim().to_owned(),
        })?;
        grant.check().map_err(|message| GrantError::Invalid { path, message })?;
        Ok(Some(grant))
    }

    /// The grant of everything that the manifest asks for.
    pub fn all(manifest: &Manifest, config: &EngineConfig) -> Self {
        RequestedGrant::from_manifest(manifest, config).0
    }

    /// The grant of nothing, not even `/work`.
    pub fn nothing() -> Self {
        Self { workspace: Some(Workspace::None), ..Self::default() }
    }

    /// Grants the memory and time that the manifest asks for, or revokes them.
    pub fn set_limits(&mut self, manifest: &Manifest, config: &EngineConfig, granted: bool) {
        let asked = if granted { Self::all(manifest, config) } else { Self::default() };
        (self.memory_mib, self.timeout_s) = (asked.memory_mib, asked.timeout_s);
    }

    /// Adds a host that the manifest covers. Returns an error for any other.
    pub fn add_host(&mut self, manifest: &Manifest, host: &str, private: bool) -> Result<(), String> {
        add_host(&mut self.http, &manifest.needs.http, host, private, manifest.name.as_str())
    }

    /// The text of the grant's file.
    #[expect(clippy::expect_used, reason = "a grant has a TOML form")]
    pub fn to_toml(&self) -> String {
        let head = "# What this skill may do. Written by `kiso skill add` and `kiso skill grant`; edit it or delete it at will.\n";
        format!("{head}{}", toml::to_string(self).expect("a grant has a TOML form"))
    }
}

/// The needs of a manifest beyond what every skill gets, as the grant that would cover them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RequestedGrant(pub Grant);

impl RequestedGrant {
    pub fn from_manifest(manifest: &Manifest, config: &EngineConfig) -> Self {
        let asked = manifest.needs.asked();
        Self(Grant {
            memory_mib: asked.memory_mib.filter(|m| *m > config.default_memory_mib),
            timeout_s: asked.timeout_s.filter(|t| *t > config.default_timeout_s),
            ..asked
        })
    }

    /// The part of the request that `grant` does not cover.
    pub fn beyond(&self, grant: &Grant) -> Self {
        Self(self.0.beyond(grant))
    }

    /// The part of the request that `other` does not contain.
    pub fn without(&self, other: &Self) -> Self {
        Self(self.0.without(&other.0))
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// One line per permission, to be read before answering "allow?".
impl fmt::Display for RequestedGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.lines().iter().try_for_each(|line| writeln!(f, "  {line}"))
    }
}

impl EffectiveGrant {
    /// `trusted` skills are part of the binary. They get the memory and time that they ask for, and the credentials of the
    /// conversation that they name, but hosts only if those were granted.
    pub fn new(manifest: &Manifest, grant: Option<&Grant>, config: &EngineConfig, trusted: bool) -> Self {
        let needs = &manifest.needs;
        let limit = |asked: Option<u64>, granted: Option<u64>, default: u64, max: u64| {
            let granted = if trusted { u64::MAX } else { granted.unwrap_or(0) };
            asked.map_or(default, |asked| asked.min(granted.max(default))).min(max)
        };
        let none = Grant::default();
        let mut grant = Cow::Borrowed(grant.unwrap_or(&none));
        let asked = if trusted { needs.asked().secrets } else { Default::default() };
        if !asked.is_subset(&grant.secrets) {
            grant.to_mut().secrets.extend(asked);
        }
        let memory_mib = limit(needs.memory_mib, grant.memory_mib, config.default_memory_mib, config.max_memory_mib);
        let timeout_s = limit(needs.timeout_s, grant.timeout_s, config.default_timeout_s, config.max_timeout_s);
        Self::overlap(needs, &grant, memory_mib, timeout_s)
    }

    /// Adds the access that a person has approved.
    pub fn with_accepted(mut self, skill: &str, accepted: Option<&[CardAccess]>) -> Self {
        for access in accepted.into_iter().flatten().filter(|access| access.of == skill) {
            let allowed = self.ask.accepted(access);
            self.http.extend(allowed.http);
            self.secrets.extend(allowed.secrets);
        }
        self
    }
}

impl Skills {
    /// The access that a call of this skill would get.
    pub fn allowed(&self, skill: &InstalledSkill) -> Result<EffectiveGrant, SkillError> {
        Ok(self.allowed_under(skill, &self.grant(skill)?))
    }

    pub(super) fn allowed_under(&self, skill: &InstalledSkill, grant: &Grant) -> EffectiveGrant {
        EffectiveGrant::new(&skill.manifest, Some(grant), &self.config().engine, skill.is_bundled())
    }

    /// The grant of an administrator to this skill, beyond what every skill gets.
    pub fn grant(&self, skill: &InstalledSkill) -> Result<Grant, SkillError> {
        let name = skill.name();
        // Before the file is read: a file that takes its place meanwhile has another version.
        let version = FileVersion::read(&self.home().grant_path(name));
        if let Some(version) = version
            && let Some((known, grant)) = lock(&self.0.grants).get(name)
            && *known == version
        {
            return Ok(grant.clone());
        }
        let grant = Grant::load(self.home(), name).map_err(|e| bad_grant(name, &e))?.unwrap_or_default();
        if let Some(version) = version {
            lock(&self.0.grants).insert(name.clone(), (version, grant.clone()));
        }
        Ok(grant)
    }
}

/// A grant file that cannot be read refuses every call, because its content is not known.
fn bad_grant(skill: &SkillName, error: &GrantError) -> SkillError {
    SkillError::new(skill.as_str(), Blame::Host, ErrorCode::BadGrant, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skill::Quiet;
    use kiso_base::config::Config;
    use kiso_store::store::Store;
    use std::sync::Arc;
    use std::time::Duration;

    /// A changed grant takes effect with the next call, however soon that comes.
    #[test]
    fn a_grant_that_changes_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(&dir.path().join("home")).unwrap();
        let store = Store::open(&home.store_path()).unwrap();
        let skills = Skills::new(home.clone(), Config::default(), store, Arc::new(Quiet));
        let skill = skills.find("fetch").unwrap();
        let path = home.grant_path(skill.name());
        let granted = || skills.grant(&skill).unwrap().memory_mib;
        assert_eq!(granted(), None);
        for mib in [64, 65, 66, 64] {
            home.write_atomic(&path, format!("memory_mib = {mib}\n").as_bytes()).unwrap();
            assert_eq!(granted(), Some(mib));
            // As an editor may do it, within one tick of the system's clock.
            std::fs::write(&path, format!("memory_mib = {}\n", mib + 10)).unwrap();
            assert_eq!(granted(), Some(mib + 10));
            while FileVersion::read(&path).is_none() {
                std::thread::sleep(Duration::from_millis(5));
            }
            assert_eq!((granted(), granted()), (Some(mib + 10), Some(mib + 10)));
            assert_eq!(lock(&skills.0.grants)[skill.name()].1.memory_mib, Some(mib + 10), "it is kept");
        }
        std::fs::write(&path, "memory_mib = 0.5").unwrap();
        assert_eq!(skills.grant(&skill).unwrap_err().code, ErrorCode::BadGrant);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(granted(), None);
    }
}
