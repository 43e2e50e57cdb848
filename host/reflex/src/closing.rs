//! The end of a plan: a message to the user.

use kiso_plan::plan::{Plan, Task, TaskKind};

/// The closing task's instruction to the worker.
pub(crate) const REPORT: &str = "Tell the user what came out, with the results and the files that were made.";

/// The prefix of a line of a closing task that the user must see.
pub(crate) const NOTE: &str = "Note: ";

/// Creates a plan that ends with a report to the user.
pub(crate) fn close(goal: &str, mut tasks: Vec<Task>, notes: &[String]) -> Plan {
    let mut detail = REPORT.to_owned();
    for note in notes {
        detail.push_str(&format!("\n{NOTE}{note}."));
    }
    tasks.push(msg(detail));
    Plan { goal: shortened(goal), tasks, blocked: None }
}

/// Creates a message to the user.
pub(crate) fn msg(detail: String) -> Task {
    Task { notify: true, ..Task::new(TaskKind::Msg, detail) }
}

/// Returns a path in the form for messages.
pub(crate) fn quoted_path(path: &str) -> String {
    let plain = path.chars().all(|c| c.is_alphanumeric() || "._-/".contains(c));
    if plain { path.to_owned() } else { format!("\"{path}\"") }
}

/// Shortens a long message to a goal of one line.
pub(crate) fn shortened(text: &str) -> String {
    const MOST: usize = 300;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None if line.is_empty() => "an empty message".to_owned(),
        None => line,
    }
}
