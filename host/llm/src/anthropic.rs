//! Anthropic's own format, Messages.
//!
//! An answer in JSON is requested as the arguments of a single tool that must be called. All models of the provider, and of
//! gateways that imitate it, support that, unlike its newer output format. The arguments become the completion's text. If other
//! tools are offered, or the schema is not that of an object, only the prompt asks for JSON.

use std::sync::{Mutex, PoisonError};

use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::answering;
use super::draft::Draft;
use super::endpoint::{Endpoint, Support};
use super::http::{CallError, KeyHeader, Refusal, Wire};
use super::schema;
use super::turns::{Message, MessagePart, messages};
use super::vision::Vision;
use super::{Answer, Completing, Completion, Form, LlmError, Model, Request, Sink, ToolChoice};

mod stream;

/// The version of the format that this file implements.
pub(crate) const VERSION: &str = "2023-06-01";

/// The tool whose arguments are the answer.
const ANSWER: &str = "answer";

/// A model behind a Messages endpoint.
#[derive(Debug)]
pub struct Anthropic {
    wire: Wire,
    /// Fields that the endpoint is known to support.
    shape: Mutex<Shape>,
}

/// Fields of a request that not every model supports.
#[derive(Debug, Clone, Copy)]
struct Shape {
    schema: bool,
    /// Whether a refusal of the schema does not disable it, because the administrator declared that it is supported.
    fixed: bool,
    temperature: bool,
    vision: Vision,
    /// `cache_control`: marks how much of a prompt to cache.
    cache: bool,
    /// The maximum output tokens of the model, if known.
    most: u32,
}

impl Anthropic {
    /// `endpoint.base_url` is the part before `/messages`, such as `https://api.anthropic.com/v1`. Fails if it is not a valid
    /// address, or if the key cannot be a header; sends nothing yet.
    pub fn new(endpoint: Endpoint) -> Result<Self, LlmError> {
        let (schema, fixed) = (endpoint.schema != Support::No, endpoint.schema == Support::Yes);
        let vision = Vision::new(endpoint.vision);
        let mut wire = Wire::new(endpoint, "/messages", KeyHeader::Named("x-api-key"))?;
        wire.header("anthropic-version", VERSION);
        let shape = Shape { schema, fixed, temperature: true, vision, cache: true, most: u32::MAX };
        Ok(Self { wire, shape: Mutex::new(shape) })
    }

    /// Sends the request, and repeats it without each field that is refused. It ends, because each attempt has one field less.
    async fn ask(&self, request: &Request, sink: &mut dyn Sink) -> Result<Completion, LlmError> {
        let mut shape = *self.shape.lock().unwrap_or_else(PoisonError::into_inner);
        let end = self.wire.end();
        loop {
            let body = body(&self.wire.endpoint.model, request, shape);
            let forced = shape.forced(request).is_some();
            match self.attempt(request, &body, forced, end, sink).await {
                Ok(completion) => {
                    let blind = shape.vision.is_blind_for(request);
                    shape.vision.answered(request);
                    self.shape.lock().unwrap_or_else(PoisonError::into_inner).learn(shape);
                    let form = if forced { Form::Schema } else { Form::Prompt };
                    let schema = match &request.answer {
                        Answer::Json(schema) if forced => Some(schema.clone()),
                        _ => None,
                    };
                    return Ok(Completion { form, schema, blind, ..completion });
                }
                Err(CallError::Failed(error)) => return Err(error),
                Err(CallError::Refused(refusal)) => match shape.without(&refusal, request) {
                    Some(smaller) => shape = smaller,
                    None => return Err(refusal.into_error(&self.wire.name)),
                },
            }
        }
    }

    /// Sends `body` and reads the answer. A refusal after the beginning of an answer is a failure, because its text was already
    /// passed on.
    async fn attempt(
        &self,
        request: &Request,
        body: &Value,
        forced: bool,
        end: Instant,
        sink: &mut dyn Sink,
    ) -> Result<Completion, CallError> {
        let reply = self.wire.post(request.role.name(), body, end).await?;
        let stream = stream::MessageStream::new(&self.wire, Draft::new(sink, request), forced);
        answering::read(&self.wire, reply, stream).await
    }
}

impl Model for Anthropic {
    fn name(&self) -> &str {
        &self.wire.name
    }

    fn sees(&self) -> Option<bool> {
        self.shape.lock().unwrap_or_else(PoisonError::into_inner).vision.known()
    }

    fn learn_vision(&self, sees: bool) {
        self.shape.lock().unwrap_or_else(PoisonError::into_inner).vision.tested(sees);
    }

    fn complete<'a>(&'a self, request: &'a Request, sink: &'a mut dyn Sink) -> Completing<'a> {
        Box::pin(self.ask(request, sink))
    }
}

impl Shape {
    /// Returns the schema that the answer is forced into.
    fn forced(self, request: &Request) -> Option<&Value> {
        match &request.answer {
            Answer::Json(schema) if self.schema && request.tools.is_empty() && schema["type"] == "object" => {
                Some(schema.as_ref())
            }
            _ => None,
        }
    }

    /// Returns the shape without the field that the refusal names; `None` if it names no optional field.
    fn without(self, refusal: &Refusal, request: &Request) -> Option<Self> {
        if let Some(most) = refusal.smaller_limit(request.max_tokens.min(self.most)) {
            return Some(Self { most, ..self });
        }
        if self.temperature && request.temperature.is_some() && refusal.names(&["temperature"]) {
            return Some(Self { temperature: false, ..self });
        }
        if let Some(vision) = self.vision.without(refusal, request) {
            return Some(Self { vision, ..self });
        }
        if self.cache && !request.cache_key.is_empty() && refusal.names(&["cache_control"]) {
            return Some(Self { cache: false, ..self });
        }
        let forced = self.forced(request).is_some() && !self.fixed;
        (forced && refusal.names(&["tool", "schema"])).then_some(Self { schema: false, ..self })
    }

    /// Records that the endpoint answered to `other`: fields that it refused are not sent again.
    fn learn(&mut self, other: Self) {
        self.schema &= other.schema;
        self.temperature &= other.temperature;
        self.vision.learn(other.vision);
        self.cache &= other.cache;
        self.most = self.most.min(other.most);
    }
}

fn body(model: &str, request: &Request, shape: Shape) -> Value {
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(model));
    body.insert("max_tokens".to_owned(), json!(request.max_tokens.min(shape.most)));
    let cached = shape.cache && !request.cache_key.is_empty();
    if !request.system.trim().is_empty() {
        let mut system = json!([{ "type": "text", "text": request.system }]);
        match cached {
            true => mark(system.as_array_mut().and_then(|blocks| blocks.last_mut())),
            false => system = json!(request.system),
        }
        body.insert("system".to_owned(), system);
    }
    let messages = messages(request, shape.vision);
    let mut said: Vec<Value> = messages.iter().map(message).collect();
    if cached {
        let content = said.last_mut().and_then(|message| message["content"].as_array_mut());
        mark(content.and_then(|blocks| blocks.last_mut()));
    }
    body.insert("messages".to_owned(), Value::Array(said));
    body.insert("stream".to_owned(), json!(true));
    if let Some(temperature) = request.temperature.filter(|_| shape.temperature) {
        // The range ends at 1 here; for other providers it ends at 2.
        let temperature = (f64::from(temperature.min(1.0)) * 1e4).round() / 1e4;
        body.insert("temperature".to_owned(), json!(temperature));
    }
    let (tools, choice) = tools(request, &messages, shape);
    if !tools.is_empty() {
        body.insert("tools".to_owned(), Value::Array(tools));
    }
    if let Some(choice) = choice {
        body.insert("tool_choice".to_owned(), choice);
    }
    Value::Object(body)
}

/// Marks a block: the provider caches the prompt up to it. Used after the system prompt, which comes after the tools, and at the
/// end of the messages, where the next request continues.
fn mark(block: Option<&mut Value>) {
    if let Some(block) = block {
        block["cache_control"] = json!({ "type": "ephemeral" });
    }
}

/// Returns the tools, and the tool choice if it is not free.
fn tools(request: &Request, messages: &[Message], shape: Shape) -> (Vec<Value>, Option<Value>) {
    if let Some(schema) = shape.forced(request) {
        let mut tools = called_tools(messages);
        tools.push(json!({ "name": ANSWER, "description": "Takes the answer.", "input_schema": schema }));
        return (tools, Some(json!({ "type": "tool", "name": ANSWER })));
    }
    if request.tools.is_empty() {
        let tools = called_tools(messages);
        let choice = (!tools.is_empty()).then(|| json!({ "type": "none" }));
        return (tools, choice);
    }
    let choice = (request.tool_choice == ToolChoice::None).then(|| json!({ "type": "none" }));
    let tools = request
        .tools
        .iter()
        .map(|tool| json!({ "name": tool.name, "description": tool.description, "input_schema": schema::shown(&tool.parameters) }));
    (tools.collect(), choice)
}

/// Returns the tools that were called earlier. The provider refuses a conversation with calls if no tools are offered, even if
/// none may be called.
fn called_tools(messages: &[Message]) -> Vec<Value> {
    let mut names: Vec<&str> = Vec::new();
    for message in messages {
        if let Message::Assistant { calls, .. } = message {
            names.extend(calls.iter().map(|call| call.name));
        }
    }
    names.sort_unstable();
    names.dedup();
    names.iter().map(|name| json!({ "name": name, "input_schema": { "type": "object" } })).collect()
}

fn message(message: &Message) -> Value {
    let text = |text: &Option<std::borrow::Cow<str>>| text.as_ref().map(|text| json!({ "type": "text", "text": text }));
    match message {
        Message::User { results, parts } => {
            let results = results
                .iter()
                .map(|result| json!({ "type": "tool_result", "tool_use_id": result.id, "content": result.text }));
            let parts = parts.iter().flat_map(|part| match part {
                MessagePart::Text(text) => vec![json!({ "type": "text", "text": text })],
                MessagePart::Image(image) => {
                    let data = image.content.as_deref().unwrap_or_default();
                    let source = json!({ "type": "base64", "media_type": image.picture.media_type, "data": data });
                    vec![
                        json!({ "type": "text", "text": image.caption() }),
                        json!({ "type": "image", "source": source }),
                    ]
                }
            });
            json!({ "role": "user", "content": results.chain(parts).collect::<Vec<_>>() })
        }
        Message::Assistant { text: said, calls } => {
            let calls = calls
                .iter()
                .map(|call| json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": call.input }));
            json!({ "role": "assistant", "content": text(said).into_iter().chain(calls).collect::<Vec<_>>() })
        }
    }
}
