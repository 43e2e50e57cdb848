//! The only place that executes a plan's tasks and the action loop's calls.

use super::builtin::CallContext;
use super::editor::FileCall;
use super::files::PublicFiles;
use super::{CallerScope, Tools, task_error};
use crate::mcp::AllowedTool;
use kiso_plan::plan::{Task, TaskKind};
use kiso_plan::report::{TaskError, TaskReport};
use kiso_sandbox::exec::Watch;
use kiso_sandbox::skill::manifest::Workspace;
use kiso_sandbox::skill::{Caller, CheckedCall, SkillError};
use serde_json::Value;
use std::sync::Arc;

/// How a call uses the session's workspace. This decides which calls may run at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Touches {
    Nothing,
    Reads,
    Writes,
}

/// The work of a task or a call, with valid arguments.
pub(super) enum ToolWork<'a> {
    /// A command line.
    Exec(String),
    File(FileCall, &'a CallContext),
    Skill(CheckedCall),
    /// A tool of an MCP server.
    Outside(Arc<AllowedTool>, Value),
}

impl ToolWork<'_> {
    fn touches(&self) -> Touches {
        match self {
            Self::Exec(_) => Touches::Writes,
            Self::File(call, _) if call.reference().is_some() => Touches::Nothing,
            Self::File(call, _) if call.only_reads() => Touches::Reads,
            Self::File(..) => Touches::Writes,
            Self::Outside(..) => Touches::Nothing,
            Self::Skill(call) => match call.workspace() {
                Workspace::None => Touches::Nothing,
                Workspace::Read => Touches::Reads,
                Workspace::Write => Touches::Writes,
            },
        }
    }
}

impl Tools {
    /// Runs a skill or exec task of a plan to its end. Every failure is a report. `watch` receives the output of a command line
    /// while it runs.
    pub async fn run(&self, task: &Task, role: CallerScope, caller: Caller<'_>, watch: &Watch) -> TaskReport {
        match self.planned(task, &caller).await {
            Ok(work) => self.execute(task, work, role, caller, Some(watch)).await,
            Err(error) => {
                // The error quotes text that replaced refs.
                let mut report = TaskReport::failed(task.clone(), error);
                super::label(&mut report, caller.permit);
                report
            }
        }
    }

    /// Returns the work of a task, with refs in its arguments resolved: here, so that neither the plan nor the report contains
    /// the text.
    async fn planned(&self, task: &Task, caller: &Caller<'_>) -> Result<ToolWork<'static>, TaskError> {
        match task.kind {
            TaskKind::Exec => Ok(ToolWork::Exec(task.detail.clone())),
            TaskKind::Skill => {
                let name = task.skill.as_deref().unwrap_or_default();
                let args = task.args.clone().unwrap_or(Value::Null);
                let resolved = self.resolved(caller.session, args, caller.permit).await;
                let args = resolved.map_err(|wrong| task_error(&SkillError::bad_args(name, &wrong)))?;
                match self.index().outside.get(name) {
                    Some(tool) => match tool.args.check(&args) {
                        Ok(args) => Ok(ToolWork::Outside(tool.clone(), args)),
                        Err(wrong) => Err(task_error(&SkillError::bad_args(name, &wrong))),
                    },
                    None => self.skills.check(name, &args).map(ToolWork::Skill).map_err(|error| task_error(&error)),
                }
            }
            TaskKind::Msg | TaskKind::Act => {
                Err(TaskError::of_host(format!("{} tasks are not run as tools", task.kind.name())))
            }
        }
    }

    /// Executes a task or a call.
    pub(super) async fn execute(
        &self,
        task: &Task,
        work: ToolWork<'_>,
        role: CallerScope,
        caller: Caller<'_>,
        watch: Option<&Watch>,
    ) -> TaskReport {
        // Held while it runs: work that writes to the workspace runs exclusively.
        let lock = self.workspaces.get_lock(caller.session);
        let touches = work.touches();
        let _held = match touches {
            Touches::Nothing => (None, None),
            Touches::Reads => (Some(lock.read_owned().await), None),
            Touches::Writes => (None, Some(lock.write_owned().await)),
        };
        let (session, transaction, network) = (caller.session, caller.transaction, caller.network);
        let before = (touches == Touches::Writes).then(|| PublicFiles::look(self.skills.home(), session));
        let mut report = match work {
            ToolWork::Exec(command) => self.exec(task, &command, role, caller, watch).await,
            ToolWork::File(call, at) => self.edit_file(&call, role, &caller, at).await,
            ToolWork::Outside(tool, args) => self.call_mcp(task, &tool, &args, role, caller).await,
            ToolWork::Skill(checked) => self.call_skill(task, checked, caller).await,
        };
        // Before anybody else works there.
        self.conclude((session, role), network, transaction, touches == Touches::Writes, &mut report);
        report.outside = report.label.is_from_outside();
        if let Some(before) = before {
            before.note_made(self.skills.home(), session, &mut report);
        }
        report
    }
}
