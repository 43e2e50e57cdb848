//! `kiso skill`: everything about skills, one file per command.

mod add;
mod audit;
mod build;
mod grant;
mod index;
mod info;
mod installing;
mod list;
mod mirror;
mod new;
mod pack;
mod package;
mod package_build;
mod push;
mod question;
mod remove;
mod run;
mod search;
mod sign;
mod sync;
mod test;
mod trust;
mod update;

pub(super) use sign::read as read_key;

use super::listing::typed;
use super::show::{Show, printable, printable_line};
use super::{Exit, Failure, Opened, Shared};
use clap::Subcommand;
use kiso_base::home::SessionName;
use kiso_plan::report::size;
use kiso_sandbox::skill::CallEnd;
use std::path::Path;
use std::sync::Arc;

#[derive(Debug, Subcommand)]
pub(super) enum SkillCommand {
    /// Install a .wasm file (a kiso skill, a WASI command, plain functions, or a WASI preview 1 module), an Agent Skill, or a package such as python
    Add(add::AddArgs),
    /// List all skills
    List(list::ListArgs),
    /// Show what a skill takes, needs and was granted
    Info(info::InfoArgs),
    /// Show which permissions a skill has used, and the smallest grant that would have sufficed
    Audit(audit::AuditArgs),
    /// Call a skill directly
    Run(run::CallArgs),
    /// Show or change what a skill may do
    Grant(grant::GrantArgs),
    /// Remove an installed skill and its grant
    Remove(remove::RemoveArgs),
    /// Write a new skill project that builds
    New(new::NewArgs),
    /// Build the skill project in a directory
    Build(build::BuildArgs),
    /// Build a skill project and call it in the real sandbox, without installing it
    Test(test::TestArgs),
    /// Put a kiso.toml into a .wasm file, or a package folder into a .zip file
    Pack(pack::PackArgs),
    /// Put a component or an Agent Skill into an OCI registry
    Push(push::PushArgs),
    /// Print the text that a skill's signature signs
    Statement(sign::StatementArgs),
    /// Search the packages of kiso and the indexes of config.toml, or the tags of a registry
    Search(search::SearchArgs),
    /// Write a signed index of a folder of skills and packages, for `kiso skill search` and `add` in other homes
    Index(index::IndexArgs),
    /// Save the sources of this home's skills and packages in a folder, for homes without network
    Mirror(mirror::MirrorArgs),
    /// Show which skills have another version at their source
    Outdated(update::OutdatedArgs),
    /// Update skills to the version at their source
    Update(update::UpdateArgs),
    /// Sign a skill with a key of minisign
    Sign(sign::SignArgs),
    /// Choose whose skill signatures to trust
    #[command(subcommand)]
    Trust(trust::TrustCommand),
    /// Install the skills in the skills.lock of another home, by their digests
    Sync(sync::SyncArgs),
}

impl SkillCommand {
    pub(super) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        match self {
            Self::Add(command) => command.execute(shared),
            Self::List(command) => command.execute(shared),
            Self::Info(command) => command.execute(shared),
            Self::Audit(command) => command.execute(shared),
            Self::Run(command) => command.execute(shared),
            Self::Grant(command) => command.execute(shared),
            Self::Remove(command) => command.execute(shared),
            Self::New(command) => command.execute(shared),
            Self::Build(command) => command.execute(shared),
            Self::Test(command) => command.execute(shared),
            Self::Pack(command) => command.execute(shared),
            Self::Push(command) => command.execute(shared),
            Self::Statement(command) => command.execute(shared),
            Self::Search(command) => command.execute(shared),
            Self::Index(command) => command.execute(shared),
            Self::Mirror(command) => command.execute(shared),
            Self::Outdated(command) => command.execute(shared),
            Self::Update(command) => command.execute(shared),
            Self::Sign(command) => command.execute(shared),
            Self::Trust(command) => command.execute(shared),
            Self::Sync(command) => command.execute(shared),
        }
    }
}

/// Opens the home, with progress on standard error.
fn open(shared: &Shared) -> Result<(Opened, Arc<Show>), Failure> {
    let show = Arc::new(Show::new(shared.json));
    Ok((Opened::new(shared, show.clone())?, show))
}

/// Prints the result of a call: its text, or its error.
fn print_ended(
    ended: CallEnd,
    tool: &str,
    session: &SessionName,
    work: &Path,
    show: &Show,
    json: bool,
) -> Result<Exit, Failure> {
    show.rest();
    for line in &ended.log {
        if matches!(line.level.as_str(), "error" | "warn") {
            show.line(&format!("{}: {}", line.level, printable_line(&line.message)));
        }
    }
    if json {
        outln!("{}", typed("call", &ended.shown(tool, session, Some(work))));
    }
    match ended.result {
        Err(error) => {
            let failure = Failure::from(error);
            // With --json, the error is part of the object.
            if json { Ok(failure.exit) } else { Err(failure) }
        }
        Ok(_) if json => Ok(Exit::Done),
        Ok(answer) => {
            let text = printable(&answer.text);
            out!("{text}");
            if !text.ends_with('\n') {
                outln!();
            }
            for file in &answer.files {
                show.line(&show.dim(&format!(
                    "{} ({})",
                    printable_line(&work.join(&file.path).display().to_string()),
                    size(file.bytes)
                )));
            }
            Ok(Exit::Done)
        }
    }
}
