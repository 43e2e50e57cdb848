//! One job going through the graph, as a machine that does no I/O.
//!
//! ```text
//! next_step() ─► Step ─► the driver does it ─► StepResult ─► accept() ─► Event ─► committed ─► next_step() …
//! ```
//!
//! After a crash the stored events go through the same [`Run::accept`] ([`Run::replay`]), then [`Run::interrupt`]
//! turns a task that started and never ended into a report that the critic sees.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::brief::{self, Brief};
use super::limits::{LimitReached, Limits, Usage};
use super::outcome::{Ending, Outcome};
use super::plan::{Caller, Plan, Task, TaskKind};
use super::report::{
    Attempt, Correction, FailureNote, FileNote, INTERRUPTED, TaskReport, TaskStatus,
};
use super::step::{Event, IllegalResult, Move, PlanAsk, Replan, ReviewAsk, Step, StepResult};
use super::verdict::{Status, Verdict};
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
    pub fn replay<'a>(
        spec: RunSpec,
        events: impl IntoIterator<Item = &'a Event>,
    ) -> Result<Self, IllegalResult> {
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
            State::Planning {
                attempt,
                correction,
                abandoned,
            } => Step::Plan(Box::new(PlanAsk {
                attempt: *attempt,
                correction: correction.clone(),
                replan: abandoned
                    .as_ref()
                    .and_then(|abandoned| self.replan_context(abandoned)),
            })),
            State::Reasoning => match self.current.waiting.front() {
                Some(next) => Step::Start {
                    task: index,
                    brief: Box::new(self.brief(&next.task)),
                },
                None => Step::Ended, // `reasoning` is only entered with a task waiting
            },
            State::Acting { task, .. } => Step::Execute {
                task: index,
                brief: Box::new(self.brief(task)),
            },
            State::Reviewing {
                attempt,
                correction,
            } => match self.records.last() {
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
        let mut event = Event {
            result,
            moves: Vec::new(),
            limits: Vec::new(),
            say: None,
        };
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
        let report = TaskReport::new(task.clone(), TaskStatus::Interrupted, INTERRUPTED);
        self.accept(StepResult::Executed {
            task: self.records.len(),
            report,
            call: None,
        })
        .map(Some)
    }

    /// Whether `result` answers what the run waits for. Changes nothing.
    fn check(&self, result: &StepResult) -> Result<(), IllegalResult> {
        let step = self.next_step();
        let waiting = step.name();
        let malformed = |message: &str| {
            Err(IllegalResult::Malformed {
                waiting,
                message: message.to_owned(),
            })
        };
        match (&step, result) {
            (Step::Tell { text }, StepResult::Told { text: told }) if text == told => Ok(()),
            (Step::Retrieve, StepResult::Retrieved { .. }) => Ok(()),
            (Step::Plan(_), StepResult::Planned { plan, .. }) => {
                match plan.shape(self.spec.limits.max_tasks).first() {
                    Some(violation) => malformed(&violation.to_string()),
                    None => Ok(()),
                }
            }
            (Step::Plan(_), StepResult::Unplanned { .. } | StepResult::ModelFailed { .. }) => {
                Ok(())
            }
            (Step::Start { task, .. }, StepResult::Started { task: started })
                if task == started =>
            {
                Ok(())
            }
            (
                Step::Execute { task, brief },
                StepResult::Executed {
                    task: done, report, ..
                },
            ) => match *task == *done && brief.task == report.task {
                true => Ok(()),
                false => malformed("it reports about another task"),
            },
            (Step::Review(_), StepResult::Reviewed { verdict, .. }) => match verdict.status {
                Status::NeedsFix if verdict.inject.is_empty() => {
                    malformed("needs_fix without tasks")
                }
                Status::Replan if verdict.reason.is_none() => malformed("replan without a reason"),
                Status::Ok | Status::Replan if !verdict.inject.is_empty() => {
                    malformed("tasks without needs_fix")
                }
                _ => Ok(()),
            },
            (Step::Review(_), StepResult::Unreviewed { .. } | StepResult::ModelFailed { .. }) => {
                Ok(())
            }
            (Step::Finish(_), StepResult::Finished { .. }) => Ok(()),
            _ => Err(IllegalResult::Unexpected {
                waiting,
                got: result.name(),
            }),
        }
    }

    fn apply(&mut self, event: &mut Event) -> Result<(), IllegalResult> {
        match event.result.clone() {
            StepResult::Told { .. } => {
                self.notices.pop_front();
                Ok(())
            }
            StepResult::Retrieved { .. } => {
                let state = State::Planning {
                    attempt: 1,
                    correction: None,
                    abandoned: None,
                };
                self.go(event, Why::High, state)
            }
            StepResult::Planned { plan, .. } => self.take_plan(event, plan),
            StepResult::Unplanned { correction, .. } => self.retry_plan(event, correction),
            StepResult::Started { .. } => match self.current.waiting.pop_front() {
                Some(Waiting { task, depth }) => {
                    self.go(event, Why::Ready, State::Acting { task, depth })
                }
                None => Ok(()),
            },
            StepResult::Executed { report, .. } => self.take_report(event, report),
            StepResult::Reviewed { verdict, .. } => self.take_verdict(event, verdict),
            StepResult::Unreviewed { correction, .. } => self.retry_review(event, correction),
            StepResult::ModelFailed { message } if self.node() == Node::Planner => {
                let ending = Ending::Failed {
                    reason: format!("Planning failed: {message}"),
                };
                self.go(event, Why::PlanningFailed, State::Finishing { ending })
            }
            StepResult::ModelFailed { message } => {
                self.notices.push_back(format!(
                    "{} could not be reviewed ({message}), so it counts as what it reported itself.",
                    self.last_label()
                ));
                self.settle(event)
            }
            StepResult::Finished { reply } => {
                let State::Finishing { ending } = &self.state else {
                    return Ok(());
                };
                let outcome = Outcome {
                    reply,
                    ..self.outcome_of(ending)
                };
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
            waiting: plan
                .tasks
                .into_iter()
                .map(|task| Waiting { task, depth: 0 })
                .collect(),
            first: self.records.len(),
        };
        self.go(event, Why::Planned, State::Reasoning)
    }

    fn retry_plan(
        &mut self,
        event: &mut Event,
        correction: Correction,
    ) -> Result<(), IllegalResult> {
        let State::Planning {
            attempt, abandoned, ..
        } = &self.state
        else {
            return Ok(());
        };
        let (attempt, abandoned) = (*attempt, abandoned.clone());
        let retries = self.spec.limits.max_parse_retries;
        if attempt <= retries {
            let state = State::Planning {
                attempt: attempt + 1,
                correction: Some(correction),
                abandoned,
            };
            return self.go(event, Why::NoPlan, state);
        }
        event
            .limits
            .push(LimitReached::new("max_parse_retries", retries.into()));
        // Word for word as seed 001 has it; the log has the violations.
        let reason =
            format!("Planning failed: could not parse planner response after {attempt} attempts.");
        self.go(
            event,
            Why::PlanningFailed,
            State::Finishing {
                ending: Ending::Failed { reason },
            },
        )
    }

    fn take_report(&mut self, event: &mut Event, report: TaskReport) -> Result<(), IllegalResult> {
        let State::Acting { task, depth } = &self.state else {
            return Ok(());
        };
        let (review, depth) = (task.review, *depth);
        self.records.push(Record {
            report,
            depth,
            rejected: None,
        });
        self.pass(event, Why::TaskEnded)?;
        if !review {
            return self.settle(event);
        }
        let max = self.spec.limits.max_review_depth;
        if depth < max {
            self.state = State::Reviewing {
                attempt: 1,
                correction: None,
            };
            return Ok(());
        }
        event
            .limits
            .push(LimitReached::new("max_review_depth", max.into()));
        self.notices.push_back(format!(
            "{} was not reviewed: {depth} rounds of fixes are behind it, which is the limit max_review_depth. It counts \
             as what it reported itself.",
            self.last_label()
        ));
        self.settle(event)
    }

    /// The critic without a reviewer: exit code and tool status decide alone.
    fn settle(&mut self, event: &mut Event) -> Result<(), IllegalResult> {
        match self
            .records
            .last()
            .and_then(|record| record.report.trouble())
        {
            Some(reason) => self.give_up_plan(event, reason),
            None => self.accept_task(event),
        }
    }

    fn take_verdict(&mut self, event: &mut Event, verdict: Verdict) -> Result<(), IllegalResult> {
        let Verdict {
            status,
            inject,
            reason,
            goal_met,
            ..
        } = verdict;
        match status {
            // A reviewer sees one task and cannot know what else is planned, so its word that the goal is unmet
            // counts only where nothing but messages is left.
            Status::Ok if goal_met == Some(false) && self.only_messages_remain() => {
                let reason = reason
                    .unwrap_or_else(|| "the tasks succeeded, but the goal is not met".to_owned());
                self.give_up_plan(event, reason)
            }
            Status::Ok => {
                if let Some(record) = self.records.last_mut() {
                    record.rejected = record
                        .report
                        .trouble()
                        .filter(|_| !vindicated(&record.report));
                }
                self.accept_task(event)
            }
            Status::Replan => self.give_up_plan(event, reason.unwrap_or_default()),
            Status::NeedsFix => self.inject(event, inject, reason),
        }
    }

    fn inject(
        &mut self,
        event: &mut Event,
        tasks: Vec<Task>,
        reason: Option<String>,
    ) -> Result<(), IllegalResult> {
        let max = self.spec.limits.max_tasks;
        let reason = reason.unwrap_or_else(|| "the output was not what was expected".to_owned());
        if self.current.size + tasks.len() > max {
            event
                .limits
                .push(LimitReached::new("max_tasks", max as u64));
            let reason =
                format!("{reason}; putting it right would take more than max_tasks allows ({max})");
            return self.give_up_plan(event, reason);
        }
        let Some(record) = self.records.last_mut() else {
            return Ok(());
        };
        record.rejected = Some(reason);
        let depth = record.depth + 1;
        self.current.size += tasks.len();
        for task in tasks.into_iter().rev() {
            self.current.waiting.push_front(Waiting { task, depth });
        }
        self.go(event, Why::NeedsFix, State::Reasoning)
    }

    /// A review that cannot be read neither passes nor fails a task: asking for a new plan would repeat the effects
    /// of the old one because of a slip of the reviewer's, so the task's own status decides, and the user is told.
    fn retry_review(
        &mut self,
        event: &mut Event,
        correction: Correction,
    ) -> Result<(), IllegalResult> {
        let State::Reviewing { attempt, .. } = &self.state else {
            return Ok(());
        };
        let attempt = *attempt;
        let retries = self.spec.limits.max_parse_retries;
        if attempt <= retries {
            let state = State::Reviewing {
                attempt: attempt + 1,
                correction: Some(correction),
            };
            return self.go(event, Why::NoVerdict, state);
        }
        event
            .limits
            .push(LimitReached::new("max_parse_retries", retries.into()));
        self.notices.push_back(format!(
            "The review of {} could not be read after {attempt} attempts, so it counts as what it reported itself.",
            self.last_label()
        ));
        self.settle(event)
    }

    fn accept_task(&mut self, event: &mut Event) -> Result<(), IllegalResult> {
        if let Some(Record {
            report,
            rejected: None,
            ..
        }) = self.records.last()
            && report.task.notify
            && !report.text.trim().is_empty()
        {
            let text = report.text.trim().to_owned();
            if report.task.kind == TaskKind::Msg {
                self.said.push(text.clone());
            }
            event.say = Some(text);
        }
        if self.current.waiting.is_empty() {
            let ending = match self.failure() {
                Some(reason) => Ending::Failed { reason },
                None => Ending::Done,
            };
            self.go(event, Why::PlanExhausted, State::Finishing { ending })
        } else {
            self.go(event, Why::TasksRemain, State::Reasoning)
        }
    }

    /// Gives up the current plan because of its last task.
    fn give_up_plan(&mut self, event: &mut Event, reason: String) -> Result<(), IllegalResult> {
        if let Some(record) = self.records.last_mut() {
            record.rejected = Some(reason.clone());
        }
        let max = self.spec.limits.max_replan_depth;
        let used = self.history.len();
        if used >= max as usize {
            event
                .limits
                .push(LimitReached::new("max_replan_depth", max.into()));
            let reason = format!(
                "I gave up: {reason}\nNo further plan is made for this message, {used} new ones have been tried \
                 (the limit max_replan_depth; limits.max_replan_depth in config.toml raises it)."
            );
            let state = State::Finishing {
                ending: Ending::Failed { reason },
            };
            return self.go(event, Why::ReplansExhausted, state);
        }
        if self.out_of_tokens() {
            let ending = self.token_ending(event);
            return self.go(event, Why::OutOfTokens, State::Finishing { ending });
        }
        let tried = self.records[self.current.first.min(self.records.len())..]
            .iter()
            .map(tried)
            .collect();
        self.history.push(Attempt {
            goal: self.current.goal.clone(),
            reason: reason.clone(),
            tried,
        });
        self.notices.push_back(format!("That plan did not work out, so I am making a new one ({} of {max}). The reason: {reason}", used + 1));
        let remaining = self
            .current
            .waiting
            .drain(..)
            .map(|waiting| waiting.task)
            .collect();
        let abandoned = Some(Abandoned { reason, remaining });
        self.go(
            event,
            Why::Replan,
            State::Planning {
                attempt: 1,
                correction: None,
                abandoned,
            },
        )
    }

    fn out_of_tokens(&self) -> bool {
        self.usage.total() >= self.spec.limits.max_tokens
    }

    fn token_ending(&self, event: &mut Event) -> Ending {
        let limit = LimitReached::new("max_tokens", self.spec.limits.max_tokens);
        event.limits.push(limit.clone());
        Ending::LimitHit(limit)
    }

    fn stop(&mut self, event: &mut Event) -> Result<(), IllegalResult> {
        let ending = self.token_ending(event);
        self.go(event, Why::OutOfTokens, State::Finishing { ending })
    }

    /// Why a plan that came to its end has failed all the same.
    fn failure(&self) -> Option<String> {
        let worked = self
            .records
            .iter()
            .rev()
            .find(|record| record.report.task.kind != TaskKind::Msg);
        self.current
            .blocked
            .clone()
            .or_else(|| worked.and_then(|record| record.rejected.clone()))
    }

    fn outcome_of(&self, ending: &Ending) -> Outcome {
        let mut reply = self.said.join("\n\n");
        if let Some(words) = ending
            .words()
            .filter(|words| !reply.contains(words.as_str()))
        {
            if !reply.is_empty() {
                reply.push_str("\n\n");
            }
            reply.push_str(&words);
        }
        if reply.is_empty() {
            reply = format!(
                "The plan came to its end without a message for you. Its goal was: {}",
                self.current.goal
            );
        }
        let mut files: Vec<FileNote> = Vec::new();
        for file in self.reports().flat_map(|report| &report.files) {
            match files.iter_mut().find(|known| known.path == file.path) {
                Some(known) => *known = file.clone(),
                None => files.push(file.clone()),
            }
        }
        Outcome {
            ending: ending.clone(),
            reply,
            files,
        }
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
            failure: FailureNote {
                report: last.report.clone(),
                reason: abandoned.reason.clone(),
            },
            history: self.history.clone(),
        })
    }

    fn only_messages_remain(&self) -> bool {
        self.current
            .waiting
            .iter()
            .all(|waiting| waiting.task.kind == TaskKind::Msg)
    }

    /// The task under review, for a sentence to the user.
    fn last_label(&self) -> String {
        let label = self
            .records
            .last()
            .map(|record| record.report.task.label())
            .unwrap_or_default();
        format!("Task {} ({label})", self.records.len() - self.current.first)
    }
}

/// Whether a reviewer's `ok` makes up for a failing status: a command may be expected to end with 1, but nobody can
/// approve away a limit, a refusal, or a task that did not come to its end.
fn vindicated(report: &TaskReport) -> bool {
    report.status == TaskStatus::Failed
        && report.exit_code.is_some()
        && report
            .error
            .as_ref()
            .is_none_or(|error| error.limit.is_none() && !error.policy)
}

fn tried(record: &Record) -> String {
    let Task { detail, args, .. } = &record.report.task;
    let label = record.report.task.label();
    let what = match args {
        Some(args) => format!("{label} {args}"),
        None => format!("{label} {detail}"),
    };
    match &record.rejected {
        Some(reason) => format!("{} → {}", brief::clip(&what, 300), brief::clip(reason, 300)),
        None => format!("{} → done", brief::clip(&what, 300)),
    }
}

#[cfg(test)]
mod tests;
