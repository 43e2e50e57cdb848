//! Labels of a run: of everything that its models have seen, and so of their decisions.
//!
//! The label of a run never gets more trusted. A prompt is made of the message, of what the session knew before, and of all
//! results since then; so the answer has the label of all of these.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Run;
use crate::bind::{BoundArgs, bind};
use crate::step::StepResult;
use kiso_plan::label::Label;
use kiso_plan::report::TaskReport;

/// The labels of what the models of a run have seen.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct RunLabels {
    /// The label of all results.
    #[serde(skip_serializing_if = "Label::is_default")]
    seen: Label,
}

impl RunLabels {
    /// Adds something that a model is about to see.
    pub(super) fn take_in(&mut self, label: &Label) {
        self.seen.join(label);
    }
}

impl Run {
    /// The label of the message.
    pub fn message_label(&self) -> &Label {
        &self.spec.label
    }

    /// The label of what the router and the planner see. Of the session's earlier content, only the part that they see counts,
    /// unless labels are not enforced.
    pub fn planner_label(&self) -> Label {
        if self.spec.policy.shows_all {
            return self.label();
        }
        let context = &self.spec.context;
        let known = Label { integrity: self.spec.shown, ..context.clone() };
        self.spec.label.clone().joined(&known).joined(&self.labels.seen)
    }

    /// The label of what all other roles see, and of the run's reply.
    pub fn label(&self) -> Label {
        self.spec.label.clone().joined(&self.spec.context).joined(&self.labels.seen)
    }

    /// The label of the data that the current task is based on; for calls, of what the actor has seen.
    pub fn decision_label(&self) -> Label {
        match &self.state {
            super::State::Acting { label, .. } => label.clone(),
            super::State::Reasoning { .. } => {
                self.current.waiting.front().map_or_else(|| self.label(), |waiting| waiting.label.clone())
            }
            _ => self.label(),
        }
    }

    /// Returns the report of the task with this number in the current plan, counted from 1.
    pub fn result_of_task(&self, number: usize) -> Option<&TaskReport> {
        let id = self.current.first_id.checked_add(u32::try_from(number.checked_sub(1)?).ok()?)?;
        self.records.iter().rev().find(|record| record.id == id).map(|record| &record.report)
    }

    /// Returns the arguments of a task of the current plan, with bound values filled in.
    pub fn bound(&self, args: &Value) -> Result<BoundArgs, String> {
        bind(args, |number| self.result_of_task(number))
    }

    /// Whether a model may see data with this label: only if its answers already have a label that covers it.
    pub fn expects(&self, label: &Label) -> bool {
        label.is_default() || self.spec.label.clone().joined(&self.labels.seen).covers(label)
    }

    /// Adds the labels of a result.
    pub(super) fn see(&mut self, result: &StepResult) {
        let seen = &mut self.labels.seen;
        match result {
            StepResult::Admitted { instructions, .. } => seen.join(instructions),
            StepResult::Executed { report, .. } => seen.join(&report.label),
            StepResult::Called { results } => results.iter().for_each(|result| seen.join(&result.label)),
            StepResult::Reviewed { read, .. } | StepResult::Unreviewed { read, .. } => seen.join(read),
            // Memory belongs to the session.
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
