//! `kiso session import`: creates a session from the output of `kiso session export`.

use crate::cli::{Exit, Failure, Shared, environment_secrets};
use kiso_agent::session::import::{self, SessionImportError};
use kiso_base::home::{Home, SessionName};
use kiso_store::secret::found;
use kiso_store::secret::vault::Vault;
use kiso_store::store::Store;
use serde_json::json;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ImportArgs {
    /// File written by `kiso session export`, or - for standard input
    file: PathBuf,
    /// Give the session this name instead of its own
    #[arg(long = "as", value_name = "NAME")]
    name: Option<String>,
}

impl ImportArgs {
    pub(super) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let name = self.name.as_deref().map(SessionName::parse).transpose()?;
        let is_stdin = self.file == Path::new("-");
        let from = if is_stdin { "standard input".to_owned() } else { self.file.display().to_string() };
        let unread = |why: String| Failure::new(Exit::Failed, format!("{from} cannot be read: {why}"));
        let file: Box<dyn BufRead> = if is_stdin {
            Box::new(io::stdin().lock())
        } else {
            let file = File::open(&self.file).map_err(|error| unread(error.to_string()))?;
            if !file.metadata().is_ok_and(|about| about.is_file()) {
                return Err(unread("it is not a file; `-` reads standard input".to_owned()));
            }
            Box::new(BufReader::new(file))
        };
        let home = Home::open(&Home::locate(shared.home.as_deref())?)?;
        let (store, vault) = (Store::open(&home.store_path())?, Vault::open(&home));
        let secrets = environment_secrets();
        let clean = |text: &str| found::extract(&secrets.redact(text), &secrets).0;
        let imported = import::import(&store, &vault, file, name, &clean).map_err(|error| match error {
            SessionImportError::Store(error) => error.into(),
            SessionImportError::Line { line, why } => {
                Failure::new(Exit::Failed, format!("{from}:{line}: {why}; nothing was imported"))
            }
            SessionImportError::TooLarge(why) => {
                Failure::new(Exit::Limit, format!("{from}: {why}, the most that can be imported; nothing was imported"))
            }
            SessionImportError::Taken(session) => Failure::new(
                Exit::Usage,
                format!(
                    "a session named {session} already exists: give another name with --as, or delete it with \
                     `kiso session delete {session}`; nothing was imported"
                ),
            ),
            SessionImportError::Io(error) => unread(error.to_string()),
        })?;
        home.create_session(&imported.session)?;
        if shared.json {
            outln!(
                "{}",
                json!({ "type": "imported", "session": imported.session, "messages": imported.messages, "runs": imported.runs })
            );
        } else {
            outln!("session {}: {} messages, {} runs", imported.session, imported.messages, imported.runs);
        }
        store.close();
        Ok(Exit::Done)
    }
}
