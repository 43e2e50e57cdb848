//! `kiso undo`: undoes and redoes the changes of a run in its workspace.

use super::diff::command;
use super::listing::{confirm, row, typed};
use super::show::{Show, printable_line};
use super::{Exit, Failure, Opened, Shared, block_on, session};
use kiso_agent::drive::{EarlierWork, RevertedAcceptance, RunExecutor, UndoFailure};
use kiso_base::clock::minute;
use kiso_base::home::SessionName;
use kiso_gateway::UndoLine;
use kiso_plan::plan::CallerScope;
use kiso_plan::report::{counted, size};
use kiso_sandbox::effect::undo::{UndoChoice, UndoError, UndoKind, UndoPlan};
use kiso_sandbox::skill::Quiet;
use kiso_store::store::StoreError;
use serde_json::json;
use std::sync::Arc;

#[derive(Debug, clap::Args)]
pub(super) struct UndoArgs {
    /// A run's id, the beginning of one, or "last"; without it, the session's last run that changed files
    run: Option<String>,
    /// The session, if no run is named [default: default]
    #[arg(long, short, value_name = "NAME", conflicts_with = "run")]
    session: Option<String>,
    /// Go back to before this task of the run: 1 is its first
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "list")]
    task: Option<u32>,
    /// Redo what was undone
    #[arg(long, conflicts_with_all = ["task", "list"])]
    redo: bool,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// List what can be undone and redone
    #[arg(long, conflicts_with_all = ["dry_run", "force"])]
    list: bool,
    /// Undo even if files were changed since; what is overwritten is kept, and a redo brings it back
    #[arg(long)]
    force: bool,
    /// Do not ask before undoing an earlier run because the last one changed nothing
    #[arg(long, short, conflicts_with = "list")]
    yes: bool,
}

impl UndoArgs {
    pub(super) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        match self.redo {
            true => self.revert(shared, UndoKind::Redo, None, true),
            false => self.revert(shared, UndoKind::Undo, self.task.map(|task| task as usize), self.yes),
        }
    }

    fn revert(&self, shared: &Shared, kind: UndoKind, task: Option<usize>, yes: bool) -> Result<Exit, Failure> {
        let opened = Opened::new(shared, Arc::new(Quiet))?;
        let (of, run) = self.target(&opened)?;
        if self.list {
            return list(&opened, &of, run.as_deref(), shared.json);
        }
        let drive = opened.drive()?;
        let choice = UndoChoice { run, task };
        if self.dry_run {
            let plan = block_on(drive.undo_plan(&of, kind, choice))?.map_err(|error| failure(error, kind))?;
            print(kind, &plan, "would be", shared.json);
            return Ok(if plan.problems().next().is_some() { Exit::Failed } else { Exit::Done });
        }
        if choice.run.is_none() && task.is_none() {
            let reverted = block_on(drive.revert_acceptance(&of, CallerScope::Admin, kind, self.force))?
                .map_err(super::diff::failure)?;
            if let Some(RevertedAcceptance { folder, acceptance }) = reverted {
                let changes = counted(acceptance.changes as u64, "change", "changes");
                if shared.json {
                    let (kind, changes, waits) = (kind.participle(), acceptance.changes, acceptance.waits);
                    outln!(
                        "{}",
                        json!({ "type": kind, "at": folder.at, "changes": changes, "waiting": waits, "done": true })
                    );
                    return Ok(Exit::Done);
                }
                outln!("{}: {changes} to {} {}", folder.at, folder.path.display(), kind.participle());
                if kind == UndoKind::Undo {
                    let redo = command("undo --redo", &of);
                    let next = match acceptance.waits {
                        true => {
                            let (list, undo) = (command("diff", &of), command("undo", &of));
                            format!(
                                "they wait again: `{list}` shows them, `{redo}` accepts them, `{undo}` drops those of the last run"
                            )
                        }
                        false => format!("`{redo}` accepts them again"),
                    };
                    errln!("{}", Show::new(false).dim(&next));
                }
                return Ok(Exit::Done);
            }
        }
        if choice.run.is_none() && kind == UndoKind::Undo && !yes {
            ask_about_earlier(&drive, &of)?;
        }
        let done = block_on(drive.undo(&of, kind, choice, self.force))?.map_err(|error| failure(error, kind))?;
        print(kind, &done.plan, "was", shared.json);
        for problem in &done.problems {
            errln!("{}", Show::new(shared.json).dim(&printable_line(problem)));
        }
        Ok(Exit::Done)
    }

    /// Returns the session, and the run if one is named.
    fn target(&self, opened: &Opened) -> Result<(SessionName, Option<String>), Failure> {
        let Some(text) = &self.run else { return Ok((session(self.session.as_deref())?, None)) };
        let run = opened.store.read_blocking(|view| {
            let id = view.resolve_run(text)?;
            view.run(&id)?.ok_or(StoreError::NoRun { text: text.clone() })
        })?;
        Ok((run.session, Some(run.id.to_string())))
    }
}

/// Asks before undoing earlier work, because the last run changed nothing.
fn ask_about_earlier(drive: &RunExecutor, of: &SessionName) -> Result<(), Failure> {
    let earlier = block_on(drive.earlier_work(of))?.map_err(|error| failure(error, UndoKind::Undo))?;
    let Some(EarlierWork { last, entry }) = earlier else { return Ok(()) };
    let (run, at) = (entry.run().unwrap_or_default(), minute(entry.header.at_ms));
    let changes = counted(entry.changes as u64, "change", "changes");
    confirm(&format!("The last run ({}) changed no files. Undo run {run} ({at}, {changes})?", last.id), false)
}

fn failure(error: UndoFailure, kind: UndoKind) -> Failure {
    let message = error.to_string();
    match error {
        UndoFailure::Undo(UndoError::Nothing(_) | UndoError::Selection(_)) => {
            let list = match kind {
                UndoKind::Undo => "`kiso undo --list` shows what there is",
                UndoKind::Redo => "`kiso undo --list` shows what there is",
            };
            Failure::new(Exit::Usage, format!("{message}; {list}"))
        }
        UndoFailure::Undo(UndoError::Conflict(_)) | UndoFailure::Accepted { .. } => {
            Failure::new(Exit::Failed, format!("{message}. Nothing was changed; with --force it is done all the same"))
        }
        UndoFailure::Drive(error) => error.into(),
        _ => Failure::new(Exit::Failed, message),
    }
}

fn list(opened: &Opened, of: &SessionName, run: Option<&str>, json: bool) -> Result<Exit, Failure> {
    let drive = opened.drive()?;
    let entries = block_on(drive.undo_entries(of))?.map_err(|error| failure(error, UndoKind::Undo))?;
    let lines: Vec<UndoLine> = entries.iter().rev().map(UndoLine::from).collect();
    let lines: Vec<_> = lines.into_iter().filter(|line| run.is_none_or(|run| line.run == run)).collect();
    if lines.is_empty() && !json {
        errln!("there is nothing to undo or redo in the session {of}");
    }
    for line in lines {
        if json {
            outln!("{}", typed("undo", &line));
            continue;
        }
        let tasks = line.tasks.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let lost = match line.lost {
            0 => String::new(),
            lost => format!(", {lost} of them not kept"),
        };
        let changes = counted(line.changes as u64, "change", "changes");
        let head = format!("{}  {}  {}", minute(line.at_ms), line.kind, line.run);
        row(&head, &format!("task {tasks}: {changes}{lost}, {}", size(line.bytes)));
    }
    Ok(Exit::Done)
}

fn print(kind: UndoKind, plan: &UndoPlan, verb: &str, json: bool) {
    if json {
        let (run, done, changes, conflicts, missing) =
            (&plan.run, verb == "was", &plan.changes, &plan.conflicts, &plan.missing);
        let object = match kind {
            UndoKind::Undo => json!({
                "type": "undone", "run": run, "done": done, "changes": changes, "conflicts": conflicts, "missing": missing,
            }),
            UndoKind::Redo => json!({
                "type": "redone", "run": run, "done": done, "changes": changes, "conflicts": conflicts, "missing": missing,
            }),
        };
        return outln!("{object}");
    }
    for change in &plan.changes {
        outln!("{:8}{}", change.change.name(), printable_line(&change.path));
    }
    for problem in plan.problems() {
        outln!("{:8}{}", "but", printable_line(&problem));
    }
    let changes = counted(plan.changes.len() as u64, "path", "paths");
    outln!("run {} {verb} {}: {changes}", plan.run, kind.participle());
}
