//! `kiso skill add`.

use super::open;
use super::push::RegistryArgs;
use crate::cli::listing::typed;
use crate::cli::show::{Show, printable, printable_line};
use crate::cli::{Exit, Failure, Shared, block_on};
use crate::skill::{GrantChoice, Skills};
use clap::ValueEnum;
use serde_json::json;
use std::io::{BufRead, IsTerminal};
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub struct AddArgs {
    /// The .wasm file, or oci://HOST/NAME:TAG; or an Agent Skill: a folder with a SKILL.md, or a .zip or .skill file of one
    file: PathBuf,
    #[command(flatten)]
    registry: RegistryArgs,
    /// Manifest to use instead of the one in the file or beside it
    #[arg(long, value_name = "KISO.TOML")]
    manifest: Option<PathBuf>,
    /// Name to install it under instead of its own
    #[arg(long)]
    name: Option<String>,
    /// Grant everything it asks for (or imports, without a manifest), or nothing, not even /work [default: ask]
    #[arg(long, value_name = "all|none")]
    grant: Option<GrantAnswer>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum GrantAnswer {
    All,
    None,
}

impl From<GrantAnswer> for GrantChoice {
    fn from(grant: GrantAnswer) -> GrantChoice {
        match grant {
            GrantAnswer::All => GrantChoice::All,
            GrantAnswer::None => GrantChoice::None,
        }
    }
}

impl AddArgs {
    pub fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let (opened, show) = open(shared)?;
        let skills = &opened.skills;
        if Skills::is_agent_skill(&self.file) {
            return self.add_agent_skill(skills, &show, shared.json);
        }
        let pulled = self.registry.pull(skills, &self.file, &show)?;
        let candidate = match &pulled {
            Some(_) if self.manifest.is_some() => {
                return Err(Failure::new(
                    Exit::Usage,
                    "what comes out of a registry has its manifest inside; leave --manifest out",
                ));
            }
            Some(pulled) => skills.examine_pulled(pulled, self.name.as_deref())?,
            None => skills.examine(&self.file, self.manifest.as_deref(), self.name.as_deref())?,
        };
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
        let choice = match self.grant {
            Some(grant) => grant.into(),
            None if candidate.beyond.is_empty() && candidate.doubt.is_none() => GrantChoice::Keep,
            None => ask(&candidate.question(), shared.json)?,
        };
        if let (Some(doubt), Some(_)) = (&candidate.doubt, self.grant) {
            show.line(&printable(doubt));
        }
        let installed = block_on(skills.install(candidate, choice));
        show.rest();
        let installed = installed??;
        let tools: Vec<&str> = installed.tools.iter().map(|t| t.name.as_str()).collect();
        if shared.json {
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
        Ok(Exit::Done)
    }
}

impl AddArgs {
    /// It asks for nothing and is granted nothing. That it is somebody else's than the one before is asked all the same: what it
    /// says is followed.
    fn add_agent_skill(&self, skills: &Skills, show: &Show, json: bool) -> Result<Exit, Failure> {
        if self.manifest.is_some() {
            return Err(Failure::new(Exit::Usage, "an Agent Skill has no kiso.toml; leave --manifest out"));
        }
        let candidate = skills.examine_agent_skill(&self.file, self.name.as_deref())?;
        for warning in candidate.skill.warnings.iter().chain(&candidate.signature_warning) {
            show.line(&printable_line(&format!("warning: {warning}")));
        }
        match (&candidate.doubt, self.grant) {
            (Some(doubt), None) => {
                let question =
                    format!("{doubt}.\nIts text takes the place of the other one's, and models follow it.\n");
                ask(&question, json)?;
            }
            (Some(doubt), Some(_)) => show.line(&printable(doubt)),
            (None, _) if candidate.replaces => show.line(&format!("replaces {}", candidate.skill.name)),
            (None, _) => {}
        }
        let skill = skills.install_agent_skill(candidate)?;
        if json {
            outln!("{}", typed("loaded", &skill.line()));
        } else {
            let version = if skill.version().is_empty() { String::new() } else { format!(" {}", skill.version()) };
            let files = match skill.files.len() {
                1 => "1 file".to_owned(),
                many => format!("{many} files"),
            };
            outln!("loaded {}{} (Agent Skill, {files} in {})", skill.name, printable_line(&version), skill.place());
        }
        Ok(Exit::Done)
    }
}

/// Asks a person; where there is none, the answer has to be on the command line.
fn ask(question: &str, json: bool) -> Result<GrantChoice, Failure> {
    if json || !std::io::stdin().is_terminal() {
        let message = format!("{question}nothing was installed; add --grant all or --grant none");
        return Err(Failure::new(Exit::Policy, message));
    }
    err!("{}Allow all of this? [y]es, [n]o but install, [c]ancel: ", printable(question));
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).ok();
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(GrantChoice::All),
        "n" | "no" => Ok(GrantChoice::Basic),
        _ => {
            // After Ctrl-D the cursor still stands behind the question.
            if answer.is_empty() {
                errln!();
            }
            Err(Failure::new(Exit::Policy, "nothing was installed; the answer was neither y nor n"))
        }
    }
}
