//! The critic: decides about a finished task and its plan.

use std::collections::VecDeque;

use super::super::Why;
use super::super::banner;
use super::super::lane::Entry;
use super::super::outcome::{Ending, ReplyText};
use super::super::step::{Event, IllegalResult};
use super::{Abandoned, Current, Record, Run, State, Waiting};
use kiso_plan::code::ErrorCode;
use kiso_plan::label::Label;
use kiso_plan::limits::LimitReached;
use kiso_plan::plan::{Task, TaskKind};
use kiso_plan::report::{Attempt, Correction, TaskReport, TaskStatus};
use kiso_plan::verdict::{Status, Verdict};

/// The task of a message that is written again.
const AGAIN: &str = "Answer the user's request, with what was found wrong put right";

/// Maximum characters of a task's output in the graph lane, and of the last output in a reply that no model could write.
const MAX_SNAPSHOT: usize = 2_000;

/// Maximum calls for one message, each with the retries of its model. A new plan would run every command again.
const MAX_WRITES: usize = 3;

/// Maximum tasks that a reply lists if no model could write it.
const MAX_NAMED: usize = 10;

impl Run {
    pub(super) fn take_report(&mut self, event: &mut Event, report: TaskReport) -> Result<(), IllegalResult> {
        let (State::Acting { id, task, depth, .. } | State::Looping { id, task, depth, .. }) = &self.state else {
            return Ok(());
        };
        let (id, depth) = (*id, *depth);
        let review = task.review || self.completes_unreviewed_plan(&report);
        if task.kind != TaskKind::Msg {
            self.lane.push(Entry::Evidence(snapshot(&report)));
        }
        self.records.push(Record { id, report, depth, rejected: None });
        self.pass(event, Why::TaskEnded)?;
        if !review || self.is_unwritten() {
            return self.settle(event);
        }
        let max = self.spec.limits.max_review_depth;
        if depth < max {
            self.state = State::Reviewing { attempt: 1, correction: None };
            return Ok(());
        }
        event.limits.push(LimitReached::new("max_review_depth", max.into()));
        self.notices.push_back(format!(
            "{} was not reviewed: {depth} rounds of fixes are behind it, which is the limit max_review_depth. It counts \
             as what it reported itself, and the plan goes on.",
            self.last_label()
        ));
        self.move_on(event)
    }

    /// Whether the last work of a plan with several action loops has ended without any review: then its goal is reviewed.
    fn completes_unreviewed_plan(&self, report: &TaskReport) -> bool {
        let works = report.task.kind != TaskKind::Msg && report.trouble().is_none();
        let of_plan = self.records.get(self.current.first..).unwrap_or_default();
        works
            && self.current.acts > 1
            && self.only_messages_remain()
            && of_plan.iter().all(|record| !record.report.task.review)
    }

    /// Records the task of the medium route as rejected, and leaves that route.
    pub(super) fn close_direct(&mut self, report: TaskReport, reason: String) {
        let State::Looping { id, depth, .. } = &self.state else { return };
        let (id, depth) = (*id, *depth);
        self.lane.push(Entry::Evidence(snapshot(&report)));
        self.records.push(Record { id, report, depth, rejected: Some(reason) });
        self.current = Current::default();
    }

    /// "After `max_review_depth` inject rounds in the same chain, the worker stops calling the reviewer and moves on". The next
    /// task follows without a new plan, even after a failed one.
    fn move_on(&mut self, event: &mut Event) -> Result<(), IllegalResult> {
        if let Some(record) = self.records.last_mut() {
            record.rejected = record.report.trouble();
        }
        self.accept_task(event)
    }

    /// The critic without a reviewer: only the exit code and the tool status decide.
    pub(super) fn settle(&mut self, event: &mut Event) -> Result<(), IllegalResult> {
        match self.records.last().and_then(|record| record.report.trouble()) {
            Some(reason) if self.is_unwritten() => self.write_again(event, &reason),
            Some(reason) => self.give_up_plan(event, reason),
            None => self.accept_task(event),
        }
    }

    /// Whether the last task is a message that no model has written.
    fn is_unwritten(&self) -> bool {
        self.records.last().is_some_and(Record::is_unwritten)
    }

    /// Has a message written again that no model has written. If that has failed often enough or cannot succeed, the run fails
    /// but keeps its finished work: another plan would use the same models.
    fn write_again(&mut self, event: &mut Event, reason: &str) -> Result<(), IllegalResult> {
        let Some(last) = self.records.last_mut() else {
            return Ok(());
        };
        last.rejected = Some(reason.to_owned());
        let (task, depth) = (last.report.task.clone(), last.depth);
        let may_pass = last.report.error.as_ref().is_some_and(|error| error.retryable);
        let tried = self.records.iter().rev().take_while(|record| record.is_unwritten() && record.report.task == task);
        if may_pass && tried.count() < MAX_WRITES {
            let (id, label) = (self.new_id(), self.label());
            self.current.size += 1;
            self.current.waiting.push_front(Waiting { id, task, depth, label, instructions: Label::default() });
            return self.go(event, Why::TasksRemain, State::reasoning());
        }
        let reason = format!("The reply could not be written: {reason}{}", self.done_so_far());
        self.drop_waiting();
        self.go(event, Why::PlanExhausted, State::Finishing { ending: Ending::Failed { reason } })
    }

    /// Returns the successful tasks of the cycle and the output of the last one, for a reply without a model.
    fn done_so_far(&self) -> String {
        let of_cycle = self.records[self.earlier..].iter();
        let done: Vec<&TaskReport> = of_cycle
            .filter(|record| record.rejected.is_none() && record.report.task.kind != TaskKind::Msg)
            .map(|record| &record.report)
            .collect();
        let Some(last) = done.last() else { return String::new() };
        let named = done.iter().rev().take(MAX_NAMED).rev().map(|report| format!("\n- {}", report.task.label()));
        let output = kiso_plan::clip::clip(last.text.trim(), MAX_SNAPSHOT);
        let output = if output.is_empty() { output } else { format!("\n\nIts output:\n\n````\n{output}\n````") };
        let whole = if done.len() > MAX_NAMED { "The last tasks that were done" } else { "Done before that" };
        format!("\n\n{whole}:{}{output}", named.collect::<String>())
    }

    pub(super) fn take_verdict(
        &mut self,
        event: &mut Event,
        verdict: Verdict,
        instructions: Vec<Label>,
    ) -> Result<(), IllegalResult> {
        let Verdict { status, inject, reason, goal_met, blocked, .. } = verdict;
        if let Some(why) = blocked.filter(|_| status != Status::NeedsFix) {
            return self.block(event, status, why);
        }
        match status {
            // A reviewer sees one task and does not know the rest of the plan. So its statement that the goal is not met only
            // counts if only messages are left.
            Status::Ok if goal_met == Some(false) && self.only_messages_remain() => {
                let reason = reason.unwrap_or_else(|| "the tasks succeeded, but the goal is not met".to_owned());
                self.give_up_plan(event, reason)
            }
            Status::Ok => {
                if let Some(record) = self.records.last_mut() {
                    record.rejected = record.report.trouble().filter(|_| !vindicated(&record.report));
                }
                self.accept_task(event)
            }
            Status::Replan => self.give_up_plan(event, reason.unwrap_or_default()),
            Status::NeedsFix => self.inject(event, (inject, instructions), reason),
        }
    }

    /// Ends the plan for a reason that no other plan can change: only its messages are left.
    fn block(&mut self, event: &mut Event, status: Status, why: String) -> Result<(), IllegalResult> {
        if let Some(record) = self.records.last_mut() {
            let trouble = record.report.trouble().filter(|_| !vindicated(&record.report));
            record.rejected = if status == Status::Ok { trouble } else { Some(why.clone()) };
        }
        self.lane.push(Entry::Feedback(why.clone()));
        let (messages, others) = self.current.waiting.drain(..).partition(|left| left.task.kind == TaskKind::Msg);
        self.current.waiting = messages;
        let others: VecDeque<Waiting> = others;
        self.dropped.extend(others.into_iter().map(|left| (left.id, left.task)));
        self.current.blocked = Some(why);
        self.accept_task(event)
    }

    fn inject(
        &mut self,
        event: &mut Event,
        (tasks, instructions): (Vec<Task>, Vec<Label>),
        reason: Option<String>,
    ) -> Result<(), IllegalResult> {
        let max = self.spec.limits.max_tasks;
        let reason = reason.unwrap_or_else(|| "the output was not what was expected".to_owned());
        let tasks = match self.records.last() {
            Some(Record { report: TaskReport { task, .. }, .. }) => {
                with_message(task.kind == TaskKind::Msg && task.notify, tasks)
            }
            None => tasks,
        };
        if self.current.size + tasks.len() > max {
            event.limits.push(LimitReached::new("max_tasks", max as u64));
            let reason = format!("{reason}; putting it right would take more than max_tasks allows ({max})");
            return self.give_up_plan(event, reason);
        }
        let Some(record) = self.records.last_mut() else {
            return Ok(());
        };
        record.rejected = Some(reason.clone());
        let depth = record.depth + 1;
        self.lane.push(Entry::Feedback(reason));
        self.current.size += tasks.len();
        let label = self.label();
        let mut instructions = instructions.into_iter();
        let waiting = |task| {
            let instructions = instructions.next().unwrap_or_default();
            Waiting { id: self.new_id(), task, depth, label: label.clone(), instructions }
        };
        let tasks: Vec<_> = tasks.into_iter().map(waiting).collect();
        for waiting in tasks.into_iter().rev() {
            self.current.waiting.push_front(waiting);
        }
        self.go(event, Why::NeedsFix, State::reasoning())
    }

    /// An unreadable review neither accepts nor rejects a task. A new plan would repeat the effects of the old one because of the
    /// reviewer's error, so the task's own status decides, and the user is notified.
    pub(super) fn retry_review(&mut self, event: &mut Event, correction: Correction) -> Result<(), IllegalResult> {
        let State::Reviewing { attempt, .. } = &self.state else {
            return Ok(());
        };
        let attempt = *attempt;
        let retries = self.spec.limits.max_parse_retries;
        if attempt <= retries {
            let state = State::Reviewing { attempt: attempt + 1, correction: Some(correction) };
            return self.go(event, Why::NoVerdict, state);
        }
        event.limits.push(LimitReached::new("max_parse_retries", retries.into()));
        self.notices.push_back(format!(
            "The review of {} could not be read after {attempt} attempts, so it counts as what it reported itself.",
            self.last_label()
        ));
        self.settle(event)
    }

    /// The same for a reviewer whose model does not answer.
    pub(super) fn do_without_review(&mut self, event: &mut Event, why: &str) -> Result<(), IllegalResult> {
        self.notices.push_back(format!(
            "{} could not be reviewed ({why}), so it counts as what it reported itself.",
            self.last_label()
        ));
        self.settle(event)
    }

    fn accept_task(&mut self, event: &mut Event) -> Result<(), IllegalResult> {
        if let Some(Record { report, rejected: None, .. }) = self.records.last()
            && report.task.notify
            && !report.for_user().is_empty()
            // The actor's text is the message that follows: if it was sent here, the user would get it twice.
            && !(report.task.kind == TaskKind::Act && self.closing_message().is_some())
        {
            let text = report.for_user().to_owned();
            if report.task.kind == TaskKind::Msg || self.current.direct {
                self.said.push(ReplyText { text: text.clone(), parts: report.blocks.clone() });
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
            self.go(event, Why::TasksRemain, State::reasoning())
        }
    }

    /// Abandons the current plan because of its last task.
    fn give_up_plan(&mut self, event: &mut Event, reason: String) -> Result<(), IllegalResult> {
        if let Some(record) = self.records.last_mut() {
            record.rejected = Some(reason.clone());
        }
        self.lane.push(Entry::Feedback(reason.clone()));
        if self.current.direct {
            // The actor's text before the failure is the best available reply; it includes the banner of an assessment.
            let text = self.records.last().map(|record| record.report.text.trim().to_owned()).unwrap_or_default();
            if !text.is_empty() {
                self.said.push(text.into());
            }
            return self.go(event, Why::PlanExhausted, State::Finishing { ending: Ending::Failed { reason } });
        }
        let max = self.spec.limits.max_replan_depth;
        let used = self.history.len();
        if used >= max as usize {
            event.limits.push(LimitReached::new("max_replan_depth", max.into()));
            let reason = format!(
                "I gave up: {reason}\nNo further plan is made for this message, {used} new ones have been tried \
                 (the limit max_replan_depth; limits.max_replan_depth in config.toml raises it)."
            );
            // If an action loop used up its rounds, its own assessment says how much it achieved.
            let assessed = self.records.last().map(|record| record.report.text.trim().to_owned());
            self.said.extend(assessed.filter(|text| banner::is_assessment(text)).map(ReplyText::from));
            let state = State::Finishing { ending: Ending::Failed { reason } };
            return self.go(event, Why::ReplansExhausted, state);
        }
        if let Some(limit) = self.spec.limits.reached(self.usage) {
            return self.stop_at_critic(event, limit);
        }
        let tried = self.records[self.current.first.min(self.records.len())..].iter().map(tried).collect();
        self.history.push(Attempt { goal: self.current.goal.clone(), reason: reason.clone(), tried });
        self.notices.push_back(format!(
            "That plan did not work out, so I am making a new one ({} of {max}). The reason: {reason}",
            used + 1
        ));
        let remaining = self.current.waiting.iter().map(|waiting| waiting.task.clone()).collect();
        self.drop_waiting();
        let abandoned = Some(Abandoned { reason, remaining });
        self.go(event, Why::Replan, State::Planning { attempt: 1, correction: None, abandoned })
    }

    fn stop_at_critic(&mut self, event: &mut Event, limit: LimitReached) -> Result<(), IllegalResult> {
        event.limits.push(limit.clone());
        self.drop_waiting();
        self.go(event, Why::LimitReached, State::Finishing { ending: Ending::LimitHit(limit) })
    }

    /// Returns why a plan that came to its end has failed: it was blocked, or the last work of the cycle failed.
    fn failure(&self) -> Option<String> {
        let of_cycle = &self.records[self.earlier..];
        let worked = of_cycle.iter().rev().find(|record| record.report.task.kind != TaskKind::Msg);
        self.current.blocked.clone().or_else(|| worked.and_then(|record| record.rejected.clone()))
    }

    pub(super) fn only_messages_remain(&self) -> bool {
        self.current.waiting.iter().all(|waiting| waiting.task.kind == TaskKind::Msg)
    }

    /// Names the task under review in a sentence for the user.
    fn last_label(&self) -> String {
        let label = self.records.last().map(|record| record.report.task.label()).unwrap_or_default();
        format!("Task {} ({label})", self.records.len() - self.current.first)
    }
}

/// Returns the tasks that are injected after a rejected one. For a rejected message to the user, another message is added at the
/// end, unless the reviewer has written one.
pub(super) fn with_message(message: bool, mut tasks: Vec<Task>) -> Vec<Task> {
    if !message || tasks.is_empty() || tasks.iter().any(|task| task.notify) {
        return tasks;
    }
    match tasks.iter_mut().rfind(|task| task.kind == TaskKind::Msg) {
        Some(message) => message.notify = true,
        None => tasks.push(Task { notify: true, ..Task::new(TaskKind::Msg, AGAIN) }),
    }
    tasks
}

impl Record {
    /// Whether the task is a message that no model has written.
    fn is_unwritten(&self) -> bool {
        let code = self.report.error.as_ref().map(|error| &error.code);
        self.report.task.kind == TaskKind::Msg && matches!(code, Some(ErrorCode::ModelFailed | ErrorCode::EmptyAnswer))
    }
}

/// Whether a reviewer's `ok` overrides a failing status: a command may be expected to end with 1. It never overrides a limit, a
/// refusal, or a task that did not finish.
fn vindicated(report: &TaskReport) -> bool {
    report.status != TaskStatus::Interrupted
        && report.exit_code.is_some()
        && report.error.as_ref().is_none_or(|error| error.limit.is_none() && !error.policy)
}

/// Returns the result of the action node for the graph lane.
fn snapshot(report: &TaskReport) -> String {
    let how = report.trouble().unwrap_or_else(|| "done".to_owned());
    format!("{} → {how}\n{}", report.task.label(), kiso_plan::clip::clip(&report.text, MAX_SNAPSHOT)).trim().to_owned()
}

fn tried(record: &Record) -> String {
    let Task { detail, args, .. } = &record.report.task;
    let label = record.report.task.label();
    let what = match args {
        Some(args) => format!("{label} {args}"),
        None => format!("{label} {detail}"),
    };
    match &record.rejected {
        Some(reason) => format!("{} → {}", kiso_plan::clip::clip(&what, 300), kiso_plan::clip::clip(reason, 300)),
        None => format!("{} → done", kiso_plan::clip::clip(&what, 300)),
    }
}
