//! The plan of a run as an editor shows it.

use std::collections::VecDeque;

use kiso_plan::plan::Task;

/// Entries that are kept: what is older is left out.
const MAX_ENTRIES: usize = 200;

/// The tasks of a run: those that were begun, and those that wait.
#[derive(Debug, Default)]
pub(super) struct PlanBoard {
    begun: Vec<(String, &'static str)>,
    waiting: VecDeque<Task>,
}

impl PlanBoard {
    /// A plan, in the place of what was left of the one before.
    pub(super) fn plan(&mut self, tasks: &[Task]) {
        self.waiting = tasks.iter().cloned().collect();
    }

    /// Tasks that come next.
    pub(super) fn inject(&mut self, tasks: &[Task]) {
        tasks.iter().rev().for_each(|task| self.waiting.push_front(task.clone()));
    }

    /// The next task begins, which is this one.
    pub(super) fn start(&mut self) -> Option<Task> {
        self.end();
        let task = self.waiting.pop_front()?;
        self.begun.push((label(&task), "in_progress"));
        if self.begun.len() > MAX_ENTRIES {
            self.begun.remove(0);
        }
        Some(task)
    }

    /// What was begun has ended: the protocol has no word for what failed, which its tool call says.
    pub(super) fn end(&mut self) {
        if let Some((_, status)) = self.begun.last_mut() {
            *status = "completed";
        }
    }

    /// What each task is, and how it stands.
    pub(super) fn entries(&self) -> impl Iterator<Item = (String, &'static str)> {
        self.begun.iter().cloned().chain(self.waiting.iter().map(|task| (label(task), "pending")))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.begun.is_empty() && self.waiting.is_empty()
    }
}

/// What a task is, for a person.
fn label(task: &Task) -> String {
    let detail: String = task.detail.lines().next().unwrap_or_default().chars().take(120).collect();
    match task.label() {
        label if label.starts_with('$') || detail.is_empty() || detail == label => label,
        label => format!("{label}: {detail}"),
    }
}
