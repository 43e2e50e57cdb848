//! `kiso files`: the files shared by all conversations, which tasks see at /shared.

use super::listing::confirm;
use super::show::{Show, printable_line};
use super::{Exit, Failure, Opened, Shared, block_on, session};
use clap::Subcommand;
use kiso_agent::drive::{SharedFailure, UndoFailure};
use kiso_base::clock::minute;
use kiso_base::home::SHARED;
use kiso_plan::plan::CallerScope;
use kiso_plan::report::{counted, size};
use kiso_sandbox::effect::overlay::{ShareError, SharedEdit, SharedEntry, SharedFiles};
use kiso_sandbox::skill::Quiet;
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER)]
pub(super) struct FilesArgs {
    /// Without one: list
    #[command(subcommand)]
    command: Option<FilesCommand>,
}

#[derive(Debug, Subcommand)]
enum FilesCommand {
    /// List the shared files
    List {
        /// Only what is in this directory
        #[arg(value_name = "PATH")]
        path: Option<PathBuf>,
    },
    /// Copy a shared file out, or print it
    Get {
        #[arg(value_name = "PATH")]
        path: PathBuf,
        /// A file or a directory to write to; without it, standard output
        #[arg(value_name = "TO")]
        to: Option<PathBuf>,
    },
    /// Copy files to the shared files
    Add {
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
        /// Put them into this directory of the shared files
        #[arg(long, value_name = "DIR")]
        to: Option<PathBuf>,
        /// Replace files that are there
        #[arg(long)]
        replace: bool,
        #[command(flatten)]
        session: SessionArg,
    },
    /// Delete shared files or directories
    Remove {
        #[arg(value_name = "PATH", required = true)]
        paths: Vec<PathBuf>,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
        #[command(flatten)]
        session: SessionArg,
    },
}

#[derive(Debug, clap::Args)]
struct SessionArg {
    /// The session whose `kiso undo` takes it back [default: default]
    #[arg(long, short, value_name = "NAME")]
    session: Option<String>,
}

const AFTER: &str = "\
Examples:
  kiso run 'put milk on my shopping list in /shared'
  kiso files                          list the shared files
  kiso files get shopping.txt         print one
  kiso files add report.pdf --to work
  kiso files remove shopping.txt
  kiso undo                           take the last change back

All conversations see these files at /shared, and what a task writes there is there for all of them when the task ends.";

/// Maximum bytes of a file that is printed.
const MAX_PRINTED: u64 = 16 << 20;

/// Maximum entries of one list.
const MAX_LISTED: usize = 10_000;

impl FilesArgs {
    pub(super) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let opened = Opened::new(shared, Arc::new(Quiet))?;
        match &self.command {
            None => list(&opened, None, shared.json),
            Some(FilesCommand::List { path }) => list(&opened, path.as_deref(), shared.json),
            Some(FilesCommand::Get { path, to }) => get(&opened, path, to.as_deref()),
            Some(FilesCommand::Add { files, to, replace, session }) => {
                // Checked before any file is copied.
                let edits =
                    files.iter().map(|file| put(file, to.as_deref(), *replace)).collect::<Result<Vec<_>, _>>()?;
                edit(&opened, session, edits, "added", shared.json)
            }
            Some(FilesCommand::Remove { paths, yes, session }) => {
                let found = SharedFiles::open(&opened.home).map_err(unreadable)?;
                for path in paths {
                    entry(&found, below(path))?;
                }
                confirm(&format!("Delete {}?", counted(paths.len() as u64, "shared path", "shared paths")), *yes)?;
                let edits = paths.iter().map(|path| SharedEdit::Remove { path: below(path).to_owned() }).collect();
                edit(&opened, session, edits, "removed", shared.json)
            }
        }
    }
}

/// Returns the path relative to `/shared`, whatever form it is given in.
fn below(path: &Path) -> &Path {
    path.strip_prefix(SHARED).unwrap_or(path)
}

fn list(opened: &Opened, path: Option<&Path>, json: bool) -> Result<Exit, Failure> {
    let files = SharedFiles::open(&opened.home).map_err(unreadable)?;
    let dir = path.map_or(Path::new(""), below);
    if !dir.as_os_str().is_empty() && !entry(&files, dir)?.is_dir {
        return Err(Failure::new(Exit::Usage, format!("{SHARED}/{} is a file", dir.display())));
    }
    let (entries, is_cut) = files.list(dir, true, MAX_LISTED).map_err(unreadable)?;
    let show = Show::new(json);
    for entry in entries.iter().filter(|entry| json || !entry.is_dir) {
        if json {
            outln!("{}", object(entry));
            continue;
        }
        let note =
            if entry.label.is_trusted() { String::new() } else { format!("  ({})", entry.label.integrity.words()) };
        let head = format!("{}  {:>9}", minute(entry.modified_ms), size(entry.bytes));
        outln!("{}  {}{}", show.dim(&head), printable_line(&entry.path.display().to_string()), show.dim(&note));
    }
    if is_cut {
        errln!("only the first {MAX_LISTED} are listed; name a directory to see what is in it");
    }
    if entries.is_empty() && !json {
        errln!("no shared files yet; tasks write them to {SHARED}, and `kiso files add` does");
    }
    Ok(Exit::Done)
}

fn object(entry: &SharedEntry) -> Value {
    json!({
        "type": "shared_file",
        "path": entry.path,
        "is_directory": entry.is_dir,
        "bytes": entry.bytes,
        "modified_ms": entry.modified_ms,
        "label": entry.label,
    })
}

fn get(opened: &Opened, path: &Path, to: Option<&Path>) -> Result<Exit, Failure> {
    let files = SharedFiles::open(&opened.home).map_err(unreadable)?;
    let path = below(path);
    if entry(&files, path)?.is_dir {
        return Err(Failure::new(Exit::Usage, format!("{SHARED}/{} is a directory", path.display())));
    }
    let mut from = files.open_file(path).map_err(unreadable)?;
    let Some(to) = to else {
        let mut bytes = Vec::new();
        from.take(MAX_PRINTED).read_to_end(&mut bytes).map_err(unreadable)?;
        let Ok(text) = String::from_utf8(bytes) else {
            let message =
                format!("{SHARED}/{} is not a text that can be printed; name a file to write it to", path.display());
            return Err(Failure::new(Exit::Usage, message));
        };
        match std::io::stdout().is_terminal() {
            true => outln!("{}", super::show::printable(&text)),
            false => out!("{text}"),
        }
        return Ok(Exit::Done);
    };
    let name = path.file_name().unwrap_or_default();
    let to = if to.is_dir() { to.join(name) } else { to.to_owned() };
    let written =
        OpenOptions::new().write(true).create_new(true).open(&to).and_then(|mut file| io::copy(&mut from, &mut file));
    written.map_err(|error| Failure::new(Exit::Failed, format!("{} cannot be written: {error}", to.display())))?;
    errln!("copied to {}", to.display());
    Ok(Exit::Done)
}

fn put(file: &Path, to: Option<&Path>, replaces: bool) -> Result<SharedEdit, Failure> {
    let wrong = |why: &dyn std::fmt::Display| Failure::new(Exit::Usage, format!("{}: {why}", file.display()));
    let opened = File::open(file).map_err(|error| wrong(&error))?;
    if !opened.metadata().is_ok_and(|found| found.is_file()) {
        return Err(wrong(&"not a file"));
    }
    let name = file.file_name().ok_or_else(|| wrong(&"it has no name"))?;
    Ok(SharedEdit::Put { file: opened, path: to.map_or(Path::new(""), below).join(name), replaces })
}

fn edit(opened: &Opened, of: &SessionArg, edits: Vec<SharedEdit>, verb: &str, json: bool) -> Result<Exit, Failure> {
    let session = session(of.session.as_deref())?;
    let drive = opened.drive()?;
    for edit in edits {
        let path = match &edit {
            SharedEdit::Put { path, .. } | SharedEdit::Remove { path } => path.display().to_string(),
        };
        let done = block_on(drive.edit_shared(&session, CallerScope::Admin, edit))?.map_err(failure)?;
        if json {
            outln!("{}", json!({ "type": "shared_file_changed", "path": path, "change": verb }));
        } else {
            outln!("{verb} {SHARED}/{}", printable_line(&path));
        }
        done.notes.iter().for_each(|note| errln!("{note}"));
    }
    Ok(Exit::Done)
}

fn entry(files: &SharedFiles, path: &Path) -> Result<SharedEntry, Failure> {
    let missing = || {
        Failure::new(Exit::Usage, format!("no shared file is at {SHARED}/{}; `kiso files` lists them", path.display()))
    };
    files.find(path).map_err(unreadable)?.ok_or_else(missing)
}

fn unreadable(error: io::Error) -> Failure {
    Failure::new(Exit::Failed, format!("the shared files cannot be read: {error}"))
}

fn failure(failure: SharedFailure) -> Failure {
    let exit = match &failure {
        SharedFailure::Share(ShareError::Path { .. } | ShareError::Taken { .. } | ShareError::Missing { .. })
        | SharedFailure::Undo(UndoFailure::AtWork { .. }) => Exit::Usage,
        SharedFailure::Share(ShareError::Full { .. }) => Exit::Limit,
        _ => Exit::Failed,
    };
    match &failure {
        SharedFailure::Share(ShareError::Taken { .. }) => {
            Failure::new(exit, format!("{failure}; choose another place with --to, or replace a file with --replace"))
        }
        _ => Failure::new(exit, failure.to_string()),
    }
}
