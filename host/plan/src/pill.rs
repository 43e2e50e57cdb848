//! Pills: workflows that a person chooses, from `config.toml` or created by people. A message that begins with `!NAME` is
//! expanded by one, and bypasses the router.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::effort::Effort;

/// The placeholder of the message in a template.
pub const INPUT: &str = "{input}";

/// A pill: a message that is inserted by its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pill {
    pub name: String,
    /// The text of the message; `{input}` is replaced with the text after the name.
    pub template: String,
    /// Categories of the tools that it may use; none for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<String>,
    #[serde(default = "high")]
    pub effort: Effort,
    /// Its description in the list that a person chooses from.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}

fn high() -> Effort {
    Effort::High
}

/// The effect of a pill on a message: it replaces the router's choice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PillUse {
    pub name: String,
    pub effort: Effort,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<String>,
}

/// Joins the messages of a turn into one text. Each is expanded by the pill that it begins with. Also returns the combined
/// choices of the pills: the greatest effort, and the tools of all of them.
pub fn expand_all(texts: &[String], pills: &[Pill]) -> (String, Option<PillUse>) {
    let mut used: Option<PillUse> = None;
    let expanded = texts.iter().map(|text| {
        let Some((pill, rest)) = find(text, pills) else { return text.clone() };
        used = Some(match used.take() {
            None => PillUse { name: pill.name.clone(), effort: pill.effort, categories: pill.categories.clone() },
            Some(before) => before.and(pill),
        });
        expand(&pill.template, rest)
    });
    let message = expanded.collect::<Vec<_>>().join("\n\n");
    (message, used)
}

impl PillUse {
    fn and(mut self, pill: &Pill) -> PillUse {
        if self.name.split(", ").all(|name| name != pill.name) {
            self.name = format!("{}, {}", self.name, pill.name);
        }
        self.effort = self.effort.max(pill.effort);
        // No categories means all tools.
        if self.categories.is_empty() || pill.categories.is_empty() {
            self.categories.clear();
        } else {
            let new = pill.categories.iter().filter(|category| !self.categories.contains(category)).cloned();
            self.categories = self.categories.iter().cloned().chain(new).collect();
        }
        self
    }
}

/// Returns the template with `input` in place of the first `{input}`, or at the end if it has none. `{input}` is not replaced
/// again: it stays in the input, and at a second place in the template.
pub fn expand(template: &str, input: &str) -> String {
    match template.split_once(INPUT) {
        Some((before, after)) => format!("{before}{input}{after}"),
        None if input.trim().is_empty() => template.to_owned(),
        None => format!("{}\n\n{input}", template.trim_end()),
    }
}

/// Whether a message may begin with a pill.
pub fn may_begin(message: &str) -> bool {
    message.starts_with('!')
}

/// Returns the pill that a message names with `!NAME` at its very start, and the rest of the message. `None` if no pill has that
/// name, because a message may also begin like that for other reasons.
pub fn find<'p, 'm>(message: &'m str, pills: &'p [Pill]) -> Option<(&'p Pill, &'m str)> {
    let text = message.strip_prefix('!')?;
    let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let pill = pills.iter().find(|pill| pill.name == name)?;
    Some((pill, rest.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pill(name: &str) -> Pill {
        Pill {
            name: name.to_owned(),
            template: String::new(),
            categories: Vec::new(),
            effort: Effort::Medium,
            description: String::new(),
        }
    }

    #[test]
    fn the_input_stands_once() {
        for (template, input, expected) in [
            ("Sum up: {input}.", "a {input} b", "Sum up: a {input} b."),
            ("{input} and {input}", "x", "x and {input}"),
            ("Sum up.\n", "x", "Sum up.\n\nx"),
            ("Daily report", " ", "Daily report"),
            ("", "", ""),
        ] {
            assert_eq!(expand(template, input), expected);
        }
    }

    #[test]
    fn a_pill_is_asked_for_by_name() {
        let pills = [pill("day"), pill("daily")];
        let found = |message| find(message, &pills).map(|(pill, rest)| (pill.name.as_str(), rest));
        assert_eq!(found("!daily"), Some(("daily", "")));
        assert_eq!(found("!day  of rest\nand more "), Some(("day", "of rest\nand more")));
        for message in ["", "!", "! day", " !day", "daily", "!Daily", "!dailyx", "!!day", "!unknown x"] {
            assert_eq!(found(message), None, "{message}");
        }
    }

    #[test]
    fn every_message_of_a_turn_may_begin_with_one() {
        let of = |name: &str, template: &str, effort, categories: &[&str]| Pill {
            template: template.to_owned(),
            effort,
            categories: categories.iter().map(|category| (*category).to_owned()).collect(),
            ..pill(name)
        };
        let pills = [
            of("sum", "Sum up {input}", Effort::Low, &["web"]),
            of("draw", "Draw {input}", Effort::Medium, &["chart", "web"]),
            of("all", "{input}!", Effort::High, &[]),
        ];
        let turn =
            |texts: &[&str]| expand_all(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>(), &pills);
        assert_eq!(turn(&["hello", "there"]), ("hello\n\nthere".to_owned(), None));
        let (text, used) = turn(&["wait", "!sum the page", "!draw it"]);
        assert_eq!(text, "wait\n\nSum up the page\n\nDraw it");
        let used = used.unwrap();
        assert_eq!((used.name.as_str(), used.effort), ("sum, draw", Effort::Medium));
        assert_eq!(used.categories, ["web", "chart"]);
        let (_, used) = turn(&["!all x", "!sum y", "!sum z"]);
        assert_eq!(used.unwrap(), PillUse { name: "all, sum".to_owned(), effort: Effort::High, categories: vec![] });
    }

    proptest! {
        /// No template loses any of the message.
        #[test]
        fn the_message_is_in_the_expansion(template in "[a-z{}]{0,12}(\\{input\\})?[a-z{}]{0,12}", input in "\\PC{1,20}") {
            prop_assert!(expand(&template, &input).contains(input.trim()));
        }
    }
}
