//! Models: a trait and its implementations.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

mod answering;
pub mod anthropic;
pub mod breaker;
pub mod catalog;
pub mod chain;
mod draft;
pub mod embed;
pub mod endpoint;
pub mod estimate;
mod home_slots;
mod http;
pub mod openai;
pub mod price;
pub mod probe;
mod quotes;
pub mod reflex;
pub mod schema;
pub mod scripted;
pub mod slots;
mod text_calls;
pub mod time;
pub mod transcribe;
pub mod trouble;
mod turns;
pub mod unready;
mod vision;

use kiso_base::role::Role;
use kiso_plan::call::ToolCall;
use kiso_plan::limits::Usage;
use kiso_plan::picture::Picture;
use kiso_plan::prompt::{Piece, Pieces};

/// One call of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    pub role: Role,
    /// The role's prompt; the only part with the administrator's authority.
    pub system: String,
    /// The pieces as text, except for those in `apart`. Each one from outside is fenced.
    pub user: String,
    /// The same pieces for a model that reads fields (`reflex`); they contain nothing that is not in `user` or `turns`.
    pub pieces: Pieces,
    /// The pieces that are in `turns`.
    pub apart: &'static [Piece],
    /// The messages after the user part: the session so far, calls, their results, notes. Oldest first.
    pub turns: Vec<Turn>,
    /// How many of the first turns are earlier messages, which may be dropped if there is not enough room.
    pub spare_turns: usize,
    /// Tools that may be called; empty for most roles.
    pub tools: Vec<ToolSpec>,
    pub tool_choice: ToolChoice,
    pub answer: Answer,
    /// `answer` with all limits from the prompt, for a server that makes a grammar of it and does not count it as part of the
    /// prompt.
    pub grammar: Option<Arc<Value>>,
    /// Whether the model has a small window or little room for an answer: then all texts and lists in the answer's form have
    /// maximum lengths, so that it ends before its limit.
    pub short: bool,
    /// 0.0 to 2.0; `None` leaves it to the provider.
    pub temperature: Option<f32>,
    /// Maximum tokens of the answer.
    pub max_tokens: u32,
    pub priority: Priority,
    /// An id that is shared by requests with the same beginning, by which a provider finds its cached prompt. Empty if no other
    /// request follows.
    pub cache_key: String,
}

impl Request {
    /// Creates an interactive call for free text, without tools.
    pub fn new(role: Role, system: String, user: String) -> Self {
        Self {
            role,
            system,
            user,
            pieces: Pieces::default(),
            apart: &[],
            turns: Vec::new(),
            spare_turns: 0,
            tools: Vec::new(),
            tool_choice: ToolChoice::Auto,
            answer: Answer::Text,
            grammar: None,
            short: false,
            temperature: None,
            max_tokens: 2_048,
            priority: Priority::Interactive,
            cache_key: String::new(),
        }
    }

    /// Returns its pictures and recordings.
    pub fn images(&self) -> impl Iterator<Item = &Image> {
        self.turns.iter().flat_map(|turn| match turn {
            Turn::Pictures(images) => images.as_slice(),
            _ => &[],
        })
    }
}

/// The required form of the answer. The prompt contains it, too, for providers that cannot enforce it.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Answer {
    #[default]
    Text,
    /// JSON that is valid for this JSON Schema, which has the role's name.
    Json(Arc<Value>),
}

/// Whether tools may be called.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToolChoice {
    #[default]
    Auto,
    /// They are listed, because earlier requests listed them, but none may be called.
    None,
}

/// Who waits for a call. A free slot goes to the first waiter of the highest priority.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// Titles, summaries, memory: nobody is waiting.
    Background,
    Subagent,
    /// A person is waiting.
    #[default]
    Interactive,
}

/// A tool in the form that a model sees.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// Lower-case letters, digits, `_` and `-`, at most 64: all providers accept these.
    pub name: String,
    pub description: String,
    /// The JSON Schema of an object.
    pub parameters: Value,
}

/// A message after the user part.
#[derive(Debug, Clone, PartialEq)]
pub enum Turn {
    /// A person's own text.
    User(String),
    /// An answer of the model, in this call's conversation or to a person.
    Assistant { text: String, calls: Vec<ToolCall> },
    /// The result of the call with this id.
    Tool { id: String, name: String, text: String },
    /// A text of the host for the model, such as a reflection; sent as a user message.
    Note(String),
    /// Pictures of the previous turn, sent as parts of a user message.
    Pictures(Vec<Image>),
}

/// A picture in a request.
#[derive(Debug, Clone, PartialEq)]
pub struct Image {
    pub picture: Picture,
    /// Its bytes in base64; `None` before they are loaded, and if they are no longer stored.
    pub content: Option<Arc<str>>,
    /// Another model's description, for a model that does not get pictures.
    pub described: Option<String>,
    /// Whether the request already contains the same picture.
    pub repeats: bool,
}

impl Image {
    /// Creates an image that is not loaded yet.
    pub fn from_picture(picture: &Picture) -> Self {
        Self { picture: picture.clone(), content: None, described: None, repeats: false }
    }

    /// Returns its caption.
    pub(crate) fn caption(&self) -> String {
        let kind = if self.picture.is_sound() { "recording" } else { "picture" };
        format!("[{kind}: {}]", self.picture.title())
    }

    /// Returns the text that replaces it if it is not sent.
    fn words(&self, vision: vision::Vision) -> String {
        let title = self.picture.title();
        if self.picture.is_sound() {
            return match &self.described {
                _ if self.repeats => format!("[recording: {title}, which stands above]"),
                Some(words) => format!("[recording: {title}. You cannot hear it; it was written down:]\n{words}"),
                None => format!("[recording: {title}. You cannot hear it, so you do not know what is said on it]"),
            };
        }
        match &self.described {
            _ if self.repeats => format!("[picture: {title}, which stands above]"),
            _ if self.content.is_none() => {
                format!("[picture: {title}, not kept any more; look at the file again if it matters]")
            }
            Some(words) => format!("[picture: {title}. You cannot see pictures; another model describes it:]\n{words}"),
            None if vision.known() == Some(true) => format!("[picture: {title}, which your provider refused]"),
            None => format!("[picture: {title}. {BLIND}]"),
        }
    }
}

/// The note for a model that does not get pictures.
const BLIND: &str = "You cannot see pictures, so you do not know what is on it: say so where it matters, and that `[models] eyes` in \
    config.toml names a model that describes them";

/// The answer of a model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Completion {
    pub text: String,
    /// Tool calls that the model requests. Their ids are unique within the completion, and come from the model or, if missing,
    /// from the host.
    pub calls: Vec<ToolCall>,
    /// Whether the answer was cut off inside of the last of `calls`.
    pub cut: bool,
    pub stop: Stop,
    pub usage: Usage,
    /// Whether the provider counted the tokens of `usage`; otherwise they are estimated.
    pub counted: bool,
    /// How the form of the answer was finally requested.
    pub form: Form,
    /// The schema in the request that was answered, if any.
    pub schema: Option<Arc<Value>>,
    /// How tool calls were requested.
    pub calling: Calling,
    /// The `provider:model` that answered; not the requested one if a fallback answered.
    pub model: String,
    /// Whether the request had pictures that were neither sent nor described.
    pub blind: bool,
}

/// How the form of [`Request::answer`] was requested from a provider.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    /// Only by the prompt.
    #[default]
    Prompt,
    /// As any JSON object.
    Object,
    /// By its schema.
    Schema,
}

/// How a model calls tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Calling {
    /// By the format's own tool calls.
    #[default]
    Native,
    /// As an answer in JSON, because its server or its template does not support tools.
    Json,
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    #[default]
    End,
    /// Cut off at `max_tokens`.
    Length,
    /// It only repeated itself and was ended.
    Repetition,
    /// It waits for the results of its calls.
    Calls,
    /// The provider withheld content.
    Filter,
}

/// Receives an answer while it arrives.
pub trait Sink: Send {
    /// Receives the next piece of text.
    fn text(&mut self, piece: &str);

    /// Receives the next piece of the model's reasoning before its answer.
    fn thought(&mut self, _piece: &str) {}

    /// Discards everything received so far: the answer broke off, and may start again, perhaps from another model.
    fn restart(&mut self) {}

    /// Receives the usage of an answer that broke off or was cancelled. No completion includes it.
    fn spent(&mut self, _usage: Usage) {}
}

impl<F: FnMut(&str) + Send> Sink for F {
    fn text(&mut self, piece: &str) {
        self(piece);
    }
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LlmError {
    /// The provider could not be reached or gave no valid answer. A run gets this after all retries.
    #[error("the model {model} did not answer: {message}")]
    Unavailable {
        model: String,
        message: String,
        /// Whether the same call may succeed later.
        retryable: bool,
        /// The wait that the provider asked for.
        retry_after: Option<Duration>,
    },
    /// The provider refused the request: key, quota, content.
    #[error("the model {model} refused the request: {message}")]
    Refused { model: String, message: String },
    /// It was not called, because its key is missing.
    #[error("the model {model} cannot be called: {message}")]
    Unready { model: String, message: String },
    /// A scripted model has no answer for this call.
    #[error("{0}")]
    Script(String),
}

/// The future that [`Model::complete`] returns; boxed so that models can be chosen at run time.
pub type Completing<'a> = Pin<Box<dyn Future<Output = Result<Completion, LlmError>> + Send + 'a>>;

/// Something that completes a prompt.
pub trait Model: Send + Sync {
    /// `provider:model`, as in `config.toml`.
    fn name(&self) -> &str;

    /// Whether it accepts pictures; `None` while unknown.
    fn sees(&self) -> Option<bool> {
        None
    }

    /// Whether it accepts recordings, according to the configuration.
    fn hears(&self) -> bool {
        false
    }

    /// Stores the result of a test with a picture, unless the configuration says whether the model accepts pictures. Answers to
    /// later requests do not change it.
    fn learn_vision(&self, _sees: bool) {}

    /// Answers `request`. `sink` receives each piece of text as it arrives, in order; the pieces since the last [`Sink::restart`]
    /// are the completion's text. Dropping the future cancels the call.
    fn complete<'a>(&'a self, request: &'a Request, sink: &'a mut dyn Sink) -> Completing<'a>;
}
