//! Chat completions, the format that most providers speak: OpenRouter, OpenAI, Ollama, llama.cpp, vLLM and many more,
//! each a little differently. What an endpoint does not take is found out by its refusal, left out from then on, and
//! the request is sent again at once; every other failure is for the caller, who may try again or ask another model.

use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};

use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::answering;
use super::draft::Draft;
use super::endpoint::Endpoint;
use super::http::{KeyHeader, NoAnswer, Wire};
use super::turns::{Message, messages};
use super::{Answer, Completing, Completion, LlmError, Model, Request, Sink};

mod shape;
mod stream;
mod strict;

use shape::{Format, Shape};

/// A model behind a chat-completions endpoint.
#[derive(Debug)]
pub struct OpenAi {
    wire: Wire,
    /// What the endpoint is known to take.
    shape: Mutex<Shape>,
}

impl OpenAi {
    /// `endpoint.base_url` is what stands before `/chat/completions`, such as `https://openrouter.ai/api/v1`. Fails if
    /// it is not an address, or if the key cannot be a header; nothing is sent yet.
    pub fn new(endpoint: Endpoint) -> Result<Self, LlmError> {
        let shape = Mutex::new(Shape::new(endpoint.schema));
        Ok(Self { wire: Wire::new(endpoint, "/chat/completions", KeyHeader::Bearer)?, shape })
    }

    /// Sends the request, again without each thing that is refused. Ends, because each time one less is left.
    async fn ask(&self, request: &Request, sink: &mut dyn Sink) -> Result<Completion, LlmError> {
        let mut shape = *self.shape.lock().unwrap_or_else(PoisonError::into_inner);
        let end = self.wire.end();
        loop {
            let body = body(&self.wire.endpoint.model, request, shape);
            match self.attempt(request, &body, end, sink).await {
                Ok(completion) => {
                    self.shape.lock().unwrap_or_else(PoisonError::into_inner).learn(shape);
                    return Ok(Completion { form: shape.form(request), ..completion });
                }
                Err(NoAnswer::Failed(error)) => return Err(error),
                Err(NoAnswer::Refused(refusal)) => match shape.without(&refusal, &body) {
                    Some(smaller) => shape = smaller,
                    None => return Err(refusal.into_error(&self.wire.name)),
                },
            }
        }
    }

    /// Sends `body` and reads the answer. A refusal that comes after words of an answer is a failure: they were heard.
    async fn attempt(
        &self,
        request: &Request,
        body: &Value,
        end: Instant,
        sink: &mut dyn Sink,
    ) -> Result<Completion, NoAnswer> {
        let reply = self.wire.post(request.role.name(), body, end).await?;
        let stream = stream::Stream::new(&self.wire, Draft::new(sink, request));
        answering::read(&self.wire, reply, stream).await
    }
}

impl Model for OpenAi {
    fn name(&self) -> &str {
        &self.wire.name
    }

    fn complete<'a>(&'a self, request: &'a Request, sink: &'a mut dyn Sink) -> Completing<'a> {
        Box::pin(self.ask(request, sink))
    }
}

fn body(model: &str, request: &Request, shape: Shape) -> Value {
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(model));
    body.insert("messages".to_owned(), Value::Array(conversation(request, shape)));
    body.insert("stream".to_owned(), json!(true));
    if shape.usage {
        body.insert("stream_options".to_owned(), json!({ "include_usage": true }));
    }
    body.insert(shape.limit.to_owned(), json!(request.max_tokens));
    if let Some(temperature) = request.temperature.filter(|_| shape.temperature) {
        // As it was written: a float of 32 bits shows noise in one of 64.
        body.insert("temperature".to_owned(), json!((f64::from(temperature) * 1e4).round() / 1e4));
    }
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            let (name, description, parameters) = (&tool.name, &tool.description, &tool.parameters);
            let function = json!({ "name": name, "description": description, "parameters": parameters });
            json!({ "type": "function", "function": function })
        });
        body.insert("tools".to_owned(), tools.collect());
    }
    if let Answer::Json(schema) = &request.answer {
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

fn conversation(request: &Request, shape: Shape) -> Vec<Value> {
    let mut conversation = Vec::new();
    let mut system = Some(request.system.as_str()).filter(|system| !system.trim().is_empty());
    if shape.system {
        conversation.extend(system.take().map(|system| json!({ "role": "system", "content": system })));
    }
    for message in messages(request) {
        match message {
            Message::User { results, mut text } => {
                if let Some(system) = system.take() {
                    text = Some(format!("{system}\n\n{}", text.unwrap_or_default()).into());
                }
                let last = results.len().saturating_sub(1);
                for (n, result) in results.into_iter().enumerate() {
                    let content = match text.take_if(|_| n == last && !shape.notes) {
                        Some(note) => Cow::Owned(format!("{}\n\n{note}", result.text)),
                        None => Cow::Borrowed(result.text),
                    };
                    conversation.push(json!({ "role": "tool", "tool_call_id": result.id, "content": content }));
                }
                conversation.extend(text.map(|text| json!({ "role": "user", "content": text })));
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
