//! The action loop: rounds of an actor and its tools.

use super::super::Why;
use super::super::banner::{self, Banner};
use super::super::lane::ActionTurn;
use super::super::reflection::{self, CallOutcome, Reflection};
use super::super::step::{Event, IllegalResult, ToolResult};
use super::{Abandoned, MAX_BATCH, Run, Stage, State};
use kiso_plan::call::ToolCall;
use kiso_plan::code::ErrorCode;
use kiso_plan::estimate;
use kiso_plan::limits::LimitReached;
use kiso_plan::report::{MAX_DELIVERED, TaskError, TaskReport, TaskStatus};

/// Exchanges at the end of the lane that stay unchanged.
const KEPT: usize = 2;

/// From this number of remaining rounds on, the actor is told how many are left.
const ROUNDS_NOTED: u32 = 3;

/// The reply to an empty answer of the actor.
const EMPTY: &str = "Your answer was empty. Call a tool, or say what was done and found.";

impl Run {
    /// Returns the turns that must be compressed before the actor is called again.
    pub(super) fn oversized(&self) -> Option<std::ops::Range<usize>> {
        let size = self.action_lane.tokens(estimate::tokens);
        let range = self.action_lane.compressible(KEPT);
        (size > self.spec.policy.lane_tokens && !range.is_empty()).then_some(range)
    }

    pub(super) fn take_answer(
        &mut self,
        event: &mut Event,
        text: String,
        mut calls: Vec<ToolCall>,
    ) -> Result<(), IllegalResult> {
        let State::Looping { round, repeat, stage, .. } = &mut self.state else {
            return Ok(());
        };
        let text = banner::strip(&text);
        let left_out = calls.len().saturating_sub(MAX_BATCH);
        calls.truncate(MAX_BATCH);
        self.action_lane.push(ActionTurn::Assistant { text: text.clone(), calls: calls.clone() });
        if calls.is_empty() && text.trim().is_empty() {
            *round += 1;
            self.action_lane.push(ActionTurn::Reflection { text: EMPTY.to_owned() });
            return self.go_on(event);
        }
        if calls.is_empty() {
            return self.end_loop(event, TaskStatus::Done, text.trim().to_owned(), None);
        }
        if repeat.is_loop(&calls) {
            let names: Vec<_> = calls.iter().map(|call| call.name.as_str()).collect();
            let message = format!(
                "the same calls ({}) were wanted {} times in a row, so the loop was stopped",
                names.join(", "),
                repeat.times()
            );
            let error = TaskError { code: ErrorCode::Loop, ..TaskError::of_host(message) };
            return self.end_loop(event, TaskStatus::Failed, text, Some(error));
        }
        *stage = Stage::Ready { calls, left_out };
        Ok(())
    }

    pub(super) fn start_calls(&mut self) -> Result<(), IllegalResult> {
        if let State::Looping { stage, .. } = &mut self.state
            && let Stage::Ready { calls, left_out } = stage
        {
            *stage = Stage::Calling { calls: std::mem::take(calls), left_out: *left_out };
        }
        Ok(())
    }

    pub(super) fn take_results(&mut self, event: &mut Event, given: Vec<ToolResult>) -> Result<(), IllegalResult> {
        self.use_up();
        let State::Looping { round, results, stage, .. } = &mut self.state else {
            return Ok(());
        };
        let left_out = if let Stage::Calling { left_out, .. } = stage { *left_out } else { 0 };
        (*round, *stage) = (*round + 1, Stage::Thinking);
        let step = *round;
        let rounds_left = self.spec.limits.max_tool_call_rounds.saturating_sub(step);
        let reflections: Vec<_> = given.iter().map(Reflection::of_result).collect();
        let mut remarks = reflection::remarks(&reflections, given.iter().map(|result| result.text.as_str()));
        for ToolResult { id, name, mut text, status, hint, pictures, .. } in given.iter().cloned() {
            if let Some(hint) = hint {
                text.push_str(&format!("\n(hint: {hint})"));
            }
            self.action_lane.push(ActionTurn::Tool { id, name, text, status, pictures });
        }
        // The results without their texts, which are in the lane.
        results.extend(given.into_iter().map(|result| ToolResult {
            text: String::new(),
            pictures: Vec::new(),
            ..result
        }));
        if left_out > 0 {
            remarks.push(format!(
                "The last {left_out} calls of that answer were not made: one answer may have {MAX_BATCH}. Call them again if they matter."
            ));
        }
        if (1..=ROUNDS_NOTED).contains(&rounds_left) {
            remarks.push(format!("Rounds of tool calls left: {rounds_left}."));
        }
        if let Some(text) = reflection::note(&remarks) {
            self.action_lane.push(ActionTurn::Reflection { text });
        }
        self.ledger.record(step, &reflections);
        self.go_on(event)
    }

    /// Returns to the actor after a round: for its next calls, or for its assessment. A loop without a plan whose rounds are used
    /// up goes to the planner, the first time.
    fn go_on(&mut self, event: &mut Event) -> Result<(), IllegalResult> {
        let State::Looping { round, .. } = self.state else {
            return Ok(());
        };
        if round < self.spec.limits.max_tool_call_rounds {
            return self.pass(event, Why::RoundsLeft).map(drop);
        }
        if self.current.direct && !self.escalated {
            return self.escalate(event);
        }
        self.pass(event, Why::RoundsSpent).map(drop)
    }

    /// Ends the loop of the medium route, and requests a plan that takes the work done so far into account.
    fn escalate(&mut self, event: &mut Event) -> Result<(), IllegalResult> {
        let max = self.spec.limits.max_tool_call_rounds;
        let reason = format!("{max} rounds of tool calls without a plan did not finish it; go on from what was done");
        let error = TaskError {
            code: ErrorCode::Limit,
            limit: Some("max_tool_call_rounds".to_owned()),
            ..TaskError::of_host(reason.clone())
        };
        let Some(report) = self.loop_report(TaskStatus::Failed, self.action_lane.digest(), Some(error)) else {
            return Ok(());
        };
        event.limits.push(LimitReached::new("max_tool_call_rounds", max.into()));
        self.escalated = true;
        self.notices
            .push_back(format!("This takes more than {max} rounds of tool calls, so I am making a plan for it."));
        self.close_direct(report, reason.clone());
        self.planner_lane.seed(&self.lane);
        let abandoned = Some(Abandoned { reason, remaining: Vec::new() });
        self.go(event, Why::PlanNeeded, State::Planning { attempt: 1, correction: None, abandoned })
    }

    pub(super) fn take_summary(&mut self, reference: String, summary: String) -> Result<(), IllegalResult> {
        if let Some(range) = self.oversized() {
            // The lane itself returned this range.
            let replaced = self.action_lane.replace(range, reference, summary);
            debug_assert_eq!(replaced, Ok(()));
        }
        Ok(())
    }

    /// Takes the answer at the round limit: what was achieved, with exactly one banner.
    pub(super) fn take_assessment(&mut self, event: &mut Event, text: &str) -> Result<(), IllegalResult> {
        let (banner, text) = banner::enforce(text);
        self.action_lane.push(ActionTurn::Assistant { text: text.clone(), calls: Vec::new() });
        let max = self.spec.limits.max_tool_call_rounds;
        event.limits.push(LimitReached::new("max_tool_call_rounds", max.into()));
        if banner == Banner::Achieved {
            return self.end_loop(event, TaskStatus::Done, text, None);
        }
        let error = TaskError {
            code: ErrorCode::Limit,
            limit: Some("max_tool_call_rounds".to_owned()),
            ..TaskError::of_host(format!(
                "{max} rounds of tool calls did not reach the goal (limits.max_tool_call_rounds in config.toml)"
            ))
        };
        self.end_loop(event, TaskStatus::Failed, text, Some(error))
    }

    pub(super) fn do_without_actor(&mut self, event: &mut Event, message: &str) -> Result<(), IllegalResult> {
        let State::Looping { round, .. } = &self.state else {
            return Ok(());
        };
        if *round >= self.spec.limits.max_tool_call_rounds {
            return self.take_assessment(event, &format!("No assessment could be made: {message}"));
        }
        let error = TaskError { code: ErrorCode::ModelFailed, ..TaskError::of_host(message.to_owned()) };
        self.end_loop(event, TaskStatus::Failed, String::new(), Some(error))
    }

    fn end_loop(
        &mut self,
        event: &mut Event,
        status: TaskStatus,
        text: String,
        error: Option<TaskError>,
    ) -> Result<(), IllegalResult> {
        let report = self.loop_report(status, text, error);
        match report {
            Some(report) => self.take_report(event, report),
            None => Ok(()),
        }
    }

    /// Returns the result of the loop as the report of its task.
    pub(super) fn loop_report(&self, status: TaskStatus, text: String, error: Option<TaskError>) -> Option<TaskReport> {
        let State::Looping { task, results, .. } = &self.state else {
            return None;
        };
        let mut report = TaskReport::new(task.clone(), status, text);
        // The actor's text depends on everything that it has seen.
        report.label = self.label();
        report.error = error;
        report.millis = results.iter().map(|result| result.millis).sum();
        for result in results {
            report.more_files += result.more_files;
            for file in &result.files {
                report.more_files += u64::from(!file.add_to(&mut report.files, MAX_DELIVERED));
            }
        }
        Some(report)
    }
}

impl Reflection {
    /// The meaning of a result for the next step.
    pub fn of_result(result: &ToolResult) -> Self {
        Self::from_outcome(&CallOutcome {
            name: result.name.clone(),
            status: result.status,
            text: result.text.clone(),
            code: result.code.clone(),
            hint: result.hint.clone(),
            archived: result.archived.clone(),
        })
    }
}
