//! Models: one trait, and the implementations beside it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use serde::{Deserialize, Serialize};

pub mod prompt;
pub mod reflex;
pub mod scripted;

pub use crate::graph::limits::Usage;
use prompt::Pieces;

/// One kind of model call, each with its own prompt and its own model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Planner,
    Reviewer,
    Worker,
}

impl Role {
    pub const ALL: [Self; 3] = [Self::Planner, Self::Reviewer, Self::Worker];

    /// The name in `config.toml`, in `roles/NAME.md` and in a task's `model`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Planner => "planner",
            Self::Reviewer => "reviewer",
            Self::Worker => "worker",
        }
    }

    /// The role with this name, if there is one.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One call of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    pub role: Role,
    /// The role's prompt; the only part that speaks with the administrator's voice.
    pub system: String,
    /// The pieces as text, each foreign one fenced.
    pub user: String,
    /// The same pieces for a model that reads fields (`reflex`); nothing more than what `user` shows.
    pub pieces: Pieces,
    /// 0.0 to 2.0; `None` leaves it to the provider.
    pub temperature: Option<f32>,
    pub max_tokens: u32,
}

/// What a model answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Completion {
    pub text: String,
    pub usage: Usage,
    /// `provider:model` that answered, which is another one than asked for when a fallback took over.
    pub model: String,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LlmError {
    /// The provider could not be reached or did not answer properly; retries are used up when this is seen.
    #[error("the model {model} did not answer: {message}")]
    Unavailable { model: String, message: String, retryable: bool },
    /// The provider refused the request: key, quota, content.
    #[error("the model {model} refused the request: {message}")]
    Refused { model: String, message: String },
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

    /// Answers `request`. `sink` is called with each piece of text as it arrives, in order; together the pieces are
    /// the completion's text. Dropping the future cancels the call.
    fn complete<'a>(&'a self, request: &'a Request, sink: &'a mut (dyn FnMut(&str) + Send)) -> Completing<'a>;
}
