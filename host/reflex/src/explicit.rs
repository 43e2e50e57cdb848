//! Explicit steps: `$ command` and `skill key=value key="quoted value" key=[json]`.

use serde_json::{Map, Value};
use std::sync::Arc;

use kiso_plan::prompt::SkillCard;

use crate::schema::{args, unknown_arg, value};
use crate::spelling::near_names;
use kiso_plan::attached;

/// Maximum command lines at the end of a message: more than a plan may have tasks.
const MAX_COMMANDS: usize = 600;

/// One explicit step.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ExplicitStep {
    Command(String),
    Call { skill: String, args: Map<String, Value>, text: String },
}

/// Whether a message spells out all steps, so that no model has to interpret it: its first line is a command line, or a call of
/// an existing skill with its arguments, and all of it can be parsed.
pub fn is_explicit(message: &str, skills: &[Arc<SkillCard>]) -> bool {
    let text = attached::without_names(message);
    let calls = |line: &str| {
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let name = name.strip_prefix('@').unwrap_or(name);
        pairs(rest).is_some_and(|pairs| !pairs.is_empty()) && skills.iter().any(|card| card.name == name)
    };
    let first = text.lines().map(str::trim).find(|line| !line.is_empty());
    first.is_some_and(|line| command(line).is_some() || calls(line)) && read(text, skills).is_some()
}

/// Returns the steps of a message that spells out all of them, or the errors in them; `None` for other messages. A skill call
/// takes one line; a command line continues until the next step.
pub(crate) fn read(text: &str, skills: &[Arc<SkillCard>]) -> Option<Result<Vec<ExplicitStep>, String>> {
    let mut steps: Vec<Result<ExplicitStep, String>> = Vec::new();
    for line in text.lines() {
        match (step(line.trim(), skills), steps.last_mut()) {
            (Some(step), _) => steps.push(step),
            // Unchanged: it may contain a here-document.
            (None, Some(Ok(ExplicitStep::Command(command)))) => {
                command.push('\n');
                command.push_str(line);
            }
            (None, _) if line.trim().is_empty() => {}
            (None, _) => return None,
        }
    }
    if steps.is_empty() {
        return None;
    }
    let trimmed = steps.into_iter().map(|step| match step {
        Ok(ExplicitStep::Command(command)) => Ok(ExplicitStep::Command(command.trim_end().to_owned())),
        step => step,
    });
    Some(trimmed.collect())
}

/// Returns the text before the first command line, and the steps from there on, or the errors in them.
pub(crate) fn ending<'a>(
    text: &'a str,
    skills: &[Arc<SkillCard>],
) -> Option<(&'a str, Result<Vec<ExplicitStep>, String>)> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if command(line.trim()).is_some() {
            return Some((text[..at].trim_end(), read(&text[at..], skills)?));
        }
        at += line.len();
    }
    None
}

/// Returns the text before the words "run" or "execute" with a command line in back quotes at the end of a message, and the
/// command lines in order: "plot it, then run `ls pub` and run `wc -l a.csv`".
pub(crate) fn trailing_commands(text: &str) -> (&str, Vec<ExplicitStep>) {
    let (mut rest, mut commands) = (text, Vec::new());
    while commands.len() < MAX_COMMANDS
        && let Some((before, command)) = last_command(rest)
    {
        commands.push(ExplicitStep::Command(command.to_owned()));
        rest = before;
    }
    commands.reverse();
    (rest, commands)
}

fn last_command(text: &str) -> Option<(&str, &str)> {
    let quoted = text.trim_end_matches(|c: char| c.is_whitespace() || c == '.').strip_suffix('`')?;
    let (before, command) = quoted.rsplit_once('`')?;
    let before = without_word(before, &["run", "execute"])?;
    let mut rest = before;
    while let Some(shorter) = without_word(rest, &["then", "and", "finally", "please"]) {
        rest = shorter;
    }
    let command = command.trim();
    (!command.is_empty()).then(|| (rest.trim_end_matches(|c: char| c.is_whitespace() || ",;.".contains(c)), command))
}

/// Returns the text without one of these words at its end.
fn without_word<'a>(text: &'a str, words: &[&str]) -> Option<&'a str> {
    let text = text.trim_end_matches(|c: char| c.is_whitespace() || c == ',');
    words.iter().find_map(|word| {
        let at = text.len().checked_sub(word.len())?;
        let before = text.get(..at)?;
        let alone = before.chars().next_back().is_none_or(|c| !c.is_alphanumeric());
        (alone && text[at..].eq_ignore_ascii_case(word)).then_some(before)
    })
}

/// Returns the command line of a line that begins with `$ `.
fn command(line: &str) -> Option<&str> {
    line.strip_prefix("$ ").map(str::trim).filter(|command| !command.is_empty())
}

fn step(line: &str, skills: &[Arc<SkillCard>]) -> Option<Result<ExplicitStep, String>> {
    if let Some(command) = command(line) {
        return Some(Ok(ExplicitStep::Command(command.to_owned())));
    }
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    // As in every message, `@data` is the name of a skill.
    let name = name.strip_prefix('@').unwrap_or(name);
    let pairs = pairs(rest)?;
    let Some(card) = skills.iter().find(|card| card.name == name) else {
        if pairs.is_empty() {
            return None;
        }
        let names = || skills.iter().map(|c| c.name.as_str());
        let near = near_names(name, names()).first().map(|n| format!("; near: `{n}`")).unwrap_or_default();
        let all = names().collect::<Vec<_>>().join(", ");
        return Some(Err(format!("there is no skill `{name}`{near}; installed: {all}")));
    };
    let required = args(card).iter().any(|a| a.required);
    if pairs.is_empty() && (required || !rest.is_empty()) {
        return None;
    }
    Some(call(card, &pairs, line))
}

fn call(card: &SkillCard, pairs: &[(String, String)], line: &str) -> Result<ExplicitStep, String> {
    let known = args(card);
    let mut out = Map::new();
    for (name, text) in pairs {
        let arg = known.iter().find(|a| a.name == name).ok_or_else(|| unknown_arg(card, name))?;
        out.insert(name.clone(), value(arg.schema, text).map_err(|why| format!("{name}: {why}"))?);
    }
    if let Some(arg) = known.iter().find(|a| a.required && !out.contains_key(a.name)) {
        return Err(format!("{} needs `{}`", card.name, arg.name));
    }
    Ok(ExplicitStep::Call { skill: card.name.clone(), args: out, text: line.to_owned() })
}

/// Parses a text that consists only of `key=value` pairs. A value ends at white space outside of quotes and brackets.
fn pairs(text: &str) -> Option<Vec<(String, String)>> {
    let mut out = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (key, after) = rest.split_once('=')?;
        let is_name = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || "_-".contains(c));
        if !is_name {
            return None;
        }
        let end = value_end(after);
        let raw = &after[..end];
        let quoted = raw.len() >= 2 && raw.starts_with(['"', '\'']) && raw.ends_with(&raw[..1]);
        let value = match (quoted, raw.starts_with('"')) {
            (true, true) => serde_json::from_str(raw).unwrap_or_else(|_| raw[1..raw.len() - 1].to_owned()),
            (true, false) => raw[1..raw.len() - 1].to_owned(),
            _ => raw.to_owned(),
        };
        out.push((key.to_owned(), value));
        rest = after[end..].trim_start();
    }
    Some(out)
}

fn value_end(text: &str) -> usize {
    let (mut depth, mut quote, mut escaped) = (0usize, None, false);
    for (i, c) in text.char_indices() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(q), c) if c == q => quote = None,
            (Some(_), _) => {}
            // An apostrophe inside an unquoted value is not a quote.
            (None, '"') => quote = Some('"'),
            (None, '\'') if i == 0 => quote = Some('\''),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth = depth.saturating_sub(1),
            (None, c) if c.is_whitespace() && depth == 0 => return i,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_pairs() {
        let found = pairs(r#"file=a.csv title="A \"b\" c" y=["p q", "r"] note='x y'"#).unwrap();
        let values: Vec<&str> = found.iter().map(|(_, v)| v.as_str()).collect();
        assert_eq!(values, ["a.csv", "A \"b\" c", r#"["p q", "r"]"#, "x y"]);
        assert_eq!(pairs("plot a=b from"), None);
    }

    fn command(line: &str) -> ExplicitStep {
        ExplicitStep::Command(line.to_owned())
    }

    #[test]
    fn a_skill_may_be_named_as_in_every_message() {
        let card = SkillCard {
            name: "data".to_owned(),
            summary: String::new(),
            category: "data".to_owned(),
            examples: Vec::new(),
            secrets: Vec::new(),
            chosen: false,
            args: serde_json::json!({ "properties": { "file": { "type": "string" } } }),
        };
        let cards = [Arc::new(card)];
        assert_eq!(read("@data file=a.csv", &cards).unwrap().unwrap().len(), 1);
        let wrong = read("@dato file=a.csv", &cards).unwrap().unwrap_err();
        assert!(wrong.contains("no skill `dato`; near: `data`"), "{wrong}");
        assert_eq!(read("@ann wrote to me", &cards), None);
    }

    #[test]
    fn a_command_line_goes_on_until_the_next_step() {
        let script = "$ cat <<EOF\n  two\n\n  lines\nEOF\n$ ls -l\n";
        let steps = read(script, &[]).unwrap().unwrap();
        assert_eq!(steps, [command("cat <<EOF\n  two\n\n  lines\nEOF"), command("ls -l")]);
        assert_eq!(read("look\n$ ls", &[]), None);
    }

    #[test]
    fn commands_in_back_quotes_end_a_message() {
        let read = |text| trailing_commands(text);
        assert_eq!(read("plot it, then run `ls pub | wc -l`."), ("plot it", vec![command("ls pub | wc -l")]));
        assert_eq!(read("run `a` and then run `b`"), ("", vec![command("a"), command("b")]));
        assert_eq!(read("what does `ls` do"), ("what does `ls` do", vec![]));
        assert_eq!(read("the trun `ls`"), ("the trun `ls`", vec![]));
        assert_eq!(read("run ``"), ("run ``", vec![]));
    }
}
