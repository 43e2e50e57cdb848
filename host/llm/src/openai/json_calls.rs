//! Tool calls as an answer in JSON, for models whose server or template does not support tools: the system prompt lists the
//! tools, the answer is `{"say": "…", "calls": [{"tool": "…", "args": {…}}]}`, and results are sent as user messages.

use std::fmt::Write as _;

use serde::de::DeserializeOwned;
use serde_json::{Deserializer, Map, Value, json};

use crate::draft::MAX_CALLS;
use crate::schema::{bounded, portable, shown};
use crate::{Calling, Completion, Request, Sink, Stop, ToolSpec};
use kiso_graph::SayField;
use kiso_graph::run::MAX_BATCH;
use kiso_plan::call::ToolCall;
use kiso_plan::limits::Usage;

/// Maximum calls in the schema for a small model.
const FEW: usize = 4;

/// The name of a call that was cut off before its own name.
const NAMELESS: &str = "cut_off";

/// Returns the system prompt with the list of tools.
pub(super) fn described(system: &str, tools: &[ToolSpec]) -> String {
    let mut text = format!(
        "{}\n\nYou call tools by answering with one JSON object and nothing else: \
         {{\"say\": TEXT, \"calls\": [{{\"tool\": NAME, \"args\": {{...}}}}]}}. Where you call none, \"calls\" is empty and \"say\" is \
         your whole answer. The tools, each with the JSON Schema of its args:",
        system.trim_end()
    );
    for ToolSpec { name, description, parameters } in tools {
        let _ = write!(text, "\n- {name}: {description} {}", shown(parameters));
    }
    text
}

/// Returns the schema of an answer.
pub(super) fn schema(request: &Request) -> Value {
    let call = |tool: &ToolSpec| {
        let args = portable(&tool.parameters).unwrap_or_else(|| json!({ "type": "object" }));
        object(&[("tool", json!({ "type": "string", "enum": [tool.name] })), ("args", args)])
    };
    let calls: Vec<Value> = request.tools.iter().map(call).collect();
    let most = if request.short { FEW } else { MAX_BATCH };
    let calls = json!({ "type": "array", "items": { "anyOf": calls }, "maxItems": most });
    let answer = object(&[("say", json!({ "type": "string" })), ("calls", calls)]);
    if request.short { bounded(&answer, request.max_tokens) } else { answer }
}

fn object(properties: &[(&str, Value)]) -> Value {
    let names: Vec<&str> = properties.iter().map(|(name, _)| *name).collect();
    let properties: Map<String, Value> = properties.iter().map(|(name, of)| ((*name).to_owned(), of.clone())).collect();
    json!({ "type": "object", "properties": properties, "required": names, "additionalProperties": false })
}

/// Writes an earlier answer in this form.
pub(super) fn written<'a>(text: Option<&str>, calls: impl Iterator<Item = (&'a str, &'a Value)>) -> String {
    let calls: Vec<Value> = calls.map(|(name, input)| json!({ "tool": name, "args": input })).collect();
    json!({ "say": text.unwrap_or_default(), "calls": calls }).to_string()
}

/// Passes on the text of an answer, without its calls.
pub(super) struct SaySink<'a> {
    sink: &'a mut dyn Sink,
    /// Whether the answer is an object; `None` before its first letter, and at the beginning of a code block.
    object: Option<bool>,
    /// The text before that was known.
    head: String,
    field: SayField,
    /// The text that was passed on.
    said: String,
}

impl<'a> SaySink<'a> {
    pub(super) fn new(sink: &'a mut dyn Sink) -> Self {
        Self { sink, object: None, head: String::new(), field: SayField::default(), said: String::new() }
    }

    /// Returns the completion of the received answer, with its calls. `schema` is the one that was sent.
    pub(super) fn finish(self, completion: Completion, schema: Option<&Value>) -> Completion {
        let completion = Completion { calling: Calling::Json, ..completion };
        if self.object != Some(true) {
            if !self.head.is_empty() {
                self.sink.text(&self.head);
            }
            return completion;
        }
        let from = completion.text.find('{').unwrap_or(0);
        let mut values = Deserializer::from_str(&completion.text[from..]).into_iter::<Value>();
        let value =
            values.next().and_then(Result::ok).filter(|value| value.get("say").or(value.get("calls")).is_some());
        let Some(value) = value else {
            // Any other object is the model's text.
            if completion.stop == Stop::End {
                return self.with_text(completion.text.clone(), completion);
            }
            let (calls, cut) = beginning(&completion.text, schema);
            return self.with_text(String::new(), Completion { calls, cut, ..completion });
        };
        let text = value["say"].as_str().unwrap_or_default().to_owned();
        let written = value["calls"].as_array().map_or(&[][..], Vec::as_slice);
        let calls = read_all(written, schema);
        let stop = if calls.is_empty() { completion.stop } else { Stop::Calls };
        self.with_text(text, Completion { calls, stop, ..completion })
    }

    /// Passes on text that was not passed on before, because the object did not begin with it.
    fn with_text(self, text: String, completion: Completion) -> Completion {
        let text = if self.said.is_empty() { text } else { self.said.clone() };
        if self.said.is_empty() && !text.is_empty() {
            self.sink.text(&text);
        }
        Completion { text, ..completion }
    }
}

impl Sink for SaySink<'_> {
    fn text(&mut self, piece: &str) {
        let fenced;
        let mut piece = piece;
        if self.object.is_none() {
            self.head.push_str(piece);
            self.object = begins_object(&self.head);
            if self.object.is_none() {
                return;
            }
            fenced = std::mem::take(&mut self.head);
            piece = if self.object == Some(true) { &fenced[fenced.find('{').unwrap_or(0)..] } else { &fenced };
        }
        let heard = match self.object {
            Some(true) => self.field.push(piece),
            _ => piece.to_owned(),
        };
        if !heard.is_empty() {
            self.said.push_str(&heard);
            self.sink.text(&heard);
        }
    }

    fn thought(&mut self, piece: &str) {
        self.sink.thought(piece);
    }

    fn restart(&mut self) {
        (self.object, self.field, self.said) = (None, SayField::default(), String::new());
        self.head.clear();
        self.sink.restart();
    }

    fn spent(&mut self, usage: Usage) {
        self.sink.spent(usage);
    }
}

/// Whether an answer with this beginning is an object, possibly in a code block.
fn begins_object(head: &str) -> Option<bool> {
    let text = head.trim_start();
    if !text.starts_with('`') {
        return text.chars().next().map(|first| first == '{');
    }
    let Some(rest) = text.strip_prefix("```") else { return if text.len() < 3 { None } else { Some(false) } };
    match rest.split_once('\n') {
        Some((info, inner)) if ["", "json"].contains(&info.trim()) => {
            inner.trim_start().chars().next().map(|first| first == '{')
        }
        None if rest.len() <= 5 => None,
        _ => Some(false),
    }
}

fn read_all(calls: &[Value], schema: Option<&Value>) -> Vec<ToolCall> {
    calls.iter().take(MAX_CALLS).zip(1..).filter_map(|(call, number)| read(call, number, schema)).collect()
}

fn read(call: &Value, number: usize, schema: Option<&Value>) -> Option<ToolCall> {
    let name = call["tool"].as_str()?.trim().to_owned();
    let args = if call["args"].is_null() { json!({}) } else { call["args"].clone() };
    let cut = schema.and_then(|schema| full(&name, &args, schema)).map(|(argument, most)| {
        format!("its argument {argument} fills the {most} characters that it may have, so its end may be missing")
    });
    Some(ToolCall { cut, ..ToolCall::new(format!("call_{number}"), name, args.to_string()) })
}

/// Returns an argument that has exactly the maximum length of the schema, and that length: the server has cut it off, and half of
/// a command line is a different command line. A longer one shows that the server ignores the schema.
fn full<'a>(name: &str, args: &'a Value, schema: &Value) -> Option<(&'a str, u64)> {
    let forms = schema["properties"]["calls"]["items"]["anyOf"].as_array()?;
    let form = forms.iter().find(|form| form["properties"]["tool"]["enum"][0] == *name)?;
    args.as_object()?.iter().find_map(|(argument, value)| {
        let most = form["properties"]["args"]["properties"][argument]["maxLength"].as_u64()?;
        (value.as_str()?.chars().count() as u64 == most).then_some((argument.as_str(), most))
    })
}

/// Returns the calls of an object that was cut off, and whether the last one is incomplete.
fn beginning(text: &str, schema: Option<&Value>) -> (Vec<ToolCall>, bool) {
    let Some(mut rest) = member(text, "calls").and_then(|calls| calls.strip_prefix('[')) else {
        return (Vec::new(), false);
    };
    let mut whole: Vec<Value> = Vec::new();
    loop {
        rest = rest.trim_start();
        match next(&mut rest) {
            Some(call) if whole.len() < MAX_CALLS => whole.push(call),
            _ => break,
        }
        rest = rest.trim_start();
        match rest.strip_prefix(',') {
            Some(more) => rest = more,
            None => break,
        }
    }
    let mut calls = read_all(&whole, schema);
    let cut = rest.starts_with('{');
    if cut {
        let name = member(rest, "tool").and_then(|mut name| next::<String>(&mut name));
        let name = name.unwrap_or_else(|| NAMELESS.to_owned());
        calls.push(ToolCall::new(format!("call_{}", whole.len() + 1), name, rest));
    }
    (calls, cut)
}

/// Returns the text after the name of a member, in an object that may be incomplete.
fn member<'a>(object: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = object.trim_start().strip_prefix('{')?;
    loop {
        let key: String = next(&mut rest)?;
        rest = rest.trim_start().strip_prefix(':')?.trim_start();
        if key == name {
            return Some(rest);
        }
        next::<Value>(&mut rest)?;
        rest = rest.trim_start().strip_prefix(',')?;
    }
}

/// Parses the value at the beginning of a text, and removes it from there.
fn next<T: DeserializeOwned>(text: &mut &str) -> Option<T> {
    let mut values = Deserializer::from_str(text).into_iter::<T>();
    let value = values.next()?.ok()?;
    *text = &text[values.byte_offset()..];
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_calls_are_read_of_an_object_that_was_cut_off() {
        let shown = |text: &str| {
            let (calls, cut) = beginning(text, None);
            (calls.iter().map(|call| format!("{} {}", call.name, call.args)).collect::<Vec<_>>().join("; "), cut)
        };
        let text =
            r#"{"say": "a \"calls\": [", "calls": [{"tool": "a", "args": {"x": [1]}}, {"tool": "b", "args": {"x": "y"#;
        for end in 0..=text.len() {
            let (calls, cut) = shown(&text[..end]);
            let whole = end >= text.find("}}, ").unwrap() + 2;
            assert_eq!(calls.starts_with(r#"a {"x":[1]}"#), whole, "{}: {calls}", &text[..end]);
            assert!(!cut || !calls.is_empty());
        }
        assert_eq!(shown(text).0, r#"a {"x":[1]}; b {"tool": "b", "args": {"x": "y"#);
        assert_eq!(shown(r#"{"calls": [{"to"#), (r#"cut_off {"to"#.to_owned(), true));
        assert_eq!(shown(r#"{"calls": [{"tool": "a"}]"#), ("a {}".to_owned(), false));
        assert_eq!(shown("[1"), (String::new(), false));
    }

    #[test]
    fn an_argument_is_full_by_the_schema_that_was_sent() {
        let parameters = json!({ "type": "object", "properties": { "command": { "type": "string", "maxLength": 8 } } });
        let args = portable(&parameters).unwrap();
        let form = object(&[("tool", json!({ "enum": ["exec"] })), ("args", args)]);
        let schema = json!({ "properties": { "calls": { "items": { "anyOf": [form] } } } });
        let cut = |command: &str, schema: Option<&Value>| {
            read(&json!({ "tool": "exec", "args": { "command": command } }), 1, schema).unwrap().cut.is_some()
        };
        assert!(cut("12345678", Some(&schema)));
        assert!(!cut("1234567", Some(&schema)) && !cut("123456789", Some(&schema)) && !cut("12345678", None));
    }
}
