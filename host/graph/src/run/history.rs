//! What a run's events say about its tasks beside what becomes of them: the plan each stood in, which attempt it was,
//! what the reviewer said of it, and what it left behind. Read from the log, so that none of it is stored twice, and also
//! from logs of versions whose runs cannot be replayed any more.

use std::collections::VecDeque;

use super::super::Why;
use super::super::step::{Event, StepResult, ToolResult};
use super::critic::with_message;
use kiso_plan::call::ToolCall;
use kiso_plan::plan::{Task, TaskKind};
use kiso_plan::report::{ChangedFile, FileNote, MAX_DELIVERED};
use kiso_plan::sink::SinkDecision;

/// The tasks of a run, as its events tell of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct History {
    /// Plans that were made.
    pub plans: u32,
    /// The goal of the last plan, or of the task of the medium route; empty before there is one.
    pub goal: String,
    /// In the order of their ids, which begin with 1.
    tasks: Vec<TaskHistory>,
    /// Ids of those that were planned and not started, in the order in which they will be.
    waiting: VecDeque<u32>,
    /// Ids of those that were started, in that order; the last one is the one that results are about.
    started: Vec<u32>,
    /// Plans, and tasks without one, that there were.
    rounds: u32,
}

/// A task, as its run's events tell of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TaskHistory {
    /// Number of its plan, from 1; 0 for the task of the medium route, which has none.
    pub plan: u32,
    /// Its place among plans and tasks without one.
    round: u32,
    /// Whether it is a message, and one for the user.
    message: bool,
    notify: bool,
    /// 1 for a task that the planner wrote; one more than the task that it puts right for one of a reviewer's.
    pub attempt: u32,
    /// The reviewer's, with its reason.
    pub verdict: Option<(kiso_plan::verdict::Status, Option<String>)>,
    pub exit_code: Option<i32>,
    /// What it wrote to standard error.
    pub stderr: String,
    /// Files that it made; a path that was written twice stands once, as it was last.
    pub files: Vec<FileNote>,
    /// Of a task that ran: files that it changed, how many more there are, and whether it read text from outside.
    pub changed: Vec<ChangedFile>,
    pub more_changed: u64,
    pub outside: bool,
    /// The decisions where it left the sandbox.
    pub sinks: Vec<SinkDecision>,
    /// The calls of tools that the action loop made for it, in the order in which they were asked for.
    pub calls: Vec<CallHistory>,
}

/// A call of the action loop, as its run's events tell of it.
#[derive(Debug, Clone, PartialEq)]
pub struct CallHistory {
    /// The number of the event that asked for it, and its place among the calls of that event, from 0.
    pub seq: u32,
    pub place: usize,
    pub call: ToolCall,
    /// When it began, in milliseconds since 1970; `None` before that.
    pub started_ms: Option<i64>,
    /// When its result was recorded.
    pub ended_ms: Option<i64>,
    pub result: Option<ToolResult>,
}

impl History {
    /// Takes up the next event, which has this number and this time. Those of kinds that say nothing about tasks may be left out: see
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
            // What comes next is another message, with a goal of its own.
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

    /// Kinds of the events that matter here.
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

    /// The task of that id; `None` where no event tells of it.
    pub fn task(&self, id: u32) -> Option<&TaskHistory> {
        self.tasks.get((id as usize).checked_sub(1)?)
    }

    /// The call of that place among those of the event of that number.
    pub fn call(&self, seq: u32, place: usize) -> Option<&CallHistory> {
        self.tasks.iter().flat_map(|task| &task.calls).find(|call| (call.seq, call.place) == (seq, place))
    }

    /// What tasks are to be sorted by: the first plan first, and of each plan those that were started in that order, then
    /// those that wait in that order, then those that were dropped.
    pub fn place(&self, id: u32) -> (u32, u8, usize) {
        let round = self.task(id).map_or(u32::MAX, |task| task.round);
        let started = self.started.iter().position(|known| *known == id).map(|at| (round, 0, at));
        let waiting = || self.waiting.iter().position(|known| *known == id).map(|at| (round, 1, at));
        started.or_else(waiting).unwrap_or((round, 2, id as usize))
    }

    fn current_task(&mut self) -> Option<&mut TaskHistory> {
        self.tasks.get_mut((*self.started.last()? as usize).checked_sub(1)?)
    }

    /// A task that was planned now; its id.
    fn begin(&mut self, plan: u32, attempt: u32, task: &Task) -> u32 {
        let (round, message, notify) = (self.rounds, task.kind == TaskKind::Msg, task.notify);
        self.tasks.push(TaskHistory { plan, attempt, round, message, notify, ..TaskHistory::default() });
        u32::try_from(self.tasks.len()).unwrap_or(u32::MAX)
    }

    /// Ids of the tasks that wait, in the order in which they will be started.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> Vec<u32> {
        self.waiting.iter().copied().collect()
    }

    #[cfg(test)]
    pub(super) fn current(&self) -> Option<u32> {
        self.started.last().copied()
    }
}
