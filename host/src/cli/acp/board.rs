//! The plan of a run, as an editor shows it.

use std::collections::VecDeque;

use kiso_plan::plan::Task;

/// Maximum entries; older ones are dropped.
const MAX_ENTRIES: usize = 200;

/// The tasks of a run: started and waiting ones.
#[derive(Debug, Default)]
pub(super) struct PlanBoard {
    begun: Vec<(String, &'static str)>,
    waiting: VecDeque<Task>,
}

impl PlanBoard {
    /// Replaces the waiting tasks by a new plan.
    pub(super) fn plan(&mut self, tasks: &[Task]) {
        self.waiting = tasks.iter().cloned().collect();
    }

    /// Inserts tasks that come next.
    pub(super) fn inject(&mut self, tasks: &[Task]) {
        tasks.iter().rev().for_each(|task| self.waiting.push_front(task.clone()));
    }

    /// Starts and returns the next task.
    pub(super) fn start(&mut self) -> Option<Task> {
        self.end();
        let task = self.waiting.pop_front()?;
        self.begun.push((label(&task), "in_progress"));
        if self.begun.len() > MAX_ENTRIES {
            self.begun.remove(0);
        }
        Some(task)
    }

    /// Ends the running task. The protocol has no status for a failed entry; the tool call reports the failure.
    pub(super) fn end(&mut self) {
        if let Some((_, status)) = self.begun.last_mut() {
            *status = "completed";
        }
    }

    /// Returns each task with its status.
    pub(super) fn entries(&self) -> impl Iterator<Item = (String, &'static str)> {
        self.begun.iter().cloned().chain(self.waiting.iter().map(|task| (label(task), "pending")))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.begun.is_empty() && self.waiting.is_empty()
    }
}

/// Describes a task for a person.
fn label(task: &Task) -> String {
    let detail: String = task.detail.lines().next().unwrap_or_default().chars().take(120).collect();
    match task.label() {
        label if label.starts_with('$') || detail.is_empty() || detail == label => label,
        label => format!("{label}: {detail}"),
    }
}
