//! Pills (seed 003, phase 1): workflows that an administrator wrote into `config.toml`. A client names one beside the
//! message, or the message begins with `!NAME`; either way the router is not asked.

use serde::{Deserialize, Serialize};

use super::route::Effort;

/// Where the message stands in a template.
pub const INPUT: &str = "{input}";

/// A workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pill {
    pub name: String,
    /// What the message becomes; see [`expand`].
    pub template: String,
    /// Tools that it may use; none means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<String>,
    pub effort: Effort,
    /// For the list that a person chooses from.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}

/// The template with `input` in the place of the first `{input}`, or below it if it has none. The input is not a
/// template: a `{input}` in it stays, and so does a second one in the template.
pub fn expand(template: &str, input: &str) -> String {
    match template.split_once(INPUT) {
        Some((before, after)) => format!("{before}{input}{after}"),
        None if input.trim().is_empty() => template.to_owned(),
        None => format!("{}\n\n{input}", template.trim_end()),
    }
}

/// The pill that a message asks for with `!NAME` at its very start, and the rest of the message. `None` if there is no
/// pill of that name, because a message may begin like that without meaning one.
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

    proptest! {
        /// Nothing of the message is lost, whatever the template.
        #[test]
        fn the_message_is_in_the_expansion(template in "[a-z{}]{0,12}(\\{input\\})?[a-z{}]{0,12}", input in "\\PC{1,20}") {
            prop_assert!(expand(&template, &input).contains(input.trim()));
        }
    }
}
