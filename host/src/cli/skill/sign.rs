//! `kiso skill statement` and `kiso skill sign`: a publisher's signature for a skill.

use super::open;
use crate::cli::show::printable_line;
use crate::cli::{Exit, Failure, Shared};
use kiso_sandbox::skill::signature::{MAX_FILE, SecretKey, SignatureError};
use kiso_sandbox::skill::signature_of;
use serde_json::json;
use std::io::Read;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
pub(crate) struct StatementArgs {
    /// The .wasm file, or the folder or archive of an Agent Skill
    file: PathBuf,
}

impl StatementArgs {
    pub(crate) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let (opened, _) = open(shared)?;
        let statement = opened.skills.statement(&self.file)?;
        if shared.json {
            outln!("{}", json!({ "type": "statement", "skill": statement.name, "text": statement.to_string() }));
        } else {
            out!("{statement}");
        }
        Ok(Exit::Done)
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct SignArgs {
    /// The .wasm file, or the folder or archive of an Agent Skill
    file: PathBuf,
    /// The secret key: a file of `kiso skill trust new`, or of `minisign -G -W`
    #[arg(long, value_name = "KEY")]
    key: PathBuf,
    /// Where to write the signature [default: the file's name with .minisig]
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl SignArgs {
    pub(crate) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let (opened, _) = open(shared)?;
        let text = read(&self.key)?;
        let key = SecretKey::read(&text)
            .map_err(|error| Failure::new(Exit::Usage, format!("{}: {error}", self.key.display())))?;
        let statement = opened.skills.statement(&self.file)?;
        let out = self.out.clone().unwrap_or_else(|| signature_of(&self.file));
        std::fs::write(&out, key.sign(&statement))
            .map_err(|error| Failure::new(Exit::Failed, format!("cannot write {}: {error}", out.display())))?;
        let id = key.public().id;
        if shared.json {
            outln!("{}", json!({ "type": "signed", "skill": statement.name, "file": out, "key": id.to_string() }));
        } else {
            outln!(
                "signed {} by {id}: {}",
                printable_line(&statement.name),
                printable_line(&out.display().to_string())
            );
        }
        Ok(Exit::Done)
    }
}

/// Returns the text of a key file.
pub(in crate::cli) fn read(path: &Path) -> Result<String, Failure> {
    let mut text = String::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(MAX_FILE).read_to_string(&mut text));
    read.map_err(|error| Failure::new(Exit::Usage, format!("cannot read {}: {error}", path.display())))?;
    Ok(text)
}

impl From<SignatureError> for Failure {
    fn from(error: SignatureError) -> Self {
        Failure::new(Exit::Usage, error.to_string())
    }
}
