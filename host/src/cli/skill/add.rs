//! `kiso skill add`.

use super::open;
use crate::cli::show::{printable, printable_line};
use crate::cli::{Exit, Failure, Shared, block_on};
use crate::skill::GrantChoice;
use clap::ValueEnum;
use serde_json::json;
use std::io::{BufRead, IsTerminal};
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub struct AddArgs {
    /// The .wasm file
    file: PathBuf,
    /// Manifest to use instead of the one in the file or beside it
    #[arg(long, value_name = "KISO.TOML")]
    manifest: Option<PathBuf>,
    /// Name to install it under instead of its own
    #[arg(long)]
    name: Option<String>,
    /// Grant everything it asks for (or imports, without a manifest), or nothing, not even /work [default: ask]
    #[arg(long, value_name = "all|none")]
    grant: Option<Grant>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Grant {
    All,
    None,
}

impl AddArgs {
    pub fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let (opened, show) = open(shared)?;
        let skills = &opened.skills;
        let candidate = skills.examine(&self.file, self.manifest.as_deref(), self.name.as_deref())?;
        let (name, version) = (candidate.name().clone(), candidate.manifest().version.clone());
        if candidate.derived {
            show.line("the file contains no kiso.toml; name and arguments come from the component");
        }
        if let Some(old) = &candidate.replaces {
            show.line(&printable_line(&format!("replaces {name} {old}")));
        }
        let choice = match self.grant {
            Some(Grant::All) => GrantChoice::All,
            Some(Grant::None) => GrantChoice::None,
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
