//! `[commands]`: the slash commands that `/help` lists, with their descriptions.

use super::Config;
use super::key::{Effect, Kind, NamedTable, ValueError, article, keys};
use serde::Serialize;
use std::borrow::Cow;
use toml::Spanned;
use toml::de::DeValue;

/// A command that `/help` lists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Command {
    /// Without the slash: one of [`COMMAND_NAMES`], or a pill.
    pub name: String,
    pub description: String,
}

/// kiso's own commands. A test of the session compares this list with the commands that work.
pub const COMMAND_NAMES: [&str; 19] = [
    "new", "model", "models", "memory", "status", "cancel", "trace", "retry", "edit", "version", "search", "undo",
    "redo", "diff", "approve", "refuse", "trust", "skills", "help",
];

/// Characters of a description.
const MAX_DESCRIPTION: usize = 200;

/// How the commented file of a fresh home shows commands.
const EXAMPLE: &str = "
# The commands that /help lists, with their descriptions: kiso's commands, and pills, which become commands.
# Without the table, it lists kiso's commands.
# [commands]
# new = \"Forget what we talked about\"
# digest = \"Five points of a page\"
";

/// The lines and the documentation of the table.
#[rustfmt::skip]
pub(super) const TABLE: NamedTable = NamedTable {
    name: "commands",
    heading: "[commands]",
    doc: "What `/help` lists, in this order: `NAME = \"DESCRIPTION\"`. NAME is one of kiso's commands, or a pill, which becomes a command. Without the table, `/help` lists kiso's commands; commands that the table leaves out still work.",
    example: EXAMPLE,
    after: "routing",
    effect: Effect::AtOnce,
    id: "name",
    keys: &keys(Effect::AtOnce, [("NAME", Kind::Line(MAX_DESCRIPTION, "that of kiso"), "Its description in `/help`.")]),
};

/// Reads one line of the table.
pub(super) fn read(name: &Spanned<Cow<'_, str>>, value: &Spanned<DeValue<'_>>) -> Result<Command, ValueError> {
    let text = name.get_ref().as_ref();
    if !(1..=32).contains(&text.len()) || !text.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return Err((name.span(), format!("commands.{text:?}: a command's name has 1 to 32 letters from a to z")));
    }
    let wrong = |what: String| Err((value.span(), format!("commands.{text} {what}")));
    match value.get_ref() {
        DeValue::String(said) => {
            let description = said.trim();
            let fits = (1..=MAX_DESCRIPTION).contains(&description.chars().count());
            match fits && !description.chars().any(char::is_control) {
                true => Ok(Command { name: text.to_owned(), description: description.to_owned() }),
                false => wrong(format!("must have 1 to {MAX_DESCRIPTION} characters on one line")),
            }
        }
        other => wrong(format!("must be a string, its description, and this is {}", article(other))),
    }
}

impl Config {
    /// Returns why a command of the table is invalid: neither a command nor a pill has this name.
    pub(super) fn unfit_command(&self, name: &str) -> Option<String> {
        let known = COMMAND_NAMES.contains(&name) || self.pills.iter().any(|pill| pill.name == name);
        (!known).then(|| {
            let pills = self.pills.iter().map(|pill| pill.name.as_str());
            let names: Vec<_> = COMMAND_NAMES.into_iter().chain(pills).collect();
            format!("commands.{name} names no command and no pill; there are {}", names.join(", "))
        })
    }

    /// Returns the message of a pill's command: `/digest x` becomes `!digest x`.
    pub fn command_pill(&self, text: &str) -> Option<String> {
        let rest = text.strip_prefix('/')?;
        let name = rest.split(char::is_whitespace).next().unwrap_or_default();
        let listed = self.commands.iter().any(|command| command.name == name);
        (listed && !COMMAND_NAMES.contains(&name)).then(|| format!("!{rest}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> String {
        let problems = Config::parse(text.as_bytes()).unwrap_err();
        problems.iter().map(|problem| format!("{problem}\n")).collect()
    }

    const PILL: &str = "[pills.digest]\ntemplate = \"Read {input}\"\n";

    #[test]
    fn commands_keep_their_order_and_pills_get_one() {
        let config =
            Config::parse(format!("[commands]\nstatus = \" How it is \"\ndigest = \"Five\"\n{PILL}").as_bytes());
        let config = config.unwrap();
        let names: Vec<_> = config.commands.iter().map(|c| (c.name.as_str(), c.description.as_str())).collect();
        assert_eq!(names, [("status", "How it is"), ("digest", "Five")]);
        assert_eq!(config.command_pill("/digest a b").as_deref(), Some("!digest a b"));
        assert_eq!(config.command_pill("/digest").as_deref(), Some("!digest"));
        for text in ["/status", "/digests x", "digest x", "/", "/nothing"] {
            assert_eq!(config.command_pill(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_command_is_told() {
        for (line, said) in [
            ("dance = \"x\"", "2:1: commands.dance names no command and no pill; there are new, model,"),
            ("New = \"x\"", "2:1: commands.\"New\": a command's name has 1 to 32 letters from a to z"),
            ("new = \"\"", "2:7: commands.new must have 1 to 200 characters on one line"),
            ("new = \"a\\nb\"", "must have 1 to 200 characters on one line"),
            ("new = 3", "commands.new must be a string, its description, and this is an integer"),
        ] {
            let told = problems(&format!("[commands]\n{line}\n"));
            assert!(told.contains(said), "{line}: {told}");
        }
        assert!(problems("commands = 3\n").contains("[commands] must be a table"));
    }
}
