//! `kiso skill outdated` and `kiso skill update`: newer versions at the sources of skills.

use super::installing::{GrantAnswer, SkillCandidate, SkillFile};
use super::open;
use super::package::{self as package_install, PackageInstall};
use super::push::RegistryArgs;
use crate::cli::show::{Show, printable_line};
use crate::cli::{Exit, Failure, Opened, Shared, block_on};
use kiso_plan::code::{Blame, ErrorCode};
use kiso_sandbox::package;
use kiso_sandbox::skill::{LatestVersion, LockedSkill, PackageOrigin, SkillError, Skills, WebPlace};
use serde_json::json;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct OutdatedArgs {
    /// The skill [default: all that are installed]
    name: Option<String>,
    #[command(flatten)]
    registry: RegistryArgs,
}

impl OutdatedArgs {
    pub(crate) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let (opened, show) = open(shared)?;
        let (who, mut exit) = (self.registry.credentials()?, Exit::Done);
        for locked in chosen(&opened.skills, self.name.as_deref())? {
            show.busy(&locked.name);
            let latest = block_on(opened.skills.latest(&locked, &who))?;
            show.rest();
            match latest {
                Err(error) => {
                    exit = Exit::Failed;
                    tell(shared, &locked, "failed", None, &error.message);
                }
                Ok(LatestVersion::Same) => tell(shared, &locked, "current", None, ""),
                Ok(LatestVersion::Unknown(why)) => tell(shared, &locked, "unknown", None, &why),
                Ok(LatestVersion::Other { version, place }) => {
                    let why = match package::find_source(&place) {
                        Some(_) => format!("`kiso skill update {}` installs the version of this kiso", locked.name),
                        None => format!("`kiso skill update {}` gets it from {place}", locked.name),
                    };
                    tell(shared, &locked, "outdated", version.as_deref(), &why);
                }
            }
        }
        Ok(exit)
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct UpdateArgs {
    /// The skill [default: all that are installed]
    name: Option<String>,
    /// Grant everything that the new version asks for, nothing (not even /work), or what was granted before [default: ask
    /// about each change]
    #[arg(long, value_name = "all|none|keep")]
    grant: Option<GrantAnswer>,
    /// For a skill from https:// whose publisher did not sign it: the SHA-256 of the new file
    #[arg(long, value_name = "DIGEST", requires = "name")]
    sha256: Option<String>,
    #[command(flatten)]
    registry: RegistryArgs,
}

impl UpdateArgs {
    pub(crate) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let (opened, show) = open(shared)?;
        let (who, mut exit) = (self.registry.credentials()?, Exit::Done);
        let all = chosen(&opened.skills, self.name.as_deref())?;
        // The error of a single skill is the command's error.
        let alone = self.name.is_some();
        for locked in all {
            show.busy(&locked.name);
            let latest = block_on(opened.skills.latest(&locked, &who))?;
            show.rest();
            let updated = latest.map_err(Failure::from).and_then(|latest| match latest {
                LatestVersion::Same => {
                    tell(shared, &locked, "current", None, "");
                    Ok(())
                }
                LatestVersion::Unknown(why) => {
                    tell(shared, &locked, "unknown", None, &why);
                    Ok(())
                }
                LatestVersion::Other { place, .. } => self.apply(&opened, &locked, &place, &show, shared),
            });
            match updated {
                Ok(()) => {}
                Err(failure) if alone => return Err(failure),
                Err(failure) => {
                    exit = Exit::Failed;
                    match shared.json {
                        true => tell(shared, &locked, "failed", None, &failure.message),
                        false => failure.print(false),
                    }
                }
            }
        }
        Ok(exit)
    }

    /// Replaces an installed skill by the one at its source, if that is allowed.
    fn apply(
        &self,
        opened: &Opened,
        locked: &LockedSkill,
        place: &str,
        show: &Show,
        shared: &Shared,
    ) -> Result<(), Failure> {
        let skills = &opened.skills;
        if let Some(folder) = package::find_source(place) {
            let how = PackageInstall { from: &[], grant: self.grant.map(Into::into), json: shared.json };
            return package_install::add(opened, show, folder, &PackageOrigin::of_kiso(folder), &how).map(drop);
        }
        let refuse = |code: ErrorCode, why: String| {
            Failure::from(SkillError::new(&locked.name, Blame::Policy, code, format!("{why}; nothing changed")))
        };
        let fetched = self.registry.fetch(skills, place, self.sha256.as_deref(), show)?;
        let file = match fetched {
            Some(fetched) => SkillFile::Fetched(fetched),
            None => SkillFile::Named(PathBuf::from(place)),
        };
        let candidate = SkillCandidate::examine(skills, &file, None, Some(&locked.name))?;
        let (version, provenance) = (candidate.version().to_owned(), candidate.provenance());
        let digest = provenance.file_digest.clone().unwrap_or_default();
        if digest == locked.digest {
            tell(shared, locked, "current", None, "");
            return Ok(());
        }
        if skills.is_downgrade(&version, &locked.version) {
            let why = format!(
                "version {} is installed, and {place} has {version}, which is lower; `kiso skill add` installs it all the same",
                locked.version
            );
            return Err(refuse(ErrorCode::Downgrade, why));
        }
        // An address does not prove who put a new file there.
        if WebPlace::is_one(place) && self.sha256.is_none() && provenance.signer.is_none() {
            // For an archive, this differs from the digest of its files.
            let at = provenance.location.as_deref().unwrap_or_default();
            let digest = at.rsplit_once("#sha256=").map_or(digest.as_str(), |(_, digest)| digest);
            let why = format!(
                "{place} has version {version}, with the SHA-256 {digest}, which no trusted key has signed; if it is right, \
                 `kiso skill update {} --sha256 {digest}` installs it",
                locked.name
            );
            return Err(refuse(ErrorCode::NoDigest, why));
        }
        candidate.install(opened, &[], self.grant, show, shared.json)
    }
}

/// Returns the named skill, or all.
fn chosen(skills: &Skills, name: Option<&str>) -> Result<Vec<LockedSkill>, Failure> {
    let all = skills.locked();
    let Some(name) = name else { return Ok(all) };
    if let Some(one) = all.iter().find(|locked| locked.name == name) {
        return Ok(vec![one.clone()]);
    }
    // The skill is bundled, or does not exist.
    let skill = skills.find(name)?;
    let message = format!("{} is a bundled skill; it is updated with kiso", skill.name());
    Err(Failure::new(Exit::Usage, message))
}

fn tell(shared: &Shared, locked: &LockedSkill, status: &str, version: Option<&str>, why: &str) {
    let LockedSkill { name, version: installed, source, .. } = locked;
    if shared.json {
        let object = json!({
            "type": "version", "skill": name, "installed": installed, "status": status, "version": version,
            "source": source, "why": (!why.is_empty()).then_some(why),
        });
        outln!("{object}");
        return;
    }
    let version = version.map(|version| format!(" → {version}")).unwrap_or_default();
    let why = if why.is_empty() { String::new() } else { format!(": {why}") };
    outln!("{status:8} {name} {}{}{}", printable_line(installed), printable_line(&version), printable_line(&why));
}
