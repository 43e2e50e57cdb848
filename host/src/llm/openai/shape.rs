//! What of a request an endpoint takes.

use serde_json::Value;

use crate::llm::endpoint::SchemaSupport;
use crate::llm::http::Refusal;
use crate::llm::{Answer, Form, Request};

/// Fields and forms of a request that not every endpoint takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub format: Format,
    /// Whether a refusal of the format is not a reason to go without: the administrator said that it works.
    fixed: bool,
    /// `stream_options`.
    pub usage: bool,
    /// The name of the field that limits the answer: newer models of OpenAI want the longer one, others know only the
    /// shorter.
    pub limit: &'static str,
    pub temperature: bool,
    /// A message of the user may follow the results of tools. Mistral wants the model to speak first.
    pub notes: bool,
    /// The system prompt may be a message of its own. Templates of some local models know only two roles.
    pub system: bool,
}

/// How an answer in JSON is asked for, beside what the prompt says. Each is tried if the one before was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Format {
    Schema,
    /// Some JSON; older endpoints know only this.
    Object,
    Plain,
}

const SHORT: &str = "max_tokens";
const LONG: &str = "max_completion_tokens";

impl Shape {
    pub fn new(schema: SchemaSupport) -> Self {
        let format = if schema == SchemaSupport::No { Format::Plain } else { Format::Schema };
        let fixed = schema == SchemaSupport::Yes;
        Self { format, fixed, usage: true, limit: SHORT, temperature: true, notes: true, system: true }
    }

    /// Without what the refusal of `body` names; `None` if it names nothing that can be left out or put
    /// differently.
    pub fn without(self, refusal: &Refusal, body: &Value) -> Option<Self> {
        let sent = |field: &str| body.get(field).is_some();
        // Servers say so in their own words, and "max_tokens is too large" is not a refusal of the field.
        if self.limit == SHORT && refusal.names(&[LONG]) {
            return Some(Self { limit: LONG, ..self });
        }
        if sent("stream_options") && refusal.names(&["stream_options", "include_usage"]) {
            return Some(Self { usage: false, ..self });
        }
        if sent("temperature") && refusal.names(&["temperature"]) {
            return Some(Self { temperature: false, ..self });
        }
        let alternate = refusal.names(&["must alternate"]);
        if self.notes && follows(body, "tool", "user") && (alternate || refusal.names(&["after role 'tool'"])) {
            return Some(Self { notes: false, ..self });
        }
        if body["messages"][0]["role"] == "system" && (alternate || refusal.names(&["system role not supported"])) {
            return Some(Self { system: false, ..self });
        }
        // llama.cpp makes a grammar of the schema and complains about that.
        let format = ["response_format", "response format", "json_schema", "json_object", "schema", "grammar"];
        if sent("response_format") && !self.fixed && refusal.names(&format) {
            let format = if self.format == Format::Schema { Format::Object } else { Format::Plain };
            return Some(Self { format, ..self });
        }
        let unknown = ["unsupported", "not supported", "unrecognized", "unknown", "extra", "not permitted"];
        if self.limit == SHORT && refusal.names(&["max_tokens"]) && refusal.names(&unknown) {
            return Some(Self { limit: LONG, ..self });
        }
        None
    }

    /// How the form of the answer to `request` is asked for.
    pub fn form(self, request: &Request) -> Form {
        match (&request.answer, self.format) {
            (Answer::Text, _) | (_, Format::Plain) => Form::Prompt,
            (_, Format::Object) => Form::Object,
            (_, Format::Schema) => Form::Schema,
        }
    }

    /// The endpoint answered to `other`. What it refused before, it is not sent again.
    pub fn learn(&mut self, other: Self) {
        self.format = self.format.max(other.format);
        self.usage &= other.usage;
        self.temperature &= other.temperature;
        self.notes &= other.notes;
        self.system &= other.system;
        if other.limit == LONG {
            self.limit = LONG;
        }
    }
}

/// Whether a message of `second` comes right after one of `first`.
fn follows(body: &Value, first: &str, second: &str) -> bool {
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    messages.windows(2).any(|pair| pair[0]["role"] == first && pair[1]["role"] == second)
}
