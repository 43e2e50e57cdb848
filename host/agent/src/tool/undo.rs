//! The end of a task's or a call's work: it can be undone from then on, or it was interrupted and is rolled back.

use super::author::author;
use super::{CallerScope, EXEC, Tools, editor};
use kiso_base::home::{SHARED, SessionName};
use kiso_plan::code::ErrorCode;
use kiso_plan::label::{Integrity, Label};
use kiso_plan::plan::{Task, TaskKind};
use kiso_plan::report::{LogLine, MAX_CHANGED, TaskError, TaskReport, TaskStatus};
use kiso_sandbox::effect::network::Network;
use kiso_sandbox::effect::overlay::Overlay;
use kiso_sandbox::effect::undo::{RollBack, Transaction};
use std::sync::Arc;

impl Tools {
    /// Completes the work of a task with its report.
    pub(super) fn conclude(
        &self,
        (session, role): (&SessionName, CallerScope),
        network: Option<&Network>,
        transaction: Option<&Arc<Transaction>>,
        writes: bool,
        report: &mut TaskReport,
    ) {
        let is_cut_off =
            report.error.as_ref().is_some_and(|error| error.limit.is_some() || error.code == ErrorCode::Trap);
        let wanting = network.filter(|network| network.is_wanting());
        let is_cut_off = is_cut_off || wanting.is_some() && report.error.is_some();
        if writes {
            match is_cut_off {
                true => self.drop_unshared(session),
                false => self.share(session, role, transaction, report),
            }
        }
        let Some(work) = transaction else { return };
        for lost in work.lost() {
            let message = format!("this change cannot be undone: {lost}");
            report.log.push(LogLine { level: "warn".to_owned(), message });
        }
        let changed = work.changed();
        report.more_changed = changed.len().saturating_sub(MAX_CHANGED) as u64;
        report.changed = changed.into_iter().take(MAX_CHANGED).collect();
        let Some(error) = report.error.as_mut().filter(|_| is_cut_off) else { return work.commit() };
        let back = work.roll_back();
        if back == RollBack::Done {
            (report.changed, report.more_changed) = (Vec::new(), 0);
        }
        if let Some(network) = wanting.filter(|_| back != RollBack::Impossible) {
            network.set_rolled_back();
        }
        let said = match back {
            RollBack::Nothing => return,
            RollBack::Done if report.task.kind == TaskKind::Exec => {
                "; all changes to files by the whole command line were undone, also those that its output tells of"
            }
            RollBack::Done => "; its changes to files were undone",
            RollBack::Impossible => "; its changes to files remain, because not all of them could be kept",
        };
        error.message.push_str(said);
        report.files.clear();
        self.skills.measure_anew(session);
    }

    /// Publishes a task's changes of the shared files to all sessions.
    fn share(
        &self,
        session: &SessionName,
        role: CallerScope,
        transaction: Option<&Arc<Transaction>>,
        report: &mut TaskReport,
    ) {
        let author = author(role, Label::default());
        let limit_mib = self.skills.config().engine.shared_mib;
        let work = transaction.map(|work| &**work);
        match Overlay::share_changes(self.skills.home(), session, author, work, limit_mib) {
            Ok(shared) => {
                report.label.join(&shared.label);
                for note in shared.notes {
                    // Both the model and the person must learn of it.
                    report.text.push_str(&format!("\nkiso: {note}\n"));
                    report.log.push(LogLine { level: "warn".to_owned(), message: note });
                }
            }
            Err(error) => {
                // It may contain paths, which tasks choose.
                report.label.join(&Label { integrity: Integrity::World, ..Label::session() });
                let error = TaskError::of_host(format!("its changes to {SHARED} were dropped: {error}"));
                report.error.get_or_insert(error);
                report.status = TaskStatus::Failed;
            }
        }
    }

    fn drop_unshared(&self, session: &SessionName) {
        if let Err(error) = Overlay::drop_unshared(self.skills.home(), session) {
            tracing::warn!(%session, "changes to shared files by work that was cut off could not be dropped: {error}");
        }
    }

    /// Returns whether undo data covers everything that a task does in the workspace, and its other effects are recorded before.
    pub fn is_undoable_task(&self, task: &Task) -> bool {
        match task.kind {
            TaskKind::Exec => true,
            TaskKind::Skill => task.skill.as_deref().is_some_and(|name| self.is_undoable_call(name)),
            TaskKind::Msg | TaskKind::Act => false,
        }
    }

    /// The same for a call: true for a command line, a tool for files or a skill, and false for external and built-in tools.
    pub fn is_undoable_call(&self, name: &str) -> bool {
        let index = self.index();
        let is_skill = || {
            let tool = index.tool(name);
            !self.builtins.has(name) && !index.outside.contains_key(tool) && self.skills.find_tool(tool).is_ok()
        };
        name == EXEC || editor::has(name) || is_skill()
    }
}
