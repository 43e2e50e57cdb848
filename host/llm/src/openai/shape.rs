//! The parts of a request that an endpoint supports.

use serde_json::Value;

use crate::endpoint::Support;
use crate::http::Refusal;
use crate::vision::Vision;
use crate::{Answer, Calling, Form, Request, ToolChoice};

/// Fields and forms of a request that not every endpoint supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RequestShape {
    pub format: Format,
    /// Whether a refusal of the format does not disable it, because the administrator declared that it is supported.
    fixed: bool,
    pub calling: Calling,
    /// The same for tool calls.
    calls_fixed: bool,
    /// `tool_choice`: lists tools that must not be called.
    pub tool_choice: bool,
    /// `stream_options`.
    pub usage: bool,
    /// The name of the field that limits the answer: newer models of OpenAI need the longer one, others only know the shorter
    /// one.
    pub limit: &'static str,
    /// The maximum output tokens of the model, if known.
    pub most: u32,
    pub temperature: bool,
    pub vision: Vision,
    /// `prompt_cache_key`: routes requests with the same beginning to a server that has cached it.
    pub cache_key: bool,
    /// Whether a user message may follow the results of tools. Mistral requires a message of the model first.
    pub notes: bool,
    /// Whether the system prompt may be a separate message. Templates of some local models only know two roles.
    pub system: bool,
}

/// How to request an answer in JSON, besides the prompt. Each is tried if the one before was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Format {
    Schema,
    /// Any JSON; older endpoints only support this.
    Object,
    Plain,
}

const SHORT: &str = "max_tokens";
const LONG: &str = "max_completion_tokens";

impl RequestShape {
    pub(super) fn new(schema: Support, tools: Support, vision: Support) -> Self {
        Self {
            format: if schema == Support::No { Format::Plain } else { Format::Schema },
            fixed: schema == Support::Yes,
            calling: if tools == Support::No { Calling::Json } else { Calling::Native },
            calls_fixed: tools == Support::Yes,
            tool_choice: true,
            usage: true,
            limit: SHORT,
            most: u32::MAX,
            temperature: true,
            vision: Vision::new(vision),
            cache_key: true,
            notes: true,
            system: true,
        }
    }

    /// Returns the shape with calls as JSON, for a server that hides the tools from its model; `None` if calls are already
    /// requested as JSON, or if the administrator declared that tools are supported.
    pub(super) fn without_tools(self) -> Option<Self> {
        let native = self.calling == Calling::Native && !self.calls_fixed;
        native.then_some(Self { calling: Calling::Json, ..self })
    }

    /// Returns the shape without the feature that the refusal of `body` names; `None` if it names no optional feature.
    pub(super) fn without(self, refusal: &Refusal, request: &Request, body: &Value) -> Option<Self> {
        let sent = |field: &str| body.get(field).is_some();
        let limit = body.get(self.limit).and_then(Value::as_u64).and_then(|sent| u32::try_from(sent).ok());
        // Servers use their own words, and "max_tokens is too large" is not a refusal of the field.
        if let Some(most) = limit.and_then(|sent| refusal.smaller_limit(sent)) {
            return Some(Self { most, ..self });
        }
        if let Some(vision) = self.vision.without(refusal, request) {
            return Some(Self { vision, ..self });
        }
        if self.limit == SHORT && refusal.names(&[LONG]) {
            return Some(Self { limit: LONG, ..self });
        }
        if sent("stream_options") && refusal.names(&["stream_options", "include_usage"]) {
            return Some(Self { usage: false, ..self });
        }
        if sent("prompt_cache_key") && refusal.names(&["prompt_cache_key"]) {
            return Some(Self { cache_key: false, ..self });
        }
        if sent("temperature") && refusal.names(&["temperature"]) {
            return Some(Self { temperature: false, ..self });
        }
        if sent("tool_choice") && refusal.names(&["tool_choice"]) {
            return Some(Self { tool_choice: false, ..self });
        }
        // Ollama, llama.cpp without its templates, vLLM without a parser, in this order.
        let no_tools = ["not support tools", "tools param requires", "tool choice requires", "function calling is not"];
        let unknown = ["unsupported", "not supported", "unrecognized", "unknown", "extra", "not permitted"];
        let field = refusal.names(&["'tools'", "`tools`", "\"tools"]) && refusal.names(&unknown);
        if sent("tools") && (field || refusal.names(&no_tools)) && self.without_tools().is_some() {
            return self.without_tools();
        }
        let alternate = refusal.names(&["must alternate"]);
        if self.notes && follows(body, "tool", "user") && (alternate || refusal.names(&["after role 'tool'"])) {
            return Some(Self { notes: false, ..self });
        }
        if body["messages"][0]["role"] == "system" && (alternate || refusal.names(&["system role not supported"])) {
            return Some(Self { system: false, ..self });
        }
        // llama.cpp makes a grammar of the schema, and its error is about the grammar.
        let format = ["response_format", "response format", "json_schema", "json_object", "schema", "grammar"];
        if sent("response_format") && !self.fixed && refusal.names(&format) {
            let format = if self.format == Format::Schema { Format::Object } else { Format::Plain };
            return Some(Self { format, ..self });
        }
        if self.limit == SHORT && refusal.names(&["max_tokens"]) && refusal.names(&unknown) {
            return Some(Self { limit: LONG, ..self });
        }
        None
    }

    /// Returns how the form of the answer to `request` is requested.
    pub(super) fn form(self, request: &Request) -> Form {
        match (&request.answer, self.format) {
            (Answer::Text, _) if !self.calls_json(request) => Form::Prompt,
            (_, Format::Plain) => Form::Prompt,
            (_, Format::Object) => Form::Object,
            (_, Format::Schema) => Form::Schema,
        }
    }

    /// Whether the answer to `request` is requested as JSON because it may call tools.
    pub(super) fn calls_json(self, request: &Request) -> bool {
        self.calling == Calling::Json && !request.tools.is_empty() && request.tool_choice == ToolChoice::Auto
    }

    /// Records that the endpoint answered to `other`: features that it refused are not used again.
    pub(super) fn learn(&mut self, other: Self) {
        self.format = self.format.max(other.format);
        if other.calling == Calling::Json {
            self.calling = Calling::Json;
        }
        self.tool_choice &= other.tool_choice;
        self.usage &= other.usage;
        self.temperature &= other.temperature;
        self.vision.learn(other.vision);
        self.cache_key &= other.cache_key;
        self.notes &= other.notes;
        self.system &= other.system;
        self.most = self.most.min(other.most);
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
