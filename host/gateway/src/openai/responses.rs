//! `POST /v1/responses`, and reading, deleting and cancelling responses.

mod events;
mod shape;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use self::events::ResponseEvents;
use self::shape::Response;
use super::chat::session_header;
use super::chore::Chore;
use super::content::{Content, Speaker};
use super::conversation;
use super::models;
use super::prompt::{self, Caller, Lines, Prompt};
use super::stream::{Streamed, stream};
use super::turn::{self, Turn, TurnSlot};
use crate::App;
use crate::auth::Who;
use crate::document::routes;
use crate::error::ApiError;
use crate::wire::{Either, JsonResult, LargeBody, Path};
use kiso_store::store::{ChatRequest, JobState, StoreError};

routes! {
    /// OpenAI's API: answer a conversation, or continue an earlier response
    POST "/v1/responses" Chat => create,
        200 "The response, or with `stream` the events that lead to it; with `background`, it is not answered yet",
        404 "The model or the earlier response does not exist",
        409 "The Idempotency-Key was used for another request, or the run waits for a person",
        413 "The body is larger than 16 MiB, or the message is too large",
        429 "Too many messages are waiting, or too many wrong tokens came from this address; Retry-After says when to try again",
        503 "The daemon is shutting down, or too many requests are waited for",
        507 "There are too many sessions, the files do not fit, or the disk is full; nothing was saved";
    /// OpenAI's API: the state of a response
    GET "/v1/responses/{id}" Chat => show, 200 "The response in its current state", 404 "The token has no response of this id";
    /// OpenAI's API: forget a response
    /// The session keeps its messages.
    DELETE "/v1/responses/{id}" Chat => delete, 200 "The response is forgotten", 404 "The token has no response of this id";
    /// OpenAI's API: cancel the work on a response
    /// A response that has ended stays unchanged.
    POST "/v1/responses/{id}/cancel" Chat => cancel,
        200 "The response in its current state; it is stopping",
        404 "The token has no response of this id",
        409 "The response waits in the queue of its session and has not begun";
}

/// Prefix of a response's id.
const ID: &str = "resp_";

/// A conversation to answer. Members that are not listed here are ignored: kiso has its own models, tools and settings.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ResponseIn {
    /// `kiso`, `kiso/SESSION` or `kiso/PILL`.
    model: String,
    input: Input,
    /// The program's instructions for the model.
    instructions: Option<String>,
    /// The earlier response to continue.
    previous_response_id: Option<String>,
    /// The program's id of the conversation, or `{"id": NAME}`.
    conversation: Option<ConversationName>,
    /// Send the answer as events.
    stream: Option<bool>,
    /// Respond before the work is done; `GET /v1/responses/ID` returns its state.
    background: Option<bool>,
    /// Whether the response can be retrieved later; true by default.
    store: Option<bool>,
    #[schemars(extend("maxProperties" = 16))]
    metadata: Option<Map<String, Value>>,
    /// The end user of the program; conversations of different users are never merged.
    #[schemars(length(min = 1, max = 256))]
    user: Option<String>,
    /// The newer name for `user`.
    #[schemars(length(min = 1, max = 256))]
    safety_identifier: Option<String>,
    /// Only `auto` and `none`.
    tool_choice: Option<Value>,
    /// Only `{"format": {"type": "text"}}`.
    text: Option<TextForm>,
}

/// A text, or the whole conversation.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "ResponseInput")]
pub(crate) enum Input {
    Text(String),
    #[schemars(with = "Vec<InputItem>")]
    Items(Vec<Value>),
}

/// A message, or an action of a model.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "ResponseInputItem")]
pub(crate) struct InputItem {
    /// `message` by default; thoughts are ignored.
    #[serde(rename = "type")]
    kind: Option<String>,
    role: Option<Speaker>,
    content: Option<Content>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum ConversationName {
    Name(String),
    Object { id: String },
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "ResponseTextForm")]
pub(crate) struct TextForm {
    format: Option<Value>,
}

/// A forgotten response.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "DeletedResponse")]
pub(crate) struct Deleted {
    id: String,
    #[schemars(extend("const" = "response"))]
    object: &'static str,
    deleted: bool,
}

type CreatedResponse = Either<(HeaderMap, Json<Response>), (HeaderMap, Streamed)>;

pub(crate) async fn create(
    who: Who,
    State(app): State<App>,
    headers: HeaderMap,
    LargeBody(given): LargeBody<ResponseIn>,
) -> Result<CreatedResponse, ApiError> {
    let (streams, waits) = (given.stream == Some(true), given.background != Some(true));
    let prompt = read(&app, who.clone(), &headers, given).await?;
    if !waits && !prompt.stored {
        return Err(prompt::unsupported("background", "a response that is not stored cannot be asked for later"));
    }
    let slot = TurnSlot::take(&app)?;
    let admission = match Chore::detect(&prompt.lines) {
        Some(chore) if prompt.previous.is_none() => conversation::answer_chore(&app, &prompt, chore, ID).await?,
        _ => conversation::admit(&app, prompt, ID).await?,
    };
    let told = session_header(&admission);
    if !waits && !streams {
        let standing = turn::standing(&app, &admission.request).await?;
        return Ok(Either::A((told, Json(Response::new(&admission.request, standing, None)))));
    }
    let mut turn = Turn::new(&app, who, &admission, streams, slot).await?;
    if streams {
        return Ok(Either::B((told, stream(turn, ResponseEvents::new(admission.request)))));
    }
    let (thoughts, answer) = turn.whole().await?;
    Ok(Either::A((told, Json(Response::new(&admission.request, Ok(answer), thoughts)))))
}

pub(crate) async fn show(who: Who, State(app): State<App>, Path(id): Path<String>) -> JsonResult<Response> {
    let request = find(&app, who, &id).await?;
    let standing: Result<_, JobState> = turn::standing(&app, &request).await?;
    let thoughts = match &standing {
        Ok(answer) => turn::thoughts(&app, answer.run.as_ref()).await?,
        Err(_) => None,
    };
    Ok(Json(Response::new(&request, standing, thoughts)))
}

pub(crate) async fn delete(who: Who, State(app): State<App>, Path(id): Path<String>) -> JsonResult<Deleted> {
    let (token, of) = (Caller::new(who, None)?.token, id.clone());
    match app.0.drive.store.write(move |tx| tx.hide_chat_request(&token, &of)).await? {
        true => Ok(Json(Deleted { id, object: "response", deleted: true })),
        false => Err(missing(&id)),
    }
}

pub(crate) async fn cancel(who: Who, State(app): State<App>, Path(id): Path<String>) -> JsonResult<Response> {
    let request = find(&app, who.clone(), &id).await?;
    let message = request.message;
    let job = app.0.drive.store.read(move |view| message.map_or(Ok(None), |message| view.job(message))).await?;
    if let Some(job) = job.filter(|job| job.state.is_open()) {
        let Some(run) = job.run else {
            let message = format!("response {id:?} waits behind something else in its session and has not begun");
            return Err(ApiError::new(StatusCode::CONFLICT, "not_begun", message).hint("try again in a moment"));
        };
        tracing::info!(%run, by = who.name(), "a response is cancelled");
        match app.0.drive.store.write(move |tx| tx.request_cancel(&run)).await {
            // The response has ended in the meantime.
            Ok(()) | Err(StoreError::Ended { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    show(who, State(app), Path(id)).await
}

async fn find(app: &App, who: Who, id: &str) -> Result<ChatRequest, ApiError> {
    let (token, of) = (Caller::new(who, None)?.token, id.to_owned());
    let found = app.0.drive.store.read(move |view| view.chat_request(&token, &of)).await?;
    found.filter(|request| request.stored).ok_or_else(|| missing(id))
}

fn missing(id: &str) -> ApiError {
    let id: String = id.chars().take(80).collect();
    ApiError::not_found(format!("there is no response {id:?}"))
        .hint("it was never stored, was deleted, or is another token's")
}

async fn read(app: &App, who: Who, headers: &HeaderMap, given: ResponseIn) -> Result<Prompt, ApiError> {
    prompt::check_tool_choice(given.tool_choice.as_ref())?;
    prompt::check_form(given.text.as_ref().and_then(|text| text.format.as_ref()), "text.format")?;
    if given.previous_response_id.is_some() && given.conversation.is_some() {
        return Err(prompt::unsupported("conversation", "`previous_response_id` says already what it goes on from"));
    }
    let model = models::find(app, &who, &given.model).await?;
    let person = given.user.as_deref().or(given.safety_identifier.as_deref());
    let caller = Caller::new(who, person)?;
    let metadata = prompt::metadata(given.metadata)?;
    let mut lines = Lines::default();
    if let Some(instructions) = &given.instructions {
        lines.instruct(instructions);
    }
    match given.input {
        Input::Text(text) => lines.add(Speaker::User, Some(Content::Text(text)), "input")?,
        Input::Items(items) => add_items(&mut lines, items)?,
    }
    lines.close("input")?;
    let conversation = match given.conversation {
        Some(ConversationName::Name(name) | ConversationName::Object { id: name }) => {
            Some(prompt::id(&name, "conversation")?)
        }
        None => prompt::chat_id(headers, &metadata)?,
    };
    Ok(Prompt {
        model,
        model_name: given.model,
        caller,
        chat: conversation,
        key: prompt::idempotency_key(headers)?,
        previous: given.previous_response_id,
        metadata,
        stored: given.store != Some(false),
        instructions: lines.instructions,
        lines: lines.lines,
        asked: lines.asked,
        files: lines.files,
    })
}

fn add_items(lines: &mut Lines, items: Vec<Value>) -> Result<(), ApiError> {
    for (at, item) in items.into_iter().enumerate() {
        let param = format!("input[{at}]");
        let wrong =
            |why: String| ApiError::bad_request(format!("`{param}` is not what is expected: {why}")).param(&param);
        let item: InputItem = serde_json::from_value(item).map_err(|error| wrong(error.to_string()))?;
        match (item.kind.as_deref(), item.role) {
            (None | Some("message"), Some(role)) => lines.add(role, item.content, &param)?,
            (None | Some("message"), None) => return Err(wrong("a message has a `role`".to_owned())),
            (Some("reasoning"), _) => {}
            (Some(kind), _) => {
                let kind: String = kind.chars().take(80).collect();
                return Err(wrong(format!("items of the type {kind:?} are not supported")));
            }
        }
    }
    Ok(())
}
