//! `kiso export`: a session as JSON lines, for other programs and for people who leave.

use super::backup::absolute;
use super::{Exit, Failure, Shared};
use crate::home::{Home, SessionName};
use crate::secret::vault::Vault;
use crate::session;
use crate::store::{BackupError, Store, View};
use serde_json::{Value, json};
use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub struct Export {
    /// The session to export: its messages, runs, tasks and what models used, in clear
    session: String,
    /// File to write instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the file if it is there
    #[arg(long, requires = "output")]
    force: bool,
}

impl Export {
    pub fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let session = SessionName::parse(&self.session)?;
        let home = Home::open(&Home::locate(shared.home.as_deref())?)?;
        let (store, vault) = (Store::open(&home.store_path())?, Vault::open(&home));
        if !store.read_blocking(|view| view.has_session(&session))? {
            return Err(Failure::new(Exit::Usage, format!("there is no session {session}")));
        }
        let Some(output) = &self.output else {
            // One snapshot: what is said meanwhile is not in it, and nothing is in it by half.
            store.read_blocking(|view| {
                let print = &mut |line: Value| {
                    outln!("{line}");
                    Ok(())
                };
                Ok(session_lines(view, &vault, &session, print))
            })??;
            return Ok(Exit::Done);
        };
        let path = absolute(output)?;
        let failed = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => BackupError::Exists { path: path.clone() }.into(),
            _ => Failure::new(Exit::Failed, format!("{} cannot be written: {error}", path.display())),
        };
        let mut open = OpenOptions::new();
        open.write(true).create_new(!self.force).create(true).truncate(true).mode(0o600);
        let mut file = BufWriter::new(open.open(&path).map_err(failed)?);
        let written = store.read_blocking(|view| {
            let write = &mut |line: Value| writeln!(file, "{line}").map_err(failed);
            Ok(session_lines(view, &vault, &session, write))
        });
        let written =
            written.map_err(Failure::from).and_then(|written| written).and_then(|()| finish(file).map_err(failed));
        if written.is_err() {
            // Half of a session is worth less than the knowledge that there is none.
            let _ = fs::remove_file(&path);
        }
        written?;
        if shared.json {
            outln!("{}", json!({ "type": "exported", "session": session, "file": path }));
        } else {
            outln!("{}", path.display());
        }
        Ok(Exit::Done)
    }
}

fn finish(file: BufWriter<File>) -> std::io::Result<()> {
    file.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_all()
}

type Print<'a> = &'a mut dyn FnMut(Value) -> Result<(), Failure>;

fn session_lines(view: &View<'_>, vault: &Vault, session: &SessionName, print: Print<'_>) -> Result<(), Failure> {
    let mut export = session::export::Export::new(session);
    while let Some(lines) = export.next(view, vault)? {
        lines.into_iter().try_for_each(&mut *print)?;
    }
    Ok(())
}
