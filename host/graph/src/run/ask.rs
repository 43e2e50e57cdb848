//! The next step of a run.

use super::super::brief::{self, Brief};
use super::super::execution_brief::ExecutionBrief;
use super::super::lane::{Entry, GraphLane, NodeLane, SharedKind};
use super::super::step::{ActAsk, CompressAsk, PlanAsk, ReasonAsk, Replan, ReviewAsk, Step};
use super::{Abandoned, Run, Stage, State};
use kiso_plan::plan::{Task, TaskKind};
use kiso_plan::report::{Correction, FailureNote};

/// A summary takes this fraction of the lane's budget, so that the lane has room again.
const SUMMARY_SHARE: usize = 6;

impl Run {
    /// Returns the next step. Calling this again changes nothing.
    pub fn next_step(&self) -> Step {
        if let Some(text) = self.notices.front() {
            return Step::Tell { text: text.clone() };
        }
        if let Some(card) = self.card() {
            return Step::Approve { card: Box::new(card.clone()) };
        }
        let index = self.records.len();
        match &self.state {
            State::Admitting { texts } => Step::Admit { texts: texts.clone() },
            State::Retrieving => Step::Retrieve { goal: self.routing_without_model().map(|routing| routing.goal) },
            State::Routing => Step::Route { message: self.message.clone() },
            State::Planning { attempt, correction, abandoned } => Step::Plan(Box::new(PlanAsk {
                directive: self.routing.as_ref().map_or(&self.message, |routing| &routing.goal).clone(),
                attempt: *attempt,
                correction: correction.clone(),
                replan: abandoned.as_ref().and_then(|abandoned| self.replan_context(abandoned)),
                replies: replies(&self.planner_lane, &self.lane),
                lane: before(&self.planner_lane, correction),
                feedback: self.feedback(),
                categories: self.categories(),
            })),
            State::Reasoning { attempt, correction, brief } => match self.current.waiting.front() {
                Some(next) if brief.is_none() && self.needs_reasoner(&next.task) => Step::Reason(Box::new(ReasonAsk {
                    goal: self.current.goal.clone(),
                    task: next.task.clone(),
                    attempt: *attempt,
                    correction: correction.clone(),
                    plan: self.board_lines(),
                    evidence: brief::evidence(self.reports()),
                    feedback: self.feedback(),
                    memory: self.memory(),
                    replies: self.unseen_replies(),
                    lane: before(&self.reasoning_lane, correction),
                    skill_environment: self.current.skill_environment.clone(),
                })),
                Some(next) => Step::Start { task: index, brief: Box::new(self.brief(&next.task)) },
                None => Step::Ended, // `reasoning` is only entered if a task is waiting
            },
            State::Acting { task, .. } => Step::Execute { task: index, brief: Box::new(self.brief(task)) },
            State::Looping { task, brief, round, stage, .. } => match stage {
                Stage::Ready { calls, .. } => Step::StartCalls { calls: calls.clone() },
                Stage::Calling { calls, .. } => Step::Call { calls: calls.clone() },
                Stage::Thinking => self.think(index, task, brief, *round),
            },
            State::Reviewing { attempt, correction } => match self.records.last() {
                Some(record) => Step::Review(Box::new(ReviewAsk {
                    task: index - 1,
                    attempt: *attempt,
                    correction: correction.clone(),
                    goal: self.current.goal.clone(),
                    report: record.report.clone(),
                    transcript: match record.report.task.kind {
                        TaskKind::Act => self.action_lane.transcript(),
                        _ => Vec::new(),
                    },
                    evidence: match record.report.task.kind {
                        TaskKind::Msg => brief::evidence(self.records[..index - 1].iter().map(|record| &record.report)),
                        _ => Vec::new(),
                    },
                })),
                None => Step::Ended, // a review follows a record
            },
            State::Conversing => Step::Converse { message: self.message.clone() },
            State::Finishing { ending } => Step::Finish(Box::new(self.outcome_of(ending))),
            State::Ended { .. } => Step::Ended,
        }
    }

    fn think(&self, index: usize, task: &Task, brief: &ExecutionBrief, round: u32) -> Step {
        if let Some(range) = self.oversized() {
            let tokens = (self.spec.policy.lane_tokens / SUMMARY_SHARE).max(100);
            return Step::Compress(Box::new(CompressAsk { source: self.action_lane.source(range), tokens }));
        }
        let of = self.spec.limits.max_tool_call_rounds;
        let ask = Box::new(ActAsk {
            task: index,
            brief: brief.clone(),
            evidence: brief::evidence(self.reports()),
            memory: self.memory(),
            round,
            of,
            lane: self.action_lane.clone(),
            categories: self.categories(),
            model: task.model.clone(),
            direct: self.current.direct,
        });
        if round < of { Step::Act(ask) } else { Step::Assess(ask) }
    }

    /// Returns the current task.
    pub fn task(&self) -> Option<&Task> {
        match &self.state {
            State::Acting { task, .. } | State::Looping { task, .. } => Some(task),
            _ => None,
        }
    }

    fn categories(&self) -> Vec<String> {
        self.routing.as_ref().map(|routing| routing.categories.clone()).unwrap_or_default()
    }

    /// Whether the reasoner writes the brief of a task: for one of several action loops of a plan, unless its planner wrote it.
    fn needs_reasoner(&self, task: &Task) -> bool {
        task.kind == TaskKind::Act && task.brief.is_none() && self.current.acts > 1
    }

    /// Returns the memory that is relevant for the goal, one text per line.
    pub(super) fn memory(&self) -> Vec<String> {
        let lines = self.lane.shared(SharedKind::ObservationalMemory).into_iter().flat_map(str::lines);
        lines.map(str::to_owned).collect()
    }

    /// Returns the replies that the reasoner's lane was seeded with, except for those in its evidence: the reply of an action
    /// without a plan is its report.
    fn unseen_replies(&self) -> Vec<String> {
        let reported = |reply: &str| {
            let mut earlier = self.records[..self.earlier].iter().map(|record| record.report.text.trim());
            earlier.any(|text| !text.is_empty() && reply.starts_with(text))
        };
        let mut replies = replies(&self.reasoning_lane, &self.lane);
        replies.retain(|reply| !reported(reply));
        replies
    }

    pub(super) fn feedback(&self) -> Vec<String> {
        let feedback = self.lane.entries().iter().filter(|entry| matches!(entry, Entry::Feedback(_)));
        feedback.map(|entry| entry.text().to_owned()).collect()
    }

    fn brief(&self, task: &Task) -> Brief {
        Brief {
            goal: self.current.goal.clone(),
            expect: task.expect.clone(),
            evidence: brief::evidence(self.reports()),
            task: task.clone(),
            number: self.records.len() - self.current.first + 1,
            of: self.current.size,
            written: self.written(task),
            feedback: self.objections(),
        }
    }

    /// Returns the critic's objections, and why the goal cannot be met.
    fn objections(&self) -> Vec<String> {
        let mut objections = self.feedback();
        objections.extend(self.current.blocked.clone().filter(|why| !objections.contains(why)));
        objections
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

/// Returns the run's replies from before the node's lane was seeded. The rest of the seed is in other pieces of its prompt.
fn replies(lane: &NodeLane, fresh: &GraphLane) -> Vec<String> {
    let replies = lane.seeded(fresh).filter(|entry| matches!(entry, Entry::Assistant(_)));
    replies.map(|entry| entry.text().to_owned()).collect()
}

/// Returns the node's earlier answers, without one that must be corrected: that is in the correction.
fn before(lane: &NodeLane, correction: &Option<Correction>) -> Vec<String> {
    let mut own = lane.own();
    own.truncate(own.len() - usize::from(correction.is_some()).min(own.len()));
    own
}
