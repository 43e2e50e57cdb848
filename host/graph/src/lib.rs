//! The graph that a run goes through. Pure: nothing here does I/O, waits, or knows a model.
//!
//! ```text
//!           ┌─────────────── low ──────────────────────────────────────────────► output
//! input ─► retrieval ─ medium ──────────────────► action ⟲ ─► critic, or ─► planner where no round is left
//!           └ high ─► planner ⟲ ─► reasoning ⟲ ─► action ⟲ ─► critic ⟲ ─► output ─► end
//!                        ▲             ▲                       │ │            │
//!                        │             └─ next task, fix ──────┘ │            └─► input, if more of the turn arrived
//!                        └──────────── replan ───────────────────┘
//! ```
//!
//! A node is a stop; a [role](kiso_base::role) is a kind of model call. They have the same name only if they are equivalent: the
//! planner's node only calls the planner. Other nodes do more than one model call, or work without one:
//!
//! | node | role | without a model |
//! |---|---|---|
//! | retrieval | router | talk on the fast path; a pill |
//! | reasoning | reasoner | a task that is ready to run |
//! | action | actor, for `act`; the worker or another that writes, for `msg` | `exec` and `skill` |
//! | critic | reviewer, for tasks with `review` | the exit code or the status of the skill decides |
//! | output | worker, for talk | the reply of the last task |
//!
//! The summarizer shortens texts wherever necessary. After the reply, it also runs outside of the graph, as the titler does.
//!
//! A [`run::Run`] returns the next step; the driver performs it and returns the result. Nodes do not choose the next node: every
//! edge is in [`edge`].

pub mod banner;
pub mod bind;
pub mod brief;
pub mod execution_brief;
mod extract;
mod fields;
pub mod lane;
pub mod mention;
pub mod outcome;
pub mod plan;
mod redact;
pub mod reflection;
pub mod repeat;
pub mod route;
pub mod run;
pub mod silent;
pub mod step;
pub mod summary;
pub mod verdict;

use serde::{Deserialize, Serialize};
use strum::{Display, IntoStaticStr};

pub use extract::{Chatter, SayField};

/// A stop in the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Display, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "lowercase")]
pub enum Node {
    Input,
    Retrieval,
    Planner,
    Reasoning,
    /// Asks a person before something starts.
    Approval,
    Action,
    Critic,
    Output,
    End,
}

impl Node {
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Why a run leaves a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// The message has passed the gatekeeper, tags and pill.
    Admitted,
    /// Conversation: it can be answered without tools.
    Low,
    /// It needs tools, but no plan.
    Medium,
    /// The message needs a plan; this is also the default.
    High,
    /// The answer had no valid plan, and retries are left.
    NoPlan,
    /// No retries are left, or the planner's model does not answer.
    PlanningFailed,
    Planned,
    /// The answer had no valid brief, and retries are left.
    NoBrief,
    /// The next task is ready to run, or its brief is written.
    Ready,
    /// The next tasks or calls have effects that a person must approve.
    NeedsApproval,
    /// A person has decided about tasks, or the approval has expired.
    TasksAnswered,
    /// The same for calls of the action loop.
    CallsAnswered,
    /// There is no response yet, and rounds are left.
    RoundsLeft,
    /// There is no response yet and no round is left: the actor must assess what it achieved.
    RoundsSpent,
    /// The same for the first time on the medium route: the work gets a plan.
    PlanNeeded,
    TaskEnded,
    /// The reviewer's answer could not be parsed, and retries are left.
    NoVerdict,
    /// The task is accepted, and others are waiting; or it is a message that must be written again.
    TasksRemain,
    /// The task is rejected, and the injected tasks fix it.
    NeedsFix,
    /// The plan is abandoned: the reviewer says so, a task without review failed, or the goal is not met at the end.
    Replan,
    /// The task was the last one of the plan or of the medium route.
    PlanExhausted,
    /// The plan is abandoned, and the limit of plans is reached.
    ReplansExhausted,
    /// A limit of the run, the session or the day is reached.
    #[serde(alias = "out_of_tokens")]
    LimitReached,
    /// The user has cancelled the run.
    Cancelled,
    /// Messages that belong to the turn have arrived meanwhile.
    CycleIncomplete,
    /// The reply is delivered, and no message of the turn has arrived meanwhile.
    CycleComplete,
}

/// Returns the node after `from`; `None` if `why` is not possible there. Every edge of the graph is here.
pub fn edge(from: Node, why: Why) -> Option<Node> {
    Some(match (from, why) {
        (Node::Input, Why::Admitted) => Node::Retrieval,
        (Node::Retrieval, Why::Low) => Node::Output,
        (Node::Retrieval, Why::Medium) => Node::Action,
        (Node::Retrieval, Why::High) => Node::Planner,
        (Node::Planner, Why::NoPlan) => Node::Planner,
        (Node::Planner, Why::PlanningFailed) => Node::Output,
        (Node::Planner, Why::Planned) => Node::Reasoning,
        (Node::Reasoning, Why::NoBrief) => Node::Reasoning,
        (Node::Reasoning, Why::Ready) => Node::Action,
        (Node::Reasoning | Node::Action, Why::NeedsApproval) => Node::Approval,
        (Node::Approval, Why::TasksAnswered) => Node::Reasoning,
        (Node::Approval, Why::CallsAnswered) => Node::Action,
        (Node::Action, Why::RoundsLeft | Why::RoundsSpent) => Node::Action,
        (Node::Action, Why::PlanNeeded) => Node::Planner,
        (Node::Action, Why::TaskEnded) => Node::Critic,
        (Node::Critic, Why::NoVerdict) => Node::Critic,
        (Node::Critic, Why::TasksRemain | Why::NeedsFix) => Node::Reasoning,
        (Node::Critic, Why::Replan) => Node::Planner,
        (Node::Critic, Why::PlanExhausted | Why::ReplansExhausted) => Node::Output,
        (Node::Output, Why::CycleIncomplete) => Node::Input,
        (Node::Output, Why::CycleComplete) => Node::End,
        (Node::End, _) => return None,
        (from, Why::LimitReached) if !matches!(from, Node::Input | Node::Approval | Node::Output) => Node::Output,
        (_, Why::Cancelled) => Node::Output,
        _ => return None,
    })
}
