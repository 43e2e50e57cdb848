//! Waits for a person: before tasks or calls start whose effects nobody has accepted, or when a started one turns out to need
//! more; then it is rolled back first.
//!
//! The run stays in its state, and passes the node `approval` before it continues. Decisions are valid for the rest of the run,
//! so that nobody is asked twice about the same effect.

use serde::{Deserialize, Serialize};

use super::super::step::{Event, IllegalResult};
use super::super::{Node, Why};
use super::{Run, Stage, State};
use kiso_plan::approval::{CallEffect, Card, CardAnswer, Decision, MAX_CARDS};
use kiso_plan::call::ToolCall;
use kiso_plan::label::Label;
use kiso_plan::plan::Task;

/// The cards of a run, and the answers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Approvals {
    /// The card that is waiting for an answer.
    card: Option<Card>,
    /// Number of cards that were shown.
    cards: usize,
    decided: Vec<(CallEffect, Decision)>,
}

impl Approvals {
    pub(super) fn waiting(&self) -> Option<&Card> {
        self.card.as_ref()
    }

    /// Withdraws the card: nobody needs the answer any more.
    pub(super) fn withdraw(&mut self) {
        self.card = None;
    }
}

/// Tasks or calls that are about to start.
#[derive(Debug, Clone)]
pub enum Starting<'a> {
    /// The next task of the plan and those after it, each with its number in the plan and the label of the data that the plan was
    /// based on.
    Tasks(Vec<(usize, &'a Task, &'a Label)>),
    Calls(&'a [ToolCall]),
}

impl Run {
    /// The card that is waiting for an answer.
    pub fn card(&self) -> Option<&Card> {
        self.approvals.waiting()
    }

    /// Returns what the next step would start.
    pub fn starting(&self) -> Option<Starting<'_>> {
        match &self.state {
            State::Reasoning { .. } => {
                let first = self.records.len() - self.current.first + 1;
                let waiting = (first..).zip(&self.current.waiting);
                let waiting = waiting.map(|(number, waiting)| (number, &waiting.task, &waiting.label));
                Some(Starting::Tasks(waiting.collect()))
            }
            State::Looping { stage: Stage::Ready { calls, .. }, .. } => Some(Starting::Calls(calls)),
            _ => None,
        }
    }

    /// Returns a person's decision about this effect in this run, and the effect as it was shown.
    pub fn decision(&self, effect: &CallEffect) -> Option<(Decision, &CallEffect)> {
        let decided = &self.approvals.decided;
        // The latest decision counts.
        let found = decided.iter().rev().find(|(decided, _)| effect.is_within(decided));
        found.map(|(decided, decision)| (*decision, decided))
    }

    /// Returns all decisions of people in this run, latest first.
    pub fn decisions(&self) -> impl Iterator<Item = (Decision, &CallEffect)> {
        self.approvals.decided.iter().rev().map(|(effect, decision)| (*decision, effect))
    }

    /// Whether the run may show another card.
    pub fn may_ask(&self) -> bool {
        self.approvals.cards < MAX_CARDS
    }

    pub(super) fn take_card(&mut self, event: &mut Event, card: Card) -> Result<(), IllegalResult> {
        self.pass(event, Why::NeedsApproval)?;
        self.approvals.cards += 1;
        self.approvals.card = Some(card);
        Ok(())
    }

    pub(super) fn take_card_answer(&mut self, event: &mut Event, answer: &CardAnswer) -> Result<(), IllegalResult> {
        let why = match self.state.node() {
            Node::Action => Why::CallsAnswered,
            _ => Why::TasksAnswered,
        };
        self.pass(event, why)?;
        let card = self.approvals.card.take();
        for (number, effect) in (1..).zip(card.into_iter().flat_map(|card| card.effects)) {
            let decision = match answer.accepted.contains(&number) {
                _ if answer.expired => Decision::Expired,
                true => Decision::Accepted,
                false => Decision::Refused,
            };
            self.approvals.decided.push((effect, decision));
        }
        Ok(())
    }
}
