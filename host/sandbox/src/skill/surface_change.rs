//! The difference between two versions of a skill, in the text for models and in the checks of its effects outside.
//!
//! Prompts contain a summary, an example, a schema and the description of an Agent Skill as the user's own text, and `effects`
//! decides which arguments are checked as addresses. So a version that changes one of them needs an answer, like one that asks
//! for a new host.

use super::manifest::Manifest;
use kiso_plan::sink::{ArgumentRole, ToolEffect};
use serde_json::Value;
use std::collections::HashMap;
use std::fmt;

/// Maximum number of shown lines of a text, such as a `SKILL.md`. The text about a component is shown completely: it has at most
/// 32 KiB.
const MAX_TEXT_LINES: usize = 400;

/// The lines of a difference: `- ` before those of the old version, `+ ` before those of the new one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SurfaceChange(Vec<String>);

impl SurfaceChange {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The lines, without an indentation.
    pub fn lines(&self) -> &[String] {
        &self.0
    }

    /// Compares two lists of facts. Their order is ignored, and common facts are left out.
    pub(super) fn between(old: &[String], new: &[String]) -> Self {
        let mut lines = without("- ", old, new);
        lines.extend(without("+ ", new, old));
        Self(lines)
    }

    /// Adds the lines that differ between two texts, each with the name of the text.
    pub(super) fn compare_texts(&mut self, name: &str, old: &str, new: &str) {
        let lines = |text: &str| -> Vec<String> { text.lines().map(|line| format!("{name}: {line}")).collect() };
        let Self(mut changed) = Self::between(&lines(old), &lines(new));
        if changed.is_empty() && old != new {
            changed.push(format!("+ {name} has its lines in another order, or ends them differently"));
        }
        let more = changed.len().saturating_sub(MAX_TEXT_LINES);
        changed.truncate(MAX_TEXT_LINES);
        if more > 0 {
            changed.push(format!("… and {more} more lines of {name}"));
        }
        self.0.extend(changed);
    }
}

impl fmt::Display for SurfaceChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|line| writeln!(f, "  {line}"))
    }
}

/// The facts of a component: the text for models, and the role of each argument.
pub(super) fn component_facts<'a>(
    manifest: &Manifest,
    tools: impl Iterator<Item = (&'a str, &'a str, &'a Value)>,
) -> Vec<String> {
    let mut facts = vec![
        fact("summary", &manifest.summary),
        fact("description", &manifest.description),
        fact("category", &manifest.category),
    ];
    facts.extend(manifest.examples.iter().map(|example| fact("example", example)));
    if let Some(package) = &manifest.package {
        facts.extend(package.spec.commands.iter().map(|command| fact("command", command)));
        facts.extend(package.model_lines().map(|(_, line)| fact("line for models", line)));
    }
    for (name, inner, schema) in tools {
        facts.push(format!("tool {name}"));
        let arguments = schema["properties"].as_object().into_iter().flatten();
        let effect = manifest.effects.get(inner);
        for (argument, said) in arguments {
            facts.push(format!("argument {argument:?} of {name}: {said}"));
            if let Some(ToolEffect::Changes(roles)) = effect {
                let role = match roles.role_of(argument) {
                    ArgumentRole::Address => "is checked as an address",
                    ArgumentRole::Value => "is checked as a value",
                    ArgumentRole::Content => "is not checked: it is words",
                };
                facts.push(format!("argument {argument:?} of {name} {role}"));
            }
        }
        let mut rest = schema.clone();
        if let Some(rest) = rest.as_object_mut() {
            rest.remove("properties");
        }
        facts.push(format!("arguments of {name}: {rest}"));
        facts.push(match effect {
            None => format!("{name}: nothing is said of its effects"),
            Some(ToolEffect::Reads(_)) => {
                format!("{name} changes nothing outside (\"read\"), so its arguments are not checked")
            }
            Some(ToolEffect::Changes(_)) => format!("{name} changes something outside"),
        });
    }
    facts
}

/// A fact with a publisher's text, on one line.
pub(super) fn fact(name: &str, text: &str) -> String {
    format!("{name}: {text:?}")
}

/// The lines that occur less often in `others`, in their order.
fn without(mark: &str, lines: &[String], others: &[String]) -> Vec<String> {
    let mut left: HashMap<&str, usize> = HashMap::new();
    for other in others {
        *left.entry(other).or_default() += 1;
    }
    let mut more = Vec::new();
    for line in lines {
        match left.get_mut(line.as_str()) {
            Some(count) if *count > 0 => *count -= 1,
            _ => more.push(format!("{mark}{line}")),
        }
    }
    more
}
