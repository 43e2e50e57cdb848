//! `kiso skill sync`: installs the skills in the `skills.lock` of another home.

use super::installing::{GrantAnswer, SkillCandidate, SkillFile};
use super::open;
use super::package::{self as package_install, PackageInstall};
use super::push::RegistryArgs;
use crate::cli::show::{Show, printable_line};
use crate::cli::{Exit, Failure, Opened, Shared, block_on};
use kiso_plan::code::{Blame, ErrorCode};
use kiso_sandbox::package;
use kiso_sandbox::skill::signature::{AGENT_SKILL, PublisherKey};
use kiso_sandbox::skill::{
    GrantChoice, LockedSkill, PackageCandidate, PackageOrigin, SkillError, is_index_source, read_lock,
};
use serde_json::json;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct SyncArgs {
    /// The skills.lock of the other home
    file: PathBuf,
    /// Grant everything that each one asks for, nothing (not even /work), or what was granted here before [default: the
    /// basic grant of every skill]
    #[arg(long, value_name = "all|none|keep")]
    grant: Option<GrantAnswer>,
    /// Also remove skills that the other home does not have
    #[arg(long)]
    remove_others: bool,
    #[command(flatten)]
    registry: RegistryArgs,
}

impl SyncArgs {
    pub(crate) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let (opened, show) = open(shared)?;
        let skills = &opened.skills;
        let wanted = read_lock(&self.file)?;
        let here = skills.locked();
        let mut exit = Exit::Done;
        for locked in &wanted {
            let known = here.iter().find(|skill| skill.name == locked.name);
            if known.is_some_and(|known| known.digest == locked.digest && known.signer == locked.signer) {
                tell(shared, &locked.name, "unchanged", "");
                continue;
            }
            match self.install(&opened, locked, &show) {
                Ok(()) => tell(shared, &locked.name, if known.is_some() { "replaced" } else { "installed" }, ""),
                Err(error) => {
                    exit = Exit::Failed;
                    show.rest();
                    match shared.json {
                        true => tell(shared, &locked.name, "failed", &error.message),
                        false => error.print(false),
                    }
                }
            }
        }
        for other in here.iter().filter(|skill| wanted.iter().all(|wanted| wanted.name != skill.name)) {
            if self.remove_others {
                skills.remove(&kiso_base::home::SkillName::parse(&other.name)?)?;
                tell(shared, &other.name, "removed", "");
            } else {
                tell(shared, &other.name, "kept", "it is not in the file; --remove-others removes it");
            }
        }
        Ok(exit)
    }

    fn install(&self, opened: &Opened, locked: &LockedSkill, show: &Show) -> Result<(), Failure> {
        let skills = &opened.skills;
        if let Some(folder) = package::find_source(&locked.source) {
            same(locked, &folder.package.spec.component.sha256, None)?;
            let how = PackageInstall { from: &[], grant: self.grant.map(Into::into), json: true };
            return package_install::install(opened, show, folder, &PackageOrigin::of_kiso(folder), &how).map(drop);
        }
        let (name, choice) = (Some(locked.name.as_str()), self.grant.map_or(GrantChoice::Basic, Into::into));
        // For an Agent Skill in an index, the digest is that of its files, and not that of the archive.
        let digest = Some(locked.digest.as_str()).filter(|_| locked.kind != AGENT_SKILL);
        let digest = digest.filter(|_| is_index_source(&locked.source).is_some());
        let file = match self.registry.fetch(skills, &locked.source, digest, show)? {
            Some(fetched) => SkillFile::Fetched(fetched),
            None => SkillFile::Named(PathBuf::from(locked.source.strip_prefix("file:").ok_or_else(|| {
                let why = format!("it came by {}, which cannot be fetched again; install it by hand", locked.source);
                SkillError::new(&locked.name, Blame::Caller, ErrorCode::NoSource, why)
            })?)),
        };
        let candidate = SkillCandidate::examine(skills, &file, None, name)?;
        let provenance = candidate.provenance();
        same(locked, provenance.file_digest.as_deref().unwrap_or_default(), provenance.signer.as_deref())?;
        match candidate {
            SkillCandidate::Package(candidate) => {
                let PackageCandidate { folder, origin } = *candidate;
                let how = PackageInstall { from: &[], grant: Some(choice), json: true };
                package_install::install(opened, show, &folder, &origin, &how)?;
            }
            SkillCandidate::Agent(candidate) => drop(skills.install_agent_skill(*candidate)?),
            SkillCandidate::Component(candidate) => {
                show.busy(&locked.name);
                let installed = block_on(skills.install(*candidate, choice));
                show.rest();
                installed??;
            }
        }
        Ok(())
    }
}

/// Checks that the file is still the same as when `skills.lock` was written.
pub(super) fn same(locked: &LockedSkill, digest: &str, signer: Option<&str>) -> Result<(), SkillError> {
    let refuse = |code: ErrorCode, why: String| Err(SkillError::new(&locked.name, Blame::Policy, code, why));
    if digest != locked.digest {
        let why = format!(
            "{} is another one by now: its SHA-256 is {digest}, and {} is wanted",
            locked.source, locked.digest
        );
        return refuse(ErrorCode::OtherDigest, why);
    }
    if locked.signer.is_some() && signer != locked.signer.as_deref() {
        let key = locked.signer.as_deref().unwrap_or_default();
        let id = PublisherKey::read(key).map_or_else(|_| key.to_owned(), |key| key.id.to_string());
        let why = format!(
            "it is to be signed by {id}, and no signature of that key counts here; `kiso skill trust add {key}` trusts it"
        );
        return refuse(ErrorCode::OtherPublisher, why);
    }
    Ok(())
}

fn tell(shared: &Shared, name: &str, what: &str, why: &str) {
    if shared.json {
        outln!("{}", json!({ "type": "sync", "skill": name, "status": what, "why": (!why.is_empty()).then_some(why) }));
    } else {
        let why = if why.is_empty() { String::new() } else { format!(": {why}") };
        outln!("{what} {}{}", printable_line(name), printable_line(&why));
    }
}
