//! The response object of OpenAI's API.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::reply::TurnAnswer;
use kiso_store::store::{ChatRequest, JobState};

/// A response. Members for features that kiso does not have contain their default values.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Response {
    pub id: String,
    #[schemars(extend("const" = "response"))]
    pub object: &'static str,
    /// Seconds since 1970 (UTC).
    pub created_at: i64,
    pub status: ResponseStatus,
    /// The error of a failed or cancelled run; the output has details.
    pub error: Option<ResponseError>,
    #[schemars(extend("type" = "null"))]
    pub incomplete_details: Option<String>,
    #[schemars(extend("type" = "null"))]
    pub instructions: Option<String>,
    pub metadata: Map<String, Value>,
    pub model: String,
    /// Activity of the run, and the answer.
    pub output: Vec<Output>,
    pub parallel_tool_calls: bool,
    pub previous_response_id: Option<String>,
    pub store: bool,
    #[schemars(extend("type" = "null"))]
    pub temperature: Option<String>,
    #[schemars(extend("const" = "none"))]
    pub tool_choice: &'static str,
    #[schemars(extend("maxItems" = 0))]
    pub tools: Vec<Value>,
    #[schemars(extend("type" = "null"))]
    pub top_p: Option<String>,
    /// Null until the response is complete.
    pub usage: Option<ResponseUsage>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ResponseStatus {
    Queued,
    InProgress,
    Completed,
    Failed,
    Cancelled,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct ResponseError {
    #[schemars(extend("const" = "server_error"))]
    code: &'static str,
    message: String,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schemars(rename = "ResponseOutput")]
pub(crate) enum Output {
    /// Activity of the run.
    Reasoning { id: String, summary: Vec<Summary> },
    Message {
        id: String,
        #[schemars(extend("const" = "assistant"))]
        role: &'static str,
        #[schemars(extend("enum" = ["in_progress", "completed"]))]
        status: &'static str,
        content: Vec<OutputText>,
    },
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "ResponseSummary")]
pub(crate) struct Summary {
    #[serde(rename = "type")]
    #[schemars(extend("const" = "summary_text"))]
    pub kind: &'static str,
    pub text: String,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "ResponseOutputText")]
pub(crate) struct OutputText {
    #[serde(rename = "type")]
    #[schemars(extend("const" = "output_text"))]
    pub kind: &'static str,
    /// Markdown.
    pub text: String,
    #[schemars(extend("maxItems" = 0))]
    pub annotations: Vec<Value>,
    #[schemars(extend("maxItems" = 0))]
    pub logprobs: Vec<Value>,
}

/// Tokens of all model calls of the run.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct ResponseUsage {
    input_tokens: u64,
    input_tokens_details: InputTokens,
    output_tokens: u64,
    output_tokens_details: OutputTokens,
    total_tokens: u64,
}

/// Not counted; always 0.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "ResponseInputTokens")]
struct InputTokens {
    cached_tokens: u64,
    cache_write_tokens: u64,
}

/// Not counted; always 0.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "ResponseOutputTokens")]
struct OutputTokens {
    reasoning_tokens: u64,
}

impl Response {
    /// Builds the response for the current state of its message, with the activity of the run if it is known.
    pub(crate) fn new(
        request: &ChatRequest,
        standing: Result<TurnAnswer, JobState>,
        thoughts: Option<String>,
    ) -> Response {
        let status = match &standing {
            Ok(TurnAnswer { state: JobState::Failed, .. }) => ResponseStatus::Failed,
            Ok(TurnAnswer { state: JobState::Cancelled, .. }) => ResponseStatus::Cancelled,
            Ok(_) => ResponseStatus::Completed,
            Err(JobState::Queued) => ResponseStatus::Queued,
            Err(_) => ResponseStatus::InProgress,
        };
        let mut output: Vec<Output> = thoughts.map(|text| reasoning(&request.id, text)).into_iter().collect();
        let (mut error, mut usage) = (None, None);
        if let Ok(answer) = standing {
            if status != ResponseStatus::Completed {
                error = Some(ResponseError { code: "server_error", message: answer.text.clone() });
            }
            let (input_tokens, output_tokens) = (answer.usage.input_tokens, answer.usage.output_tokens);
            usage = Some(ResponseUsage {
                input_tokens,
                input_tokens_details: InputTokens { cached_tokens: 0, cache_write_tokens: 0 },
                output_tokens,
                output_tokens_details: OutputTokens { reasoning_tokens: 0 },
                total_tokens: input_tokens.saturating_add(output_tokens),
            });
            output.push(message(&request.id, Some(answer.text)));
        }
        Response {
            id: request.id.clone(),
            object: "response",
            created_at: request.at_ms / 1_000,
            status,
            error,
            incomplete_details: None,
            instructions: None,
            metadata: serde_json::from_str(&request.metadata).unwrap_or_default(),
            model: request.model.clone(),
            output,
            parallel_tool_calls: false,
            previous_response_id: request.previous.clone(),
            store: request.stored,
            temperature: None,
            tool_choice: "none",
            tools: Vec::new(),
            top_p: None,
            usage,
        }
    }
}

/// Returns the item with the activity of the run, for the response with this id.
pub(super) fn reasoning(id: &str, text: String) -> Output {
    let summary = Summary { kind: "summary_text", text };
    Output::Reasoning { id: item_id("rs", id), summary: Vec::from([summary]) }
}

/// Returns the item with the answer; in progress without a text.
pub(super) fn message(id: &str, text: Option<String>) -> Output {
    let status = if text.is_some() { "completed" } else { "in_progress" };
    let content = text.map(output_text).into_iter().collect();
    Output::Message { id: item_id("msg", id), role: "assistant", status, content }
}

pub(super) fn output_text(text: String) -> OutputText {
    OutputText { kind: "output_text", text, annotations: Vec::new(), logprobs: Vec::new() }
}

/// Returns the id of an item: the response's id with another prefix.
pub(super) fn item_id(kind: &str, id: &str) -> String {
    format!("{kind}_{}", id.split_once('_').map_or(id, |(_, rest)| rest))
}
