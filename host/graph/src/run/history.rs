//! Information about tasks that is only in a run's events: the plan of each, its attempt number, the reviewer's verdict, and its
//! results. It is read from the log so that nothing is stored twice; this also works for logs of older versions whose runs can no
//! longer be replayed.

use std::collections::VecDeque;

use super::super::Why;
use super::super::step::{Event, StepResult, ToolResult};
use super::critic::with_message;
use kiso_plan::call::ToolCall;
use kiso_plan::plan::{Task, TaskKind};
use kiso_plan::report::{ChangedFile, FileNote, MAX_DELIVERED};
use kiso_plan::sink::SinkDecision;

/// The tasks of a run, according to its events.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct History {
    /// Number of plans.
    pub plans: u32,
    /// The goal of the last plan, or of the task of the medium route; empty before there is one.
    pub goal: String,
    /// In the order of their ids, which begin with 1.
    tasks: Vec<TaskHistory>,
    /// Ids of the planned tasks that have not started, in the order of execution.
    waiting: VecDeque<u32>,
    /// Ids of the started tasks, in order; results belong to the last one.
    started: Vec<u32>,
    /// Number of plans, and of tasks without a plan.
    rounds: u32,
}

/// A task, according to its run's events.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TaskHistory {
    /// Number of its plan, from 1; 0 for the task of the medium route, which has none.
    pub plan: u32,
    /// Its position in the sequence of plans and tasks without a plan.
    round: u32,
    /// Whether it is a message, and whether it is for the user.
    message: bool,
    notify: bool,
    /// 1 for a task from the planner; for a reviewer's task, one more than the task that it fixes.
    pub attempt: u32,
    /// The reviewer's verdict, with its reason.
    pub verdict: Option<(kiso_plan::verdict::Status, Option<String>)>,
    pub exit_code: Option<i32>,
    /// Its standard error.
    pub stderr: String,
    /// Files that it produced, each path once, with its latest note.
    pub files: Vec<FileNote>,
    /// For a task that ran: files that it changed, how many more there are, and whether it read text from outside.
    pub changed: Vec<ChangedFile>,
    pub more_changed: u64,
    pub outside: bool,
    /// Decisions about data that left the sandbox.
    pub sinks: Vec<SinkDecision>,
    /// The tool calls of its action loop, in the order of the requests.
    pub calls: Vec<CallHistory>,
}

/// A call of the action loop, according to its run's events.
#[derive(Debug, Clone, PartialEq)]
pub struct CallHistory {
    /// The number of the event with the request, and the call's index in that event, from 0.
    pub seq: u32,
    pub place: usize,
    pub call: ToolCall,
    /// When it started, in milliseconds since 1970; `None` before that.
    pub started_ms: Option<i64>,
    /// When its result was recorded.
    pub ended_ms: Option<i64>,
    pub result: Option<ToolResult>,
}

impl History {
    /// Adds the next event, with its number and time. Kinds of events that contain nothing about tasks may be left out: see
    /// [`History::KINDS`].
    pub fn add(&mut self, seq: u32, at_ms: i64, event: &Event) {
        let went = |why| event.moves.iter().any(|step| step.why == why);
        match &event.result {
            StepResult::Planned { plan, .. } if went(Why::Planned) => {
                (self.plans, self.rounds) = (self.plans + 1, self.rounds + 1);
                self.goal.clone_from(&plan.goal);
                self.waiting = plan.tasks.iter().map(|task| self.begin(self.plans, 1, task)).collect();
            }
            StepResult::Routed { routing, .. } if went(Why::Medium) => self.goal.clone_from(&routing.goal),
            StepResult::Started { .. } => self.started.extend(self.waiting.pop_front()),
            StepResult::Executed { report, .. } => {
                if let Some(task) = self.current_task() {
                    task.exit_code = report.exit_code;
                    task.stderr.clone_from(&report.stderr);
                    task.files.clone_from(&report.files);
                    task.changed.clone_from(&report.changed);
                    task.sinks.clone_from(&report.sinks);
                    (task.more_changed, task.outside) = (report.more_changed, report.outside);
                }
            }
            StepResult::Acted { calls, .. } => {
                if let Some(task) = self.current_task() {
                    let asked = calls.iter().enumerate().map(|(place, call)| {
                        let call = call.clone();
                        CallHistory { seq, place, call, started_ms: None, ended_ms: None, result: None }
                    });
                    task.calls.extend(asked);
                }
            }
            StepResult::CallsStarted => {
                if let Some(task) = self.current_task() {
                    let open = task.calls.iter_mut().filter(|call| call.result.is_none());
                    open.for_each(|call| call.started_ms = Some(at_ms));
                }
            }
            StepResult::Called { results } => {
                if let Some(task) = self.current_task() {
                    for file in results.iter().flat_map(|result| &result.files) {
                        file.add_to(&mut task.files, MAX_DELIVERED);
                    }
                    let open = task.calls.iter_mut().filter(|call| call.result.is_none());
                    for (call, result) in open.zip(results) {
                        (call.result, call.ended_ms) = (Some(result.clone()), Some(at_ms));
                    }
                }
            }
            StepResult::Reviewed { verdict, .. } => {
                let Some(task) = self.current_task() else { return };
                task.verdict = Some((verdict.status, verdict.reason.clone()));
                let (plan, attempt, message) = (task.plan, task.attempt + 1, task.message && task.notify);
                if went(Why::NeedsFix) {
                    let inject = with_message(message, verdict.inject.clone());
                    let ids: Vec<_> = inject.iter().map(|task| self.begin(plan, attempt, task)).collect();
                    ids.into_iter().rev().for_each(|id| self.waiting.push_front(id));
                } else if verdict.blocked.is_some() {
                    let tasks = &self.tasks;
                    let is_message =
                        |id: u32| tasks.get((id as usize).wrapping_sub(1)).is_some_and(|task| task.message);
                    self.waiting.retain(|id| is_message(*id));
                }
            }
            // Another message with its own goal follows.
            StepResult::Finished { .. } if event.continues => {
                self.waiting.clear();
                self.goal.clear();
            }
            _ => {}
        }
        if went(Why::Medium) {
            self.rounds += 1;
            let id = self.begin(0, 1, &Task::new(TaskKind::Act, String::new()));
            self.started.push(id);
        }
    }

    /// The kinds of events that are needed.
    pub const KINDS: [&str; 10] = [
        "retrieved",
        "routed",
        "planned",
        "started",
        "executed",
        "acted",
        "calls_started",
        "called",
        "reviewed",
        "finished",
    ];

    /// Returns the task with this id; `None` if no event contains it.
    pub fn task(&self, id: u32) -> Option<&TaskHistory> {
        self.tasks.get((id as usize).checked_sub(1)?)
    }

    /// Returns a call by the number of its event and its index there.
    pub fn call(&self, seq: u32, place: usize) -> Option<&CallHistory> {
        self.tasks.iter().flat_map(|task| &task.calls).find(|call| (call.seq, call.place) == (seq, place))
    }

    /// Returns the sort key of a task: first by plan; in each plan the started tasks in order, then the waiting ones in order,
    /// then the dropped ones.
    pub fn place(&self, id: u32) -> (u32, u8, usize) {
        let round = self.task(id).map_or(u32::MAX, |task| task.round);
        let started = self.started.iter().position(|known| *known == id).map(|at| (round, 0, at));
        let waiting = || self.waiting.iter().position(|known| *known == id).map(|at| (round, 1, at));
        started.or_else(waiting).unwrap_or((round, 2, id as usize))
    }

    fn current_task(&mut self) -> Option<&mut TaskHistory> {
        self.tasks.get_mut((*self.started.last()? as usize).checked_sub(1)?)
    }

    /// Adds a planned task and returns its id.
    fn begin(&mut self, plan: u32, attempt: u32, task: &Task) -> u32 {
        let (round, message, notify) = (self.rounds, task.kind == TaskKind::Msg, task.notify);
        self.tasks.push(TaskHistory { plan, attempt, round, message, notify, ..TaskHistory::default() });
        u32::try_from(self.tasks.len()).unwrap_or(u32::MAX)
    }

    /// Ids of the waiting tasks, in the order of execution.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> Vec<u32> {
        self.waiting.iter().copied().collect()
    }

    #[cfg(test)]
    pub(super) fn current(&self) -> Option<u32> {
        self.started.last().copied()
    }
}
