//! The graph that a run goes through. Pure: nothing here does I/O, waits, or knows a model.
//!
//! ```text
//! input ─► retrieval ─► planner ⟲ ─► reasoning ─► action ─► critic ⟲ ─► output ─► end
//!                          ▲             ▲                    │ │ │
//!                          │             └─ next task, fix ───┘ │ └ plan exhausted
//!                          └──────────── replan ────────────────┘
//! ```
//!
//! A [`run::Run`] says what to do next, the driver does it and hands the result back. Nodes decide nothing about the
//! way: every edge is in [`edge`].

pub mod brief;
pub mod estimate;
mod extract;
mod fields;
pub mod lane;
pub mod limits;
pub mod outcome;
pub mod plan;
mod redact;
pub mod report;
pub mod run;
pub mod step;
pub mod verdict;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use extract::Chatter;

/// A stop in the graph (seed 004).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Node {
    Input,
    Retrieval,
    Planner,
    Reasoning,
    Action,
    Critic,
    Output,
    End,
}

impl Node {
    pub fn name(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Retrieval => "retrieval",
            Self::Planner => "planner",
            Self::Reasoning => "reasoning",
            Self::Action => "action",
            Self::Critic => "critic",
            Self::Output => "output",
            Self::End => "end",
        }
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What makes a run leave a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// The message was admitted to the queue and its turn has come.
    Admitted,
    /// Retrieval finds that the message needs a plan, which is also the default.
    High,
    /// The answer had no plan that can be used, and retries are left.
    NoPlan,
    /// No retries are left, or the planner's model does not answer.
    PlanningFailed,
    Planned,
    /// The next task can be executed as it stands.
    Ready,
    TaskEnded,
    /// The reviewer's answer could not be read, and retries are left.
    NoVerdict,
    /// The task is accepted, and others are waiting.
    TasksRemain,
    /// The task is not accepted, and tasks were injected that put it right.
    NeedsFix,
    /// The plan is given up: the reviewer says so, a task failed unreviewed, or the goal is unmet at the end.
    Replan,
    /// The task is accepted and was the last one.
    PlanExhausted,
    /// The plan is given up and there may not be another one.
    ReplansExhausted,
    /// The run has used all of its tokens.
    OutOfTokens,
    /// The reply is out, and no message that belongs to the turn has arrived meanwhile.
    CycleComplete,
}

/// Where a run goes from `from`; `None` if nothing of this kind happens there. Every edge of the graph is here.
pub fn edge(from: Node, why: Why) -> Option<Node> {
    Some(match (from, why) {
        (Node::Input, Why::Admitted) => Node::Retrieval,
        (Node::Retrieval, Why::High) => Node::Planner,
        (Node::Planner, Why::NoPlan) => Node::Planner,
        (Node::Planner, Why::Planned) => Node::Reasoning,
        (Node::Planner, Why::PlanningFailed) => Node::Output,
        (Node::Reasoning, Why::Ready) => Node::Action,
        (Node::Action, Why::TaskEnded) => Node::Critic,
        (Node::Critic, Why::NoVerdict) => Node::Critic,
        (Node::Critic, Why::TasksRemain | Why::NeedsFix) => Node::Reasoning,
        (Node::Critic, Why::Replan) => Node::Planner,
        (Node::Critic, Why::PlanExhausted | Why::ReplansExhausted) => Node::Output,
        (Node::Planner | Node::Reasoning | Node::Critic, Why::OutOfTokens) => Node::Output,
        (Node::Output, Why::CycleComplete) => Node::End,
        _ => return None,
    })
}
