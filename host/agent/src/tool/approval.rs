//! Effects of calls that a person must accept first: determined by the host from grants and arguments, before anything starts.

use std::collections::BTreeSet;

use serde_json::Value;

use super::address::{addresses, host_and_port, named_in, texts};
use super::sinks::CallSinks;
use super::{CallLabels, EXEC, Tools};
use kiso_base::json;
use kiso_plan::approval::{CallEffect, CardAccess, Destination};
use kiso_plan::call::ToolCall;
use kiso_plan::plan::{Task, TaskKind};
use kiso_sandbox::skill::InstalledSkill;
use kiso_sandbox::skill::grant::AskEffective;

/// Maximum number of distinguished hosts per call; a call that names more counts as one to everything that it may reach.
const MAX_HOSTS: usize = 8;

impl Tools {
    /// Returns the effect of a plan's task that a person has to approve.
    pub fn effect_of_task(&self, task: &Task, labels: &CallLabels) -> Option<CallEffect> {
        match task.kind {
            TaskKind::Skill => {
                let none = Value::Null;
                self.effect(task.skill.as_deref().unwrap_or_default(), task.args.as_ref().unwrap_or(&none), labels)
            }
            TaskKind::Exec => self.effect_of_line(&task.detail, labels),
            TaskKind::Msg | TaskKind::Act => None,
        }
    }

    /// The same for a call of the action loop. A call with unreadable arguments is never made.
    pub fn effect_of_call(&self, call: &ToolCall, labels: &CallLabels) -> Option<CallEffect> {
        if call.cut.is_some() {
            return None;
        }
        let args: Value = json::parse(call.args.trim().as_bytes()).ok().or_else(|| {
            // Interpreted in the same way as at the call.
            call.args.trim().is_empty().then(|| Value::Object(serde_json::Map::new()))
        })?;
        match call.name == EXEC {
            true => self.effect_of_line(args.get("command")?.as_str()?, labels),
            false => self.effect(self.index().tool(&call.name), &args, labels),
        }
    }

    fn effect(&self, tool: &str, args: &Value, labels: &CallLabels) -> Option<CallEffect> {
        let asked = match self.index().outside.get(tool) {
            Some(outside) if outside.ask => {
                Some(CardAccess { of: outside.name.clone(), hosts: Vec::new(), secrets: Vec::new() })
            }
            Some(_) => None,
            None => {
                let skill = self.skills.find_tool(tool).ok();
                skill.and_then(|(skill, _)| self.access(&skill, &texts(args)))
            }
        };
        let sinks = self.sinks(tool, args, labels);
        let because = sinks.problems(labels.enforcement);
        let access = joined(asked, sinks, &because)?;
        let shown: Vec<_> = match args.as_object() {
            Some(args) => args.iter().map(|(name, value)| (name.clone(), text(value))).collect(),
            None if args.is_null() => Vec::new(),
            None => vec![("arguments".to_owned(), text(args))],
        };
        Some(CallEffect { because, ..CallEffect::new(tool, access, &shown, &canonical(args)) })
    }

    /// Returns the effect of a command line: the permissions of the skills that it names. Skills that it calls without naming
    /// them get none.
    fn effect_of_line(&self, line: &str, labels: &CallLabels) -> Option<CallEffect> {
        let index = self.index();
        let named = index.skills.iter().filter(named_in(line));
        let addresses: Vec<&str> = addresses(line).collect();
        let access: Vec<_> = named.filter_map(|skill| self.access(skill, &addresses)).collect();
        let shown = [("command".to_owned(), line.to_owned())];
        let sinks = self.sinks_of_line(line, labels);
        let because = sinks.problems(labels.enforcement);
        let access = joined(access, sinks, &because)?;
        Some(CallEffect { because, ..CallEffect::new(EXEC, access, &shown, line) })
    }

    /// Returns the access of a skill's call that requires approval; `texts` are its arguments.
    fn access(&self, skill: &InstalledSkill, texts: &[&str]) -> Option<CardAccess> {
        let allowed = self.skills.allowed(skill).ok()?;
        let ask = &allowed.ask;
        if ask.is_empty() {
            return None;
        }
        let hosts = hosts(ask, texts);
        let mut secrets = ask.secrets.clone();
        for host in &hosts {
            let inject = ask.rule(&host.host).and_then(|need| need.inject.as_ref());
            secrets.extend(inject.map(|inject| inject.secret.clone()));
        }
        let (of, secrets) = (skill.name().to_string(), secrets.into_iter().collect::<Vec<_>>());
        (!hosts.is_empty() || !secrets.is_empty()).then_some(CardAccess { of, hosts, secrets })
    }
}

/// Combines the access that requires approval by grants with that by labels; `None` if there is neither.
fn joined(
    asked: impl IntoIterator<Item = CardAccess>,
    sinks: CallSinks,
    because: &[String],
) -> Option<Vec<CardAccess>> {
    let mut access: Vec<CardAccess> = asked.into_iter().collect();
    if !because.is_empty() {
        let more = sinks.access.into_iter().filter(|more| !access.contains(more)).collect::<Vec<_>>();
        access.extend(more);
    }
    (!access.is_empty()).then_some(access)
}

/// Returns the destinations of a call that a person has to approve: the hosts of the addresses in its arguments, or without any,
/// all hosts that may be reached.
fn hosts(ask: &AskEffective, texts: &[&str]) -> Vec<Destination> {
    let named: BTreeSet<String> = texts.iter().filter_map(|text| host_and_port(text)).collect();
    let all = || {
        let all = ask.http.iter().map(|(need, _)| (need.host.clone(), need.methods.clone()));
        all.map(|(host, methods)| Destination { host, methods }).collect::<Vec<_>>()
    };
    if named.is_empty() || named.len() > MAX_HOSTS {
        return all();
    }
    let asked = named.into_iter().filter_map(|host| {
        let methods = ask.rule(&host)?.methods.clone();
        Some(Destination { host, methods })
    });
    asked.collect()
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns the same text for equal arguments in any order.
fn canonical(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(name, _)| *name);
            let entries =
                entries.into_iter().map(|(name, value)| format!("{}:{}", Value::from(name.as_str()), canonical(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(","))
        }
        Value::Array(values) => format!("[{}]", values.iter().map(canonical).collect::<Vec<_>>().join(",")),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_order_of_arguments_is_no_difference_and_everything_else_is() {
        let a = canonical(&json!({ "a": [1, { "c": null, "b": "x" }], "d": true }));
        assert_eq!(a, canonical(&json!({ "d": true, "a": [1, { "b": "x", "c": null }] })));
        for other in [
            json!({ "a": [1, { "c": null, "b": "x" }], "d": "true" }),
            json!({ "a": [{ "c": null, "b": "x" }, 1], "d": true }),
            json!({ "a": [1, { "c": null, "b": "x\"" }], "d": true }),
        ] {
            assert_ne!(a, canonical(&other));
        }
    }

    #[test]
    fn the_host_of_an_address_has_the_port_that_its_scheme_does_not_say() {
        for (text, host) in [
            ("https://A.example/x?y", Some("a.example")),
            ("http://a.example:80", Some("a.example")),
            ("https://a.example:80", Some("a.example:80")),
            (" http://127.0.0.1:8080/ ", Some("127.0.0.1:8080")),
            ("https://user@b.example/", Some("b.example")),
            ("ftp://a.example", None),
            ("a.example", None),
            ("no address", None),
        ] {
            assert_eq!(host_and_port(text).as_deref(), host, "{text}");
        }
    }
}
