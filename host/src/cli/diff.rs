//! `kiso diff`: changes of runs in a session's folders, to be accepted or discarded.

use super::show::{Show, printable_line};
use super::{Exit, Failure, Opened, Shared, block_on, session};
use kiso_agent::drive::{FolderFailure, FolderView, RunExecutor};
use kiso_base::home::SessionName;
use kiso_plan::report::counted;
use kiso_sandbox::effect::overlay::{
    AcceptError, Acceptance, FolderChange, FolderChangeKind, FolderDifference, FolderSelection, HunkError,
    ListedChange, RepositoryChange, TextChange,
};
use kiso_sandbox::skill::Quiet;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER)]
pub(super) struct DiffArgs {
    /// Only these files or directories, as paths below the folder or as tasks see them (/project/src)
    #[arg(value_name = "PATH")]
    paths: Vec<String>,
    /// The session [default: default]
    #[arg(long, short, value_name = "NAME")]
    session: Option<String>,
    /// Only the folder that tasks see at this path, if several are open
    #[arg(long, value_name = "PATH")]
    at: Option<String>,
    /// Show changed lines of text files with the numbers of their hunks, and new commits
    #[arg(long, short)]
    patch: bool,
    /// List each change, also where many are alike
    #[arg(long)]
    all: bool,
    /// Bring the changes into the folder: all of them, or those of the PATHs
    #[arg(long, conflicts_with_all = ["discard", "close", "patch"])]
    accept: bool,
    /// With --accept and one PATH: only these hunks of the file, as `kiso diff --patch PATH` numbers them
    #[arg(long, value_name = "N,…", value_delimiter = ',', requires = "accept")]
    hunk: Vec<usize>,
    /// Drop the changes: all of them, or those of the PATHs
    #[arg(long, conflicts_with_all = ["close", "patch"])]
    discard: bool,
    /// Close the folder for the session
    #[arg(long, conflicts_with_all = ["paths", "patch"])]
    close: bool,
}

const AFTER: &str = "\
Examples:
  kiso run --dir ~/site \"fix the broken links\"   work in a folder
  kiso diff --patch                              see what would change there
  kiso diff --accept                             change it
  kiso diff --accept notes.txt --hunk 1,3        only these hunks of a file, as --patch numbers them
  kiso diff --discard drafts                     drop the changes below drafts/
  kiso undo                                      put the folder back as it was

Nothing in the folder changes before --accept. What is replaced or deleted then is kept for [undo] keep_days.";

impl DiffArgs {
    pub(super) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let opened = Opened::new(shared, Arc::new(Quiet))?;
        let session = session(self.session.as_deref())?;
        let drive = opened.drive()?;
        let folders = block_on(drive.folders(&session, self.at.as_deref()))?.map_err(failure)?;
        let show = Show::new(shared.json);
        for path in &self.paths {
            let has = |view: &FolderView| {
                let below = relative(view, path);
                let selection = FolderSelection::Paths(below.into_iter().collect());
                view.difference.changes.iter().any(|change| selection.contains(change))
            };
            if !folders.iter().any(has) {
                let list = command("diff", &session);
                let message = format!("no change is at {path}; `{list}` lists all changes");
                return Err(Failure::new(Exit::Usage, message));
            }
        }
        if !self.hunk.is_empty() {
            let meant =
                folders.iter().filter(|view| self.selection(view).is_some_and(|one| view.difference.count(&one) > 0));
            match (self.paths.len(), meant.count()) {
                (1, 0 | 1) => {}
                (1, _) => return Err(Failure::new(Exit::Usage, "several folders have this path; name one with --at")),
                _ => return Err(Failure::new(Exit::Usage, "--hunk needs the PATH of one file")),
            }
        }
        let mut problems = false;
        for view in folders.iter() {
            let Some(selection) = self.selection(view) else { continue };
            self.on(view, &selection, (&drive, &session), (&show, shared.json), &mut problems)?;
        }
        Ok(if problems { Exit::Failed } else { Exit::Done })
    }

    /// Carries out the command in one folder.
    fn on(
        &self,
        view: &FolderView,
        selection: &FolderSelection,
        (drive, session): (&RunExecutor, &SessionName),
        (show, json): (&Show, bool),
        problems: &mut bool,
    ) -> Result<(), Failure> {
        let chosen = view.difference.count(selection);
        let at = view.folder.at.as_str();
        if self.close {
            drive.close_folder(session, view).map_err(failure)?;
            if json {
                outln!("{}", json!({ "type": "folder_closed", "at": at, "path": view.folder.path }));
            } else {
                errln!("{at} is closed");
            }
            return Ok(());
        }
        if chosen == 0 {
            if !json && self.paths.is_empty() {
                errln!("{at}  no changes in {}", view.folder.path.display());
            }
            return Ok(());
        }
        if self.accept {
            let accepted = match self.hunk.is_empty() {
                true => drive.accept(session, view, selection).map_err(failure)?,
                false => self.accept_hunks(view, drive, session)?,
            };
            if json {
                outln!("{}", json!({ "type": "accepted", "at": at, "changes": accepted.changes }));
            } else {
                let changes = counted(accepted.changes as u64, "change", "changes");
                let path = view.folder.path.display();
                let undo = command("undo", session);
                errln!("{at}  {changes} accepted in {path}; `{undo}` takes them back");
            }
            return Ok(());
        }
        if self.discard {
            let discarded = drive.discard(session, view, selection).map_err(failure)?;
            if json {
                outln!("{}", json!({ "type": "discarded", "at": at, "changes": discarded }));
            } else {
                errln!("{at}  {} discarded", counted(discarded as u64, "change", "changes"));
            }
            return Ok(());
        }
        let lists_each = json || self.all || self.patch;
        let is_collision = |change: &FolderChange| selection.contains(change) && change.collision.is_some();
        *problems |= view.difference.changes.iter().any(is_collision);
        let lines = view.difference.listed(selection, !lists_each);
        if json {
            for line in &lines {
                outln!("{}", object(at, line));
            }
            return Ok(());
        }
        outln!("{}", format_args!("{at}  {}", printable_line(&view.folder.path.display().to_string())));
        let mut listed = Vec::new();
        for line in &lines {
            outln!("{}", printable_line(&line.to_string()));
            match line {
                ListedChange::Change(change) if self.patch => {
                    if let Some(text) = view.overlay.text_change(change) {
                        out!("{}", patch(change, &text));
                        listed.push((change.path.as_path(), text.revision));
                    }
                }
                ListedChange::Repository(repository) if self.patch => {
                    out!("{}", commits(repository));
                    // Hooks and settings are shown, so that a person reads them before git uses them.
                    for change in view.difference.changes.iter().filter(|one| repository.settings.contains(&one.path)) {
                        let text = view.overlay.text_change(change);
                        out!("{}", text.map_or(String::new(), |text| patch(change, &text)));
                    }
                }
                _ => {}
            }
        }
        view.overlay.remember_hunks(&listed).map_err(|error| failure(AcceptError::from(error).into()))?;
        errln!("{}", show.dim(&summary(&view.difference, selection, session)));
        Ok(())
    }

    /// Accepts the chosen hunks of one file. Their numbers come from the last printed list.
    fn accept_hunks(
        &self,
        view: &FolderView,
        drive: &RunExecutor,
        session: &SessionName,
    ) -> Result<Acceptance, Failure> {
        let path = self.paths.first().map_or("", String::as_str);
        let below = relative(view, path).unwrap_or_default();
        let Some(revision) = view.overlay.remembered_hunks(&below) else {
            let list = command(&format!("diff --patch {path}"), session);
            return Err(Failure::new(Exit::Usage, format!("list the hunks of {path} first: `{list}`")));
        };
        drive.accept_hunks(session, view, &below, (&self.hunk, &revision)).map_err(failure)
    }

    /// Returns the selected paths below a folder. `None` if none of the paths belongs to it.
    fn selection(&self, view: &FolderView) -> Option<FolderSelection> {
        if self.paths.is_empty() {
            return Some(FolderSelection::All);
        }
        let paths: Vec<PathBuf> = self.paths.iter().filter_map(|path| relative(view, path)).collect();
        (!paths.is_empty()).then_some(FolderSelection::Paths(paths))
    }
}

/// Returns a command line for a session, which is named unless it is the default one.
pub(super) fn command(words: &str, session: &SessionName) -> String {
    match session.as_str() {
        "default" => format!("kiso {words}"),
        name => format!("kiso {words} --session {name}"),
    }
}

/// Converts a path to one relative to the folder; it may be given as relative, as tasks see it, or as this machine does.
fn relative(view: &FolderView, path: &str) -> Option<PathBuf> {
    let path = Path::new(path);
    let below = match path.is_absolute() {
        false => path,
        true => path.strip_prefix(&view.folder.at).or_else(|_| path.strip_prefix(&view.folder.path)).ok()?,
    };
    Some(below.components().filter(|part| !matches!(part, std::path::Component::CurDir)).collect())
}

pub(super) fn failure(error: FolderFailure) -> Failure {
    let message = error.to_string();
    match error {
        FolderFailure::NoFolder { .. } | FolderFailure::OtherFolder { .. } | FolderFailure::HasChanges { .. } => {
            Failure::new(Exit::Usage, message)
        }
        FolderFailure::Accept(AcceptError::Collision(_)) => {
            let way = "Nothing was changed. Look at both sides, then accept other paths, or discard these";
            Failure::new(Exit::Failed, format!("{message}. {way}"))
        }
        FolderFailure::Accept(AcceptError::Nothing) | FolderFailure::Hunks(HunkError::Refused(_)) => {
            Failure::new(Exit::Usage, message)
        }
        _ => Failure::new(Exit::Failed, message),
    }
}

fn object(at: &str, line: &ListedChange<'_>) -> Value {
    let change = match line {
        ListedChange::Change(change) => change,
        ListedChange::Repository(repository) => {
            let newest: Vec<Value> =
                repository.newest.iter().map(|one| json!({ "id": one.id, "subject": one.subject })).collect();
            return json!({
                "type": "folder_change", "at": at, "path": repository.path.to_string_lossy(), "change": "repository",
                "commits": repository.commits, "newest": newest, "summary": repository.summary(),
                "files": repository.files, "from_outside": repository.is_marked, "collision": repository.collision,
            });
        }
        // JSON lines list every change.
        ListedChange::Group(group) => return Value::String(group.to_string()),
    };
    let kind = match change.kind {
        FolderChangeKind::Added => "added",
        FolderChangeKind::Changed => "changed",
        FolderChangeKind::Deleted => "deleted",
        FolderChangeKind::Moved(_) => "moved",
    };
    json!({
        "type": "folder_change", "at": at, "path": change.path.to_string_lossy(), "change": kind,
        "from": change.moved_from().map(|from| from.to_string_lossy().into_owned()),
        "bytes_before": change.before.map(|look| look.bytes), "bytes_after": change.after.map(|look| look.bytes),
        "files": change.files, "from_outside": change.is_marked(), "collision": change.collision,
    })
}

fn summary(difference: &FolderDifference, selection: &FolderSelection, session: &SessionName) -> String {
    let (shown, all) = (difference.count(selection), difference.count(&FolderSelection::All));
    let deleted = difference.deleted_files(selection);
    let mut text = counted(shown as u64, "change", "changes");
    if shown < all {
        text.push_str(&format!(" of {all}"));
    }
    if deleted > 0 {
        text.push_str(&format!(", {} deleted", counted(deleted, "file", "files")));
    }
    let (accept, discard) = (command("diff --accept", session), command("diff --discard", session));
    text.push_str(&format!("; accept with `{accept}`, drop with `{discard}`"));
    text
}

/// Returns the new commits of a repository, one per line.
fn commits(repository: &RepositoryChange) -> String {
    let line = |id: &str, subject: &str| format!("      {} {}\n", id.get(..7).unwrap_or(id), printable_line(subject));
    let mut text: String = repository.newest.iter().map(|one| line(&one.id, &one.subject)).collect();
    let shown = repository.newest.len() as u64;
    if let Some(more) = repository.commits.map(|all| all.saturating_sub(shown)).filter(|more| *more > 0) {
        text.push_str(&format!("      and {more} more\n"));
    }
    text
}

/// Returns the changed lines of a text file, with the numbers of its hunks.
fn patch(change: &FolderChange, text: &TextChange) -> String {
    let path = printable_line(&change.path.to_string_lossy());
    let mut patch = format!("--- a/{path}\n+++ b/{path}\n");
    for (number, hunk) in text.hunks.iter().enumerate() {
        // The only hunk of a new or deleted file is the whole file.
        match change.kind {
            FolderChangeKind::Changed if change.repository.is_none() => {
                patch.push_str(&format!("{}  hunk {}\n", hunk.header, number + 1))
            }
            _ => patch.push_str(&format!("{}\n", hunk.header)),
        }
        for line in &hunk.lines {
            let shown = line.text.trim_end_matches(['\n', '\r']);
            patch.push_str(&format!("{}{}\n", line.sign, printable_line(shown)));
            if !line.text.ends_with('\n') {
                patch.push_str("\\ No newline at end of file\n");
            }
        }
    }
    patch
}
