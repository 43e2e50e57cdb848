//! Chat completions, the format of most providers: OpenRouter, OpenAI, Ollama, llama.cpp, vLLM and many more, with small
//! differences. If an endpoint refuses an optional feature, the request is repeated at once without it, and the feature is not
//! used again. All other failures are returned to the caller, which may retry or use another model.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::answering;
use super::draft::Draft;
use super::endpoint::Endpoint;
use super::http::{CallError, KeyHeader, Wire};
use super::schema;
use super::turns::{Message, MessagePart, messages};
use super::{Answer, Calling, Completing, Completion, LlmError, Model, Request, Sink, ToolChoice};

mod json_calls;
mod llama;
mod shape;
mod stream;
mod strict;

use json_calls::SaySink;
use llama::LlamaServer;
use shape::{Format, RequestShape};

/// A model behind a chat-completions endpoint.
#[derive(Debug)]
pub struct OpenAi {
    wire: Wire,
    /// Features that the endpoint is known to support.
    shape: Mutex<RequestShape>,
    /// Its properties, once its first answer has shown that it is llama.cpp.
    llama: OnceLock<LlamaServer>,
}

impl OpenAi {
    /// `endpoint.base_url` is the part before `/chat/completions`, such as `https://openrouter.ai/api/v1`. Fails if it is not a
    /// valid address, or if the key cannot be a header; sends nothing yet.
    pub fn new(endpoint: Endpoint) -> Result<Self, LlmError> {
        let shape = Mutex::new(RequestShape::new(endpoint.schema, endpoint.tools, endpoint.vision));
        let wire = Wire::new(endpoint, "/chat/completions", KeyHeader::Bearer)?;
        Ok(Self { wire, shape, llama: OnceLock::new() })
    }

    /// Sends the request, and repeats it without each feature that is refused. It ends, because each attempt has one feature
    /// less.
    async fn ask(&self, request: &Request, sink: &mut dyn Sink) -> Result<Completion, LlmError> {
        let mut shape = *self.shape.lock().unwrap_or_else(PoisonError::into_inner);
        let end = self.wire.end();
        loop {
            let schema = schema(request, shape, self.llama.get().is_some());
            let body = self.body(request, shape, schema.as_deref());
            let schema = schema.filter(|_| shape.format == Format::Schema);
            match self.attempt(request, &body, shape, schema.as_deref(), end, sink).await {
                Ok(None) => shape = shape.without_tools().unwrap_or(shape),
                Ok(Some(completion)) => {
                    let blind = shape.vision.is_blind_for(request);
                    shape.vision.answered(request);
                    self.shape.lock().unwrap_or_else(PoisonError::into_inner).learn(shape);
                    return Ok(Completion { form: shape.form(request), schema, blind, ..completion });
                }
                Err(CallError::Failed(error)) => return Err(error),
                Err(CallError::Refused(refusal)) => match shape.without(&refusal, request, &body) {
                    Some(smaller) => shape = smaller,
                    None => return Err(refusal.into_error(&self.wire.name)),
                },
            }
        }
    }

    /// Sends `body`, which contains `schema`, and reads the answer. A refusal after the beginning of an answer is a failure,
    /// because its text was already passed on. `None` if the server turns out to hide the tools from its model.
    async fn attempt(
        &self,
        request: &Request,
        body: &Value,
        shape: RequestShape,
        schema: Option<&Value>,
        end: Instant,
        sink: &mut dyn Sink,
    ) -> Result<Option<Completion>, CallError> {
        let reply = self.wire.post(request.role.name(), body, end).await?;
        if reply.is_of(llama::NAME) && self.llama.get().is_none() {
            let properties = self.wire.look_up("/props", end).await;
            self.llama.get_or_init(|| LlamaServer::new(properties.as_ref()));
        }
        let hides_tools = self.llama.get().is_some_and(|server| !server.tools) && !request.tools.is_empty();
        if hides_tools && shape.without_tools().is_some() {
            return Ok(None);
        }
        if shape.calling == Calling::Json && !request.tools.is_empty() {
            let mut said = SaySink::new(sink);
            let stream = stream::CompletionStream::new(&self.wire, Draft::new(&mut said, request));
            let completion = answering::read(&self.wire, reply, stream).await?;
            return Ok(Some(said.finish(completion, schema)));
        }
        let stream = stream::CompletionStream::new(&self.wire, Draft::new(sink, request));
        Ok(Some(answering::read(&self.wire, reply, stream).await?))
    }

    fn body(&self, request: &Request, shape: RequestShape, schema: Option<&Value>) -> Value {
        let mut body = body(&self.wire.endpoint.model, request, shape, schema);
        if let (Some(server), Some(fields)) = (self.llama.get(), body.as_object_mut()) {
            fields.insert("cache_prompt".to_owned(), json!(true));
            if let Some(slot) = server.slot(&request.cache_key) {
                fields.insert("id_slot".to_owned(), json!(slot));
            }
        }
        body
    }
}

impl Model for OpenAi {
    fn name(&self) -> &str {
        &self.wire.name
    }

    fn sees(&self) -> Option<bool> {
        let known = self.shape.lock().unwrap_or_else(PoisonError::into_inner).vision.known();
        known.or_else(|| self.llama.get().and_then(|server| server.vision))
    }

    fn hears(&self) -> bool {
        self.wire.endpoint.audio
    }

    fn learn_vision(&self, sees: bool) {
        self.shape.lock().unwrap_or_else(PoisonError::into_inner).vision.tested(sees);
    }

    fn complete<'a>(&'a self, request: &'a Request, sink: &'a mut dyn Sink) -> Completing<'a> {
        Box::pin(self.ask(request, sink))
    }
}

/// Returns the schema of the answer, if it has one; for a server that makes a `grammar` of it, the schema for that purpose.
fn schema(request: &Request, shape: RequestShape, grammar: bool) -> Option<Arc<Value>> {
    match &request.answer {
        Answer::Json(schema) => Some(request.grammar.as_ref().filter(|_| grammar).unwrap_or(schema).clone()),
        Answer::Text => shape.calls_json(request).then(|| Arc::new(json_calls::schema(request))),
    }
}

fn body(model: &str, request: &Request, shape: RequestShape, schema: Option<&Value>) -> Value {
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(model));
    body.insert("messages".to_owned(), Value::Array(conversation(request, shape)));
    body.insert("stream".to_owned(), json!(true));
    if shape.usage {
        body.insert("stream_options".to_owned(), json!({ "include_usage": true }));
    }
    body.insert(shape.limit.to_owned(), json!(request.max_tokens.min(shape.most)));
    if shape.cache_key && !request.cache_key.is_empty() {
        body.insert("prompt_cache_key".to_owned(), json!(request.cache_key));
    }
    if let Some(temperature) = request.temperature.filter(|_| shape.temperature) {
        // Rounded, because a 32-bit float has extra digits as a 64-bit one.
        body.insert("temperature".to_owned(), json!((f64::from(temperature) * 1e4).round() / 1e4));
    }
    let choice = request.tool_choice == ToolChoice::None;
    if !request.tools.is_empty() && shape.calling == Calling::Native && (shape.tool_choice || !choice) {
        if choice {
            body.insert("tool_choice".to_owned(), json!("none"));
        }
        let tools = request.tools.iter().map(|tool| {
            let (name, description, parameters) = (&tool.name, &tool.description, schema::shown(&tool.parameters));
            let function = json!({ "name": name, "description": description, "parameters": parameters });
            json!({ "type": "function", "function": function })
        });
        body.insert("tools".to_owned(), tools.collect());
    }
    if let Some(schema) = schema {
        let format = match shape.format {
            Format::Schema => {
                let schema = json!({ "name": request.role.name(), "strict": strict::fits(schema), "schema": schema });
                Some(json!({ "type": "json_schema", "json_schema": schema }))
            }
            Format::Object => Some(json!({ "type": "json_object" })),
            Format::Plain => None,
        };
        body.extend(format.map(|format| ("response_format".to_owned(), format)));
    }
    Value::Object(body)
}

/// The model's message between the results of tools and their pictures.
const LOOKS: &str = "I look at the pictures.";

/// Returns the content of a user message: a text, or parts if it contains pictures.
fn content(parts: &[MessagePart]) -> Value {
    match parts {
        [] => return json!(""),
        [MessagePart::Text(text)] => return json!(text),
        _ => {}
    }
    let words = |text: &str| json!({ "type": "text", "text": text });
    let mut shown = Vec::new();
    for part in parts {
        match part {
            MessagePart::Text(text) => shown.push(words(text)),
            MessagePart::Image(image) if image.picture.is_sound() => {
                let format = if image.picture.media_type == "audio/wav" { "wav" } else { "mp3" };
                let sound = json!({ "data": image.content.as_deref().unwrap_or_default(), "format": format });
                shown.extend([words(&image.caption()), json!({ "type": "input_audio", "input_audio": sound })]);
            }
            MessagePart::Image(image) => {
                let (media_type, data) = (&image.picture.media_type, image.content.as_deref().unwrap_or_default());
                let url = format!("data:{media_type};base64,{data}");
                shown.extend([words(&image.caption()), json!({ "type": "image_url", "image_url": { "url": url } })]);
            }
        }
    }
    Value::Array(shown)
}

/// Adds a text before the parts.
fn behind<'a>(text: String, mut parts: Vec<MessagePart<'a>>) -> Vec<MessagePart<'a>> {
    match parts.first_mut() {
        Some(MessagePart::Text(first)) => *first = format!("{text}\n\n{first}").into(),
        _ => parts.insert(0, MessagePart::Text(text.into())),
    }
    parts
}

fn conversation(request: &Request, shape: RequestShape) -> Vec<Value> {
    let mut conversation = Vec::new();
    let calls_are_json = shape.calling == Calling::Json;
    let mut system = Some(Cow::Borrowed(request.system.as_str())).filter(|system| !system.trim().is_empty());
    if calls_are_json && !request.tools.is_empty() {
        system = Some(json_calls::described(&request.system, &request.tools).into());
    }
    let mut called: Vec<(String, &str)> = Vec::new();
    let messages = messages(request, shape.vision);
    if shape.system {
        conversation.extend(system.take().map(|system| json!({ "role": "system", "content": system })));
    }
    for message in messages {
        match message {
            Message::User { results, parts } if calls_are_json => {
                let name = |id: &str| called.iter().find(|(of, _)| of == id).map_or("", |(_, name)| name);
                let results =
                    results.iter().map(|result| format!("Result of the tool {}:\n{}", name(&result.id), result.text));
                let before: Vec<_> = system.take().map(Cow::into_owned).into_iter().chain(results).collect();
                let parts = if before.is_empty() { parts } else { behind(before.join("\n\n"), parts) };
                conversation.push(json!({ "role": "user", "content": content(&parts) }));
            }
            Message::Assistant { text, calls } if calls_are_json && !calls.is_empty() => {
                let made = calls.iter().map(|call| (call.name, &call.input));
                conversation
                    .push(json!({ "role": "assistant", "content": json_calls::written(text.as_deref(), made) }));
                called.extend(calls.into_iter().map(|call| (call.id, call.name)));
            }
            Message::User { results, mut parts } => {
                if let Some(system) = system.take() {
                    parts = behind(system.into_owned(), parts);
                }
                let (count, last) = (results.len(), results.len().saturating_sub(1));
                // If the user may not speak after a result, text is added to the result, and the model speaks before pictures.
                let is_note = |parts: &[MessagePart]| !shape.notes && matches!(parts, [MessagePart::Text(_)]);
                for (n, result) in results.into_iter().enumerate() {
                    let note = (n == last && is_note(&parts)).then(|| parts.pop()).flatten();
                    let content = match note {
                        Some(MessagePart::Text(note)) => Cow::Owned(format!("{}\n\n{note}", result.text)),
                        _ => Cow::Borrowed(result.text),
                    };
                    conversation.push(json!({ "role": "tool", "tool_call_id": result.id, "content": content }));
                }
                if count > 0 && !parts.is_empty() && !shape.notes {
                    conversation.push(json!({ "role": "assistant", "content": LOOKS }));
                }
                if !parts.is_empty() {
                    conversation.push(json!({ "role": "user", "content": content(&parts) }));
                }
            }
            Message::Assistant { text, calls } => {
                let mut message = json!({ "role": "assistant", "content": text });
                if !calls.is_empty() {
                    let calls = calls.iter().map(|call| {
                        let function = json!({ "name": call.name, "arguments": call.input.to_string() });
                        json!({ "id": call.id, "type": "function", "function": function })
                    });
                    message["tool_calls"] = calls.collect();
                }
                conversation.push(message);
            }
        }
    }
    conversation
}
