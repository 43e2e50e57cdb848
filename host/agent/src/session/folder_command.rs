//! `/diff`: shows, accepts and discards the changes of the session's folders, in every channel.

use crate::drive::{FolderFailure, FolderView, RunExecutor};
use kiso_base::home::SessionName;
use kiso_plan::plan::CallerScope;
use kiso_sandbox::effect::overlay::FolderSelection;
use std::path::{Path, PathBuf};

/// Maximum number of changes that are shown.
const SHOWN: usize = 30;

/// Answers `/diff`, `/diff accept [PATH…]` and `/diff discard [PATH…]` for the folders that the caller can see. Only a person may
/// change a folder.
pub(super) async fn answer(
    drive: &RunExecutor,
    session: &SessionName,
    words: &[String],
    (caller, by_person): (CallerScope, bool),
) -> String {
    let (verb, paths) = match words.split_first() {
        Some((verb, paths)) if matches!(verb.as_str(), "accept" | "discard") => (Some(verb.as_str()), paths),
        _ => (None, words),
    };
    if verb.is_some() && !by_person {
        return "Only a person can accept or discard changes.".to_owned();
    }
    match act(drive, (session, caller), verb, paths).await {
        Ok(text) => text,
        Err(FolderFailure::NoFolder { .. }) => {
            let none = "This session has no folder open";
            match caller {
                CallerScope::Admin => format!("{none}. `kiso --dir PATH` opens one on the machine itself."),
                CallerScope::User => format!("{none} that you may see."),
            }
        }
        Err(error) => format!("Nothing was changed: {error}."),
    }
}

async fn act(
    drive: &RunExecutor,
    (session, caller): (&SessionName, CallerScope),
    verb: Option<&str>,
    paths: &[String],
) -> Result<String, FolderFailure> {
    let folders = drive.folders_for(session, None, caller).await?;
    let mut parts = Vec::new();
    for view in folders.iter() {
        let selection = selection(view, paths);
        let count = view.difference.count(&selection);
        if count == 0 {
            continue;
        }
        let at = &view.folder.at;
        parts.push(match verb {
            Some("accept") => {
                let accepted = drive.accept(session, view, &selection)?;
                format!("{} applied to {}. `/undo` takes them back.", counted(accepted.changes), at)
            }
            Some(_) => format!("{} to {at} dropped.", counted(drive.discard(session, view, &selection)?)),
            None => shown(view, &selection, count),
        });
    }
    Ok(match parts.is_empty() {
        true if !paths.is_empty() => format!("No change is at {}. `/diff` lists all.", paths.join(", ")),
        true => "No changes are waiting.".to_owned(),
        false => parts.join("\n\n"),
    })
}

fn shown(view: &FolderView, selection: &FolderSelection, count: usize) -> String {
    let listed = view.difference.listed(selection, true);
    let lines = listed.iter().take(SHOWN).map(|line| format!("- `{}`", line.to_string().replace('`', "'")));
    let mut text =
        format!("{} to {} waiting:\n{}", counted(count), view.folder.at, lines.collect::<Vec<_>>().join("\n"));
    if listed.len() > SHOWN {
        text.push_str(&format!("\n- and {} more", listed.len() - SHOWN));
    }
    text.push_str("\n\n`/diff accept` applies them, `/diff discard` drops them; both also take paths.");
    text
}

/// Returns the selection of these paths in a folder.
fn selection(view: &FolderView, paths: &[String]) -> FolderSelection {
    if paths.is_empty() {
        return FolderSelection::All;
    }
    let below = |path: &String| -> Option<PathBuf> {
        let path = Path::new(path);
        match path.is_absolute() {
            true => path.strip_prefix(&view.folder.at).ok().map(Path::to_owned),
            false => Some(path.to_owned()),
        }
    };
    FolderSelection::Paths(paths.iter().filter_map(below).collect())
}

fn counted(count: usize) -> String {
    match count {
        1 => "1 change".to_owned(),
        count => format!("{count} changes"),
    }
}
