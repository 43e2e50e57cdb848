//! Effects that the plan of an `act` task has named ahead. The loop may make each of them once, whatever it has read by then: that it is
//! made was decided by the plan, and so was every argument that stands there.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Run, Stage, State};
use crate::bind::names_a_ref;
use kiso_base::json;
use kiso_plan::call::ToolCall;
use kiso_plan::label::Label;
use kiso_plan::plan::{NamedEffect, wire_name};

/// Which of them are left, and whose words they are.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct NamedEffects {
    /// Of what the plan was decided from.
    #[serde(skip_serializing_if = "Label::is_default")]
    label: Label,
    /// Those that were made, by their places in the task.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    used: BTreeSet<usize>,
}

impl NamedEffects {
    pub(super) fn planned_from(label: Label) -> Self {
        Self { label, used: BTreeSet::new() }
    }
}

/// Whose words a call is that its plan has named.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedCall {
    /// Of what the plan was decided from.
    pub decision: Label,
    /// Of each of its arguments.
    pub args: BTreeMap<String, Label>,
}

impl Run {
    /// Whose words a call of the loop is, if the plan has named it.
    pub fn named(&self, call: &ToolCall) -> Option<NamedCall> {
        let assigned = self.assigned();
        let (_, place) = assigned.into_iter().find(|(id, _)| *id == call.id)?;
        let State::Looping { task, named, .. } = &self.state else { return None };
        let bound = self.bound(&task.effects.get(place)?.args).ok()?;
        let given = arguments(call)?;
        let of = |name: &String| match bound.args.get(name) {
            Some(_) => bound.labels.get(name).cloned().unwrap_or_else(|| named.label.clone()),
            None => self.decision_label(),
        };
        let args = given.as_object()?.keys().map(|name| (name.clone(), of(name))).collect();
        Some(NamedCall { decision: named.label.clone(), args })
    }

    /// The calls that are next, by their ids, with the places of the effects that they are.
    fn assigned(&self) -> Vec<(String, usize)> {
        let State::Looping { task, named, stage: Stage::Ready { calls, .. } | Stage::Calling { calls, .. }, .. } =
            &self.state
        else {
            return Vec::new();
        };
        let mut assigned: Vec<(String, usize)> = Vec::new();
        for call in calls {
            // Nobody could say which of two calls with one id is meant.
            if task.effects.is_empty() || calls.iter().filter(|other| other.id == call.id).count() > 1 {
                continue;
            }
            let Some(given) = arguments(call) else { continue };
            // What stands at a ref could be changed by another call of the same answer.
            if calls.len() > 1 && names_a_ref(&given) {
                continue;
            }
            let fits = |(place, effect): &(usize, &NamedEffect)| {
                let free = !named.used.contains(place) && assigned.iter().all(|(_, taken)| taken != place);
                free && wire_name(&effect.tool) == call.name
                    && self.bound(&effect.args).is_ok_and(|bound| {
                        let agreed = bound.args.as_object().into_iter().flatten();
                        agreed.into_iter().all(|(name, value)| given.get(name) == Some(value))
                    })
            };
            // The closest, so that what is agreed on loosely is left for others.
            let agreed = |(_, effect): &(usize, &NamedEffect)| effect.args.as_object().map_or(0, Map::len);
            let found = task.effects.iter().enumerate().filter(fits).max_by_key(agreed).map(|(place, _)| place);
            assigned.extend(found.map(|place| (call.id.clone(), place)));
        }
        assigned
    }

    /// What was called is not called again by the plan's word, whatever came of it.
    pub(super) fn use_up(&mut self) {
        let made = self.assigned();
        if let State::Looping { named, .. } = &mut self.state {
            named.used.extend(made.into_iter().map(|(_, place)| place));
        }
    }
}

fn arguments(call: &ToolCall) -> Option<Value> {
    json::parse(call.args.trim().as_bytes()).ok()
}
