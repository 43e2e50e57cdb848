//! What is spelt out: `$ command` and `skill key=value key="quoted value" key=[json]`.

use serde_json::{Map, Value};

use crate::llm::prompt::SkillCard;

use super::schema::{args, unknown_arg, value};
use super::spelling::near_names;

/// One step that was spelt out.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Spelt {
    Command(String),
    Call { skill: String, args: Map<String, Value>, text: String },
}

/// The steps of a message that spells all of them out, one per line; `None` if it does not, and what is wrong if it
/// does and something is.
pub(super) fn read(text: &str, skills: &[SkillCard]) -> Option<Result<Vec<Spelt>, String>> {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    if lines.is_empty() {
        return None;
    }
    let steps: Vec<Result<Spelt, String>> = lines.iter().map(|line| step(line, skills)).collect::<Option<_>>()?;
    Some(steps.into_iter().collect())
}

fn step(line: &str, skills: &[SkillCard]) -> Option<Result<Spelt, String>> {
    if let Some(command) = line.strip_prefix("$ ") {
        return Some(Ok(Spelt::Command(command.trim().to_owned())));
    }
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
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

fn call(card: &SkillCard, pairs: &[(String, String)], line: &str) -> Result<Spelt, String> {
    let known = args(card);
    let mut out = Map::new();
    for (name, text) in pairs {
        let arg = known.iter().find(|a| a.name == name).ok_or_else(|| unknown_arg(card, name))?;
        out.insert(name.clone(), value(arg.schema, text).map_err(|why| format!("{name}: {why}"))?);
    }
    if let Some(arg) = known.iter().find(|a| a.required && !out.contains_key(a.name)) {
        return Err(format!("{} needs `{}`", card.name, arg.name));
    }
    Ok(Spelt::Call { skill: card.name.clone(), args: out, text: line.to_owned() })
}

/// The text as nothing but `key=value` pairs. A value ends at white space outside of quotes and brackets.
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
            // An apostrophe inside a bare value opens nothing.
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
}
