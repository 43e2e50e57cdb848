//! Tools of MCP servers: their cards, and the reports of their calls.

use super::Tools;
use super::editor::{PictureSource, ShownSize};
use crate::mcp::{AllowedTool, McpError, McpFault, McpOutcome};
use kiso_graph::bind::OUTSIDE;
use kiso_plan::code::ErrorCode;
use kiso_plan::plan::{CallerScope, Task};
use kiso_plan::prompt::SkillCard;
use kiso_plan::report::{TaskError, TaskReport, TaskStatus};
use kiso_sandbox::skill::Caller;
use serde_json::Value;

/// Returns the card of a tool. Its category is its server.
pub(super) fn card(tool: &AllowedTool) -> SkillCard {
    SkillCard {
        name: tool.name.clone(),
        summary: tool.summary.clone(),
        category: tool.server.clone(),
        examples: Vec::new(),
        secrets: Vec::new(),
        chosen: false,
        args: tool.args.schema().clone(),
    }
}

impl Tools {
    /// Calls a tool with checked arguments. Every failure is a report.
    pub(super) async fn call_mcp(
        &self,
        task: &Task,
        tool: &AllowedTool,
        args: &Value,
        role: CallerScope,
        caller: Caller<'_>,
    ) -> TaskReport {
        let is_accepted = || caller.accepted.into_iter().flatten().any(|access| access.of == tool.name);
        if tool.ask && !is_accepted() {
            let message =
                format!("`{}` is called only once a person has accepted the call (`ask` in config.toml)", tool.name);
            let error = TaskError { code: ErrorCode::ApprovalNeeded, policy: true, ..TaskError::of_host(message) };
            return TaskReport::failed(task.clone(), error);
        }
        if let Some(permit) = caller.permit
            && let Err(why) = permit.call(&format!("mcp:{}", tool.server), tool.changes())
        {
            let mut report = TaskReport::failed(task.clone(), effect_denied(&tool.name, &why));
            report.sinks = permit.take_log();
            return report;
        }
        let mut report = match self.servers.call(tool, args).await {
            Ok(mut outcome) => {
                let pictures = std::mem::take(&mut outcome.pictures);
                let mut report = report(task, &tool.server, outcome);
                self.show_pictures(&pictures, tool, role, &caller, &mut report).await;
                report
            }
            Err(error) => TaskReport::failed(task.clone(), task_error(&error)),
        };
        report.label = tool.answers.clone();
        if let Some(permit) = caller.permit {
            report.label.join(&permit.read().get().label());
            report.sinks = permit.take_log();
        }
        report
    }
}

impl Tools {
    /// Adds the pictures in a tool's answer.
    async fn show_pictures(
        &self,
        pictures: &[Vec<u8>],
        tool: &AllowedTool,
        role: CallerScope,
        caller: &Caller<'_>,
        report: &mut TaskReport,
    ) {
        for (number, bytes) in (1..).zip(pictures) {
            let name = format!("picture {number} of {}", tool.name);
            let source = PictureSource::Bytes { name: &name, bytes };
            match self.picture(source, ShownSize::FULL, role, caller).await {
                Ok(seen) => report.pictures.push(seen.picture),
                Err(refused) => {
                    let why = refused.error.map(|error| error.message).unwrap_or_default();
                    report.text.push_str(&format!("\n[{why}]"));
                }
            }
        }
    }
}

/// Returns the error for an effect that was decided by untrusted text.
pub(super) fn effect_denied(tool: &str, why: &str) -> TaskError {
    let message = format!("`{tool}` was not called: {why}; `kiso approval explain` shows how it came to that");
    TaskError { code: ErrorCode::EffectDenied, policy: true, ..TaskError::of_host(message) }
}

fn report(task: &Task, server: &str, outcome: McpOutcome) -> TaskReport {
    // Prompts fence it like all results; this also names its source.
    let text = format!("{OUTSIDE}MCP server {server}]\n{}", outcome.text);
    if outcome.is_error {
        let (code, limit) = (ErrorCode::Failed, None);
        return TaskReport::failed(
            task.clone(),
            TaskError { code, message: text, limit, retryable: false, policy: false },
        );
    }
    let mut report = TaskReport::new(task.clone(), TaskStatus::Done, text);
    report.data = outcome.data;
    report
}

fn task_error(error: &McpError) -> TaskError {
    let limit = match &error.fault {
        McpFault::Limit(hit) => Some(hit.limit.name().to_owned()),
        _ => None,
    };
    TaskError {
        code: error.fault.code(),
        message: error.to_string(),
        limit,
        retryable: error.fault.is_retryable(),
        policy: error.fault.is_policy(),
    }
}
