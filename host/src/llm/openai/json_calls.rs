//! Calls of tools in an answer of JSON, for models whose server or template knows no tools: the system prompt says what there is to
//! call, the answer is `{"say": "…", "calls": [{"tool": "…", "args": {…}}]}`, and results come back as what the user says.

use std::fmt::Write as _;

use serde_json::{Deserializer, Map, Value, json};

use crate::graph::SayField;
use crate::llm::draft::MAX_CALLS;
use crate::llm::schema::{bounded, portable};
use crate::llm::{Calling, Completion, Request, Sink, Stop, ToolCall, ToolSpec, Usage};

/// Calls that one answer may have by its schema.
const MOST: u64 = 4;

/// Stands in place of arguments of which one was as long as the schema lets it be, and so has lost its end: half a command line is
/// another command line.
const CUT_OFF: &str = "argument_that_was_cut_off";

/// The system prompt with what there is to call.
pub(super) fn described(system: &str, tools: &[ToolSpec]) -> String {
    let mut text = format!(
        "{}\n\nYou call tools by answering with one JSON object and nothing else: \
         {{\"say\": TEXT, \"calls\": [{{\"tool\": NAME, \"args\": {{...}}}}]}}. Where you call none, \"calls\" is empty and \"say\" is \
         your whole answer. The tools, each with the JSON Schema of its args:",
        system.trim_end()
    );
    for ToolSpec { name, description, parameters } in tools {
        let _ = write!(text, "\n- {name}: {description} {parameters}");
    }
    text
}

/// The form of an answer of at most `tokens`.
pub(super) fn schema(tools: &[ToolSpec], tokens: u32) -> Value {
    let call = |tool: &ToolSpec| {
        let args = portable(&tool.parameters).unwrap_or_else(|| json!({ "type": "object" }));
        object(&[("tool", json!({ "type": "string", "enum": [tool.name] })), ("args", args)])
    };
    let calls: Vec<Value> = tools.iter().map(call).collect();
    let calls = json!({ "type": "array", "items": { "anyOf": calls }, "maxItems": MOST });
    bounded(&object(&[("say", json!({ "type": "string" })), ("calls", calls)]), tokens)
}

fn object(properties: &[(&str, Value)]) -> Value {
    let names: Vec<&str> = properties.iter().map(|(name, _)| *name).collect();
    let properties: Map<String, Value> = properties.iter().map(|(name, of)| ((*name).to_owned(), of.clone())).collect();
    json!({ "type": "object", "properties": properties, "required": names, "additionalProperties": false })
}

/// An earlier answer, as it would have been given in this form.
pub(super) fn written<'a>(text: Option<&str>, calls: impl Iterator<Item = (&'a str, &'a Value)>) -> String {
    let calls: Vec<Value> = calls.map(|(name, input)| json!({ "tool": name, "args": input })).collect();
    json!({ "say": text.unwrap_or_default(), "calls": calls }).to_string()
}

/// Passes on what an answer says, and none of its calls.
pub(super) struct SaySink<'a> {
    sink: &'a mut dyn Sink,
    /// Whether the answer is an object; `None` before its first letter.
    object: Option<bool>,
    field: SayField,
    /// What it passed on.
    said: String,
}

impl<'a> SaySink<'a> {
    pub fn new(sink: &'a mut dyn Sink) -> Self {
        Self { sink, object: None, field: SayField::default(), said: String::new() }
    }

    /// The completion of the answer that was heard, with its calls.
    pub fn finish(self, completion: Completion, request: &Request) -> Completion {
        let completion = Completion { calling: Calling::Json, ..completion };
        if self.object != Some(true) {
            return completion;
        }
        let mut values = Deserializer::from_str(&completion.text).into_iter::<Value>();
        let value =
            values.next().and_then(Result::ok).filter(|value| value.get("say").or(value.get("calls")).is_some());
        let Some(value) = value else {
            // One that was cut off, or another object, which is what the model says.
            let text = if completion.stop == Stop::End { completion.text.clone() } else { String::new() };
            return self.said(text, completion);
        };
        let text = value["say"].as_str().unwrap_or_default().to_owned();
        let schema = schema(&request.tools, request.max_tokens);
        let written = value["calls"].as_array().into_iter().flatten().take(MAX_CALLS).zip(1..);
        let calls: Vec<_> = written.filter_map(|(call, number)| read(call, number, &schema)).collect();
        let stop = if calls.is_empty() { completion.stop } else { Stop::Calls };
        self.said(text, Completion { calls, stop, ..completion })
    }

    /// What was not heard before, because the object does not begin with it, is heard now.
    fn said(self, text: String, completion: Completion) -> Completion {
        let text = if self.said.is_empty() { text } else { self.said.clone() };
        if self.said.is_empty() && !text.is_empty() {
            self.sink.text(&text);
        }
        Completion { text, ..completion }
    }
}

impl Sink for SaySink<'_> {
    fn text(&mut self, piece: &str) {
        if self.object.is_none() {
            self.object = piece.trim_start().chars().next().map(|first| first == '{');
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

    fn restart(&mut self) {
        (self.object, self.field, self.said) = (None, SayField::default(), String::new());
        self.sink.restart();
    }

    fn spent(&mut self, usage: Usage) {
        self.sink.spent(usage);
    }
}

fn read(call: &Value, number: usize, schema: &Value) -> Option<ToolCall> {
    let name = call["tool"].as_str()?.trim().to_owned();
    let forms = schema["properties"]["calls"]["items"]["anyOf"].as_array()?;
    let form = forms.iter().find(|form| form["properties"]["tool"]["enum"][0] == *name);
    let most = |argument: &str| form?["properties"]["args"]["properties"][argument]["maxLength"].as_u64();
    let is_full = |(argument, value): (&String, &Value)| {
        let length = value.as_str()?.chars().count() as u64;
        most(argument).filter(|most| length >= *most).map(|_| argument.clone())
    };
    let args = match &call["args"] {
        Value::Null => json!({}),
        args => match args.as_object().and_then(|args| args.iter().find_map(is_full)) {
            Some(full) => json!({ CUT_OFF: full }),
            None => args.clone(),
        },
    };
    Some(ToolCall { id: format!("call_{number}"), name, args: args.to_string() })
}
