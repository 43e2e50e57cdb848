//! Tools of MCP servers among the others: their cards, and what a call of one leaves.

use super::Tools;
use crate::mcp::{AllowedTool, McpError, McpFault, McpOutcome};
use kiso_graph::bind::OUTSIDE;
use kiso_plan::code::ErrorCode;
use kiso_plan::plan::Task;
use kiso_plan::prompt::SkillCard;
use kiso_plan::report::{TaskError, TaskReport, TaskStatus};
use kiso_sandbox::skill::Caller;
use serde_json::Value;

/// The card of a tool. Its category is its server.
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
    /// Calls a tool with arguments that were checked. Whatever happens is a report.
    pub(super) async fn call_mcp(
        &self,
        task: &Task,
        tool: &AllowedTool,
        args: &Value,
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
            Ok(outcome) => report(task, &tool.server, outcome),
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

/// Why an effect is not done that nobody trusted has decided.
pub(super) fn effect_denied(tool: &str, why: &str) -> TaskError {
    let message = format!("`{tool}` was not called: {why}; `kiso policy explain` shows how it came to that");
    TaskError { code: ErrorCode::EffectDenied, policy: true, ..TaskError::of_host(message) }
}

fn report(task: &Task, server: &str, outcome: McpOutcome) -> TaskReport {
    // Prompts fence it as they fence all results; this says besides whose words they are.
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
