//! `kiso export`: a session as JSON lines, for other programs and for people who leave.

use super::backup::absolute;
use super::{Exit, Failure, Shared};
use crate::drive::SEALED_RUN;
use crate::home::{Home, SessionName};
use crate::secret::vault::Vault;
use crate::store::{BackupError, RunId, Store, View};
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

/// Rows that are in memory at once.
const PAGE: u32 = 128;

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

/// The last line says how many there were, so that a file that was cut off can be told from a whole one.
fn session_lines(view: &View<'_>, vault: &Vault, session: &SessionName, print: Print<'_>) -> Result<(), Failure> {
    // What no model has looked at for secrets yet is sealed; here is the key.
    let open =
        |text: &str| vault.open_text(SEALED_RUN, text).map_or_else(|e| format!("[{e}]"), |text| text.into_owned());
    let summary = view.summary(session)?.map(|summary| summary.text);
    print(json!({
        "type": "session", "session": session, "title": view.title(session)?, "model": view.session_model(session)?,
        "summary": summary,
    }))?;
    let (mut messages, mut last) = (0_u64, 0);
    loop {
        let page = view.messages_after(session, last, PAGE)?;
        let Some(end) = page.last().map(|message| message.id) else { break };
        for message in page {
            print(json!({
                "type": "message", "id": message.id, "role": message.role.as_str(), "at_ms": message.at_ms,
                "run": message.run.map(|run| run.to_string()), "tags": message.tags, "text": open(&message.text),
            }))?;
            messages += 1;
        }
        last = end;
    }
    let (mut runs, mut last) = (0_u64, None);
    loop {
        let page = view.runs_after(session, last.as_ref(), PAGE)?;
        let Some(end) = page.last().map(|run| run.id.clone()) else { break };
        for run in page {
            let outcome: Option<Value> = run.outcome.and_then(|outcome| serde_json::from_str(&outcome).ok());
            print(json!({
                "type": "run", "run": run.id.to_string(), "session": session, "status": run.status.as_str(),
                "started_ms": run.started_ms, "ended_ms": run.ended_ms, "message": open(&run.message), "outcome": outcome,
            }))?;
            run_lines(view, &run.id, print)?;
            runs += 1;
        }
        last = Some(end);
    }
    print(json!({ "type": "end", "messages": messages, "runs": runs }))
}

fn run_lines(view: &View<'_>, run: &RunId, print: Print<'_>) -> Result<(), Failure> {
    for task in view.tasks_of(run)? {
        print(json!({
            "type": "task", "run": run.to_string(), "id": task.id, "position": task.position, "kind": task.kind.name(),
            "label": task.label, "task": serde_json::from_str::<Value>(&task.task).unwrap_or_default(),
            "status": task.status.as_str(), "output": task.output, "error": task.error,
            "started_ms": task.started_ms, "ended_ms": task.ended_ms,
        }))?;
    }
    for line in view.usage_of(run)? {
        print(json!({
            "type": "usage", "run": run.to_string(), "at_ms": line.at_ms, "role": line.role, "model": line.model,
            "input_tokens": line.usage.input_tokens, "output_tokens": line.usage.output_tokens,
            "cost_micros": line.usage.cost_micros,
        }))?;
    }
    Ok(())
}
