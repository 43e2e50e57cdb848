//! `kiso skill index`: creates a signed index, which can be hosted anywhere.

use super::open;
use super::sign::read;
use crate::cli::show::printable_line;
use crate::cli::{Exit, Failure, Shared};
use kiso_base::home::SkillName;
use kiso_sandbox::skill::IndexSettings;
use kiso_sandbox::skill::signature::SecretKey;
use serde_json::json;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct IndexArgs {
    /// The folder with .wasm, .zip and .skill files, and the signatures of their publishers beside them
    folder: PathBuf,
    /// The secret key that signs the index: a file of `kiso skill trust new`, or of `minisign -G -W`
    #[arg(long, value_name = "KEY")]
    key: PathBuf,
    /// The name of the index; another index with the same name and key is a version of it
    #[arg(long, default_value = "skills")]
    name: String,
    /// Days until it expires; create it again before then
    #[arg(long, default_value_t = 90, value_parser = clap::value_parser!(u32).range(1..=3_650))]
    days: u32,
}

impl IndexArgs {
    pub(crate) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let (opened, _) = open(shared)?;
        let key = SecretKey::read(&read(&self.key)?)
            .map_err(|error| Failure::new(Exit::Usage, format!("{}: {error}", self.key.display())))?;
        let settings = IndexSettings { name: SkillName::parse(&self.name)?, days: self.days };
        let made = opened.skills.make_index(&self.folder, &settings, &key)?;
        let (index, public) = (&made.index, key.public());
        if shared.json {
            let object = json!({
                "type": "index", "file": made.file, "name": index.name, "serial": index.serial, "expires": index.expires,
                "skills": index.skills.len(), "key": public.text,
            });
            outln!("{object}");
            return Ok(Exit::Done);
        }
        let many =
            if index.skills.len() == 1 { "1 skill".to_owned() } else { format!("{} skills", index.skills.len()) };
        outln!(
            "{}: {many}, number {}, until {}",
            printable_line(&made.file.display().to_string()),
            index.serial,
            index.expires
        );
        errln!(
            "host the folder, and name it in config.toml: [skills] index = [\"https://HOST/index.json#{}\"]",
            public.text
        );
        Ok(Exit::Done)
    }
}
