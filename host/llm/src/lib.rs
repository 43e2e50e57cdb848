//! Models: one trait, and the implementations beside it.

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
    /// The role's prompt; the only part that speaks with the administrator's voice.
    pub system: String,
    /// The pieces as text, each foreign one fenced, but for those `apart`.
    pub user: String,
    /// The same pieces for a model that reads fields (`reflex`); nothing more than what `user` and `turns` show.
    pub pieces: Pieces,
    /// The pieces that stand in `turns`.
    pub apart: &'static [Piece],
    /// What follows the user part: what was said in the session, calls, their results, notes. Oldest first.
    pub turns: Vec<Turn>,
    /// How many of the first turns are what was said before: those may go where not all have room.
    pub spare_turns: usize,
    /// Tools that may be called; none for most roles.
    pub tools: Vec<ToolSpec>,
    pub tool_choice: ToolChoice,
    pub answer: Answer,
    /// `answer` with all that the prompt says about it, for a server that makes a grammar of it and does not count it as a part of
    /// the prompt.
    pub grammar: Option<Arc<Value>>,
    /// Whether the model has a small window or little room for an answer: then every text and list of the answer's form has a length
    /// with which the answer ends before its limit.
    pub short: bool,
    /// 0.0 to 2.0; `None` leaves it to the provider.
    pub temperature: Option<f32>,
    /// Tokens that the answer may have.
    pub max_tokens: u32,
    pub priority: Priority,
    /// What requests share that begin alike: a provider that keeps what it has read finds it by that. Empty for a request that
    /// no other one follows.
    pub cache_key: String,
}

impl Request {
    /// An interactive call for free text, without tools.
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

    /// The pictures and recordings in it.
    pub fn images(&self) -> impl Iterator<Item = &Image> {
        self.turns.iter().flat_map(|turn| match turn {
            Turn::Pictures(images) => images.as_slice(),
            _ => &[],
        })
    }
}

/// The form that an answer shall have. A provider that cannot enforce it still finds it in the prompt.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Answer {
    #[default]
    Text,
    /// JSON that fits this JSON Schema; its name is the role's.
    Json(Arc<Value>),
}

/// Whether tools may be called.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToolChoice {
    #[default]
    Auto,
    /// They are shown, because the requests before showed them, and none is to be called.
    None,
}

/// Who waits for a call. A slot that gets free goes to the first of the highest kind that waits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// Titles, summaries, memory: nobody waits.
    Background,
    Subagent,
    /// A person waits.
    #[default]
    Interactive,
}

/// A tool as a model sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// Lower-case letters, digits, `_` and `-`, at most 64: what every provider takes.
    pub name: String,
    pub description: String,
    /// JSON Schema of an object.
    pub parameters: Value,
}

/// A message after the user part.
#[derive(Debug, Clone, PartialEq)]
pub enum Turn {
    /// What a person wrote, in their own words.
    User(String),
    /// What the model answered, in this call's conversation or to a person.
    Assistant { text: String, calls: Vec<ToolCall> },
    /// The result of the call with this id.
    Tool { id: String, name: String, text: String },
    /// What the host adds for the model, such as a reflection; sent as a user message.
    Note(String),
    /// Pictures of the turn before, sent as parts of a user message.
    Pictures(Vec<Image>),
}

/// A picture in a request.
#[derive(Debug, Clone, PartialEq)]
pub struct Image {
    pub picture: Picture,
    /// Its bytes in base64; `None` where they are not kept any more, and before they are loaded.
    pub content: Option<Arc<str>>,
    /// What another model said of it, for a model that is not shown pictures.
    pub described: Option<String>,
    /// Whether the same picture stands above in the request.
    pub repeats: bool,
}

impl Image {
    /// One that is not loaded yet.
    pub fn of(picture: &Picture) -> Self {
        Self { picture: picture.clone(), content: None, described: None, repeats: false }
    }

    /// What stands above it.
    pub(crate) fn caption(&self) -> String {
        let kind = if self.picture.is_sound() { "recording" } else { "picture" };
        format!("[{kind}: {}]", self.picture.title())
    }

    /// What stands in its place where it is not shown.
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

/// Said to a model that is not shown pictures.
const BLIND: &str = "You cannot see pictures, so you do not know what is on it: say so where it matters, and that `[models] eyes` in \
    config.toml names a model that describes them";

/// What a model answered.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Completion {
    pub text: String,
    /// Tools that the model wants called. Ids are unique within the completion; the model, or else the host, made them.
    pub calls: Vec<ToolCall>,
    /// Whether the provider ended the answer in the middle of the last of `calls`.
    pub cut: bool,
    pub stop: Stop,
    pub usage: Usage,
    /// Whether the provider counted the tokens of `usage`; otherwise they are estimated.
    pub counted: bool,
    /// How the form of the answer was asked for in the end.
    pub form: Form,
    /// The schema that was sent with the request that was answered, if one was.
    pub schema: Option<Arc<Value>>,
    /// How its calls were asked for.
    pub calling: Calling,
    /// `provider:model` that answered, which is another one than asked for when a fallback took over.
    pub model: String,
    /// Whether the request had pictures that it was not shown, and that nobody had described.
    pub blind: bool,
}

/// How a provider was asked for the form of [`Request::answer`], as far as it takes that.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    /// By the prompt alone.
    #[default]
    Prompt,
    /// As some JSON object.
    Object,
    /// By its schema.
    Schema,
}

/// How a model calls tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Calling {
    /// In the format's own way.
    #[default]
    Native,
    /// In an answer of JSON, because its server or its template knows no tools.
    Json,
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    #[default]
    End,
    /// It was cut off at `max_tokens`.
    Length,
    /// It said the same again and again, and was not listened to any more.
    Repetition,
    /// It waits for the results of its calls.
    Calls,
    /// The provider held content back.
    Filter,
}

/// Hears an answer while it arrives.
pub trait Sink: Send {
    /// The next piece of text.
    fn text(&mut self, piece: &str);

    /// The next piece of what the model thinks before it answers.
    fn thought(&mut self, _piece: &str) {}

    /// What was heard so far is void: the answer broke off, and begins anew, perhaps from another model, or not at all.
    fn restart(&mut self) {}

    /// What was heard and came to nothing, because the answer broke off or nobody waits for it any more, has used this. It
    /// is in no completion's usage.
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
    /// The provider could not be reached or did not answer properly. A run sees this when retries are used up.
    #[error("the model {model} did not answer: {message}")]
    Unavailable {
        model: String,
        message: String,
        /// Whether the same call may succeed later.
        retryable: bool,
        /// What the provider asked to wait.
        retry_after: Option<Duration>,
    },
    /// The provider refused the request: key, quota, content.
    #[error("the model {model} refused the request: {message}")]
    Refused { model: String, message: String },
    /// It was not called, because it lacks its key.
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

    /// Whether it takes pictures; `None` as long as nobody knows.
    fn sees(&self) -> Option<bool> {
        None
    }

    /// Whether it takes recordings: the configuration says so.
    fn hears(&self) -> bool {
        false
    }

    /// Keeps the result of a test with a picture, unless the configuration says whether the model takes pictures. Answers to later
    /// requests do not change it.
    fn learn_vision(&self, _sees: bool) {}

    /// Answers `request`. `sink` hears each piece of text as it arrives, in order; the pieces since the last
    /// [`Sink::restart`] are the completion's text. Dropping the future cancels the call.
    fn complete<'a>(&'a self, request: &'a Request, sink: &'a mut dyn Sink) -> Completing<'a>;
}
