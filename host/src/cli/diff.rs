//! `kiso diff`: what runs have changed in the folders of a session, to be accepted or discarded.

use super::listing::counted;
use super::show::{Show, printable_line};
use super::{Exit, Failure, Opened, Shared, block_on, session};
use kiso_agent::drive::{FolderFailure, FolderView, RunExecutor};
use kiso_base::home::SessionName;
use kiso_sandbox::effect::overlay::{
    AcceptError, EntryKind, FolderChange, FolderChangeKind, FolderDifference, FolderSelection, Overlay,
};
use kiso_sandbox::skill::Quiet;
use serde_json::{Value, json};
use similar::TextDiff;
use std::io::Read;
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
    /// Only the folder that tasks see here, where several are open
    #[arg(long, value_name = "PATH")]
    at: Option<String>,
    /// Show changed lines of text files
    #[arg(long, short)]
    patch: bool,
    /// Bring the changes into the folder: all of them, or those of the PATHs
    #[arg(long, conflicts_with_all = ["discard", "close", "patch"])]
    accept: bool,
    /// Drop the changes: all of them, or those of the PATHs
    #[arg(long, conflicts_with_all = ["close", "patch"])]
    discard: bool,
    /// Close the folder: the session sees it no longer
    #[arg(long, conflicts_with_all = ["paths", "patch"])]
    close: bool,
}

const AFTER: &str = "\
Examples:
  kiso run --dir ~/site \"fix the broken links\"   work in a folder
  kiso diff --patch                              see what would change there
  kiso diff --accept                             change it
  kiso diff --discard drafts                     drop the changes below drafts/
  kiso undo                                      put the folder back as it was

Nothing in the folder changes before --accept. What is replaced or deleted then is kept for [undo] keep_days.";

/// Bytes of a file whose lines are compared.
const MAX_TEXT: u64 = 1 << 20;

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
        let mut problems = false;
        for view in folders.iter() {
            let Some(selection) = self.selection(view) else { continue };
            self.on(view, &selection, (&drive, &session), (&show, shared.json), &mut problems)?;
        }
        Ok(if problems { Exit::Failed } else { Exit::Done })
    }

    /// Does what is asked in one folder.
    fn on(
        &self,
        view: &FolderView,
        selection: &FolderSelection,
        (drive, session): (&RunExecutor, &SessionName),
        (show, json): (&Show, bool),
        problems: &mut bool,
    ) -> Result<(), Failure> {
        let chosen: Vec<&FolderChange> =
            view.difference.changes.iter().filter(|change| selection.contains(change)).collect();
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
        if chosen.is_empty() {
            if !json && self.paths.is_empty() {
                errln!("{at}  no changes in {}", view.folder.path.display());
            }
            return Ok(());
        }
        if self.accept {
            let accepted = drive.accept(session, view, selection).map_err(failure)?;
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
        *problems |= chosen.iter().any(|change| change.collision.is_some());
        if json {
            for change in &chosen {
                outln!("{}", object(at, change));
            }
            return Ok(());
        }
        outln!("{}", format_args!("{at}  {}", printable_line(&view.folder.path.display().to_string())));
        for change in &chosen {
            outln!("{}", printable_line(&change.to_string()));
            if self.patch
                && let Some(patch) = patch(&view.overlay, change)
            {
                out!("{patch}");
            }
        }
        errln!("{}", show.dim(&summary(&view.difference, chosen.len(), session)));
        Ok(())
    }

    /// The paths below a folder. `None` if none of them is meant for it.
    fn selection(&self, view: &FolderView) -> Option<FolderSelection> {
        if self.paths.is_empty() {
            return Some(FolderSelection::All);
        }
        let paths: Vec<PathBuf> = self.paths.iter().filter_map(|path| relative(view, path)).collect();
        (!paths.is_empty()).then_some(FolderSelection::Paths(paths))
    }
}

/// A command as it is typed for a session, which is named if it is not the usual one.
pub(super) fn command(words: &str, session: &SessionName) -> String {
    match session.as_str() {
        "default" => format!("kiso {words}"),
        name => format!("kiso {words} --session {name}"),
    }
}

/// A path below a folder, given so, or as tasks or this machine see it.
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
        FolderFailure::Accept(AcceptError::Nothing) => Failure::new(Exit::Usage, message),
        _ => Failure::new(Exit::Failed, message),
    }
}

fn object(at: &str, change: &FolderChange) -> Value {
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

fn summary(difference: &FolderDifference, shown: usize, session: &SessionName) -> String {
    let all = difference.changes.len();
    let deleted: u64 = difference.changes.iter().map(|change| change.files).sum();
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

/// The changed lines of a text file.
fn patch(overlay: &Overlay, change: &FolderChange) -> Option<String> {
    if change.is_secret {
        return None;
    }
    let read = |file: std::io::Result<std::fs::File>| {
        let mut text = Vec::new();
        file.ok()?.take(MAX_TEXT + 1).read_to_end(&mut text).ok()?;
        let is_text = text.len() as u64 <= MAX_TEXT && !text.contains(&0);
        String::from_utf8(text).ok().filter(|_| is_text)
    };
    let is_file =
        |look: Option<kiso_sandbox::effect::overlay::EntryLook>| look.is_some_and(|l| l.kind == EntryKind::File);
    let before = match is_file(change.before) && change.moved_from().is_none() {
        true => read(overlay.open_before(change))?,
        false => String::new(),
    };
    let after = match is_file(change.after) && change.moved_from().is_none() {
        true => read(overlay.open_after(change))?,
        false => String::new(),
    };
    if before == after {
        return None;
    }
    let path = change.path.display();
    let text = TextDiff::from_lines(&before, &after)
        .unified_diff()
        .header(&format!("a/{path}"), &format!("b/{path}"))
        .to_string();
    Some(text.lines().map(|line| format!("{}\n", printable_line(line))).collect())
}
