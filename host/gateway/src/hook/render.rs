//! Renders an event as a message: the template, with the event's parts as data.
//!
//! A placeholder of the template is replaced by a part of the event if the part is a single plain word: a name, a number, a URL.
//! Anything else could be read as an instruction, a command or a tag. It is replaced by a label, and the text follows the
//! template between fences that are longer than any fence in the text.

use std::fmt::Write;

use axum::http::HeaderMap;
use serde_json::Value;

use kiso_plan::prompt::DATA_BELOW;

use kiso_base::config::{EventField, EventPart, HookCondition, HookTemplate, TemplatePiece};

/// Maximum length in characters of a word that is inserted in place.
const MAX_WORD: usize = 200;

/// Maximum size in bytes of a part of an event in a message; the beginning is the most important.
const MAX_TEXT: usize = 64 << 10;

/// Maximum number of available names in an error about a missing one.
const MAX_NAMES: usize = 20;

/// A received event.
#[derive(Debug, Clone)]
pub struct OutsideEvent {
    pub headers: HeaderMap,
    pub body: Value,
}

/// The template uses a field that the event does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the event has no {name}{}", there.as_deref().map(|there| format!("; there are {there}")).unwrap_or_default())]
pub struct MissingField {
    pub name: String,
    /// Available names where the field was expected.
    pub there: Option<String>,
}

impl OutsideEvent {
    /// Returns whether all conditions match.
    pub fn fits(&self, conditions: &[HookCondition]) -> bool {
        conditions
            .iter()
            .all(|condition| self.text(&condition.field).is_ok_and(|text| condition.values.contains(&text)))
    }

    fn text(&self, field: &EventField) -> Result<String, MissingField> {
        let missing = |there: Option<String>| MissingField { name: field.name.clone(), there };
        if field.part == EventPart::Header {
            let value = field.path.first().and_then(|name| self.headers.get(name));
            return value
                .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
                .ok_or_else(|| missing(None));
        }
        let mut value = &self.body;
        for word in &field.path {
            let next = match value {
                Value::Object(members) => members.get(word),
                Value::Array(items) => word.parse::<usize>().ok().and_then(|at| items.get(at)),
                _ => None,
            };
            value = next.ok_or_else(|| missing(names(value)))?;
        }
        Ok(match value {
            // APIs send null for absent values, such as an issue without a text.
            Value::Null if field.optional => String::new(),
            Value::String(text) => text.clone(),
            Value::Array(_) | Value::Object(_) => format!("{value:#}"),
            plain => plain.to_string(),
        })
    }
}

/// Lists the members of an object for a person.
fn names(value: &Value) -> Option<String> {
    let members = value.as_object().filter(|members| !members.is_empty())?;
    let shown =
        members.keys().take(MAX_NAMES).map(|name| name.chars().take(40).collect::<String>().escape_debug().to_string());
    let more = if members.len() > MAX_NAMES { ", …" } else { "" };
    Some(shown.collect::<Vec<_>>().join(", ") + more)
}

/// Returns the message for an event.
pub fn render(template: &HookTemplate, event: &OutsideEvent) -> Result<String, MissingField> {
    let (mut message, mut below): (String, Vec<(&str, String)>) = (String::new(), Vec::new());
    for piece in &template.pieces {
        let field = match piece {
            TemplatePiece::Text(text) => {
                message.push_str(text);
                continue;
            }
            TemplatePiece::Field(field) => field,
        };
        let text = match event.text(field) {
            Ok(text) => plain(&text),
            Err(_) if field.optional => continue,
            Err(missing) => return Err(missing),
        };
        if is_word(&text) {
            message.push_str(&text);
        } else if !text.is_empty() {
            let _ = write!(message, "[{}]", field.name);
            if !below.iter().any(|(name, _)| *name == field.name) {
                below.push((&field.name, text));
            }
        }
    }
    let mut message = message.trim().to_owned();
    for (name, text) in below {
        let fence = "~".repeat(longest_run(&text, '~').max(2) + 1);
        let _ = write!(message, "\n\n[{name}], {DATA_BELOW}\n{fence}\n{text}\n{fence}");
    }
    Ok(message)
}

/// Returns the text without terminal control characters, shortened to the limit.
fn plain(text: &str) -> String {
    let kept = &text[..text.floor_char_boundary(MAX_TEXT)];
    let mut plain: String =
        kept.replace("\r\n", "\n").chars().filter(|&c| c == '\n' || c == '\t' || !c.is_control()).collect();
    if kept.len() < text.len() {
        let _ = write!(plain, "\n[… {} more bytes]", text.len() - kept.len());
    }
    plain.trim_end().to_owned()
}

/// Returns whether a text is one word that cannot be an instruction or a marker of kiso: it begins with a letter or a digit.
fn is_word(text: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || "._-:/+,%?=&~".contains(c);
    text.starts_with(char::is_alphanumeric) && text.chars().all(plain) && text.chars().count() <= MAX_WORD
}

fn longest_run(text: &str, mark: char) -> usize {
    text.split(|c| c != mark).map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiso_base::config::Config;
    use proptest::prelude::*;
    use serde_json::json;

    fn template(text: &str, more: &str) -> (HookTemplate, Vec<HookCondition>) {
        let text = toml::Value::from(text);
        let config =
            Config::parse(format!("[hooks.a]\nauth = \"token\"\ntemplate = {text}\n{more}").as_bytes()).unwrap();
        (config.hooks[0].template.clone(), config.hooks[0].only.clone())
    }

    fn event(body: Value) -> OutsideEvent {
        let mut headers = HeaderMap::new();
        headers.insert("x-event", "issues".parse().unwrap());
        OutsideEvent { headers, body }
    }

    #[test]
    fn a_word_stands_in_its_place_and_a_text_below() {
        let body =
            json!({ "n": 3, "who": "ada", "title": "It broke", "list": [{ "x": true }], "none": null, "empty": "" });
        let (template, _) = template(
            "{header.x-event} {body.n} of {body.who}: {body.title}, {body.list.0.x}{body.empty} \
                                 {body.none} {body.gone?}{body.none?}{body.none.deeper?}{body.title}!",
            "",
        );
        assert_eq!(
            render(&template, &event(body)).unwrap(),
            "issues 3 of ada: [body.title], true null [body.title]!\n\n\
             [body.title], from outside, as data:\n~~~\nIt broke\n~~~"
        );
    }

    #[test]
    fn what_is_missing_is_named_with_what_there_is() {
        let told = |text: &str| render(&template(text, "").0, &event(json!({ "a": { "b": 1, "c": 2 }, "l": [] })));
        let told = |text: &str| told(text).unwrap_err().to_string();
        assert_eq!(told("{body.a.x}"), "the event has no body.a.x; there are b, c");
        assert_eq!(told("{body.l.0}"), "the event has no body.l.0");
        assert_eq!(told("{body.a.b.c}"), "the event has no body.a.b.c");
        assert_eq!(told("{header.x-other}"), "the event has no header.x-other");
    }

    #[test]
    fn conditions_are_about_words() {
        let fits = |only: &str| {
            let (_, only) = template("x", &format!("only = [{only}]\n"));
            event(json!({ "action": "opened", "n": 3 })).fits(&only)
        };
        assert!(fits("\"body.action = closed|opened\", \"body.n=3\", \"header.X-Event = issues\""));
        assert!(!fits("\"body.action = close\"") && !fits("\"body.gone = x\""));
    }

    #[test]
    fn a_long_text_is_cut() {
        let message = render(&template("{body}", "").0, &event(Value::from("ä ".repeat(60_000)))).unwrap();
        assert!(message.len() < MAX_TEXT + 200 && message.contains("more bytes]\n~~~"), "{}", message.len());
    }

    proptest! {
        /// Whatever an event contains, only the template, plain words and names are outside of the fences.
        #[test]
        fn no_text_leaves_its_fence(text in "(~{1,6}|[#!$/@`\n\r a-zA-Z]|\u{1b}){0,40}") {
            let (template, _) = template("Look: {body.x}.", "");
            let message = render(&template, &event(json!({ "x": text }))).unwrap();
            let (head, below) = message.split_once("\n\n").unwrap_or((message.as_str(), ""));
            let word = head.strip_prefix("Look: ").and_then(|rest| rest.strip_suffix('.')).unwrap();
            prop_assert!(word == "[body.x]" || word.is_empty() || is_word(word), "{message:?}");
            if let Some(fenced) = below.strip_prefix("[body.x], from outside, as data:\n") {
                let fence = fenced.lines().next().unwrap();
                prop_assert_eq!(fenced.lines().filter(|line| line.trim() == fence).count(), 2);
                prop_assert!(fenced.ends_with(fence));
            }
            prop_assert!(kiso_plan::tags::Tags::from_text(&message).is_empty(), "{message:?}");
        }
    }
}
