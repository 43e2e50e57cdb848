//! `POST /v1/chat/completions`.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::sse::Event;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::chore::Chore;
use super::content::{Content, Speaker};
use super::conversation::{self, Admission};
use super::models;
use super::prompt::{self, Caller, Lines, Prompt};
use super::stream::{Form, Streamed, stream};
use super::turn::{Piece, Turn, TurnSlot};
use crate::App;
use crate::auth::Who;
use crate::document::routes;
use crate::error::ApiError;
use crate::error::openai::ErrorBody;
use crate::reply::TurnAnswer;
use crate::wire::{Either, LargeBody};
use kiso_plan::limits::Usage;

routes! {
    /// OpenAI's API: answer a conversation
    /// The last message is sent to a session, which the id of the chat or all earlier messages determine.
    POST "/v1/chat/completions" Chat => complete,
        200 "The answer, or with `stream` the events that lead to it",
        404 "The model does not exist",
        409 "The Idempotency-Key was used for another request, or the run waits for a person",
        413 "The body is larger than 16 MiB, or the message is too large",
        429 "Too many messages are waiting, or too many wrong tokens came from this address; Retry-After says when to try again",
        503 "The daemon is shutting down, or too many requests are waited for",
        507 "There are too many sessions, the files do not fit, or the disk is full; nothing was saved";
}

/// Prefix of a completion's id.
const ID: &str = "chatcmpl-";

/// A conversation to answer. Members that are not listed here are ignored: kiso has its own models, tools and settings.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ChatCompletionIn {
    /// `kiso`, `kiso/SESSION` or `kiso/PILL`.
    model: String,
    /// At most 4,000; the last one must be from the user.
    #[schemars(length(min = 1, max = 4_000))]
    messages: Vec<ChatMessage>,
    /// Send the answer as events.
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    /// May contain the id of the chat as `chat_id`, if no header does.
    #[schemars(extend("maxProperties" = 16))]
    metadata: Option<Map<String, Value>>,
    /// The end user of the program; conversations of different users are never merged.
    #[schemars(length(min = 1, max = 256))]
    user: Option<String>,
    /// The newer name for `user`.
    #[schemars(length(min = 1, max = 256))]
    safety_identifier: Option<String>,
    /// Only 1.
    #[schemars(range(min = 1, max = 1))]
    n: Option<u32>,
    /// Only `auto` and `none`.
    tool_choice: Option<Value>,
    /// Only `{"type": "text"}`.
    response_format: Option<Value>,
    /// Only false.
    logprobs: Option<bool>,
}

/// A message of the conversation.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ChatMessage {
    role: Speaker,
    content: Option<Content>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct StreamOptions {
    /// Report the usage in the last event.
    include_usage: Option<bool>,
}

/// An answer.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ChatCompletion {
    id: String,
    #[schemars(extend("const" = "chat.completion"))]
    object: &'static str,
    /// Seconds since 1970 (UTC).
    created: i64,
    model: String,
    choices: [ChatChoice; 1],
    usage: ChatUsage,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ChatChoice {
    index: u32,
    message: ChatAnswer,
    #[schemars(extend("const" = "stop"))]
    finish_reason: &'static str,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ChatAnswer {
    #[schemars(extend("const" = "assistant"))]
    role: &'static str,
    /// Markdown.
    content: String,
    /// Activity of the run; absent without a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
}

/// Tokens of all model calls of the run.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub(crate) struct ChatUsage {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
}

impl From<Usage> for ChatUsage {
    fn from(usage: Usage) -> ChatUsage {
        let (prompt_tokens, completion_tokens) = (usage.input_tokens, usage.output_tokens);
        ChatUsage { prompt_tokens, completion_tokens, total_tokens: prompt_tokens.saturating_add(completion_tokens) }
    }
}

type Completed = Either<(HeaderMap, Json<ChatCompletion>), (HeaderMap, Streamed)>;

pub(crate) async fn complete(
    who: Who,
    State(app): State<App>,
    headers: HeaderMap,
    LargeBody(given): LargeBody<ChatCompletionIn>,
) -> Result<Completed, ApiError> {
    let (streams, counts) = (given.stream == Some(true), given.stream_options.as_ref().and_then(|o| o.include_usage));
    let prompt = read(&app, who.clone(), &headers, given).await?;
    let slot = TurnSlot::take(&app)?;
    let admission = match Chore::detect(&prompt.lines) {
        Some(chore) => conversation::answer_chore(&app, &prompt, chore, ID).await?,
        None => conversation::admit(&app, prompt, ID).await?,
    };
    let told = session_header(&admission);
    let mut turn = Turn::new(&app, who, &admission, streams, slot).await?;
    let (id, created, model) = (admission.request.id, admission.request.at_ms / 1_000, admission.request.model);
    if streams {
        let form = Chunks { id, created, model, counts: counts == Some(true) };
        return Ok(Either::B((told, stream(turn, form))));
    }
    let (thoughts, answer) = turn.whole().await?;
    let message = ChatAnswer { role: "assistant", content: answer.text, reasoning_content: thoughts };
    let choices = [ChatChoice { index: 0, message, finish_reason: "stop" }];
    let usage = answer.usage.into();
    Ok(Either::A((told, Json(ChatCompletion { id, object: "chat.completion", created, model, choices, usage }))))
}

async fn read(app: &App, who: Who, headers: &HeaderMap, given: ChatCompletionIn) -> Result<Prompt, ApiError> {
    if given.n.is_some_and(|n| n != 1) {
        return Err(prompt::unsupported("n", "there is one answer"));
    }
    if given.logprobs == Some(true) {
        return Err(prompt::unsupported("logprobs", "an answer is made by several model calls"));
    }
    prompt::check_tool_choice(given.tool_choice.as_ref())?;
    prompt::check_form(given.response_format.as_ref(), "response_format")?;
    let model = models::find(app, &who, &given.model).await?;
    let person = given.user.as_deref().or(given.safety_identifier.as_deref());
    let caller = Caller::new(who, person)?;
    let metadata = prompt::metadata(given.metadata)?;
    let mut lines = Lines::default();
    for (at, message) in given.messages.into_iter().enumerate() {
        lines.add(message.role, message.content, &format!("messages[{at}]"))?;
    }
    lines.close("messages")?;
    Ok(Prompt {
        model,
        model_name: given.model,
        caller,
        chat: prompt::chat_id(headers, &metadata)?,
        key: prompt::idempotency_key(headers)?,
        previous: None,
        metadata,
        stored: false,
        instructions: lines.instructions,
        lines: lines.lines,
        asked: lines.asked,
        files: lines.files,
    })
}

/// Returns the headers with the session of the conversation.
pub(crate) fn session_header(admission: &Admission) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let name = admission.request.session.as_ref().and_then(|session| HeaderValue::from_str(session.as_str()).ok());
    headers.extend(name.map(|name| (HeaderName::from_static("x-kiso-session"), name)));
    headers
}

/// The answer as chunks.
struct Chunks {
    id: String,
    created: i64,
    model: String,
    /// Whether the last chunk reports the usage.
    counts: bool,
}

impl Chunks {
    fn chunk(&self, delta: Value, finish_reason: Option<&str>) -> Event {
        self.event(json!([{ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason }]), None)
    }

    fn event(&self, choices: Value, usage: Option<ChatUsage>) -> Event {
        let mut chunk = json!({
            "id": self.id, "object": "chat.completion.chunk", "created": self.created, "model": self.model,
            "choices": choices,
        });
        if self.counts {
            chunk["usage"] = json!(usage);
        }
        Event::default().data(chunk.to_string())
    }

    fn end(&self, answer: &TurnAnswer) -> Vec<Event> {
        let mut events = vec![self.chunk(json!({}), Some("stop"))];
        if self.counts {
            events.push(self.event(json!([]), Some(answer.usage.into())));
        }
        events.push(Event::default().data("[DONE]"));
        events
    }
}

impl Form for Chunks {
    fn begin(&mut self) -> Vec<Event> {
        vec![self.chunk(json!({ "role": "assistant", "content": "" }), None)]
    }

    fn say(&mut self, piece: Piece) -> Vec<Event> {
        match piece {
            Piece::Thought(text) => vec![self.chunk(json!({ "reasoning_content": text }), None)],
            Piece::Text(text) => vec![self.chunk(json!({ "content": text }), None)],
            Piece::End(answer) => self.end(&answer),
            Piece::Failed(error) => vec![Event::default().data(json!(ErrorBody::from_error(&error)).to_string())],
        }
    }
}
