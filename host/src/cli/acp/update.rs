//! Updates about a conversation: the kinds of the notification `session/update`.

use serde_json::{Value, json};

use super::board::PlanBoard;
use super::diff::Change;
use kiso_agent::session::command;
use kiso_base::config::Config;
use kiso_base::home::SessionName;
use kiso_base::rpc;

/// Maximum characters of a tool's output in an update.
const MAX_OUTPUT: usize = 16 << 10;

/// Returns a notification with this update.
pub(super) fn notification(session: &SessionName, update: Value) -> Value {
    rpc::notification("session/update", json!({ "sessionId": session, "update": update }))
}

/// Returns a part of a text: `agent_message_chunk`, `agent_thought_chunk` or `user_message_chunk`.
pub(super) fn text(session: &SessionName, kind: &str, text: &str) -> Value {
    notification(session, json!({ "sessionUpdate": kind, "content": { "type": "text", "text": text } }))
}

/// Returns the slash commands.
pub(super) fn commands(session: &SessionName, config: &Config) -> Value {
    let commands = command::listed(config).into_iter().map(|(name, argument, does)| {
        let mut command = json!({ "name": name, "description": does });
        if !argument.is_empty() {
            command["input"] = json!({ "hint": argument.trim() });
        }
        command
    });
    notification(
        session,
        json!({ "sessionUpdate": "available_commands_update", "availableCommands": commands.collect::<Vec<_>>() }),
    )
}

/// Returns the current plan.
pub(super) fn plan(session: &SessionName, board: &PlanBoard) -> Value {
    let entries =
        board.entries().map(|(label, status)| json!({ "content": label, "priority": "medium", "status": status }));
    notification(session, json!({ "sessionUpdate": "plan", "entries": entries.collect::<Vec<_>>() }))
}

/// Returns the start of a tool call.
pub(super) fn call(session: &SessionName, id: &str, title: &str, kind: &str, input: Value) -> Value {
    notification(
        session,
        json!({
            "sessionUpdate": "tool_call", "toolCallId": id, "title": title, "kind": kind, "status": "in_progress",
            "rawInput": input,
        }),
    )
}

/// Returns the end of a tool call, with its output and the changed files.
pub(super) fn call_end(session: &SessionName, id: &str, is_done: bool, output: &str, changes: Vec<Change>) -> Value {
    let mut content = Vec::new();
    let output = output.trim_end();
    if !output.is_empty() {
        content.push(json!({ "type": "content", "content": { "type": "text", "text": fenced(&cut(output)) } }));
    }
    let locations: Vec<Value> = changes.iter().map(|change| json!({ "path": change.path })).collect();
    for Change { path, text } in changes {
        if let Some((old, new)) = text {
            content.push(json!({ "type": "diff", "path": path, "oldText": old, "newText": new }));
        }
    }
    let status = if is_done { "completed" } else { "failed" };
    let mut update =
        json!({ "sessionUpdate": "tool_call_update", "toolCallId": id, "status": status, "content": content });
    if !locations.is_empty() {
        update["locations"] = Value::Array(locations);
    }
    notification(session, update)
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_OUTPUT) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// Returns Markdown that shows the text literally.
fn fenced(text: &str) -> String {
    let mut fence = "```".to_owned();
    while text.contains(&fence) {
        fence.push('`');
    }
    format!("{fence}\n{text}\n{fence}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_cannot_leave_its_fence() {
        assert_eq!(fenced("a\n````\nb"), "`````\na\n````\nb\n`````");
        assert_eq!(cut(&"é".repeat(MAX_OUTPUT + 1)).chars().count(), MAX_OUTPUT + 1);
    }
}
