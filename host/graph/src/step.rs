//! What a run asks of its driver, what the driver hands back, and what is stored of it.

mod tool_result;

pub use self::tool_result::{STDERR, ToolResult};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::brief::Brief;
use super::execution_brief::ExecutionBrief;
use super::lane::{ActionLane, TranscriptTurn};
use super::outcome::Outcome;
use super::route::{RoutedBy, Routing};
use super::{Node, Why};
use kiso_plan::approval::{Card, CardAnswer};
use kiso_plan::attached::AttachedFiles;
use kiso_plan::call::ToolCall;
use kiso_plan::label::Label;
use kiso_plan::limits::{LimitReached, Usage};
use kiso_plan::pill::PillUse;
use kiso_plan::plan::{Plan, Task, TaskKind};
use kiso_plan::report::{Attempt, Correction, FailureNote, TaskReport};
use kiso_plan::tags::UnknownTag;
use kiso_plan::verdict::Verdict;

/// One thing to do. The result goes to [`super::run::Run::accept`]; its event is committed before the next effect.
#[derive(Debug, Clone, PartialEq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Step {
    /// Take the messages of the turn through gatekeeper, tags and pill. Result: `Admitted`.
    Admit { texts: Vec<String> },
    /// Look at the workspace, and at memory for the goal where it is known without the router. Result: `Retrieved`.
    Retrieve { goal: Option<String> },
    /// Call the router, and look at memory for the goal that it finds. Result: `Routed`, also when it gave no answer that
    /// can be used.
    Route { message: String },
    /// Call the planner. Result: `Planned`, `Unplanned` or `ModelFailed`.
    Plan(Box<PlanAsk>),
    /// Call the reasoner. Result: `Briefed`, `Unbriefed` or `ModelFailed`.
    Reason(Box<ReasonAsk>),
    /// Commit that this task starts, and do nothing else. Result: `Started`, or `ApprovalWanted` before it.
    Start { task: usize, brief: Box<Brief> },
    /// Wait for a person's answer about these effects. Result: `ApprovalGiven`, also when nobody answers in time.
    Approve { card: Box<Card> },
    /// Run the task. Result: `Executed`, whatever happens.
    Execute { task: usize, brief: Box<Brief> },
    /// Call the actor. Result: `Acted` or `ModelFailed`.
    Act(Box<ActAsk>),
    /// Archive and summarise the beginning of the action lane. Result: `Compressed`, also when no summary could be
    /// made: head and tail of the source take its place then.
    Compress(Box<CompressAsk>),
    /// Commit that these calls start, and do nothing else. Result: `CallsStarted`, or `ApprovalWanted` before it.
    StartCalls { calls: Vec<ToolCall> },
    /// Call the tools. Result: `Called`, with one result for each call in their order.
    Call { calls: Vec<ToolCall> },
    /// Call the actor for its self-assessment at the round limit. Result: `Assessed` or `ModelFailed`.
    Assess(Box<ActAsk>),
    /// Call the reviewer. Result: `Reviewed`, `Unreviewed` or `ModelFailed`.
    Review(Box<ReviewAsk>),
    /// Call the worker for an answer without tools. Result: `Conversed` or `ModelFailed`.
    Converse { message: String },
    /// Tell the user this, now. Result: `Told`.
    Tell { text: String },
    /// Deliver the reply, and look whether messages that belong to the turn have arrived. Result: `Finished`.
    Finish(Box<Outcome>),
    /// Nothing is left to do.
    Ended,
}

impl Step {
    pub fn name(&self) -> &'static str {
        self.into()
    }
}

/// What the planner is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanAsk {
    /// The goal that retrieval found: what the planner works from.
    pub directive: String,
    /// Counts from 1 for each plan.
    pub attempt: u32,
    /// The last answer, if it could not be used.
    pub correction: Option<Correction>,
    /// Why the plan before this one was given up.
    pub replan: Option<Replan>,
    /// What the run had replied when the planner was first asked, oldest first: its lane is seeded with that.
    pub replies: Vec<String>,
    /// What the planner said earlier in this run, oldest first, with what was said about what could not be used.
    pub lane: Vec<String>,
    /// The critic's objections, oldest first.
    pub feedback: Vec<String>,
    /// Which tools it may plan with; empty for all.
    pub categories: Vec<String>,
}

/// What the reasoner is asked: the brief of an `act` task.
#[derive(Debug, Clone, PartialEq)]
pub struct ReasonAsk {
    pub goal: String,
    pub task: Task,
    /// Counts from 1 for each task.
    pub attempt: u32,
    pub correction: Option<Correction>,
    /// The plan, a line for each task with its state.
    pub plan: Vec<String>,
    pub evidence: Vec<TaskReport>,
    pub feedback: Vec<String>,
    /// What memory holds that bears on the goal.
    pub memory: Vec<String>,
    /// What the run had replied when the reasoner was first asked, oldest first.
    pub replies: Vec<String>,
    /// What the reasoner said earlier in this run, oldest first, with what was said about what could not be used.
    pub lane: Vec<String>,
    pub skill_environment: Vec<String>,
}

/// What the actor is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct ActAsk {
    /// Index of the task in the run.
    pub task: usize,
    pub brief: ExecutionBrief,
    /// What the tasks before it left behind, oldest first.
    pub evidence: Vec<TaskReport>,
    /// What memory holds that bears on the goal.
    pub memory: Vec<String>,
    /// Rounds that are behind it.
    pub round: u32,
    pub of: u32,
    pub lane: ActionLane,
    /// Which tools it may call; empty for all.
    pub categories: Vec<String>,
    /// The role whose model is called instead of the actor's own.
    pub model: Option<String>,
    /// Whether what it says without calling tools is the reply to the user.
    pub direct: bool,
}

/// What is to be compressed.
#[derive(Debug, Clone, PartialEq)]
pub struct CompressAsk {
    /// Turns as text, oldest first, without summaries.
    pub source: Vec<String>,
    /// Tokens that the summary may take.
    pub tokens: usize,
}

/// What a planner is told when it plans again.
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
    /// "Action Conversation Transcript" of an `act` task.
    pub transcript: Vec<TranscriptTurn>,
    /// For a message: what the tasks before it left behind, oldest first.
    pub evidence: Vec<TaskReport>,
}

/// A model call that was paid for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// `provider:model` that answered.
    pub model: String,
    pub usage: Usage,
}

/// What came of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, IntoStaticStr)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum StepResult {
    Admitted {
        /// The messages of the turn as one text: expanded by the pill, and replaced by a preview if it was too large.
        message: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tags: Vec<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pill: Option<PillUse>,
        /// Categories that the tags add, and those of skills that the text names.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        categories: Vec<String>,
        /// Tags that are no category of tools, each with those that are near.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        unknown: Vec<UnknownTag>,
        /// Key of the scratchpad entry that has the whole input.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        archived: Option<String>,
        /// Of what the Agent Skills say that the text names.
        #[serde(default, skip_serializing_if = "Label::is_default")]
        instructions: Label,
    },
    Retrieved {
        /// Paths in the workspace when the run began, relative to `/work`.
        files: Vec<String>,
        /// What memory holds that bears on the goal, where that was known without the router.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        memory: Vec<String>,
        /// Names of the secrets that the session has; the values are in the secret store.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        credentials: Vec<String>,
        /// What came with the message, as models are shown it.
        #[serde(default, skip_serializing_if = "AttachedFiles::is_empty")]
        attached: AttachedFiles,
    },
    Routed {
        routing: Routing,
        by: RoutedBy,
        /// What memory holds that bears on the goal. `None` in a log from before memory was looked up for the goal: what
        /// retrieval found for the message counts there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        memory: Option<Vec<String>>,
        /// Names of the secrets that the router found in the message.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        secrets: Vec<String>,
        /// Why the router's answer could not be used.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trouble: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<Call>,
    },
    Planned {
        plan: Plan,
        /// What the planner said beside its plan.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        chatter: String,
        /// Names of the secrets that the message brought; the values are in the secret store.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        secrets: Vec<String>,
        /// What the skills of the plan need and have, a line each.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        skill_environment: Vec<String>,
        /// Of what the Agent Skills say that each task names; empty where none names any.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        instructions: Vec<Label>,
        call: Call,
    },
    Unplanned {
        #[serde(default, skip_serializing_if = "String::is_empty")]
        chatter: String,
        correction: Correction,
        call: Call,
    },
    Briefed {
        brief: ExecutionBrief,
        call: Call,
    },
    Unbriefed {
        correction: Correction,
        call: Call,
    },
    /// Something is about to start that a person has to approve.
    ApprovalWanted {
        card: Card,
    },
    ApprovalGiven {
        answer: CardAnswer,
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
    Acted {
        #[serde(default, skip_serializing_if = "String::is_empty")]
        text: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<ToolCall>,
        call: Call,
    },
    Compressed {
        /// Key of the archived source.
        reference: String,
        summary: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<Call>,
    },
    CallsStarted,
    Called {
        results: Vec<ToolResult>,
    },
    Assessed {
        text: String,
        call: Call,
    },
    Reviewed {
        verdict: Verdict,
        /// Of what the Agent Skills say that each of its tasks names; empty where none names any.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        instructions: Vec<Label>,
        /// Of the files that the reviewer has looked at in this run.
        #[serde(default, skip_serializing_if = "Label::is_default")]
        read: Label,
        call: Call,
    },
    Unreviewed {
        correction: Correction,
        #[serde(default, skip_serializing_if = "Label::is_default")]
        read: Label,
        call: Call,
    },
    Conversed {
        text: String,
        call: Call,
    },
    /// The model gave no answer, after all that was tried below this level.
    ModelFailed {
        message: String,
    },
    /// A limit of the session or the day, or what is left of one of the run, does not allow the call.
    Stopped {
        limit: LimitReached,
    },
    /// The user stopped the run. Fits every step but the delivery of the reply.
    Cancelled,
    Told {
        text: String,
    },
    Finished {
        /// As it was delivered, with what the output node added.
        reply: String,
        /// Messages that belong to the turn and arrived meanwhile, oldest first.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        arrived: Vec<String>,
        /// Paths of files that a task made, and that were removed or renamed since.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        gone: Vec<String>,
    },
}

impl StepResult {
    pub fn name(&self) -> &'static str {
        self.into()
    }

    /// The model calls of the step.
    pub fn calls(&self) -> &[Call] {
        match self {
            Self::Planned { call, .. }
            | Self::Unplanned { call, .. }
            | Self::Briefed { call, .. }
            | Self::Unbriefed { call, .. }
            | Self::Acted { call, .. }
            | Self::Assessed { call, .. }
            | Self::Reviewed { call, .. }
            | Self::Unreviewed { call, .. }
            | Self::Conversed { call, .. } => std::slice::from_ref(call),
            Self::Routed { call, .. } | Self::Executed { call, .. } => call.as_slice(),
            Self::Compressed { calls, .. } => calls,
            _ => &[],
        }
    }

    /// What the step cost.
    pub fn usage(&self) -> Usage {
        self.calls().iter().fold(Usage::default(), |mut sum, call| {
            sum += call.usage;
            sum
        })
    }
}

impl Event {
    /// What goes to everybody outside at once, and not only with the reply: "If `true`, output is sent to the webhook"
    ///, whatever the task's type, and what the user is told of the way, such as that a new plan is made. What
    /// the reply itself says, which follows at once, is left to it.
    pub fn notification(&self) -> Option<&str> {
        let of_message = match &self.result {
            StepResult::Told { text } => return Some(text),
            StepResult::Conversed { .. } => return None,
            StepResult::Executed { report, .. } => report.task.kind == TaskKind::Msg,
            _ => true,
        };
        let replied = of_message && self.moves.last().is_some_and(|step| step.to == Node::Output);
        self.say.as_deref().filter(|_| !replied)
    }

    /// Every call of a model that the step paid for.
    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.result.calls().iter().chain(&self.lost)
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
    /// What calls of the step cost that came to nothing: they failed in the middle, or the run was stopped meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<Call>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moves: Vec<Move>,
    /// Limits that were reached by this result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<LimitReached>,
    /// Output of a task with `notify: true` that was accepted; it goes to the user now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub say: Option<String>,
    /// Whether the reply was delivered and the turn goes on with messages that arrived meanwhile.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub continues: bool,
    /// The thoughts of models before they answered, for people who read the log. They reach neither a model nor a decision.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasoning: Vec<ModelReasoning>,
}

/// Reasoning of a model before its answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelReasoning {
    /// The role that it was asked in.
    pub role: String,
    pub text: String,
    /// Whether the end is left out, because it is too long.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// Milliseconds from its first word to its last.
    pub millis: u64,
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
