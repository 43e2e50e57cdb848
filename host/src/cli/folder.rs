//! `--dir`: the folders of this machine that a session works in.

use super::show::Show;
use super::{Exit, Failure, Opened, block_on};
use kiso_agent::drive::RunExecutor;
use kiso_base::home::{FolderRefusal, SessionFolder, SessionName, default_folder_path};
use kiso_plan::plan::CallerScope;
use kiso_plan::report::counted;
use kiso_sandbox::effect::overlay::FolderSelection;
use serde_json::json;
use std::path::{Path, PathBuf};

#[derive(Debug, Default, clap::Args)]
pub(super) struct FolderArgs {
    /// Work in this folder, or in @NAME of `[folders]`. Its files change only when you accept the difference (`kiso diff`); repeat for several
    #[arg(long, value_name = "PATH")]
    pub(super) dir: Vec<PathBuf>,
    /// Where tasks see the folder, such as /app; one for each --dir, in their order [default: /project]
    #[arg(long, value_name = "PATH", requires = "dir")]
    at: Vec<String>,
    /// Also open your home directory, or a directory that holds keys
    #[arg(long, requires = "dir")]
    force: bool,
    /// Show files with credentials, such as .env and private keys, like others
    #[arg(long, requires = "dir")]
    with_secrets: bool,
}

impl FolderArgs {
    /// Opens the folders in a session, which is created if necessary.
    pub(super) fn open(&self, opened: &Opened, session: &SessionName) -> Result<(), Failure> {
        if self.at.len() > self.dir.len() {
            return Err(Failure::new(Exit::Usage, "there are more --at than --dir"));
        }
        for (number, dir) in self.dir.iter().enumerate() {
            if let Some(name) = listed_name(opened, dir) {
                if self.with_secrets {
                    let message = format!("--with-secrets is not possible with @{name}; name the folder by its path");
                    return Err(Failure::new(Exit::Usage, message));
                }
                let at = self.at.get(number).map(String::as_str);
                let caller = (CallerScope::Admin, name.as_str());
                opened.config.open_listed_folder(&opened.home, session, caller, at).map_err(failure)?;
                continue;
            }
            let at = match self.at.get(number) {
                Some(at) => at.clone(),
                None => default_folder_path(number, dir),
            };
            if opened.config.mounts.iter().any(|mount| mount.at == at) {
                let message = format!("[exec.mounts] in config.toml has {at} already; choose another path with --at");
                return Err(Failure::new(Exit::Usage, message));
            }
            let mut folder = SessionFolder::new(&opened.home, dir, &at, self.force).map_err(failure)?;
            folder.secrets = self.with_secrets;
            opened.home.open_folder(session, folder).map_err(failure)?;
        }
        Ok(())
    }
}

/// Returns NAME of `@NAME`, a folder in `[folders]`. A file with such a name must be given with a slash in its path.
fn listed_name(opened: &Opened, dir: &Path) -> Option<String> {
    let name = dir.to_str()?.strip_prefix('@')?;
    opened.config.folder_for(CallerScope::Admin, name).map(|entry| entry.name.clone())
}

fn failure(refusal: FolderRefusal) -> Failure {
    match refusal {
        FolderRefusal::Home(error) => error.into(),
        other => Failure::new(Exit::Usage, other.to_string()),
    }
}

/// Reports waiting changes in the folders of a session after a run, and applies those that need no review.
pub(super) fn after_run(
    drive: &RunExecutor,
    session: &SessionName,
    applies: bool,
    show: &Show,
    json: bool,
) -> Result<(), Failure> {
    if drive.home.folders(session)?.is_empty() {
        return Ok(());
    }
    let folders = block_on(drive.folders(session, None))?.map_err(super::diff::failure)?;
    for view in folders.iter() {
        let (at, path) = (&view.folder.at, view.folder.path.display());
        let all = view.difference.count(&FolderSelection::All);
        let selection = view.difference.harmless().filter(|_| applies);
        let applied = match selection {
            Some(selection) => drive.accept(session, view, &selection).map_err(super::diff::failure)?.changes,
            None => 0,
        };
        let waiting = all - applied.min(all);
        if json {
            outln!(
                "{}",
                json!({ "type": "folder", "at": at, "path": view.folder.path, "applied": applied, "waiting": waiting })
            );
            continue;
        }
        if applied > 0 {
            let changes = counted(applied as u64, "change", "changes");
            let undo = super::diff::command("undo", session);
            let words = format!("{changes} applied to {path}; `{undo}` takes them back");
            errln!("{}", show.dim(&words));
        }
        if waiting > 0 {
            let changes = counted(waiting as u64, "change", "changes");
            let (list, accept) =
                (super::diff::command("diff", session), super::diff::command("diff --accept", session));
            let words = format!("{changes} to {path} waiting: `{list}` shows, `{accept}` applies");
            errln!("{}", show.dim(&words));
        }
    }
    Ok(())
}
