//! `kiso skill run`.

use super::{open, print_ended};
use crate::cli::{Exit, Failure, Shared, block_on, environment_secrets, pairs, session};
use crate::json;
use crate::skill::{Caller, from_words};
use serde_json::Value;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub struct CallArgs {
    /// The skill, or SKILL.FUNCTION for one of several functions
    name: String,
    /// Arguments
    #[arg(value_name = "KEY=VALUE")]
    words: Vec<String>,
    /// All arguments as one JSON object
    #[arg(long, conflicts_with = "words", value_name = "JSON")]
    args: Option<String>,
    /// The session whose /work it sees; created if it does not exist
    #[arg(long, short, value_name = "NAME")]
    session: Option<String>,
    /// Copy this file into the session's /work first; repeat for several
    #[arg(long, short, value_name = "PATH")]
    file: Vec<PathBuf>,
}

impl CallArgs {
    pub fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let session = session(self.session.as_deref())?;
        let (opened, show) = open(shared)?;
        let (skill, tool) = opened.skills.find_tool(&self.name)?;
        let args = arguments(self.args.as_deref(), &self.words, skill.tools[tool].args.schema())?;
        let _lock = opened.home.lock_session(&session)?;
        opened.copy_in(&session, &self.file, &show)?;
        show.busy(&self.name);
        let secrets = environment_secrets();
        let caller = Caller { session: &session, locale: "en", secrets: &secrets };
        let ended = block_on(opened.skills.call(&self.name, &args, caller))?;
        print_ended(ended, &self.name, &session, &opened.home.work_dir(&session), &show, shared.json)
    }
}

/// The arguments of a command line: JSON, or words read as the schema says.
pub(super) fn arguments(json: Option<&str>, words: &[String], schema: &Value) -> Result<Value, Failure> {
    match json {
        Some(text) => {
            json::parse(text.as_bytes()).map_err(|e| Failure::new(Exit::Usage, format!("--args is not JSON: {e}")))
        }
        None => Ok(from_words(schema, &pairs(words)?)),
    }
}
