//! Shared by `kiso skill add`, `update` and `sync`: examines a file that was named or fetched, and asks before it is
//! installed.

use super::package::{self, PackageInstall};
use super::question::{choose, confirm};
use crate::cli::listing::typed;
use crate::cli::show::{Show, printable, printable_line};
use crate::cli::{Exit, Failure, Opened, block_on};
use clap::ValueEnum;
use kiso_sandbox::package::PackageFolder;
use kiso_sandbox::skill::{
    AgentCandidate, FetchedFile, GrantChoice, InstallCandidate, PackageCandidate, Provenance, Skills, effect_sentences,
    signature_of,
};
use serde_json::json;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum GrantAnswer {
    All,
    None,
    /// The same as before.
    Keep,
}

impl From<GrantAnswer> for GrantChoice {
    fn from(grant: GrantAnswer) -> GrantChoice {
        match grant {
            GrantAnswer::All => GrantChoice::All,
            GrantAnswer::None => GrantChoice::None,
            GrantAnswer::Keep => GrantChoice::KeepShown,
        }
    }
}

/// The location of a skill's file.
pub(super) enum SkillFile {
    Named(PathBuf),
    Fetched(FetchedFile),
}

impl SkillFile {
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Named(path) => path,
            Self::Fetched(fetched) => &fetched.file,
        }
    }

    /// Returns the signature that was fetched with the file, or lies beside it.
    pub(super) fn signature(&self) -> Option<String> {
        match self {
            Self::Named(path) => std::fs::read_to_string(signature_of(path)).ok(),
            Self::Fetched(fetched) => fetched.signature.clone(),
        }
    }
}

/// The content of the file: a component, an Agent Skill, or a package.
pub(super) enum SkillCandidate {
    Component(Box<InstallCandidate>),
    Agent(Box<AgentCandidate>),
    Package(Box<PackageCandidate>),
}

impl SkillCandidate {
    /// Reads the file. Changes nothing.
    pub(super) fn examine(
        skills: &Skills,
        from: &SkillFile,
        manifest: Option<&Path>,
        name: Option<&str>,
    ) -> Result<Self, Failure> {
        if PackageFolder::is_one(from.path()) {
            if manifest.is_some() || name.is_some_and(|name| name != package_name(from.path())) {
                let message = "a package has its manifest and its name inside; leave --manifest and --name out";
                return Err(Failure::new(Exit::Usage, message));
            }
            let fetched = match from {
                SkillFile::Named(_) => None,
                SkillFile::Fetched(fetched) => Some(fetched),
            };
            return Ok(Self::Package(skills.examine_package_file(from.path(), fetched)?.into()));
        }
        if Skills::is_agent_skill(from.path()) {
            if manifest.is_some() {
                return Err(Failure::new(Exit::Usage, "an Agent Skill has no kiso.toml; leave --manifest out"));
            }
            let candidate = match from {
                SkillFile::Named(path) => skills.examine_agent_skill(path, name)?,
                SkillFile::Fetched(fetched) => skills.examine_fetched_agent_skill(fetched, name)?,
            };
            return Ok(Self::Agent(candidate.into()));
        }
        let candidate = match from {
            SkillFile::Named(path) => skills.examine(path, manifest, name)?,
            SkillFile::Fetched(_) if manifest.is_some() => {
                let message = "what is fetched has its manifest inside; leave --manifest out";
                return Err(Failure::new(Exit::Usage, message));
            }
            SkillFile::Fetched(fetched) => skills.examine_fetched(fetched, name)?,
        };
        Ok(Self::Component(candidate.into()))
    }

    pub(super) fn version(&self) -> &str {
        match self {
            Self::Component(candidate) => &candidate.manifest().version,
            Self::Agent(candidate) => candidate.skill.version(),
            Self::Package(candidate) => &candidate.folder.package.version,
        }
    }

    /// Returns its source, its digest, and its signer.
    pub(super) fn provenance(&self) -> &Provenance {
        match self {
            Self::Component(candidate) => candidate.provenance(),
            Self::Agent(candidate) => &candidate.skill.provenance,
            Self::Package(candidate) => &candidate.origin.provenance,
        }
    }

    /// Installs it. Asks before it grants more than before. `from` has files and addresses for the downloads of a package.
    pub(super) fn install(
        self,
        opened: &Opened,
        from: &[String],
        grant: Option<GrantAnswer>,
        show: &Show,
        json: bool,
    ) -> Result<(), Failure> {
        let skills = &opened.skills;
        match self {
            Self::Package(candidate) => {
                let PackageCandidate { folder, origin } = *candidate;
                let how = PackageInstall { from, grant: grant.map(Into::into), json };
                package::add(opened, show, &folder, &origin, &how).map(drop)
            }
            Self::Component(candidate) => install_component(skills, *candidate, grant, show, json),
            Self::Agent(candidate) => install_agent_skill(skills, *candidate, grant, show, json),
        }
    }
}

/// Returns the name in a package's manifest; empty if the manifest cannot be read, which the next step reports.
fn package_name(path: &Path) -> String {
    PackageFolder::read(path).map(|(folder, _)| folder.package.name.clone()).unwrap_or_default()
}

fn install_component(
    skills: &Skills,
    mut candidate: InstallCandidate,
    grant: Option<GrantAnswer>,
    show: &Show,
    as_json: bool,
) -> Result<(), Failure> {
    block_on(skills.complete_change(&mut candidate))??;
    if let Some(warning) = &candidate.signature_warning {
        show.line(&printable_line(&format!("warning: {warning}")));
    }
    let (name, version) = (candidate.name().clone(), candidate.manifest().version.clone());
    if candidate.derived {
        show.line("the file contains no kiso.toml; name and arguments come from the component");
    }
    if let Some(old) = &candidate.replaces {
        show.line(&printable_line(&format!("replaces {name} {old}")));
    }
    for effect in effect_sentences(candidate.manifest()) {
        show.line(&printable_line(&format!("says of its tools, and kiso goes by it: {effect}")));
    }
    let choice = choose(&candidate, grant.map(Into::into), show, as_json)?;
    let installed = block_on(skills.install(candidate, choice));
    show.rest();
    let installed = installed??;
    let tools: Vec<&str> = installed.tools.iter().map(|t| t.name.as_str()).collect();
    if as_json {
        let object = json!({
            "type": "loaded", "skill": name.as_str(), "version": version, "shape": installed.shape,
            "wrapped": installed.wrapped, "digest": installed.digest(), "tools": tools,
        });
        outln!("{object}");
    } else {
        let wrapped = if installed.wrapped { ", wrapped from WASI preview 1" } else { "" };
        let several = if tools.len() > 1 { format!("; tools: {}", tools.join(", ")) } else { String::new() };
        let version = printable_line(&version);
        outln!("loaded {name} {version} ({}{wrapped}){}", installed.shape.describe(), printable_line(&several));
    }
    Ok(())
}

/// Installs an Agent Skill, which asks for nothing and is granted nothing. A change of its publisher needs confirmation
/// anyway, because models follow its text.
fn install_agent_skill(
    skills: &Skills,
    candidate: AgentCandidate,
    grant: Option<GrantAnswer>,
    show: &Show,
    as_json: bool,
) -> Result<(), Failure> {
    for warning in candidate.skill.warnings.iter().chain(&candidate.signature_warning) {
        show.line(&printable_line(&format!("warning: {warning}")));
    }
    let mut question = candidate.doubt.as_ref().map_or_else(String::new, |doubt| {
        format!("{doubt}.\nIts text takes the place of the other one's, and models follow it.\n")
    });
    if !candidate.change.is_empty() {
        question += &format!("{} changes what models are told:\n{}", candidate.skill.name, candidate.change);
    }
    match grant {
        _ if question.is_empty() && candidate.replaces => show.line(&format!("replaces {}", candidate.skill.name)),
        _ if question.is_empty() => {}
        None => confirm(&question, as_json)?,
        Some(_) => show.line(printable(&question).trim_end()),
    }
    let skill = skills.install_agent_skill(candidate)?;
    if as_json {
        outln!("{}", typed("loaded", &skill.line()));
    } else {
        let version = if skill.version().is_empty() { String::new() } else { format!(" {}", skill.version()) };
        let files = match skill.files.len() {
            1 => "1 file".to_owned(),
            many => format!("{many} files"),
        };
        outln!("loaded {}{} (Agent Skill, {files} in {})", skill.name, printable_line(&version), skill.place());
    }
    Ok(())
}
