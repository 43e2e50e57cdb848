//! Checks a whole log without the state machine: counts again, from the events alone, what the limits guarantee.

mod cases;
mod home;

use self::home::{home, is_unwritten};
use super::edges::EDGES;
use super::*;
use crate::banner::Banner;
use kiso_plan::verdict::Status;

/// The totals of a log.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Sum {
    /// Number of planned and injected tasks, and of tasks of the medium route.
    pub tasks: u32,
    pub tokens: u64,
    pub micros: u64,
}

/// Returns the first error in the log of an ended run.
pub(super) fn audit(spec: &RunSpec, log: &[Event]) -> Result<Sum, String> {
    let mut audit = Audit::new(spec.limits);
    for (index, event) in log.iter().enumerate() {
        audit.take(event).map_err(|wrong| format!("event {index} ({}): {wrong}\n{event:?}", event.result.name()))?;
    }
    match audit.at {
        Node::End => Ok(audit.sum),
        at => Err(format!("the log stops at {at}")),
    }
}

/// Returns an error from the surrounding function if a condition is false.
macro_rules! must {
    ($holds:expr, $($otherwise:tt)+) => {
        if !$holds {
            return Err(format!($($otherwise)+));
        }
    };
}

#[derive(Debug, Clone)]
struct Job {
    kind: TaskKind,
    review: bool,
    notify: bool,
    /// Whether its planner has written its brief.
    briefed: bool,
    /// Rounds of fixes that led to it.
    depth: u32,
}

impl Job {
    fn from_task(task: &Task, depth: u32) -> Self {
        let briefed = task.brief.is_some();
        Self { kind: task.kind, review: task.review, notify: task.notify, briefed, depth }
    }
}

struct Audit {
    limits: Limits,
    at: Node,
    sum: Sum,
    cycles: u32,
    /// In this cycle.
    replans: u32,
    /// Invalid answers in a row to the same question.
    slips: u32,
    /// For the current plan.
    size: usize,
    waiting: VecDeque<Job>,
    /// Number of tasks that the plan leaves to an action loop.
    acts: usize,
    /// Whether a task of the plan needed a review.
    reviews: bool,
    /// Whether the current task is reviewed, requested or not.
    reviewed: bool,
    /// Whether there is no plan.
    direct: bool,
    escalated: bool,
    /// The task that is running or under review.
    job: Option<Job>,
    ended: usize,
    /// Whether the next task has a brief, or cannot get one.
    briefed: bool,
    rounds: u32,
    /// The calls of this loop, by name and arguments.
    batches: Vec<Vec<(String, String)>>,
    pending: Vec<ToolCall>,
    calling: bool,
    /// The node at which a person was asked.
    asked: Option<Node>,
    compressed: bool,
    /// A limit of the whole run, or its user, has ended the work.
    stopped: bool,
    cancelled: bool,
    /// Limits that this event must contain.
    expected: Vec<(&'static str, u64)>,
}

impl Audit {
    fn new(limits: Limits) -> Self {
        Self {
            limits,
            at: Node::Input,
            sum: Sum::default(),
            cycles: 0,
            replans: 0,
            slips: 0,
            size: 0,
            waiting: VecDeque::new(),
            acts: 0,
            reviews: false,
            reviewed: false,
            direct: false,
            escalated: false,
            job: None,
            ended: 0,
            briefed: false,
            rounds: 0,
            batches: Vec::new(),
            pending: Vec::new(),
            calling: false,
            asked: None,
            compressed: false,
            stopped: false,
            cancelled: false,
            expected: Vec::new(),
        }
    }

    fn take(&mut self, event: &Event) -> Result<(), String> {
        let before = self.at;
        must!(home(&event.result).is_none_or(|home| home == before), "it happens at {before}");
        must!(before != Node::End, "nothing happens after the end");
        let last_words = match &event.result {
            StepResult::Finished { .. } => true,
            StepResult::Told { .. } | StepResult::Cancelled => !self.cancelled,
            _ => !self.cancelled && !self.stopped,
        };
        must!(last_words, "the work was ended before");
        self.pay(event)?;
        for step in &event.moves {
            must!(step.from == self.at, "it leaves {} and is at {}", step.from, self.at);
            must!(EDGES.contains(&(step.from, step.why, step.to)), "there is no edge {step:?}");
            self.at = step.to;
        }
        self.result(event, before)?;
        for step in &event.moves {
            self.step(step)?;
        }
        self.ends(event)
    }

    fn spent(&self) -> Option<(&'static str, u64)> {
        let Limits { max_tokens_per_run, max_cost_cents_per_run, .. } = self.limits;
        if self.sum.tokens >= max_tokens_per_run {
            return Some(("max_tokens_per_run", max_tokens_per_run));
        }
        // A cent is 10,000 millionths of a dollar.
        let spent = max_cost_cents_per_run > 0 && self.sum.micros / 10_000 >= max_cost_cents_per_run;
        spent.then_some(("max_cost_cents_per_run", max_cost_cents_per_run))
    }

    fn pay(&mut self, event: &Event) -> Result<(), String> {
        let asks_a_model = !event.result.calls().is_empty() || matches!(event.result, StepResult::ModelFailed { .. });
        must!(!asks_a_model || self.spent().is_none(), "nothing was left to pay it with");
        for call in event.result.calls() {
            let Usage { input_tokens, output_tokens, cost_micros, .. } = call.usage;
            self.sum.tokens = self.sum.tokens.saturating_add(input_tokens).saturating_add(output_tokens);
            self.sum.micros = self.sum.micros.saturating_add(cost_micros);
        }
        Ok(())
    }

    fn result(&mut self, event: &Event, before: Node) -> Result<(), String> {
        let Limits { max_parse_retries, max_tool_call_rounds, max_cycles, .. } = self.limits;
        let whys: Vec<_> = event.moves.iter().map(|step| step.why).collect();
        match &event.result {
            StepResult::Planned { plan, .. } => {
                must!(plan.tasks.len() <= self.limits.max_tasks, "the plan is too long");
                must!(self.waiting.is_empty(), "another plan is being carried out");
                self.waiting = plan.tasks.iter().map(|task| Job::from_task(task, 0)).collect();
                self.size = plan.tasks.len();
                self.acts = self.waiting.iter().filter(|job| job.kind == TaskKind::Act).count();
                (self.direct, self.reviews) = (false, false);
                (self.sum.tasks, self.slips) = (self.sum.tasks + plan.tasks.len() as u32, 0);
            }
            StepResult::Unplanned { .. } => {
                let over = self.slip()?;
                let why = if over { Why::PlanningFailed } else { Why::NoPlan };
                must!(whys.first() == Some(&why), "after {} slips it goes on", self.slips);
            }
            StepResult::Briefed { .. } => (self.briefed, self.slips) = (true, 0),
            StepResult::Unbriefed { .. } => {
                let over = self.slip()?;
                must!(over != whys.contains(&Why::NoBrief), "after {} slips it goes on", self.slips);
                (self.briefed, self.slips) = (over, if over { 0 } else { self.slips });
            }
            StepResult::Started { task } => {
                must!(*task == self.ended, "task {} is the next", self.ended);
                self.job = self.waiting.pop_front();
                let job = self.job.as_ref().ok_or("no task is waiting")?;
                let reasoned = job.kind == TaskKind::Act && !job.briefed && self.acts > 1;
                must!(!reasoned || self.briefed, "it has no brief");
                (self.briefed, self.slips) = (false, 0);
                self.begin_loop();
            }
            StepResult::Executed { task, report, .. } => {
                must!(*task == self.ended, "task {} runs", self.ended);
                if is_unwritten(report)
                    && let Some(job) = &mut self.job
                {
                    // Nothing needs a review.
                    self.reviews |= job.review;
                    job.review = false;
                }
                self.end_task(&whys, report.trouble().is_none())?;
                self.write_again(report, &whys)?;
            }
            StepResult::ApprovalWanted { .. } => {
                must!(whys == [Why::NeedsApproval], "nothing goes on before the answer");
                self.asked = Some(before);
            }
            StepResult::ApprovalGiven { .. } => {
                must!(Some(self.at) == self.asked.take(), "it goes on where it was asked");
            }
            StepResult::Acted { calls, .. } => self.answer(calls, &whys)?,
            StepResult::CallsStarted => {
                must!(!self.pending.is_empty() && !self.calling, "nothing is to be called");
                self.calling = true;
            }
            StepResult::Called { results } => {
                must!(std::mem::take(&mut self.calling), "the calls were not started");
                let ids = |id: &str| self.pending.iter().any(|call| call.id == id);
                must!(results.len() == self.pending.len(), "there were {} calls", self.pending.len());
                must!(results.iter().all(|result| ids(&result.id)), "it was not called");
                must!(whys.first() == Some(&self.round_ends()), "no round has ended");
                self.pending.clear();
                self.end_round()?;
            }
            StepResult::Compressed { .. } => {
                must!(!self.compressed, "it was compressed before in this round");
                self.compressed = true;
            }
            StepResult::Assessed { text, .. } => {
                must!(self.rounds == max_tool_call_rounds, "{} rounds are behind it", self.rounds);
                self.expected.push(("max_tool_call_rounds", max_tool_call_rounds.into()));
                // Only an achieved goal counts as success.
                self.end_task(&whys, text.starts_with(Banner::Achieved.text()))?;
            }
            StepResult::ModelFailed { .. } => match before {
                Node::Planner => must!(whys[..] == [Why::PlanningFailed], "it goes on"),
                Node::Reasoning => (self.briefed, self.slips) = (true, 0),
                Node::Action => {
                    if self.rounds == max_tool_call_rounds {
                        self.expected.push(("max_tool_call_rounds", max_tool_call_rounds.into()));
                    }
                    self.end_task(&whys, false)?;
                }
                Node::Critic => self.may_be_reviewed()?,
                _ => must!(before == Node::Output, "{before} calls no model that may fail"),
            },
            StepResult::Reviewed { verdict, .. } => {
                self.may_be_reviewed()?;
                self.slips = 0;
                self.fix(&verdict.inject, &whys)?;
                if verdict.blocked.is_some() && verdict.status != Status::NeedsFix {
                    self.waiting.retain(|job| job.kind == TaskKind::Msg);
                    let goes_on = if self.waiting.is_empty() { Why::PlanExhausted } else { Why::TasksRemain };
                    must!(whys.first() == Some(&goes_on), "no plan can change that");
                }
            }
            StepResult::Unreviewed { .. } => {
                self.may_be_reviewed()?;
                let over = self.slip()?;
                must!(over != whys.contains(&Why::NoVerdict), "after {} slips it goes on", self.slips);
            }
            StepResult::Stopped { .. } => self.stopped = true,
            StepResult::Cancelled => {
                must!(whys[..] == [Why::Cancelled], "it goes on");
                self.cancelled = true;
            }
            StepResult::Finished { arrived, .. } => {
                let goes_on = !arrived.is_empty() && !self.stopped && !self.cancelled;
                if goes_on && self.cycles >= max_cycles {
                    self.expected.push(("max_cycles", max_cycles.into()));
                }
                must!(event.continues == (goes_on && self.cycles < max_cycles), "after {} cycles", self.cycles);
            }
            StepResult::Admitted { .. } | StepResult::Retrieved { .. } | StepResult::Routed { .. } => {}
            StepResult::Conversed { .. } | StepResult::Told { .. } => {}
        }
        must!(self.slips <= max_parse_retries + 1, "{} slips", self.slips);
        Ok(())
    }

    /// Counts an invalid answer. Returns whether it was the last allowed one.
    fn slip(&mut self) -> Result<bool, String> {
        let retries = self.limits.max_parse_retries;
        self.slips += 1;
        must!(self.slips <= retries + 1, "{} answers could not be used", self.slips);
        let over = self.slips == retries + 1;
        if over {
            self.expected.push(("max_parse_retries", retries.into()));
        }
        Ok(over)
    }

    fn begin_loop(&mut self) {
        (self.rounds, self.compressed, self.calling) = (0, false, false);
        self.batches.clear();
        self.pending.clear();
    }

    fn end_round(&mut self) -> Result<(), String> {
        (self.rounds, self.compressed) = (self.rounds + 1, false);
        must!(self.rounds <= self.limits.max_tool_call_rounds, "it is round {}", self.rounds);
        Ok(())
    }

    /// Returns the reason at the end of the current round.
    fn round_ends(&self) -> Why {
        match self.rounds + 1 < self.limits.max_tool_call_rounds {
            true => Why::RoundsLeft,
            false if self.direct && !self.escalated => Why::PlanNeeded,
            false => Why::RoundsSpent,
        }
    }

    fn answer(&mut self, calls: &[ToolCall], whys: &[Why]) -> Result<(), String> {
        must!(self.rounds < self.limits.max_tool_call_rounds, "{} rounds are behind it", self.rounds);
        must!(self.pending.is_empty(), "calls have no result yet");
        let calls = &calls[..calls.len().min(16)];
        if calls.is_empty() {
            // An answer without text takes a round; one with text ends the task.
            return if whys.first() == Some(&self.round_ends()) { self.end_round() } else { self.end_task(whys, true) };
        }
        let mut batch: Vec<_> = calls.iter().map(|call| (call.name.clone(), call.args.clone())).collect();
        batch.sort();
        self.batches.push(batch);
        if let [.., a, b, c] = &self.batches[..]
            && a == b
            && b == c
        {
            return self.end_task(whys, false);
        }
        must!(!whys.contains(&Why::TaskEnded), "the calls are not made");
        self.pending = calls.to_vec();
        Ok(())
    }

    fn end_task(&mut self, whys: &[Why], succeeded: bool) -> Result<(), String> {
        let job = self.job.clone().ok_or("no task runs")?;
        self.reviews |= job.review;
        // The last work of a plan without any review.
        let completes = succeeded && job.kind != TaskKind::Msg && self.acts > 1 && !self.direct && !self.reviews;
        let messages_remain = self.waiting.iter().all(|job| job.kind == TaskKind::Msg);
        self.reviewed = job.review || completes && messages_remain;
        self.ended += 1;
        must!(whys.first() == Some(&Why::TaskEnded), "the task goes on");
        let max = self.limits.max_review_depth;
        if self.reviewed && job.depth >= max {
            self.expected.push(("max_review_depth", max.into()));
        }
        if self.reviewed && job.depth < max {
            must!(matches!(whys, [_] | [_, Why::LimitReached]), "the reviewer is not asked");
        } else {
            must!(whys.len() > 1, "nobody will decide");
        }
        Ok(())
    }

    /// A message that no model has written is written again or ends the run; there is no new plan for it.
    fn write_again(&mut self, report: &TaskReport, whys: &[Why]) -> Result<(), String> {
        if !is_unwritten(report) {
            return Ok(());
        }
        must!(!whys.contains(&Why::Replan), "a plan is made for a model that does not answer");
        if whys.contains(&Why::TasksRemain) {
            let depth = self.job.as_ref().map_or(0, |job| job.depth);
            self.waiting.push_front(Job::from_task(&report.task, depth));
            (self.size, self.sum.tasks) = (self.size + 1, self.sum.tasks + 1);
        } else {
            self.waiting.clear();
        }
        Ok(())
    }

    fn may_be_reviewed(&self) -> Result<(), String> {
        let job = self.job.as_ref().ok_or("there is nothing to review")?;
        must!(self.reviewed && job.depth < self.limits.max_review_depth, "no review of {job:?}");
        Ok(())
    }

    fn fix(&mut self, inject: &[Task], whys: &[Why]) -> Result<(), String> {
        let max = self.limits.max_tasks;
        let mut inject = inject.to_vec();
        if let Some(job) = self.job.as_ref().filter(|job| job.kind == TaskKind::Msg && job.notify)
            && !inject.is_empty()
            && inject.iter().all(|task| !task.notify)
        {
            // The message is written again.
            match inject.iter_mut().rfind(|task| task.kind == job.kind) {
                Some(message) => message.notify = true,
                None => inject.push(Task { notify: true, ..Task::new(TaskKind::Msg, "") }),
            }
        }
        let fits = self.size + inject.len() <= max;
        must!((fits && !inject.is_empty()) == whys.contains(&Why::NeedsFix), "{} tasks are too many", self.size);
        if !fits && !inject.is_empty() {
            self.expected.push(("max_tasks", max as u64));
        } else {
            let depth = self.job.as_ref().map_or(0, |job| job.depth) + 1;
            inject.iter().rev().for_each(|task| self.waiting.push_front(Job::from_task(task, depth)));
            self.size += inject.len();
            self.sum.tasks += inject.len() as u32;
        }
        Ok(())
    }

    fn step(&mut self, step: &Move) -> Result<(), String> {
        let max = self.limits.max_replan_depth;
        match step.why {
            Why::Medium => {
                self.job = Some(Job { kind: TaskKind::Act, review: false, notify: true, briefed: true, depth: 0 });
                self.sum.tasks += 1;
                (self.direct, self.acts) = (true, 0);
                self.begin_loop();
            }
            Why::PlanNeeded => {
                must!(self.direct && !self.escalated, "a plan was made before");
                let max = self.limits.max_tool_call_rounds;
                self.expected.push(("max_tool_call_rounds", max.into()));
                (self.escalated, self.direct, self.slips) = (true, false, 0);
                (self.ended, self.job) = (self.ended + 1, None);
            }
            Why::Replan => {
                self.replans += 1;
                must!(self.replans <= max, "it is replan {}", self.replans);
                (self.slips, self.waiting) = (0, VecDeque::new());
            }
            Why::ReplansExhausted => {
                must!(self.replans == max, "there were {} replans", self.replans);
                self.expected.push(("max_replan_depth", max.into()));
            }
            Why::TasksRemain | Why::NeedsFix => {
                must!(!self.waiting.is_empty(), "no task is waiting");
                self.slips = 0;
            }
            Why::PlanExhausted => must!(self.waiting.is_empty(), "tasks are waiting"),
            Why::LimitReached => {
                self.stopped = true;
                self.waiting.clear();
            }
            Why::Cancelled | Why::PlanningFailed => self.waiting.clear(),
            Why::CycleIncomplete => {
                self.cycles += 1;
                must!(self.cycles <= self.limits.max_cycles, "it is cycle {}", self.cycles);
                (self.replans, self.slips, self.job) = (0, 0, None);
                self.waiting.clear();
            }
            _ => {}
        }
        Ok(())
    }

    /// Checks the conditions after each event.
    fn ends(&mut self, event: &Event) -> Result<(), String> {
        let mut expected = std::mem::take(&mut self.expected);
        let named: Vec<_> = event.limits.iter().map(|limit| (limit.limit.as_str(), limit.value)).collect();
        if let StepResult::Stopped { limit } = &event.result {
            must!(event.limits == [limit.clone()] && self.at == Node::Output, "it names {named:?} at {}", self.at);
            return Ok(());
        }
        if let Some(spent) = self.spent()
            && named.contains(&spent)
        {
            expected.push(spent);
            self.stopped = true;
        }
        must!(named == expected, "it names {named:?} and not {expected:?}");
        must!(event.limits.iter().all(|limit| limit.setting == format!("limits.{}", limit.limit)), "no such setting");
        let goes_on = !matches!(self.at, Node::Input | Node::Output | Node::End);
        must!(!goes_on || self.spent().is_none(), "nothing is left and it goes on");
        must!(event.continues == (self.at == Node::Input), "it is at {}", self.at);
        if let Some(said) = &event.say {
            let may = match event.result {
                StepResult::Conversed { .. } => true,
                _ => self.job.as_ref().is_some_and(|job| job.notify),
            };
            must!(may && !said.trim().is_empty(), "the user is told {said:?}");
        }
        Ok(())
    }
}
