//! Whose words a run goes by: the label of what its models were told, and so of what they decide.
//!
//! A run only ever gets worse. What a model is asked is made of the message, of what the session knew before, and of everything that came
//! back since; so is what it answers.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Run;
use crate::bind::{BoundArgs, bind};
use crate::step::StepResult;
use kiso_plan::label::Label;
use kiso_plan::report::TaskReport;

/// What the models of a run have seen.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct RunLabels {
    /// Of all that came back.
    #[serde(skip_serializing_if = "Label::is_default")]
    seen: Label,
}

impl RunLabels {
    /// Something that a model is about to be told.
    pub(super) fn take_in(&mut self, label: &Label) {
        self.seen.join(label);
    }
}

impl Run {
    /// Of the message.
    pub fn message_label(&self) -> &Label {
        &self.spec.label
    }

    /// Of what the router and the planner are told: of what the session knew only what they are shown, unless labels are not enforced.
    pub fn planner_label(&self) -> Label {
        if self.spec.policy.shows_all {
            return self.label();
        }
        let context = &self.spec.context;
        let known = Label { integrity: self.spec.shown, ..context.clone() };
        self.spec.label.clone().joined(&known).joined(&self.labels.seen)
    }

    /// Of what every other role is told, and of what the run says in the end.
    pub fn label(&self) -> Label {
        self.spec.label.clone().joined(&self.spec.context).joined(&self.labels.seen)
    }

    /// Of what the task was decided from that is at work; of what the actor was told, for calls.
    pub fn decision_label(&self) -> Label {
        match &self.state {
            super::State::Acting { label, .. } => label.clone(),
            super::State::Reasoning { .. } => {
                self.current.waiting.front().map_or_else(|| self.label(), |waiting| waiting.label.clone())
            }
            _ => self.label(),
        }
    }

    /// What the task of the current plan left behind that has this number, counted from 1.
    pub fn result_of_task(&self, number: usize) -> Option<&TaskReport> {
        let id = self.current.first_id.checked_add(u32::try_from(number.checked_sub(1)?).ok()?)?;
        self.records.iter().rev().find(|record| record.id == id).map(|record| &record.report)
    }

    /// The arguments of a task of the current plan, with what they are bound to.
    pub fn bound(&self, args: &Value) -> Result<BoundArgs, String> {
        bind(args, |number| self.result_of_task(number))
    }

    /// Whether a model may be told what has this label: only if its answers are known to be made of it.
    pub fn expects(&self, label: &Label) -> bool {
        label.is_default() || self.spec.label.clone().joined(&self.labels.seen).covers(label)
    }

    /// Takes in what came back.
    pub(super) fn see(&mut self, result: &StepResult) {
        let seen = &mut self.labels.seen;
        match result {
            StepResult::Admitted { instructions, .. } => seen.join(instructions),
            StepResult::Executed { report, .. } => seen.join(&report.label),
            StepResult::Called { results } => results.iter().for_each(|result| seen.join(&result.label)),
            StepResult::Reviewed { read, .. } | StepResult::Unreviewed { read, .. } => seen.join(read),
            // What is remembered is the session's.
            StepResult::Retrieved { memory, attached, .. } => {
                seen.join(&attached.label);
                if !memory.is_empty() {
                    seen.join(&Label::session());
                }
            }
            StepResult::Routed { memory: Some(memory), .. } if !memory.is_empty() => seen.join(&Label::session()),
            _ => {}
        }
    }
}
