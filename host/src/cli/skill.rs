//! `kiso skill`: everything about skills, one file per command.

mod add;
mod build;
mod grant;
mod info;
mod list;
mod new;
mod pack;
mod remove;
mod run;
mod test;

use super::show::{Show, printable};
use super::{Exit, Failure, Opened, Shared};
use crate::graph::report::size;
use crate::home::SessionName;
use crate::skill::Ended;
use clap::Subcommand;
use serde_json::json;
use std::path::Path;
use std::sync::Arc;

#[derive(Debug, Subcommand)]
pub enum Skill {
    /// Install a .wasm file: a kiso skill, a WASI command, plain functions, or a WASI preview 1 module
    Add(add::Add),
    /// List all skills
    List(list::List),
    /// Show what a skill takes, needs and was granted
    Info(info::Info),
    /// Call a skill directly
    Run(run::Run),
    /// Show or change what a skill may do
    Grant(grant::GrantSkill),
    /// Remove an installed skill and its grant
    Remove(remove::Remove),
    /// Write a new skill project that builds
    New(new::New),
    /// Build the skill project in a directory
    Build(build::Build),
    /// Build a skill project and call it in the real sandbox, without installing it
    Test(test::Test),
    /// Put a kiso.toml into a .wasm file
    Pack(pack::Pack),
}

impl Skill {
    pub fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        match self {
            Self::Add(command) => command.execute(shared),
            Self::List(command) => command.execute(shared),
            Self::Info(command) => command.execute(shared),
            Self::Run(command) => command.execute(shared),
            Self::Grant(command) => command.execute(shared),
            Self::Remove(command) => command.execute(shared),
            Self::New(command) => command.execute(shared),
            Self::Build(command) => command.execute(shared),
            Self::Test(command) => command.execute(shared),
            Self::Pack(command) => command.execute(shared),
        }
    }
}

/// Opens the home with a display on standard error.
fn open(shared: &Shared) -> Result<(Opened, Arc<Show>), Failure> {
    let show = Arc::new(Show::new(shared.json));
    Ok((Opened::new(shared, show.clone())?, show))
}

/// Prints how a call ended: its text, or its error.
fn print_ended(
    ended: Ended,
    tool: &str,
    session: &SessionName,
    work: &Path,
    show: &Show,
    json: bool,
) -> Result<Exit, Failure> {
    show.rest();
    for line in &ended.log {
        if matches!(line.level.as_str(), "error" | "warn") {
            show.line(&format!("{}: {}", line.level, printable(&line.message)));
        }
    }
    let error = ended.result.as_ref().err();
    if json {
        let answer = ended.result.as_ref().ok();
        let files = answer.map(|a| &a.files).into_iter().flatten();
        let files: Vec<_> = files.map(|f| json!({ "path": f.path, "host_path": work.join(&f.path), "media_type": f.media_type, "bytes": f.bytes, "title": f.title, "link": f.link })).collect();
        let object = json!({
            "type": "call", "tool": tool, "session": session.to_string(), "ok": error.is_none(),
            "text": answer.map(|a| &a.text), "data": answer.and_then(|a| a.data.as_ref()), "files": files,
            "error": error, "log": ended.log, "stdout": ended.stdout, "stderr": ended.stderr, "used": ended.used,
        });
        outln!("{object}");
    }
    match ended.result {
        Err(error) => {
            let failure = Failure::from(error);
            // With --json the error stands in the object.
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
                    printable(&work.join(&file.path).display().to_string()),
                    size(file.bytes)
                )));
            }
            Ok(Exit::Done)
        }
    }
}
