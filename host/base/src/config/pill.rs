//! `[pills.NAME]`: workflows that a person chooses; they bypass the router.
//!
//! ```toml
//! [pills.digest]
//! template = "Read {input} and tell me the five things that matter"
//! categories = ["web"]
//! effort = "medium"
//! ```

use super::fields::{NAME_RULE, TableFields, is_name};
use super::key::{Effect, Kind, NamedTable, ValueError, keys, words};
use serde::Serialize;
use std::borrow::Cow;
use toml::Spanned;
use toml::de::DeValue;

/// One `[pills.NAME]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PillSettings {
    pub name: String,
    /// The text that replaces the message; `{input}` is replaced by the user's text.
    pub template: String,
    /// Categories of the tools that it may use.
    pub categories: Vec<String>,
    pub effort: PillEffort,
    /// Description shown beside its name.
    pub description: String,
}

/// The effort spent on a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PillEffort {
    /// An answer without tools.
    Low,
    /// Tools without a plan.
    Medium,
    /// A plan.
    #[default]
    High,
}

impl PillEffort {
    const NAMES: [(&'static str, Self); 3] = [("low", Self::Low), ("medium", Self::Medium), ("high", Self::High)];
}

/// How the commented file of a fresh home shows pills.
const EXAMPLE: &str = "
# Workflows that a person chooses: the text that replaces the message, which tools it can use, and the effort (default: high).
# [pills.digest]
# template = \"Read {input} and tell me the five things that matter\"
# categories = [\"web\"]
# effort = \"medium\"
# description = \"Five points of a page\"
";

/// The keys and the documentation of these tables.
#[rustfmt::skip]
pub(super) const TABLE: NamedTable = NamedTable {
    name: "pills",
    heading: "[pills.NAME]",
    doc: "Workflows that a person chooses, which replace routing.",
    example: EXAMPLE,
    after: "routing",
    effect: Effect::NextRun,
    id: "name",
    keys: &keys(Effect::NextRun, [
        ("template", Kind::Characters(8_000, true), "The text that replaces the message; `{input}` is what the user wrote."),
        ("categories", Kind::List(16), "Categories of tools it can use; empty for all."),
        ("effort", Kind::Word("high", &words(PillEffort::NAMES)), "Effort: an answer, tools without a plan, or a plan."),
        ("description", Kind::Characters(200, false), "Description shown beside its name."),
    ]),
};

/// Reads one table.
pub(super) fn read<'a>(
    name: &'a Spanned<Cow<'a, str>>,
    value: &'a Spanned<DeValue<'a>>,
) -> Result<PillSettings, Vec<ValueError>> {
    let text = name.get_ref().as_ref();
    if !is_name(text) {
        return Err(vec![(name.span(), format!("pills.{text:?}: a pill's name has {NAME_RULE}"))]);
    }
    let mut fields = TableFields::new(&TABLE, format!("pills.{text}"), name.span(), value)?;
    let template = fields.text("template").map(|(text, _)| text);
    if !fields.has("template") {
        fields.missing("template", "what the message becomes, with {input} for what the user wrote");
    }
    let rule = &format!("must be a list of categories; each has {NAME_RULE}");
    let categories = fields.list("categories", rule, is_name);
    let effort = fields.one_of("effort", &PillEffort::NAMES).unwrap_or_default();
    let description = fields.text("description").map(|(text, _)| text).unwrap_or_default();
    fields.finish(|_| None)?;
    let Some(template) = template else { return Err(Vec::new()) };
    Ok(PillSettings { name: text.to_owned(), template, categories, effort, description })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn pills_keep_the_order_of_the_file() {
        let config = Config::parse(
            b"[pills.zip]\ntemplate = \"\"\"\nPack {input}\n\"\"\"\n[pills.ask]\ntemplate = \"{input}?\"\n\
              categories = [\"web\", \"files\"]\neffort = \"low\"\ndescription = \"A question\"\n",
        )
        .unwrap();
        let [zip, ask] = config.pills.as_slice() else { panic!("{:?}", config.pills) };
        assert_eq!((zip.name.as_str(), zip.template.as_str(), zip.effort), ("zip", "Pack {input}\n", PillEffort::High));
        assert_eq!(
            (ask.categories.as_slice(), ask.effort),
            (["web".to_owned(), "files".to_owned()].as_slice(), PillEffort::Low)
        );
        assert_eq!(ask.description, "A question");
    }

    #[test]
    fn what_is_wrong_with_a_pill_is_told() {
        for (text, said) in [
            ("[pills.a]\n", "1:8: [pills.a] needs template"),
            ("[pills.a]\ntemplate = \"\"\n", "2:12: pills.a.template must have 1 to 8000 characters"),
            ("[pills.a]\ntemplate = 1\n", "pills.a.template must be a string, and this is an integer"),
            ("[pills.a]\ntemplate = \"x\"\neffort = \"huge\"\n", "must be \"low\" or \"medium\" or \"high\""),
            ("[pills.a]\ntemplate = \"x\"\ncategories = \"web\"\n", "must be a list of strings, and this is a string"),
            (
                "[pills.a]\ntemplate = \"x\"\ncategories = [\"w b\"]\n",
                "3:15: pills.a.categories must be a list of categories",
            ),
            ("[pills.a]\ntemplat = \"x\"\n", "did you mean template?"),
            ("[pills.\"a b\"]\n", "a pill's name has"),
        ] {
            let problems = Config::parse(text.as_bytes()).unwrap_err();
            let told: String = problems.iter().map(|problem| format!("{problem}\n")).collect();
            assert!(told.contains(said), "{text}: {told}");
        }
    }
}
