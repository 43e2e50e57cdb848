//! What a run asks of its driver, what the driver hands back, and what is stored of it.

use serde::{Deserialize, Serialize};

use super::brief::Brief;
use super::limits::{LimitReached, Usage};
use super::outcome::Outcome;
use super::plan::{Plan, Task};
use super::report::{Attempt, Correction, FailureNote, TaskReport};
use super::verdict::Verdict;
use super::{Node, Why};

/// One thing to do. The result goes to [`super::run::Run::accept`]; its event is committed before the next step.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Look at the workspace. Result: [`StepResult::Retrieved`].
    Retrieve,
    /// Call the planner. Result: `Planned`, `Unplanned` or `ModelFailed`.
    Plan(Box<PlanAsk>),
    /// Commit that this task starts, and do nothing else. Result: `Started`.
    Start { task: usize, brief: Box<Brief> },
    /// Run the task. Result: `Executed`, whatever happens.
    Execute { task: usize, brief: Box<Brief> },
    /// Call the reviewer. Result: `Reviewed`, `Unreviewed` or `ModelFailed`.
    Review(Box<ReviewAsk>),
    /// Tell the user this, now. Result: `Told`.
    Tell { text: String },
    /// Deliver the reply. Result: `Finished`.
    Finish(Box<Outcome>),
    /// Nothing is left to do.
    Ended,
}

impl Step {
    pub fn name(&self) -> &'static str {
        match self {
            Self::Retrieve => "retrieve",
            Self::Plan(_) => "plan",
            Self::Start { .. } => "start",
            Self::Execute { .. } => "execute",
            Self::Review(_) => "review",
            Self::Tell { .. } => "tell",
            Self::Finish(_) => "finish",
            Self::Ended => "ended",
        }
    }
}

/// What the planner is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanAsk {
    /// Counts from 1 for each plan.
    pub attempt: u32,
    /// The last answer, if it could not be used.
    pub correction: Option<Correction>,
    /// Why the plan before this one was given up.
    pub replan: Option<Replan>,
}

/// What a planner is told when it plans again (seed 001, "Replan Flow").
#[derive(Debug, Clone, PartialEq)]
pub struct Replan {
    /// Every task of the run that ended before the one that failed.
    pub completed: Vec<TaskReport>,
    /// What was planned and did not run.
    pub remaining: Vec<Task>,
    pub failure: FailureNote,
    /// Every plan that was given up, oldest first.
    pub history: Vec<Attempt>,
}

/// What the reviewer is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct ReviewAsk {
    /// Index of the task in the run.
    pub task: usize,
    /// Counts from 1 for each task.
    pub attempt: u32,
    pub correction: Option<Correction>,
    pub goal: String,
    pub report: TaskReport,
}

/// How much a message needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Route {
    /// A plan. Also taken when nothing is known about the message.
    High,
}

/// A model call that was paid for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// `provider:model` that answered.
    pub model: String,
    pub usage: Usage,
}

/// What came of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum StepResult {
    Retrieved {
        route: Route,
        /// Paths in the workspace when the run began, relative to `/work`.
        files: Vec<String>,
    },
    Planned {
        plan: Plan,
        /// What the planner said beside its plan.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        chatter: String,
        /// Names of the secrets that the message brought; the values are in the secret store.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        secrets: Vec<String>,
        call: Call,
    },
    Unplanned {
        #[serde(default, skip_serializing_if = "String::is_empty")]
        chatter: String,
        correction: Correction,
        call: Call,
    },
    Started {
        task: usize,
    },
    Executed {
        task: usize,
        report: Box<TaskReport>,
        /// Of the worker, for a task that needed one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<Call>,
    },
    Reviewed {
        verdict: Verdict,
        call: Call,
    },
    Unreviewed {
        correction: Correction,
        call: Call,
    },
    /// The planner's or the reviewer's model gave no answer, after all that was tried below this level.
    ModelFailed {
        message: String,
    },
    Told {
        text: String,
    },
    Finished {
        /// As it was delivered, with what the output node added.
        reply: String,
    },
}

impl StepResult {
    pub fn name(&self) -> &'static str {
        match self {
            Self::Retrieved { .. } => "retrieved",
            Self::Planned { .. } => "planned",
            Self::Unplanned { .. } => "unplanned",
            Self::Started { .. } => "started",
            Self::Executed { .. } => "executed",
            Self::Reviewed { .. } => "reviewed",
            Self::Unreviewed { .. } => "unreviewed",
            Self::ModelFailed { .. } => "model_failed",
            Self::Told { .. } => "told",
            Self::Finished { .. } => "finished",
        }
    }

    /// What the step cost.
    pub fn usage(&self) -> Usage {
        match self {
            Self::Planned { call, .. }
            | Self::Unplanned { call, .. }
            | Self::Reviewed { call, .. }
            | Self::Unreviewed { call, .. } => call.usage,
            Self::Executed { call, .. } => call.as_ref().map(|call| call.usage).unwrap_or_default(),
            _ => Usage::default(),
        }
    }
}

/// An edge that a run took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Move {
    pub from: Node,
    pub why: Why,
    pub to: Node,
}

/// What happened, as it is stored: the accepted result, and what the run made of it. The results alone rebuild the
/// run; the rest is for those who read the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    #[serde(flatten)]
    pub result: StepResult,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moves: Vec<Move>,
    /// Limits that were reached by this result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<LimitReached>,
    /// Output of a task with `notify: true` that was accepted; it goes to the user now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub say: Option<String>,
}

/// A result that does not fit the state of the run. The run is as it was, except after [`IllegalResult::NoEdge`],
/// which only a mistake in the machine can cause.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IllegalResult {
    #[error("the run waits for the result of {waiting}, and {got} is not one")]
    Unexpected { waiting: &'static str, got: &'static str },
    #[error("the result of {waiting} cannot be used: {message}")]
    Malformed { waiting: &'static str, message: String },
    #[error("there is no edge from {from} for {why:?}")]
    NoEdge { from: Node, why: Why },
    #[error("event {index} of the log says something else than the run does with its result")]
    Diverged { index: usize },
}
