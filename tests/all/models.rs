//! Both wire formats against a server that speaks them, with the failures between a host and its providers.

mod conversation;
mod faults;
mod fields;
mod patience;
mod pictures;
mod providers;
mod small;

use crate::model_server::{ModelServer, Seen};
use kiso_base::role::Role;
use kiso_llm::anthropic::Anthropic;
use kiso_llm::endpoint::{Endpoint, Support, Timeouts};
use kiso_llm::openai::OpenAi;
use kiso_llm::{Answer, Completion, LlmError, Model, Request, Sink, ToolSpec};
use kiso_store::secret::SecretValue;
use serde_json::{Value, json};
use std::time::Duration;

pub(crate) const KEY: &str = "sk-test-1234567890";

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Format {
    OpenAi,
    Anthropic,
}

pub(crate) const BOTH: [Format; 2] = [Format::OpenAi, Format::Anthropic];

/// A server with a script, and a model that uses it.
pub(crate) struct Scene {
    pub server: ModelServer,
    pub model: Box<dyn Model>,
}

/// Pieces that a sink received.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Heard(pub Vec<String>);

impl Sink for Heard {
    fn text(&mut self, piece: &str) {
        self.0.push(piece.to_owned());
    }
}

impl Scene {
    #[track_caller]
    pub(crate) fn new(format: Format, script: &str) -> Self {
        Self::with(format, script, |_| {})
    }

    /// The same; `adjust` changes how the server is reached.
    #[track_caller]
    pub(crate) fn with(format: Format, script: &str, adjust: impl FnOnce(&mut Endpoint)) -> Self {
        let server = ModelServer::toml(script);
        let mut endpoint = endpoint(&server.base_url());
        adjust(&mut endpoint);
        Self { server, model: model(format, endpoint).unwrap() }
    }

    pub(crate) async fn ask(&self, request: &Request) -> Result<Completion, LlmError> {
        let mut heard = Heard::default();
        let completion = self.model.complete(request, &mut heard).await?;
        assert_eq!(heard.0.concat(), completion.text, "what was streamed is the text");
        Ok(completion)
    }

    /// The text of an answer to a plain question.
    pub(crate) async fn text(&self) -> String {
        self.ask(&question()).await.unwrap().text
    }

    /// The error of a call that must fail.
    pub(crate) async fn fails(&self) -> LlmError {
        self.ask(&question()).await.unwrap_err()
    }

    pub(crate) fn bodies(&self) -> Vec<Value> {
        self.server.requests().into_iter().map(|Seen { body, .. }| body).collect()
    }
}

pub(crate) fn endpoint(base_url: &str) -> Endpoint {
    let long = Duration::from_secs(60);
    Endpoint {
        provider: "test".to_owned(),
        model: "model-1".to_owned(),
        base_url: base_url.to_owned(),
        key: Some(SecretValue::new(KEY.to_owned())),
        patience: Timeouts { connect: long, first_token: long, next_token: long, total: long },
        schema: Support::Probe,
        tools: Support::Probe,
        vision: Support::Probe,
        audio: false,
        max_response: 1 << 20,
    }
}

pub(crate) fn model(format: Format, endpoint: Endpoint) -> Result<Box<dyn Model>, LlmError> {
    Ok(match format {
        Format::OpenAi => Box::new(OpenAi::new(endpoint)?),
        Format::Anthropic => Box::new(Anthropic::new(endpoint)?),
    })
}

pub(crate) fn question() -> Request {
    Request::new(Role::Worker, "You answer.".to_owned(), "What is new?".to_owned())
}

pub(crate) fn with_tools() -> Request {
    let parameters = json!({ "type": "object", "properties": { "command": { "type": "string" } } });
    let exec = ToolSpec { name: "exec".to_owned(), description: "Runs a command".to_owned(), parameters };
    Request { role: Role::Actor, tools: vec![exec], ..question() }
}

pub(crate) fn with_schema() -> Request {
    let schema = json!({ "type": "object", "properties": { "status": { "type": "string" } } });
    Request { role: Role::Reviewer, answer: Answer::Json(schema.into()), ..question() }
}

/// The message of a retryable error.
#[track_caller]
pub(crate) fn retryable(error: LlmError) -> String {
    match error {
        LlmError::Unavailable { message, retryable: true, model, .. } if model == "test:model-1" => message,
        other => panic!("{other:?}"),
    }
}

/// The message of an error that a retry would not fix.
#[track_caller]
pub(crate) fn unusable(error: LlmError) -> String {
    match error {
        LlmError::Unavailable { message, retryable: false, .. } => message,
        other => panic!("{other:?}"),
    }
}

/// The message of a refusal.
#[track_caller]
pub(crate) fn refused(error: LlmError) -> String {
    match error {
        LlmError::Refused { message, model } if model == "test:model-1" => message,
        other => panic!("{other:?}"),
    }
}
