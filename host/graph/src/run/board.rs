//! All tasks of a run with their states, for listings and progress reports.

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::{Run, State};
use kiso_plan::plan::Task;
use kiso_plan::report::{TaskReport, TaskStatus};

/// The state of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "lowercase")]
pub enum TaskState {
    Planned,
    Running,
    Done,
    Failed,
    /// The host stopped while it ran.
    Interrupted,
    /// Its plan was abandoned, or the run ended, before it ran.
    Dropped,
}

impl TaskState {
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A task and its state.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BoardTask<'a> {
    /// Unique in the run, counted from 1 in the order of planning.
    pub id: u32,
    pub state: TaskState,
    pub task: &'a Task,
    /// For a finished task.
    pub report: Option<&'a TaskReport>,
    /// Why it does not count as done.
    pub rejected: Option<&'a str>,
}

impl Run {
    /// Returns all tasks of the run: first the executed ones in their order, then the others.
    pub fn board(&self) -> Vec<BoardTask<'_>> {
        let plain = |id, state, task| BoardTask { id, state, task, report: None, rejected: None };
        let ended = self.records.iter().map(|record| BoardTask {
            id: record.id,
            state: match record.report.status {
                TaskStatus::Done if record.rejected.is_none() => TaskState::Done,
                TaskStatus::Interrupted => TaskState::Interrupted,
                _ => TaskState::Failed,
            },
            task: &record.report.task,
            report: Some(&record.report),
            rejected: record.rejected.as_deref(),
        });
        let running = match &self.state {
            State::Acting { id, task, .. } | State::Looping { id, task, .. } => {
                Some(plain(*id, TaskState::Running, task))
            }
            _ => None,
        };
        let waiting = self.current.waiting.iter().map(|waiting| plain(waiting.id, TaskState::Planned, &waiting.task));
        let dropped = self.dropped.iter().map(|(id, task)| plain(*id, TaskState::Dropped, task));
        ended.chain(running).chain(waiting).chain(dropped).collect()
    }

    /// Returns the board as lines for a prompt, without dropped tasks.
    pub(super) fn board_lines(&self) -> Vec<String> {
        let shown = self.board().into_iter().filter(|entry| entry.state != TaskState::Dropped);
        let line = |(number, entry): (usize, BoardTask<'_>)| {
            let detail = kiso_plan::clip::clip(&entry.task.detail, 200);
            format!("{}. [{}] {}: {detail}", number + 1, entry.state.name(), entry.task.label())
        };
        shown.enumerate().map(line).collect()
    }
}
