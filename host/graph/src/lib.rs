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
//! A node is a stop; a [role](kiso_base::role) is a kind of model call. They share a name only where they are one: the planner's node
//! does nothing but call the planner. Elsewhere a node does more, or nothing, with a model:
//!
//! | node | role | without a model |
//! |---|---|---|
//! | retrieval | router | talk on the fast path; a pill |
//! | reasoning | reasoner | a task that can be executed as it stands |
//! | action | actor, for `act`; the worker or another that writes, for `msg` | `exec` and `skill` |
//! | critic | reviewer, for tasks with `review` | the exit code or the status of the skill decides |
//! | output | worker, for talk | the reply of the last task |
//!
//! The summarizer makes room wherever there is too little, and with the titler it works behind the reply, outside the graph.
//!
//! A [`run::Run`] says what to do next, the driver does it and hands the result back. Nodes decide nothing about the
//! way: every edge is in [`edge`].

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
    /// A person is asked before something starts.
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

/// What makes a run leave a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// The message went through gatekeeper, tags and pill.
    Admitted,
    /// Conversation: an answer without tools will do.
    Low,
    /// Tools are needed, a plan is not.
    Medium,
    /// The message needs a plan, which is also the default.
    High,
    /// The answer had no plan that can be used, and retries are left.
    NoPlan,
    /// No retries are left, or the planner's model does not answer.
    PlanningFailed,
    Planned,
    /// The answer had no brief that can be used, and retries are left.
    NoBrief,
    /// The next task can be executed as it stands, or its brief is written.
    Ready,
    /// Tasks or calls are about to start whose effects a person has to approve.
    NeedsApproval,
    /// A person, or the end of their time, has decided about tasks.
    TasksAnswered,
    /// The same about calls of the action loop.
    CallsAnswered,
    /// There is no response yet, and rounds are left.
    RoundsLeft,
    /// There is no response yet and no round is left: the actor is asked what it achieved.
    RoundsSpent,
    /// The same on the medium route, the first time: the work is planned.
    PlanNeeded,
    TaskEnded,
    /// The reviewer's answer could not be read, and retries are left.
    NoVerdict,
    /// The task is accepted, and others are waiting; or it is a message that has to be written again.
    TasksRemain,
    /// The task is not accepted, and tasks were injected that put it right.
    NeedsFix,
    /// The plan is given up: the reviewer says so, a task failed unreviewed, or the goal is unmet at the end.
    Replan,
    /// The task was the last one, and the plan or the medium route is done with.
    PlanExhausted,
    /// The plan is given up and there may not be another one.
    ReplansExhausted,
    /// A limit of the run, the session or the day is reached.
    #[serde(alias = "out_of_tokens")]
    LimitReached,
    /// The user has stopped the run.
    Cancelled,
    /// Messages that belong to the turn have arrived meanwhile.
    CycleIncomplete,
    /// The reply is out, and no message that belongs to the turn has arrived meanwhile.
    CycleComplete,
}

/// Where a run goes from `from`; `None` if nothing of this kind happens there. Every edge of the graph is here.
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
