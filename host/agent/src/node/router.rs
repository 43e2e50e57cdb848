//! The router: decides the effort for a message, and the tools.

use crate::context::fit_text;
use kiso_base::role::Role;
use kiso_graph::plan::Secrets;
use kiso_graph::route;
use kiso_graph::route::{RoutedBy, Routing};
use kiso_graph::step::StepResult;
use kiso_llm::Answer;
use kiso_llm::Completion;
use kiso_llm::Model;
use kiso_llm::Request;
use kiso_plan::prompt::{ChatMessage, FileCard, Pieces};
use serde_json::json;
use std::sync::Arc;

/// Number of earlier messages for the router: the last question and its answer.
const TAIL: usize = 2;

/// Maximum size of each in tokens: enough to understand what "it" refers to.
const TAIL_TOKENS: usize = 100;

/// Maximum number of file names for the router.
const FILES: usize = 20;

/// The outcome of the call.
#[derive(Debug, Clone, PartialEq)]
pub struct RoutingResult {
    pub result: StepResult,
    /// Secrets from the message, which must be in the secret store before the event is committed.
    pub secrets: Secrets,
}

/// Returns the router's prompt. It contains only the last messages, shortened, and the names of the `files`. `known` contains the
/// categories, and the installed Agent Skills.
pub fn request(
    system: &str,
    message: &str,
    said: &[ChatMessage],
    files: &[FileCard],
    known: &Pieces,
    boundary: &str,
) -> Request {
    let last = &said[said.len().saturating_sub(TAIL)..];
    let short = |message: &ChatMessage| ChatMessage { text: fit_text(&message.text, TAIL_TOKENS), ..message.clone() };
    let named = |file: &FileCard| FileCard { columns: None, ..file.clone() };
    let all = Pieces {
        new_message: Some(message.to_owned()),
        tail: Some(last.iter().map(short).collect()),
        environment: Some(files.iter().take(FILES).map(named).collect()),
        ..known.clone()
    };
    super::request(Role::Router, system, &all, boundary)
}

/// Limits the categories in the answer of `request` to `known`.
pub fn limit_categories(mut request: Request, known: &[String]) -> Request {
    if let Answer::Json(schema) = &mut request.answer
        && !known.is_empty()
    {
        Arc::make_mut(schema)["properties"]["categories"]["items"] = json!({ "type": "string", "enum": known });
    }
    request
}

/// Calls the model. An unusable answer is not a failure: the message then gets all tools.
pub async fn call(model: &dyn Model, request: &Request, message: &str, categories: &[String]) -> RoutingResult {
    match model.complete(request, &mut |_: &str| {}).await {
        Ok(completion) => read(&completion, message, categories),
        Err(error) => RoutingResult { result: unknown(message, error.to_string(), None), secrets: Secrets::default() },
    }
}

fn read(completion: &Completion, message: &str, categories: &[String]) -> RoutingResult {
    let call = Some(super::call_of(completion));
    match route::parse(&completion.text, categories, message) {
        Ok((routing, secrets)) => {
            let result = StepResult::Routed {
                routing,
                by: RoutedBy::Router,
                memory: None,
                secrets: secrets.names(),
                trouble: None,
                call,
            };
            RoutingResult { result, secrets }
        }
        Err(unusable) => {
            let wrong = super::violations(completion, &unusable.violations);
            RoutingResult { result: unknown(message, wrong.join("; "), call), secrets: unusable.secrets }
        }
    }
}

fn unknown(message: &str, trouble: String, call: Option<kiso_graph::step::Call>) -> StepResult {
    let routing = Routing::unknown(message);
    let (by, trouble) = (RoutedBy::Default, Some(trouble));
    StepResult::Routed { routing, by, memory: None, secrets: Vec::new(), trouble, call }
}
