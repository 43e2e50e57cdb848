//! The state machine of one job in the graph. It does no I/O.
//!
//! ```text
//! next_step() ─► Step ─► the driver does it ─► StepResult ─► accept() ─► Event ─► committed ─► next_step() …
//! ```
//!
//! After a crash, [`Run::replay`] passes the stored events to the same [`Run::accept`]. Then [`Run::interrupt`] turns anything
//! that started and did not end into a result that the critic sees.

mod action;
mod approve;
mod ask;
mod board;
mod check;
mod critic;
mod enter;
mod finish;
mod history;
mod labels;
mod named;
mod pending;
mod spec;

pub use self::approve::Starting;
pub use self::board::{BoardTask, TaskState};
pub use self::history::{CallHistory, History, TaskHistory};
pub use self::named::NamedCall;
pub use self::pending::PendingStep;
pub use self::spec::{Policy, RunSpec, Segment};

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use self::approve::Approvals;
use self::labels::RunLabels;
use self::named::NamedEffects;
use super::execution_brief::ExecutionBrief;
use super::lane::{ActionLane, GraphLane, NodeLane};
use super::outcome::{Ending, Outcome, ReplyText};
use super::reflection::Ledger;
use super::repeat::Repeat;
use super::route::Routing;
use super::step::{Call, Event, IllegalResult, Move, StepResult, ToolResult};
use super::{Node, Why, edge};
use kiso_plan::attached::AttachedFiles;
use kiso_plan::call::ToolCall;
use kiso_plan::label::Label;
use kiso_plan::limits::Usage;
use kiso_plan::pill::PillUse;
use kiso_plan::plan::Task;
use kiso_plan::report::{Attempt, Correction, TaskReport};

/// Maximum calls of one answer that are made. A model that requests more at once has lost its way; it is told about the limit.
pub const MAX_BATCH: usize = 16;

/// The state machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    spec: RunSpec,
    state: State,
    /// The message of this cycle, as admitted.
    message: String,
    /// The files attached to it.
    #[serde(default, skip_serializing_if = "AttachedFiles::is_empty")]
    attached: AttachedFiles,
    /// Names of the session's secrets.
    credentials: Vec<String>,
    pill: Option<PillUse>,
    /// Categories that tags add to those of the router.
    tagged: Vec<String>,
    routing: Option<Routing>,
    /// Whether an earlier message of the turn was worth remembering.
    durable: bool,
    current: Current,
    /// Every task that ended, of all plans. A task's index is its place here.
    records: Vec<Record>,
    /// How many of them ended before this cycle began.
    earlier: usize,
    /// Tasks that were planned and never ran.
    dropped: Vec<(u32, Task)>,
    /// Plans that were abandoned in this cycle.
    history: Vec<Attempt>,
    /// Notices that the user gets before anything else happens.
    notices: VecDeque<String>,
    /// Texts of accepted tasks for the user, and of conversation.
    said: Vec<ReplyText>,
    usage: Usage,
    /// How many times the turn continued with further messages.
    cycles: u32,
    /// Whether an action loop without a plan has used up its rounds, and a plan was requested.
    #[serde(default)]
    escalated: bool,
    next_id: u32,
    lane: GraphLane,
    planner_lane: NodeLane,
    reasoning_lane: NodeLane,
    action_lane: ActionLane,
    ledger: Ledger,
    #[serde(default)]
    approvals: Approvals,
    #[serde(default)]
    labels: RunLabels,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "at", rename_all = "snake_case")]
#[allow(clippy::large_enum_variant, reason = "a run has one state, and never a list of them")]
enum State {
    Admitting {
        texts: Vec<String>,
    },
    Retrieving,
    Routing,
    Planning {
        attempt: u32,
        correction: Option<Correction>,
        abandoned: Option<Abandoned>,
    },
    /// The next task of `current` will be started, or its brief will be written first.
    Reasoning {
        attempt: u32,
        correction: Option<Correction>,
        brief: Option<ExecutionBrief>,
    },
    Acting {
        id: u32,
        task: Task,
        depth: u32,
        /// The label of the data that the decision to do it was based on.
        #[serde(default, skip_serializing_if = "Label::is_default")]
        label: Label,
    },
    /// The action loop.
    Looping {
        id: u32,
        task: Task,
        depth: u32,
        brief: Box<ExecutionBrief>,
        round: u32,
        repeat: Repeat,
        results: Vec<ToolResult>,
        stage: Stage,
        #[serde(default)]
        named: NamedEffects,
    },
    /// The last record is being reviewed.
    Reviewing {
        attempt: u32,
        correction: Option<Correction>,
    },
    Conversing,
    Finishing {
        ending: Ending,
    },
    Ended {
        outcome: Outcome,
    },
}

/// The state of an action loop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "snake_case")]
enum Stage {
    Thinking,
    /// The calls will be started.
    Ready {
        calls: Vec<ToolCall>,
        /// Number of calls in the answer beyond [`MAX_BATCH`].
        #[serde(default)]
        left_out: usize,
    },
    /// The calls have started.
    Calling {
        calls: Vec<ToolCall>,
        #[serde(default)]
        left_out: usize,
    },
}

impl State {
    fn node(&self) -> Node {
        match self {
            Self::Admitting { .. } => Node::Input,
            Self::Retrieving | Self::Routing => Node::Retrieval,
            Self::Planning { .. } => Node::Planner,
            Self::Reasoning { .. } => Node::Reasoning,
            Self::Acting { .. } | Self::Looping { .. } => Node::Action,
            Self::Reviewing { .. } => Node::Critic,
            Self::Conversing | Self::Finishing { .. } => Node::Output,
            Self::Ended { .. } => Node::End,
        }
    }

    fn reasoning() -> Self {
        Self::Reasoning { attempt: 1, correction: None, brief: None }
    }
}

/// The current plan, or the single task of the medium route.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Current {
    goal: String,
    blocked: Option<String>,
    waiting: VecDeque<Waiting>,
    /// Number of tasks that were planned or injected so far.
    size: usize,
    /// Index of the plan's first task in the run.
    first: usize,
    /// The id of that task; the tasks after it have the following ids.
    #[serde(default)]
    first_id: u32,
    /// Requirements of the plan's skills and their state, one per line.
    skill_environment: Vec<String>,
    /// Number of tasks that the planner left to an action loop.
    #[serde(default)]
    acts: usize,
    /// Whether there is no plan: the medium route.
    direct: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Waiting {
    /// Unique in the run, in the order of planning.
    id: u32,
    task: Task,
    /// How many reviews in a row injected tasks before this one; 0 for a task from the planner.
    depth: u32,
    /// The label of everything that the model that wrote it had seen.
    #[serde(default, skip_serializing_if = "Label::is_default")]
    label: Label,
    /// The label of what its own model sees in addition: the Agent Skills that it names.
    #[serde(default, skip_serializing_if = "Label::is_default")]
    instructions: Label,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Record {
    id: u32,
    report: TaskReport,
    depth: u32,
    /// Why the critic did not accept the task as done.
    rejected: Option<String>,
}

/// A plan that was abandoned after the last record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Abandoned {
    reason: String,
    remaining: Vec<Task>,
}

impl Run {
    /// Creates a run whose message has left the queue: the input node is next.
    pub fn new(spec: RunSpec) -> Self {
        Self {
            state: State::Admitting {
                texts: if spec.joined.is_empty() { vec![spec.message.clone()] } else { spec.joined.clone() },
            },
            message: spec.message.clone(),
            attached: AttachedFiles::default(),
            credentials: Vec::new(),
            spec,
            pill: None,
            tagged: Vec::new(),
            routing: None,
            durable: false,
            current: Current::default(),
            records: Vec::new(),
            earlier: 0,
            dropped: Vec::new(),
            history: Vec::new(),
            notices: VecDeque::new(),
            said: Vec::new(),
            usage: Usage::default(),
            cycles: 0,
            escalated: false,
            next_id: 0,
            lane: GraphLane::default(),
            planner_lane: NodeLane::default(),
            reasoning_lane: NodeLane::default(),
            action_lane: ActionLane::default(),
            ledger: Ledger::default(),
            approvals: Approvals::default(),
            labels: RunLabels::default(),
        }
    }

    /// Rebuilds a run from its stored events. Fails if a result is not allowed, or if this version of the state machine would
    /// produce a different event.
    pub fn replay<'a>(spec: RunSpec, events: impl IntoIterator<Item = &'a Event>) -> Result<Self, IllegalResult> {
        let mut run = Self::new(spec);
        for (index, event) in events.into_iter().enumerate() {
            let again = run.accept_with(event.result.clone(), event.lost.clone())?;
            // The reasoning of models is only in the log.
            if (Event { reasoning: event.reasoning.clone(), ..again }) != *event {
                return Err(IllegalResult::Diverged { index });
            }
        }
        Ok(run)
    }

    pub fn spec(&self) -> &RunSpec {
        &self.spec
    }

    pub fn node(&self) -> Node {
        match self.approvals.waiting() {
            Some(_) => Node::Approval,
            None => self.state.node(),
        }
    }

    /// The message of this cycle, as admitted.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The files attached to the message.
    pub fn attached(&self) -> &AttachedFiles {
        &self.attached
    }

    /// Whether this turn contained something worth remembering.
    pub fn durable(&self) -> bool {
        self.durable || self.routing.as_ref().is_some_and(|routing| routing.durable)
    }

    /// The routing of the message; `None` before retrieval.
    pub fn routing(&self) -> Option<&Routing> {
        self.routing.as_ref()
    }

    /// The goal of the current plan; empty before there is one.
    pub fn goal(&self) -> &str {
        &self.current.goal
    }

    /// Whether the run executes a plan, and not the message itself.
    pub fn has_plan(&self) -> bool {
        !self.current.direct
    }

    /// The reports of all tasks of the run, in order.
    pub fn reports(&self) -> impl DoubleEndedIterator<Item = &TaskReport> {
        self.records.iter().map(|record| &record.report)
    }

    /// The messages that all nodes share.
    pub fn lane(&self) -> &GraphLane {
        &self.lane
    }

    /// The results of the last tool calls of the run.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Tokens and cost of all model calls so far.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// How the run ended, with the delivered reply; `None` before the end.
    pub fn outcome(&self) -> Option<&Outcome> {
        match &self.state {
            State::Ended { outcome } => Some(outcome),
            _ => None,
        }
    }

    /// Takes the result of the step that [`Run::next_step`] returned.
    pub fn accept(&mut self, result: StepResult) -> Result<Event, IllegalResult> {
        self.accept_with(result, None)
    }

    /// Like [`Run::accept`], with the cost of failed calls, which counts like that of others.
    pub fn accept_with(&mut self, result: StepResult, lost: Option<Call>) -> Result<Event, IllegalResult> {
        self.check(&result)?;
        self.see(&result);
        self.usage += result.usage();
        if let Some(call) = &lost {
            self.usage += call.usage;
        }
        let (moves, limits, reasoning) = (Vec::new(), Vec::new(), Vec::new());
        let mut event = Event { result, lost, moves, limits, say: None, continues: false, reasoning };
        self.apply(&mut event)?;
        // In a conversation, the output node calls a model.
        let conversing = matches!(self.state, State::Conversing);
        let goes_on = conversing || !matches!(self.node(), Node::Input | Node::Output | Node::End);
        // Started calls continue to their end, because they cost no tokens.
        let started = matches!(self.state, State::Acting { .. } | State::Looping { stage: Stage::Calling { .. }, .. });
        // Asking a person costs nothing, and the limits were checked before.
        if goes_on
            && !started
            && self.card().is_none()
            && let Some(limit) = self.spec.limits.reached(self.usage)
        {
            self.stop(&mut event, limit)?;
        }
        Ok(event)
    }

    fn apply(&mut self, event: &mut Event) -> Result<(), IllegalResult> {
        match event.result.clone() {
            StepResult::Told { .. } => {
                self.notices.pop_front();
                Ok(())
            }
            StepResult::Admitted { message, pill, categories, .. } => self.admit(event, message, pill, categories),
            StepResult::Retrieved { files, memory, credentials, attached } => {
                self.attached = attached;
                self.take_retrieval(event, &files, &memory, credentials)
            }
            StepResult::Routed { routing, memory, secrets, .. } => self.take_routing(event, routing, memory, secrets),
            StepResult::Planned { plan, chatter, skill_environment, secrets, instructions, .. } => {
                self.take_plan(event, plan, &chatter, skill_environment, (secrets, instructions))
            }
            StepResult::Unplanned { correction, .. } => self.retry_plan(event, correction),
            StepResult::Briefed { brief, .. } => self.take_brief(brief),
            StepResult::Unbriefed { correction, .. } => self.retry_brief(event, correction),
            StepResult::ApprovalWanted { card } => self.take_card(event, card),
            StepResult::ApprovalGiven { answer } => self.take_card_answer(event, &answer),
            StepResult::Started { .. } => self.start_task(event),
            StepResult::Executed { report, .. } => self.take_report(event, *report),
            StepResult::Acted { text, calls, .. } => self.take_answer(event, text, calls),
            StepResult::Compressed { reference, summary, .. } => self.take_summary(reference, summary),
            StepResult::CallsStarted => self.start_calls(),
            StepResult::Called { results } => self.take_results(event, results),
            StepResult::Assessed { text, .. } => self.take_assessment(event, &text),
            StepResult::Reviewed { verdict, instructions, .. } => self.take_verdict(event, verdict, instructions),
            StepResult::Unreviewed { correction, .. } => self.retry_review(event, correction),
            StepResult::Conversed { text, .. } => self.take_conversation(event, &text),
            StepResult::ModelFailed { message } => self.do_without_answer(event, &message),
            StepResult::Stopped { limit } => self.stop(event, limit),
            StepResult::Cancelled => self.cancel(event),
            StepResult::Finished { reply, arrived, gone } => self.finish(event, reply, arrived, &gone),
        }
    }

    /// Handles a model call without an answer, depending on the node that made it.
    fn do_without_answer(&mut self, event: &mut Event, message: &str) -> Result<(), IllegalResult> {
        match self.node() {
            Node::Planner => {
                let ending = Ending::Failed { reason: format!("Planning failed: {message}") };
                self.go(event, Why::PlanningFailed, State::Finishing { ending })
            }
            Node::Reasoning => self.do_without_brief(message),
            Node::Action => self.do_without_actor(event, message),
            Node::Critic => self.do_without_review(event, message),
            _ => {
                self.state = State::Finishing { ending: Ending::Failed { reason: message.to_owned() } };
                Ok(())
            }
        }
    }

    /// Follows the edge for `why` into `state`; the state changes nowhere else.
    fn go(&mut self, event: &mut Event, why: Why, state: State) -> Result<(), IllegalResult> {
        let to = self.pass(event, why)?;
        debug_assert_eq!(to, state.node());
        self.approvals.withdraw();
        self.state = state;
        Ok(())
    }

    /// Follows an edge without staying in its node: the critic often decides within the result that led to it.
    fn pass(&self, event: &mut Event, why: Why) -> Result<Node, IllegalResult> {
        let from = event.moves.last().map_or(self.node(), |step| step.to);
        let to = edge(from, why).ok_or(IllegalResult::NoEdge { from, why })?;
        event.moves.push(Move { from, why, to });
        Ok(to)
    }

    fn new_id(&mut self) -> u32 {
        self.next_id += 1;
        self.next_id
    }
}

#[cfg(test)]
mod tests;
