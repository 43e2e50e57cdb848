//! The forms in which models write calls.

use serde_json::{Deserializer, Map, Value};

/// A call as it was written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WrittenCall {
    pub name: String,
    /// An object, or the text in its place.
    pub args: Value,
    /// The source text.
    pub written: String,
}

/// Text between calls and around them, in lower case.
const AROUND: [&str; 19] = [
    "<tool_calls>",
    "</tool_calls>",
    "<tool_call>",
    "</tool_call>",
    "<function_calls>",
    "</function_calls>",
    "<function_call>",
    "</function_call>",
    "<|tool_call|>",
    "<|python_tag|>",
    "<|eom_id|>",
    "<|eot_id|>",
    "<|im_end|>",
    "</s>",
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁calls▁end｜>",
    "<｜tool▁call▁begin｜>",
    "<｜tool▁call▁end｜>",
    ";",
];

impl WrittenCall {
    /// Reads an object with a name and arguments.
    pub(super) fn from_object(map: &Map<String, Value>) -> Option<Self> {
        if let Some(function) = map.get("function").and_then(Value::as_object) {
            return Self::from_object(function);
        }
        let name = ["name", "tool", "function"].iter().find_map(|key| map.get(*key)?.as_str())?.trim();
        let args = ["arguments", "parameters", "args", "input"].iter().find_map(|key| map.get(*key));
        let args = match args {
            None | Some(Value::Null) => Value::Object(Map::new()),
            // In the form of an API.
            Some(Value::String(text)) => serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone())),
            Some(other) => other.clone(),
        };
        (!name.is_empty()).then(|| Self { name: name.to_owned(), args, written: String::new() })
    }

    /// Converts arguments that were written as text to the types of the schema.
    pub(super) fn fit(&mut self, parameters: &Value) {
        let Some(args) = self.args.as_object_mut() else { return };
        for (name, value) in args {
            let Value::String(text) = value else { continue };
            let wanted = &parameters["properties"][name.as_str()]["type"];
            if let Some(wanted) = wanted.as_str().filter(|wanted| *wanted != "string")
                && let Ok(read) = serde_json::from_str::<Value>(text.trim())
                && is_of(&read, wanted)
            {
                *value = read;
            }
        }
    }
}

fn is_of(value: &Value, wanted: &str) -> bool {
    match wanted {
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}

/// Returns all calls of a text that contains only calls, from its first mark on.
pub(super) fn calls(text: &str) -> Option<Vec<WrittenCall>> {
    let (mut rest, mut calls) = (text, Vec::new());
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            return Some(calls);
        }
        if let Some(after) = skip(rest) {
            // GLM writes the name as the text of the element.
            let names = after.trim_start().starts_with(|c: char| c.is_ascii_alphabetic());
            if names && let Some((call, after)) = keyed(after) {
                calls.push(call);
                rest = after;
                continue;
            }
            rest = after;
            continue;
        }
        let before = rest;
        let read = if let Some(after) = strip(rest, "[tool_calls]") {
            mistral(after)
        } else if let Some(after) = strip(rest, "<function=") {
            function(after).map(|(call, after)| (vec![call], after))
        } else if let Some(after) = strip(rest, "<invoke name=") {
            invoke(after).map(|(call, after)| (vec![call], after))
        } else if rest.starts_with(['{', '[']) {
            objects(rest)
        } else {
            deepseek(rest).map(|(call, after)| (vec![call], after))
        };
        let (mut found, after) = read?;
        let written = before[..before.len() - after.len()].trim();
        for call in &mut found {
            if call.written.is_empty() {
                written.clone_into(&mut call.written);
            }
        }
        calls.append(&mut found);
        rest = after;
    }
}

fn strip<'a>(text: &'a str, mark: &str) -> Option<&'a str> {
    let head = text.get(..mark.len())?;
    head.eq_ignore_ascii_case(mark).then(|| &text[mark.len()..])
}

fn skip(text: &str) -> Option<&str> {
    AROUND.iter().find_map(|mark| strip(text, mark))
}

/// Reads `{"name": …, "arguments": {…}}`, or a list of such objects.
fn objects(text: &str) -> Option<(Vec<WrittenCall>, &str)> {
    let (value, after) = value(text)?;
    let one = |value: &Value| WrittenCall::from_object(value.as_object()?);
    let calls = match &value {
        Value::Array(items) => items.iter().map(one).collect::<Option<Vec<_>>>()?,
        other => vec![one(other)?],
    };
    Some((calls, after))
}

fn value(text: &str) -> Option<(Value, &str)> {
    let mut values = Deserializer::from_str(text).into_iter::<Value>();
    let value = values.next()?.ok()?;
    Some((value, &text[values.byte_offset()..]))
}

/// Reads the text after `<function=`: `exec>{…}</function>` or `exec><parameter=command>echo a</parameter></function>`.
fn function(text: &str) -> Option<(WrittenCall, &str)> {
    let (name, after) = text.split_once('>')?;
    let name = name.trim().trim_matches('"').to_owned();
    let after = after.trim_start();
    if after.starts_with('{') {
        let (args, after) = value(after)?;
        let after = strip(after.trim_start(), "</function>").unwrap_or(after);
        return Some((WrittenCall { name, args, written: String::new() }, after));
    }
    parameters(name, after, "<parameter=", "</function>")
}

/// Reads the text after `<invoke name=`: `"exec"><parameter name="command">echo a</parameter></invoke>`.
fn invoke(text: &str) -> Option<(WrittenCall, &str)> {
    let (name, after) = text.split_once('>')?;
    parameters(name.trim().trim_matches(['"', '\'']).to_owned(), after.trim_start(), "<parameter name=", "</invoke>")
}

fn parameters<'a>(name: String, text: &'a str, open: &str, close: &str) -> Option<(WrittenCall, &'a str)> {
    let (mut args, mut rest) = (Map::new(), text.trim_start());
    while let Some(after) = strip(rest, open) {
        let (key, after) = after.split_once('>')?;
        let (value, after) = after.split_once("</parameter>")?;
        args.insert(key.trim().trim_matches(['"', '\'']).to_owned(), Value::from(bare(value)));
        rest = after.trim_start();
    }
    // Models may forget it, and write the outer closing mark.
    let rest = strip(rest, close).unwrap_or(rest);
    (!name.is_empty()).then_some((WrittenCall { name, args: Value::Object(args), written: String::new() }, rest))
}

/// Removes the line breaks between the marks and the value.
fn bare(value: &str) -> &str {
    let value = value.strip_prefix('\n').unwrap_or(value);
    value.strip_suffix('\n').unwrap_or(value)
}

/// Reads the text after `<tool_call>`: `exec`, then `<arg_key>command</arg_key><arg_value>echo a</arg_value>`.
fn keyed(text: &str) -> Option<(WrittenCall, &str)> {
    let text = text.trim_start();
    let end = text.find('<')?;
    let name = text[..end].trim();
    if name.contains(char::is_whitespace) {
        return None;
    }
    let (mut args, mut rest) = (Map::new(), text[end..].trim_start());
    while let Some(after) = strip(rest, "<arg_key>") {
        let (key, after) = after.split_once("</arg_key>")?;
        let after = strip(after.trim_start(), "<arg_value>")?;
        let (value, after) = after.split_once("</arg_value>")?;
        args.insert(key.trim().to_owned(), Value::from(bare(value)));
        rest = after.trim_start();
    }
    let rest = strip(rest, "</tool_call>")?;
    let written = text[..text.len() - rest.len()].trim().to_owned();
    Some((WrittenCall { name: name.to_owned(), args: Value::Object(args), written }, rest))
}

/// Reads the text after `[TOOL_CALLS]`: a list of objects, or `exec[ARGS]{…}`.
fn mistral(text: &str) -> Option<(Vec<WrittenCall>, &str)> {
    let text = text.trim_start();
    if text.starts_with(['{', '[']) {
        return objects(text);
    }
    let at = text.find(['[', '{'])?;
    let (name, rest) = (text[..at].trim().to_owned(), &text[at..]);
    let (args, after) = value(strip(rest, "[args]").unwrap_or(rest))?;
    let named = !name.is_empty() && !name.contains(char::is_whitespace);
    named.then(|| (vec![WrittenCall { name, args, written: String::new() }], after))
}

/// Reads the text after the mark of a call: `function<｜tool▁sep｜>exec`, then a code block with the arguments.
fn deepseek(text: &str) -> Option<(WrittenCall, &str)> {
    let rest = text.strip_prefix("function")?.strip_prefix("<｜tool▁sep｜>")?;
    let at = rest.find('{')?;
    let name = rest[..at].trim().trim_end_matches("```json").trim().to_owned();
    let (args, after) = value(&rest[at..])?;
    let after = after.trim_start().strip_prefix("```").unwrap_or(after);
    let named = !name.is_empty() && !name.contains(char::is_whitespace);
    named.then_some((WrittenCall { name, args, written: String::new() }, after))
}
