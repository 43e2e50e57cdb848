//! Effects that the plan of an `act` task names in advance. The loop may make each of them once, whatever it has read by then:
//! the plan decided about the call and about every argument that it lists.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Run, Stage, State};
use crate::bind::names_a_ref;
use kiso_base::json;
use kiso_plan::call::ToolCall;
use kiso_plan::label::Label;
use kiso_plan::plan::{NamedEffect, wire_name};

/// The remaining ones, and their label.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct NamedEffects {
    /// The label of the data that the plan was based on.
    #[serde(skip_serializing_if = "Label::is_default")]
    label: Label,
    /// The indexes of the used ones in the task.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    used: BTreeSet<usize>,
}

impl NamedEffects {
    pub(super) fn planned_from(label: Label) -> Self {
        Self { label, used: BTreeSet::new() }
    }
}

/// The labels of a call that its plan has named.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedCall {
    /// The label of the data that the plan was based on.
    pub decision: Label,
    /// The label of each argument.
    pub args: BTreeMap<String, Label>,
}

impl Run {
    /// Returns the labels of a call of the loop, if the plan has named it.
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

    /// Returns the ids of the next calls, with the indexes of their effects.
    fn assigned(&self) -> Vec<(String, usize)> {
        let State::Looping { task, named, stage: Stage::Ready { calls, .. } | Stage::Calling { calls, .. }, .. } =
            &self.state
        else {
            return Vec::new();
        };
        let mut assigned: Vec<(String, usize)> = Vec::new();
        for call in calls {
            // Two calls with the same id are ambiguous.
            if task.effects.is_empty() || calls.iter().filter(|other| other.id == call.id).count() > 1 {
                continue;
            }
            let Some(given) = arguments(call) else { continue };
            // Another call of the same answer could change the content of a ref.
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
            // The most specific effect first, so that loose ones are left for other calls.
            let agreed = |(_, effect): &(usize, &NamedEffect)| effect.args.as_object().map_or(0, Map::len);
            let found = task.effects.iter().enumerate().filter(fits).max_by_key(agreed).map(|(place, _)| place);
            assigned.extend(found.map(|place| (call.id.clone(), place)));
        }
        assigned
    }

    /// Marks the named effects of the calls as used, whatever their results are.
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
