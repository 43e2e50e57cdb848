//! The end of a run: by its reply, a limit, or its user.

use super::super::Why;
use super::super::lane::Entry;
use super::super::outcome::{Ending, Outcome};
use super::super::step::{Event, IllegalResult};
use super::{Current, Record, Run, Stage, State};
use kiso_plan::code::ErrorCode;
use kiso_plan::limits::LimitReached;
use kiso_plan::plan::TaskKind;
use kiso_plan::report::{TaskError, TaskReport, TaskStatus};

/// The reply if the worker returns an empty answer.
const NO_ANSWER: &str = "the model answered with nothing";

/// The error of a task that was cancelled while it ran.
const CANCELLED_MIDWAY: &str = "the run was cancelled while the task ran; its changes to files were undone as far as they were kept, and what it did beyond them may or may not have taken effect";

impl Run {
    pub(super) fn take_conversation(&mut self, event: &mut Event, text: &str) -> Result<(), IllegalResult> {
        let text = super::super::banner::strip(text).trim().to_owned();
        let ending = if text.is_empty() {
            Ending::Failed { reason: NO_ANSWER.to_owned() }
        } else {
            self.said.push(text.clone().into());
            event.say = Some(text);
            Ending::Done
        };
        self.state = State::Finishing { ending };
        Ok(())
    }

    /// Ends the run at a limit, in any state.
    pub(super) fn stop(&mut self, event: &mut Event, limit: LimitReached) -> Result<(), IllegalResult> {
        event.limits.push(limit.clone());
        if matches!(self.state, State::Reasoning { brief: Some(_), .. }) {
            // The notice that the plan's own text will be used is no longer true.
            self.notices.clear();
        }
        self.close_task(TaskStatus::Failed, &format!("the limit {} was reached", limit.limit));
        self.drop_waiting();
        self.leave(event, Why::LimitReached, Ending::LimitHit(limit))
    }

    pub(super) fn cancel(&mut self, event: &mut Event) -> Result<(), IllegalResult> {
        // A message has no effect until it is accepted.
        let started = match &self.state {
            State::Acting { task, .. } => task.kind != TaskKind::Msg,
            state => matches!(state, State::Looping { stage: Stage::Calling { .. }, .. }),
        };
        let (status, why) = match started {
            true => (TaskStatus::Interrupted, CANCELLED_MIDWAY),
            false => (TaskStatus::Failed, "the run was cancelled"),
        };
        self.close_task(status, why);
        self.drop_waiting();
        self.notices.clear();
        self.leave(event, Why::Cancelled, Ending::Cancelled)
    }

    /// Goes to the output node, unless the run is already there.
    fn leave(&mut self, event: &mut Event, why: Why, ending: Ending) -> Result<(), IllegalResult> {
        let at_output = event.moves.last().map_or(self.node(), |step| step.to) == super::Node::Output;
        if at_output && why == Why::LimitReached {
            self.state = State::Finishing { ending };
            return Ok(());
        }
        self.go(event, why, State::Finishing { ending })
    }

    /// Records an unfinished task that will not be continued.
    fn close_task(&mut self, status: TaskStatus, why: &str) {
        let (id, depth, mut report) = match &self.state {
            State::Acting { id, task, depth, label } => {
                (*id, *depth, TaskReport { label: label.clone(), ..TaskReport::new(task.clone(), status, "") })
            }
            State::Looping { id, depth, .. } => match self.loop_report(status, String::new(), None) {
                Some(report) => (*id, *depth, report),
                None => return,
            },
            _ => return,
        };
        report.error = Some(TaskError { code: ErrorCode::Stopped, ..TaskError::of_host(why.to_owned()) });
        self.records.push(Record { id, report, depth, rejected: Some(why.to_owned()) });
    }

    pub(super) fn drop_waiting(&mut self) {
        self.dropped.extend(self.current.waiting.drain(..).map(|waiting| (waiting.id, waiting.task)));
    }

    pub(super) fn finish(
        &mut self,
        event: &mut Event,
        reply: String,
        arrived: Vec<String>,
        gone: &[String],
    ) -> Result<(), IllegalResult> {
        let State::Finishing { ending } = &self.state else {
            return Ok(());
        };
        let ending = ending.clone();
        self.drop_waiting();
        self.lane.push(Entry::Assistant(reply.clone()));
        let max = self.spec.limits.max_cycles;
        let goes_on = !arrived.is_empty() && matches!(ending, Ending::Done | Ending::Failed { .. });
        if goes_on && self.cycles < max {
            self.cycles += 1;
            event.continues = true;
            self.durable |= self.routing.as_ref().is_some_and(|routing| routing.durable);
            self.earlier = self.records.len();
            self.current = Current::default();
            (self.said, self.history, self.routing) = (Vec::new(), Vec::new(), None);
            return self.go(event, Why::CycleIncomplete, State::Admitting { texts: arrived });
        }
        if goes_on {
            event.limits.push(LimitReached::new("max_cycles", max.into()));
        }
        let outcome = Outcome { reply, ..self.outcome_of(&ending).without_files(gone) };
        self.go(event, Why::CycleComplete, State::Ended { outcome })
    }

    pub(super) fn outcome_of(&self, ending: &Ending) -> Outcome {
        // The messages of a blocked plan say why.
        let told = self.current.blocked.is_some() && !self.said.is_empty();
        Outcome::new(ending.clone(), &self.said, told, &self.current.goal, self.reports())
    }
}
