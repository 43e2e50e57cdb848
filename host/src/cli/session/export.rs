//! `kiso session export`: a session as JSON lines, for other programs and for users who leave.

use crate::cli::backup::absolute;
use crate::cli::{Exit, Failure, Shared, block_on, environment_secrets};
use kiso_agent::session::export::Export;
use kiso_base::home::{Home, SessionName};
use kiso_store::secret::vault::Vault;
use kiso_store::store::{BackupError, Store, View, part_of, place};
use serde_json::{Value, json};
use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ExportArgs {
    /// The session to export: its messages, runs, tasks and model usage, unencrypted
    session: String,
    /// File to write instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long, requires = "output")]
    force: bool,
}

impl ExportArgs {
    pub(super) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let session = SessionName::parse(&self.session)?;
        let home = Home::open(&Home::locate(shared.home.as_deref())?)?;
        let (store, vault) = (Store::open(&home.store_path())?, Vault::open(&home));
        if !store.read_blocking(|view| view.has_session(&session))? {
            return Err(Failure::new(Exit::Usage, format!("there is no session {session}")));
        }
        let mut secrets = environment_secrets();
        // With another key, sealed data cannot be read, so it is not part of the export either.
        for (name, value) in block_on(vault.load(&store, &session))?.unwrap_or_default() {
            secrets.add_session(name, value);
        }
        let Some(output) = &self.output else {
            crate::cli::out::is_json();
            // One snapshot: messages that arrive meanwhile are not included, and nothing is incomplete.
            store.read_blocking(|view| {
                let print = &mut |line: Value| {
                    outln!("{line}");
                    Ok(())
                };
                Ok(session_lines(view, &vault, Export::new(&session, secrets), print))
            })??;
            return Ok(Exit::Done);
        };
        let path = absolute(output)?;
        match fs::metadata(&path) {
            Ok(_) if !self.force => return Err(BackupError::Exists { path }.into()),
            Ok(found) if !found.is_file() => {
                return Err(Failure::new(Exit::Usage, format!("{} is not a file", path.display())));
            }
            _ => {}
        }
        let export = Export::new(&session, secrets);
        // The old file stays until the new one is complete, and others must not be able to read it.
        let part = part_of(&path);
        let written =
            write(&part, |print| store.read_blocking(|view| Ok(session_lines(view, &vault, export, print)))?);
        let placed = written.and_then(|()| Ok(place(&part, &path, self.force)?));
        if placed.is_err() {
            let _ = fs::remove_file(&part);
        }
        placed?;
        if shared.json {
            outln!("{}", json!({ "type": "exported", "session": session, "file": path }));
        } else {
            outln!("{}", path.display());
        }
        Ok(Exit::Done)
    }
}

/// Writes the lines that `lines` prints to a private file.
fn write(path: &Path, lines: impl FnOnce(Print<'_>) -> Result<(), Failure>) -> Result<(), Failure> {
    let failed =
        |error: io::Error| Failure::new(Exit::Failed, format!("{} cannot be written: {error}", path.display()));
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path).map_err(failed)?;
    let mut file = BufWriter::new(file);
    lines(&mut |line| writeln!(file, "{line}").map_err(failed))?;
    file.into_inner().map_err(io::IntoInnerError::into_error).and_then(|file| file.sync_all()).map_err(failed)
}

type Print<'a> = &'a mut dyn FnMut(Value) -> Result<(), Failure>;

fn session_lines(view: &View<'_>, vault: &Vault, mut export: Export, print: Print<'_>) -> Result<(), Failure> {
    while let Some(lines) = export.next(view, vault)? {
        lines.into_iter().try_for_each(&mut *print)?;
    }
    Ok(())
}
