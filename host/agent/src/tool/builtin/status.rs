//! `task_status`: the tasks of the active run.

use serde_json::json;

use super::{CallContext, Tool, ToolFault, tool};
use kiso_store::store::{Store, TaskRow};

pub(super) const CATEGORY: &str = "status";
pub(super) const STATUS: &str = "task_status";

/// Maximum number of characters of an output or an error that are shown for each task.
const SHOWN: usize = 200;

pub(super) fn tools() -> Vec<Tool> {
    let what = "Show the tasks of this run and how they stand.";
    vec![tool(STATUS, CATEGORY, what, json!({}), &[])]
}

pub(super) async fn call(store: &Store, at: &CallContext) -> Result<String, ToolFault> {
    let run = at.run.clone().ok_or_else(|| ToolFault::new("no run is in progress here"))?;
    let tasks = store.read(move |view| view.tasks_of(&run)).await?;
    if tasks.is_empty() {
        return Ok("This run has no tasks: it was not planned.".to_owned());
    }
    Ok(tasks.iter().map(line).collect::<Vec<_>>().join("\n"))
}

fn line(row: &TaskRow) -> String {
    let mut line = format!("{}. {} [{}]", row.position + 1, row.label, row.status.as_str());
    let (what, text) = match (&row.error, &row.output) {
        (Some(error), _) => ("error", error),
        (None, Some(output)) if !output.trim().is_empty() => ("output", output),
        _ => return line,
    };
    let words = text.chars().take(4 * SHOWN).collect::<String>();
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    let shown: String = words.chars().take(SHOWN).collect();
    let more = if shown.len() < words.len() { "…" } else { "" };
    line.push_str(&format!(" {what}: {shown}{more}"));
    line
}
