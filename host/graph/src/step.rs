//! The steps that a run requests from its driver, their results, and the stored events.

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

/// The next thing to do. Its result is passed to [`super::run::Run::accept`]; the event is committed before the next effect.
#[derive(Debug, Clone, PartialEq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Step {
    /// Pass the messages of the turn through the gatekeeper, tags and pill. Result: `Admitted`.
    Admit { texts: Vec<String> },
    /// Read the workspace, and the memory for the goal if that is known without the router. Result: `Retrieved`.
    Retrieve { goal: Option<String> },
    /// Call the router, and read the memory for the goal that it returns. Result: `Routed`, even if it gave no valid answer.
    Route { message: String },
    /// Call the planner. Result: `Planned`, `Unplanned` or `ModelFailed`.
    Plan(Box<PlanAsk>),
    /// Call the reasoner. Result: `Briefed`, `Unbriefed` or `ModelFailed`.
    Reason(Box<ReasonAsk>),
    /// Only commit that this task starts. Result: `Started`, or `ApprovalWanted` first.
    Start { task: usize, brief: Box<Brief> },
    /// Wait for a person's answer about these effects. Result: `ApprovalGiven`, even if nobody answers in time.
    Approve { card: Box<Card> },
    /// Run the task. Result: `Executed` in any case.
    Execute { task: usize, brief: Box<Brief> },
    /// Call the actor. Result: `Acted` or `ModelFailed`.
    Act(Box<ActAsk>),
    /// Archive and summarise the beginning of the action lane. Result: `Compressed`, even if no summary could be written: then
    /// the beginning and the end of the source replace it.
    Compress(Box<CompressAsk>),
    /// Only commit that these calls start. Result: `CallsStarted`, or `ApprovalWanted` first.
    StartCalls { calls: Vec<ToolCall> },
    /// Call the tools. Result: `Called`, with one result for each call, in order.
    Call { calls: Vec<ToolCall> },
    /// Call the actor for its self-assessment at the round limit. Result: `Assessed` or `ModelFailed`.
    Assess(Box<ActAsk>),
    /// Call the reviewer. Result: `Reviewed`, `Unreviewed` or `ModelFailed`.
    Review(Box<ReviewAsk>),
    /// Call the worker for an answer without tools. Result: `Conversed` or `ModelFailed`.
    Converse { message: String },
    /// Send this text to the user now. Result: `Told`.
    Tell { text: String },
    /// Deliver the reply, and check whether further messages of the turn have arrived. Result: `Finished`.
    Finish(Box<Outcome>),
    /// Nothing is left to do.
    Ended,
}

impl Step {
    pub fn name(&self) -> &'static str {
        self.into()
    }
}

/// Input for the planner.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanAsk {
    /// The goal from retrieval, which the planner works from.
    pub directive: String,
    /// Counted from 1 for each plan.
    pub attempt: u32,
    /// The last answer, if it was invalid.
    pub correction: Option<Correction>,
    /// Why the previous plan was abandoned.
    pub replan: Option<Replan>,
    /// The run's replies from before the planner's first call, oldest first: the beginning of its lane.
    pub replies: Vec<String>,
    /// The planner's earlier answers in this run, oldest first, with the feedback on invalid ones.
    pub lane: Vec<String>,
    /// The critic's objections, oldest first.
    pub feedback: Vec<String>,
    /// Categories of tools for the plan; empty for all.
    pub categories: Vec<String>,
}

/// Input for the reasoner, which writes the brief of an `act` task.
#[derive(Debug, Clone, PartialEq)]
pub struct ReasonAsk {
    pub goal: String,
    pub task: Task,
    /// Counted from 1 for each task.
    pub attempt: u32,
    pub correction: Option<Correction>,
    /// The plan, one line per task with its state.
    pub plan: Vec<String>,
    pub evidence: Vec<TaskReport>,
    pub feedback: Vec<String>,
    /// Memory that is relevant for the goal.
    pub memory: Vec<String>,
    /// The run's replies from before the reasoner's first call, oldest first.
    pub replies: Vec<String>,
    /// The reasoner's earlier answers in this run, oldest first, with the feedback on invalid ones.
    pub lane: Vec<String>,
    pub skill_environment: Vec<String>,
}

/// Input for the actor.
#[derive(Debug, Clone, PartialEq)]
pub struct ActAsk {
    /// Index of the task in the run.
    pub task: usize,
    pub brief: ExecutionBrief,
    /// The reports of earlier tasks, oldest first.
    pub evidence: Vec<TaskReport>,
    /// Memory that is relevant for the goal.
    pub memory: Vec<String>,
    /// Number of completed rounds.
    pub round: u32,
    pub of: u32,
    pub lane: ActionLane,
    /// Categories of tools that it may call; empty for all.
    pub categories: Vec<String>,
    /// The role whose model is used instead of the actor's own.
    pub model: Option<String>,
    /// Whether its text in an answer without tool calls is the reply to the user.
    pub direct: bool,
}

/// Input for a summary of the action lane.
#[derive(Debug, Clone, PartialEq)]
pub struct CompressAsk {
    /// Turns as text, oldest first, without summaries.
    pub source: Vec<String>,
    /// Maximum tokens of the summary.
    pub tokens: usize,
}

/// Input for the planner after an abandoned plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Replan {
    /// Every task of the run that ended before the failed one.
    pub completed: Vec<TaskReport>,
    /// Planned tasks that did not run.
    pub remaining: Vec<Task>,
    pub failure: FailureNote,
    /// Every abandoned plan, oldest first.
    pub history: Vec<Attempt>,
}

/// Input for the reviewer.
#[derive(Debug, Clone, PartialEq)]
pub struct ReviewAsk {
    /// Index of the task in the run.
    pub task: usize,
    /// Counted from 1 for each task.
    pub attempt: u32,
    pub correction: Option<Correction>,
    pub goal: String,
    pub report: TaskReport,
    /// The "Action Conversation Transcript" of an `act` task.
    pub transcript: Vec<TranscriptTurn>,
    /// For a message: the reports of earlier tasks, oldest first.
    pub evidence: Vec<TaskReport>,
}

/// A model call that cost something.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The `provider:model` that answered.
    pub model: String,
    pub usage: Usage,
}

/// The result of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, IntoStaticStr)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum StepResult {
    Admitted {
        /// The messages of the turn as one text: expanded by the pill, and replaced by a preview if too large.
        message: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tags: Vec<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pill: Option<PillUse>,
        /// Categories of the tags and of the skills that the text names.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        categories: Vec<String>,
        /// Tags that are not categories of tools, each with similar ones.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        unknown: Vec<UnknownTag>,
        /// Key of the scratchpad entry with the whole input.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        archived: Option<String>,
        /// The label of the Agent Skills that the text names.
        #[serde(default, skip_serializing_if = "Label::is_default")]
        instructions: Label,
    },
    Retrieved {
        /// Paths in the workspace when the run began, relative to `/work`.
        files: Vec<String>,
        /// Memory that is relevant for the goal, if that was known without the router.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        memory: Vec<String>,
        /// Names of the session's secrets; the values are in the secret store.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        credentials: Vec<String>,
        /// The attached files, in the form that models see.
        #[serde(default, skip_serializing_if = "AttachedFiles::is_empty")]
        attached: AttachedFiles,
    },
    Routed {
        routing: Routing,
        by: RoutedBy,
        /// Memory that is relevant for the goal. `None` in older logs, where the memory from retrieval counts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        memory: Option<Vec<String>>,
        /// Names of the secrets that the router found in the message.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        secrets: Vec<String>,
        /// Why the router's answer was invalid.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trouble: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<Call>,
    },
    Planned {
        plan: Plan,
        /// The planner's text besides its plan.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        chatter: String,
        /// Names of the secrets in the message; the values are in the secret store.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        secrets: Vec<String>,
        /// Requirements of the plan's skills and their state, one per line.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        skill_environment: Vec<String>,
        /// The label of the Agent Skills that each task names; empty if none names any.
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
    /// Something that a person must approve is about to start.
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
        /// The worker's call, for a task that needed one.
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
        /// The label of the Agent Skills that each of its tasks names; empty if none names any.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        instructions: Vec<Label>,
        /// The label of the files that the reviewer has read in this run.
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
    /// The model gave no answer, after all retries and fallbacks.
    ModelFailed {
        message: String,
    },
    /// A limit of the session or the day, or the rest of a limit of the run, does not allow the call.
    Stopped {
        limit: LimitReached,
    },
    /// The user cancelled the run. Fits every step except for the delivery of the reply.
    Cancelled,
    Told {
        text: String,
    },
    Finished {
        /// As delivered, with the additions of the output node.
        reply: String,
        /// Messages of the turn that arrived meanwhile, oldest first.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        arrived: Vec<String>,
        /// Paths of files that a task produced and that were removed or renamed since.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        gone: Vec<String>,
    },
}

impl StepResult {
    pub fn name(&self) -> &'static str {
        self.into()
    }

    /// Returns the model calls of the step.
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

    /// Returns the cost of the step.
    pub fn usage(&self) -> Usage {
        self.calls().iter().fold(Usage::default(), |mut sum, call| {
            sum += call.usage;
            sum
        })
    }
}

impl Event {
    /// Returns the text that is sent to everybody outside at once, before the reply: "If `true`, output is sent to the webhook",
    /// whatever the task's type, and notices about the progress, such as a new plan. Text of the reply itself is left out, because
    /// the reply follows at once.
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

    /// Returns every model call that the step paid for.
    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.result.calls().iter().chain(&self.lost)
    }
}

/// An edge that a run followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Move {
    pub from: Node,
    pub why: Why,
    pub to: Node,
}

/// A stored event: the accepted result, and its consequences. The results alone are enough to rebuild the run; the rest is for
/// readers of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    #[serde(flatten)]
    pub result: StepResult,
    /// The cost of the step's failed calls: they broke off, or the run was stopped meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<Call>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moves: Vec<Move>,
    /// Limits that this result reached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<LimitReached>,
    /// Accepted output of a task with `notify: true`; it is sent to the user now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub say: Option<String>,
    /// Whether the reply was delivered and the turn continues with messages that arrived meanwhile.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub continues: bool,
    /// The models' reasoning before their answers, for people who read the log. It is never passed to a model and never affects a
    /// decision.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasoning: Vec<ModelReasoning>,
}

/// A model's reasoning before its answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelReasoning {
    /// The role of the call.
    pub role: String,
    pub text: String,
    /// Whether the end was cut off because it is too long.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// Milliseconds from its first to its last token.
    pub millis: u64,
}

/// A result that does not fit the state of the run. The run is unchanged, except after [`IllegalResult::NoEdge`], which only a
/// bug in the state machine can cause.
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
