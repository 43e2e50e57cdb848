//! Arguments of a planned task that are bound to the output of an earlier task: `{"from": 2}` is the output of the plan's second
//! task, and `{"from": 2, "pointer": "/total"}` a part of its JSON output (RFC 6901).

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use kiso_plan::label::Label;
use kiso_plan::plan::{Plan, Violation, binding};
use kiso_plan::report::{TaskReport, TaskStatus};

/// The host puts this before a server's output.
pub const OUTSIDE: &str = "[from outside: ";

/// Maximum bound values of one task.
const MAX_BOUND: usize = 32;

/// Arguments with their bound values filled in, and the labels of these values by argument.
#[derive(Debug, Clone, PartialEq)]
pub struct BoundArgs {
    pub args: Value,
    pub labels: BTreeMap<String, Label>,
}

/// Replaces bound values by outputs. `result` returns the report of a task, if it has ended. The error is a text for the planner.
pub fn bind<'r>(args: &Value, result: impl Fn(usize) -> Option<&'r TaskReport>) -> Result<BoundArgs, String> {
    let (mut bound, mut labels, mut count) = (args.clone(), BTreeMap::new(), 0);
    for (name, value) in bound.as_object_mut().into_iter().flat_map(Map::iter_mut) {
        let mut label = Label::default();
        put(name, value, &result, &mut label, &mut count)?;
        if !label.is_default() {
            labels.insert(name.clone(), label);
        }
    }
    Ok(BoundArgs { args: bound, labels })
}

fn put<'r>(
    name: &str,
    value: &mut Value,
    result: &impl Fn(usize) -> Option<&'r TaskReport>,
    label: &mut Label,
    count: &mut usize,
) -> Result<(), String> {
    if let Some((from, pointer)) = binding(value) {
        *count += 1;
        if *count > MAX_BOUND {
            return Err(format!("at most {MAX_BOUND} values of a task can be bound to others"));
        }
        let report = result(from).ok_or_else(|| format!("{name}: task {from} has left nothing behind yet"))?;
        if report.status != TaskStatus::Done {
            return Err(format!("{name}: task {from} has failed, so its output cannot be used"));
        }
        let found = output(report, pointer).ok_or_else(|| {
            format!("{name}: the output of task {from} has nothing at {:?}", pointer.unwrap_or_default())
        })?;
        if names_a_ref(&found) {
            // Otherwise, the author of this output would choose the value that replaces it.
            return Err(format!(
                "{name}: the output of task {from} says ref:KEY, which stands for itself only in a plan"
            ));
        }
        label.join(&report.label);
        *value = found;
        return Ok(());
    }
    match value {
        Value::Array(items) => items.iter_mut().try_for_each(|item| put(name, item, result, label, count)),
        Value::Object(map) => map.values_mut().try_for_each(|item| put(name, item, result, label, count)),
        _ => Ok(()),
    }
}

/// Whether a text in the value refers to an entry of the scratchpad.
pub(super) fn names_a_ref(value: &Value) -> bool {
    match value {
        Value::String(text) => {
            text.trim().strip_prefix("ref:").is_some_and(|key| !key.is_empty() && !key.contains(char::is_whitespace))
        }
        Value::Array(items) => items.iter().any(names_a_ref),
        Value::Object(map) => map.values().any(names_a_ref),
        _ => false,
    }
}

/// Returns the output of a task, or a part of its data.
fn output(report: &TaskReport, pointer: Option<&str>) -> Option<Value> {
    let text = match report.text.split_once('\n') {
        Some((first, rest)) if first.starts_with(OUTSIDE) => rest,
        _ => &report.text,
    };
    match pointer {
        None if text.is_empty() && report.data.is_some() => report.data.clone(),
        None => Some(Value::String(text.trim_end_matches('\n').to_owned())),
        Some(pointer) => {
            let of_text = || kiso_base::json::parse::<Value>(text.as_bytes()).ok();
            report.data.clone().or_else(of_text)?.pointer(pointer).cloned()
        }
    }
}

/// Returns the errors in a plan's bound values: each must be bound to an earlier task.
pub fn violations(plan: &Plan) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (index, task) in plan.tasks.iter().enumerate() {
        let effects = task.effects.iter().enumerate();
        let effects = effects.map(|(number, effect)| (format!("effects[{number}].args"), &effect.args));
        let all = task.args.iter().map(|args| ("args".to_owned(), args)).chain(effects);
        for (of, args) in all {
            for (name, value) in args.as_object().into_iter().flatten() {
                look(value, &mut |from| {
                    if !(1..=index).contains(&from) {
                        let message =
                            format!("is bound to task {from}; it must be one of the {index} tasks before this one");
                        violations.push(Violation::new(format!("tasks[{index}].{of}.{name}"), message));
                    }
                });
            }
        }
    }
    violations
}

fn look(value: &Value, found: &mut impl FnMut(usize)) {
    match value {
        bound if binding(bound).is_some() => found(binding(bound).map_or(0, |(from, _)| from)),
        Value::Array(items) => items.iter().for_each(|item| look(item, found)),
        Value::Object(map) => map.values().for_each(|item| look(item, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiso_plan::plan::{Task, TaskKind};
    use serde_json::json;

    fn report(text: &str) -> TaskReport {
        let mut report = TaskReport::new(Task::new(TaskKind::Exec, "x"), TaskStatus::Done, text);
        report.label = Label::world("mcp:bank");
        report
    }

    #[test]
    fn a_value_is_what_an_earlier_task_said() {
        let reports = [report("[from outside: MCP server bank]\n{\"iban\": \"DE1\", \"sum\": 5}\n"), report("plain\n")];
        let bound = |args: Value| bind(&args, |number| reports.get(number.checked_sub(1)?));
        let found = bound(
            json!({ "to": { "from": 1, "pointer": "/iban" }, "sum": { "from": 1, "pointer": "/sum" }, "a": [{ "from": 2 }], "b": 1 }),
        );
        let found = found.unwrap();
        assert_eq!(found.args, json!({ "to": "DE1", "sum": 5, "a": ["plain"], "b": 1 }));
        assert_eq!(found.labels.keys().collect::<Vec<_>>(), ["a", "sum", "to"]);
        assert_eq!(found.labels["to"], Label::world("mcp:bank"));
        // Values in a similar form stay unchanged.
        let plain = json!({ "x": { "from": "a" }, "y": { "from": 1, "to": 2 }, "z": { "from": -1 } });
        assert_eq!(bound(plain.clone()).unwrap().args, plain);
        for text in ["ref:notes", " ref:notes\n", "{\"x\": [\"ref:notes\"]}"] {
            let reports = [report(text)];
            let to = if text.contains('{') { json!({ "from": 1, "pointer": "/x" }) } else { json!({ "from": 1 }) };
            let bound = bind(&json!({ "to": to }), |number| reports.get(number.checked_sub(1)?));
            assert!(bound.unwrap_err().contains("ref:KEY"), "{text}");
        }
        let data = TaskReport { data: Some(json!({ "n": 5 })), ..report("") };
        let of_data = bind(&json!({ "a": { "from": 1 } }), |_| Some(&data)).unwrap();
        assert_eq!(of_data.args, json!({ "a": { "n": 5 } }));
        assert!(bound(json!({ "to": { "from": 3 } })).unwrap_err().contains("task 3 has left nothing behind"));
        assert!(bound(json!({ "to": { "from": 2, "pointer": "/x" } })).unwrap_err().contains("has nothing at \"/x\""));
    }

    #[test]
    fn a_plan_binds_to_tasks_before_alone() {
        let task = |from: usize| {
            let args = Some(json!({ "to": { "from": from }, "all": [{ "x": { "from": 1 } }] }));
            Task { args, ..Task::new(TaskKind::Skill, "x") }
        };
        let plan = |tasks| Plan { goal: "g".to_owned(), tasks, blocked: None };
        let wrong = violations(&plan(vec![task(1), task(2), task(1)]));
        let wrong: Vec<_> = wrong.iter().map(ToString::to_string).collect();
        assert_eq!(wrong.len(), 3, "{wrong:?}");
        assert!(wrong[2].starts_with("tasks[1].args.to: is bound to task 2"), "{wrong:?}");
    }
}
