//! One job going through the graph, as a machine that does no I/O.
//!
//! ```text
//! next_step() ─► Step ─► the driver does it ─► StepResult ─► accept() ─► Event ─► committed ─► next_step() …
//! ```
//!
//! After a crash the stored events go through the same [`Run::accept`] ([`Run::replay`]), then [`Run::interrupt`]
//! turns a task that started and never ended into a report that the critic sees.

mod critic;

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::brief::{self, Brief};
use super::limits::{LimitReached, Limits, Usage};
use super::outcome::{Ending, Outcome};
use super::plan::{Caller, Plan, Task, TaskKind};
use super::report::{Attempt, Correction, FailureNote, INTERRUPTED, TaskReport, TaskStatus};
use super::step::{Event, IllegalResult, Move, PlanAsk, Replan, ReviewAsk, Step, StepResult};
use super::verdict::Status;
use super::{Node, Why, edge};

/// What a run is made from; stored with it, so that a replay has the same limits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSpec {
    pub id: String,
    pub session: String,
    pub message: String,
    pub caller: Caller,
    pub limits: Limits,
}

/// The machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    spec: RunSpec,
    state: State,
    current: Current,
    /// Every task that ended, over all plans. A task's index is its place here.
    records: Vec<Record>,
    /// Plans that were given up.
    history: Vec<Attempt>,
    /// What the user is to be told before anything else happens.
    notices: VecDeque<String>,
    /// Texts of accepted `msg` tasks with `notify: true`.
    said: Vec<String>,
    usage: Usage,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "at", rename_all = "snake_case")]
enum State {
    Retrieving,
    Planning {
        attempt: u32,
        correction: Option<Correction>,
        abandoned: Option<Abandoned>,
    },
    /// The next task of `current` is to be started.
    Reasoning,
    Acting {
        task: Task,
        depth: u32,
    },
    /// The last record is under review.
    Reviewing {
        attempt: u32,
        correction: Option<Correction>,
    },
    Finishing {
        ending: Ending,
    },
    Ended {
        outcome: Outcome,
    },
}

impl State {
    fn node(&self) -> Node {
        match self {
            Self::Retrieving => Node::Retrieval,
            Self::Planning { .. } => Node::Planner,
            Self::Reasoning => Node::Reasoning,
            Self::Acting { .. } => Node::Action,
            Self::Reviewing { .. } => Node::Critic,
            Self::Finishing { .. } => Node::Output,
            Self::Ended { .. } => Node::End,
        }
    }
}

/// The plan that is being carried out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Current {
    goal: String,
    blocked: Option<String>,
    waiting: VecDeque<Waiting>,
    /// Tasks that were planned or injected so far.
    size: usize,
    /// Index of the plan's first task in the run.
    first: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Waiting {
    task: Task,
    /// How many reviews in a row injected tasks until this one; 0 for a task that the planner wrote.
    depth: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Record {
    report: TaskReport,
    depth: u32,
    /// Why the task does not count as done, after the critic has looked at it.
    rejected: Option<String>,
}

/// A plan that was given up after the last record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Abandoned {
    reason: String,
    remaining: Vec<Task>,
}

impl Run {
    /// A run whose message has been admitted, so that retrieval comes next.
    pub fn new(spec: RunSpec) -> Self {
        Self {
            spec,
            state: State::Retrieving,
            current: Current::default(),
            records: Vec::new(),
            history: Vec::new(),
            notices: VecDeque::new(),
            said: Vec::new(),
            usage: Usage::default(),
        }
    }

    /// Rebuilds a run from its stored events. Fails if a result is not legal, or if an event says something else
    /// about its result than this version of the machine does.
    pub fn replay<'a>(spec: RunSpec, events: impl IntoIterator<Item = &'a Event>) -> Result<Self, IllegalResult> {
        let mut run = Self::new(spec);
        for (index, event) in events.into_iter().enumerate() {
            if run.accept(event.result.clone())? != *event {
                return Err(IllegalResult::Diverged { index });
            }
        }
        Ok(run)
    }

    pub fn spec(&self) -> &RunSpec {
        &self.spec
    }

    pub fn node(&self) -> Node {
        self.state.node()
    }

    /// The goal of the plan that is being carried out; empty before there is one.
    pub fn goal(&self) -> &str {
        &self.current.goal
    }

    /// What every task of the run left behind, in order.
    pub fn reports(&self) -> impl DoubleEndedIterator<Item = &TaskReport> {
        self.records.iter().map(|record| &record.report)
    }

    /// Tokens of all model calls so far.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// How the run ended, with the reply as it was delivered; `None` while it goes on.
    pub fn outcome(&self) -> Option<&Outcome> {
        match &self.state {
            State::Ended { outcome } => Some(outcome),
            _ => None,
        }
    }

    /// What to do now. Asking again changes nothing.
    pub fn next_step(&self) -> Step {
        if let Some(text) = self.notices.front() {
            return Step::Tell { text: text.clone() };
        }
        let index = self.records.len();
        match &self.state {
            State::Retrieving => Step::Retrieve,
            State::Planning { attempt, correction, abandoned } => Step::Plan(Box::new(PlanAsk {
                attempt: *attempt,
                correction: correction.clone(),
                replan: abandoned.as_ref().and_then(|abandoned| self.replan_context(abandoned)),
            })),
            State::Reasoning => match self.current.waiting.front() {
                Some(next) => Step::Start { task: index, brief: Box::new(self.brief(&next.task)) },
                None => Step::Ended, // `reasoning` is only entered with a task waiting
            },
            State::Acting { task, .. } => Step::Execute { task: index, brief: Box::new(self.brief(task)) },
            State::Reviewing { attempt, correction } => match self.records.last() {
                Some(record) => Step::Review(Box::new(ReviewAsk {
                    task: index - 1,
                    attempt: *attempt,
                    correction: correction.clone(),
                    goal: self.current.goal.clone(),
                    report: record.report.clone(),
                })),
                None => Step::Ended, // a review follows a record
            },
            State::Finishing { ending } => Step::Finish(Box::new(self.outcome_of(ending))),
            State::Ended { .. } => Step::Ended,
        }
    }

    /// Takes the result of the step that [`Run::next_step`] asked for.
    pub fn accept(&mut self, result: StepResult) -> Result<Event, IllegalResult> {
        self.check(&result)?;
        self.usage += result.usage();
        let mut event = Event { result, moves: Vec::new(), limits: Vec::new(), say: None };
        self.apply(&mut event)?;
        let goes_on = matches!(self.node(), Node::Planner | Node::Reasoning | Node::Critic);
        if goes_on && self.out_of_tokens() {
            self.stop(&mut event)?;
        }
        Ok(event)
    }

    /// To be called once after a replay: a task that had started and may have taken effect is not run again but
    /// reported as interrupted. A message has no effect until it is accepted, so it is simply written again.
    pub fn interrupt(&mut self) -> Result<Option<Event>, IllegalResult> {
        let State::Acting { task, .. } = &self.state else {
            return Ok(None);
        };
        if task.kind == TaskKind::Msg {
            return Ok(None);
        }
        let report = Box::new(TaskReport::new(task.clone(), TaskStatus::Interrupted, INTERRUPTED));
        self.accept(StepResult::Executed { task: self.records.len(), report, call: None }).map(Some)
    }

    /// Whether `result` answers what the run waits for. Changes nothing.
    fn check(&self, result: &StepResult) -> Result<(), IllegalResult> {
        let step = self.next_step();
        let waiting = step.name();
        let malformed = |message: &str| Err(IllegalResult::Malformed { waiting, message: message.to_owned() });
        match (&step, result) {
            (Step::Tell { text }, StepResult::Told { text: told }) if text == told => Ok(()),
            (Step::Retrieve, StepResult::Retrieved { .. }) => Ok(()),
            (Step::Plan(_), StepResult::Planned { plan, .. }) => match plan.shape(self.spec.limits.max_tasks).first() {
                Some(violation) => malformed(&violation.to_string()),
                None => Ok(()),
            },
            (Step::Plan(_), StepResult::Unplanned { .. } | StepResult::ModelFailed { .. }) => Ok(()),
            (Step::Start { task, .. }, StepResult::Started { task: started }) if task == started => Ok(()),
            (Step::Execute { task, brief }, StepResult::Executed { task: done, report, .. }) => {
                match *task == *done && brief.task == report.task {
                    true => Ok(()),
                    false => malformed("it reports about another task"),
                }
            }
            (Step::Review(_), StepResult::Reviewed { verdict, .. }) => match verdict.status {
                Status::NeedsFix if verdict.inject.is_empty() => malformed("needs_fix without tasks"),
                Status::Replan if verdict.reason.is_none() => malformed("replan without a reason"),
                Status::Ok | Status::Replan if !verdict.inject.is_empty() => malformed("tasks without needs_fix"),
                _ => Ok(()),
            },
            (Step::Review(_), StepResult::Unreviewed { .. } | StepResult::ModelFailed { .. }) => Ok(()),
            (Step::Finish(_), StepResult::Finished { .. }) => Ok(()),
            _ => Err(IllegalResult::Unexpected { waiting, got: result.name() }),
        }
    }

    fn apply(&mut self, event: &mut Event) -> Result<(), IllegalResult> {
        match event.result.clone() {
            StepResult::Told { .. } => {
                self.notices.pop_front();
                Ok(())
            }
            StepResult::Retrieved { .. } => {
                let state = State::Planning { attempt: 1, correction: None, abandoned: None };
                self.go(event, Why::High, state)
            }
            StepResult::Planned { plan, .. } => self.take_plan(event, plan),
            StepResult::Unplanned { correction, .. } => self.retry_plan(event, correction),
            StepResult::Started { .. } => match self.current.waiting.pop_front() {
                Some(Waiting { task, depth }) => self.go(event, Why::Ready, State::Acting { task, depth }),
                None => Ok(()),
            },
            StepResult::Executed { report, .. } => self.take_report(event, *report),
            StepResult::Reviewed { verdict, .. } => self.take_verdict(event, verdict),
            StepResult::Unreviewed { correction, .. } => self.retry_review(event, correction),
            StepResult::ModelFailed { message } if self.node() == Node::Planner => {
                let ending = Ending::Failed { reason: format!("Planning failed: {message}") };
                self.go(event, Why::PlanningFailed, State::Finishing { ending })
            }
            StepResult::ModelFailed { message } => self.do_without_review(event, &message),
            StepResult::Finished { reply } => {
                let State::Finishing { ending } = &self.state else {
                    return Ok(());
                };
                let outcome = Outcome { reply, ..self.outcome_of(ending) };
                self.go(event, Why::CycleComplete, State::Ended { outcome })
            }
        }
    }

    /// Follows the edge for `why` into `state`; a run moves nowhere else.
    fn go(&mut self, event: &mut Event, why: Why, state: State) -> Result<(), IllegalResult> {
        let to = self.pass(event, why)?;
        debug_assert_eq!(to, state.node());
        self.state = state;
        Ok(())
    }

    /// Takes an edge without staying at its end: the critic often decides within the result that reached it.
    fn pass(&self, event: &mut Event, why: Why) -> Result<Node, IllegalResult> {
        let from = event.moves.last().map_or(self.node(), |step| step.to);
        let to = edge(from, why).ok_or(IllegalResult::NoEdge { from, why })?;
        event.moves.push(Move { from, why, to });
        Ok(to)
    }

    fn take_plan(&mut self, event: &mut Event, plan: Plan) -> Result<(), IllegalResult> {
        self.current = Current {
            goal: plan.goal,
            blocked: plan.blocked,
            size: plan.tasks.len(),
            waiting: plan.tasks.into_iter().map(|task| Waiting { task, depth: 0 }).collect(),
            first: self.records.len(),
        };
        self.go(event, Why::Planned, State::Reasoning)
    }

    fn retry_plan(&mut self, event: &mut Event, correction: Correction) -> Result<(), IllegalResult> {
        let State::Planning { attempt, abandoned, .. } = &self.state else {
            return Ok(());
        };
        let (attempt, abandoned) = (*attempt, abandoned.clone());
        let retries = self.spec.limits.max_parse_retries;
        if attempt <= retries {
            let state = State::Planning { attempt: attempt + 1, correction: Some(correction), abandoned };
            return self.go(event, Why::NoPlan, state);
        }
        event.limits.push(LimitReached::new("max_parse_retries", retries.into()));
        // Word for word as seed 001 has it; the log has the violations.
        let reason = format!("Planning failed: could not parse planner response after {attempt} attempts.");
        self.go(event, Why::PlanningFailed, State::Finishing { ending: Ending::Failed { reason } })
    }

    fn out_of_tokens(&self) -> bool {
        self.usage.total() >= self.spec.limits.max_tokens_per_run
    }

    fn token_ending(&self, event: &mut Event) -> Ending {
        let limit = LimitReached::new("max_tokens_per_run", self.spec.limits.max_tokens_per_run);
        event.limits.push(limit.clone());
        Ending::LimitHit(limit)
    }

    fn stop(&mut self, event: &mut Event) -> Result<(), IllegalResult> {
        let ending = self.token_ending(event);
        self.go(event, Why::OutOfTokens, State::Finishing { ending })
    }

    fn outcome_of(&self, ending: &Ending) -> Outcome {
        Outcome::new(ending.clone(), &self.said, &self.current.goal, self.reports())
    }

    fn brief(&self, task: &Task) -> Brief {
        Brief {
            goal: self.current.goal.clone(),
            expect: task.expect.clone(),
            evidence: brief::evidence(self.reports()),
            task: task.clone(),
            number: self.records.len() - self.current.first + 1,
            of: self.current.size,
        }
    }

    fn replan_context(&self, abandoned: &Abandoned) -> Option<Replan> {
        let (last, before) = self.records.split_last()?;
        Some(Replan {
            completed: before.iter().map(|record| record.report.clone()).collect(),
            remaining: abandoned.remaining.clone(),
            failure: FailureNote { report: last.report.clone(), reason: abandoned.reason.clone() },
            history: self.history.clone(),
        })
    }
}

#[cfg(test)]
mod tests;
