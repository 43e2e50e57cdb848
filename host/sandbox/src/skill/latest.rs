//! Finds out whether the source of a skill has another version.

use super::error::SkillError;
use super::lockfile::LockedSkill;
use super::oci::{OciError, OciReference, RegistryCredentials};
use super::signature::AGENT_SKILL;
use super::web::WebPlace;
use super::{Skills, is_index_source, source};
use crate::package;
use std::cmp::Ordering;
use std::path::Path;

/// The version at the place that a skill came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LatestVersion {
    /// The installed version.
    Same,
    /// Another version. Whether it may be installed is checked when it is examined.
    Other {
        /// The version, if it is known already.
        version: Option<String>,
        /// The place to fetch it: a path, an address, a place in a registry, or the source of a skill of an index.
        place: String,
    },
    /// This could not be found out, and why.
    Unknown(String),
}

impl Skills {
    /// Checks the place that a skill came from.
    pub async fn latest(&self, of: &LockedSkill, who: &RegistryCredentials) -> Result<LatestVersion, SkillError> {
        let from = of.source.as_str();
        if OciReference::is_one(from) {
            return self.latest_in_registry(of, who).await;
        }
        if WebPlace::is_one(from) {
            let now = WebPlace::parse(from).map_err(|error| error.to_skill_error(&of.name))?.as_it_is_now();
            let fetched = self.fetch(&now, |_, _| {}).await?;
            let (version, digest) = self.version_at(&fetched.file)?;
            return Ok(other_if(digest != of.digest, version, now.url()));
        }
        if is_index_source(from).is_some() {
            let found = self.find_by_source(from, None).await?;
            let newer = source::compare(&found.skill.version, &of.version) == Ordering::Greater;
            // The digest of an archive is not that of its files, so the version is compared.
            let other = match of.kind == AGENT_SKILL {
                true => newer || self.file_digest_is_other(of, &found, who).await?,
                false => found.skill.sha256 != of.digest,
            };
            return Ok(other_if(other, found.skill.version, from));
        }
        if let Some(folder) = package::find_source(from) {
            let version = &folder.package.version;
            return Ok(other_if(*version != of.version, version.clone(), from));
        }
        let Some(path) = from.strip_prefix("file:") else {
            return Ok(LatestVersion::Unknown(match from.split_once(':').unwrap_or((from, "")) {
                ("package", _) => "it is a package that this kiso does not have".to_owned(),
                ("project", path) => {
                    format!("it is a project's; `kiso skill trust project {path}` looks at that again")
                }
                ("upload", _) => "it was uploaded, and nobody knows where from".to_owned(),
                _ => "nobody knows where it came from".to_owned(),
            }));
        };
        if !Path::new(path).exists() {
            return Ok(LatestVersion::Unknown(format!("{path} is not there any more")));
        }
        let (version, digest) = self.version_at(Path::new(path))?;
        Ok(other_if(digest != of.digest, version, path))
    }

    /// Compares two tags of a registry. Versions are compared by their numbers; all other tags come before them.
    pub fn later_tag(&self, one: &str, other: &str) -> Ordering {
        match (source::of_tag(one), source::of_tag(other)) {
            (Some(one), Some(other)) => source::compare(one, other),
            (one, other) => one.is_some().cmp(&other.is_some()),
        }
    }

    /// Whether a version is lower than one that is installed.
    pub fn is_downgrade(&self, version: &str, installed: &str) -> bool {
        source::is_lower(version, installed)
    }

    /// A tag that is a version leads to the highest version; any other to its present target.
    async fn latest_in_registry(
        &self,
        of: &LockedSkill,
        who: &RegistryCredentials,
    ) -> Result<LatestVersion, SkillError> {
        let told = |error: OciError| error.told_of(&of.name);
        let installed = OciReference::parse(&of.source).map_err(told)?;
        let named = installed.own_tag();
        let tag = match named {
            Some(tag) if source::of_tag(tag).is_none() => tag.to_owned(),
            _ => {
                let tags = self.tags(&installed, who).await?;
                let versions = tags.into_iter().filter(|tag| source::of_tag(tag).is_some());
                match versions.max_by(|a, b| self.later_tag(a, b)) {
                    Some(tag) => tag,
                    None => return Ok(LatestVersion::Unknown("no tag of it is a version".to_owned())),
                }
            }
        };
        let at = installed.tagged(&tag);
        let described = self.described(&at, who).await?;
        if installed.digest() == Some(described.digest.as_str()) {
            return Ok(LatestVersion::Same);
        }
        let version = described.version.or_else(|| source::of_tag(&tag).map(str::to_owned));
        // An Agent Skill may lack a version. Then only the version of its tag is known.
        let here = Some(of.version.as_str()).filter(|version| !version.is_empty());
        let here = here.or_else(|| named.and_then(source::of_tag)).unwrap_or_default();
        if version.as_deref().is_some_and(|version| source::is_lower(version, here)) {
            return Ok(LatestVersion::Same);
        }
        Ok(LatestVersion::Other { version, place: at.to_string() })
    }

    /// The version and digest of a file that may be another version of a skill.
    fn version_at(&self, file: &Path) -> Result<(String, String), SkillError> {
        let statement = self.statement(file)?;
        Ok((statement.version, statement.digest))
    }

    /// Whether the files in an archive of the same version are different.
    async fn file_digest_is_other(
        &self,
        of: &LockedSkill,
        found: &super::FoundSkill,
        who: &RegistryCredentials,
    ) -> Result<bool, SkillError> {
        let fetched = self.fetch_indexed(found, who).await?;
        Ok(self.version_at(&fetched.file)?.1 != of.digest)
    }
}

fn other_if(is_other: bool, version: String, place: &str) -> LatestVersion {
    match is_other {
        true => LatestVersion::Other {
            version: Some(version).filter(|version| !version.is_empty()),
            place: place.to_owned(),
        },
        false => LatestVersion::Same,
    }
}
