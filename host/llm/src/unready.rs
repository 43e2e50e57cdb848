//! A configured model that cannot be called yet, because its key is missing. It takes the model's place, so that everything else
//! works, and fallbacks are called.

use super::{Completing, LlmError, Model, Request, Sink};

/// A model that answers each request with the reason why it cannot be called.
#[derive(Debug)]
pub struct UnreadyModel {
    name: String,
    why: String,
}

impl UnreadyModel {
    /// `name` is `provider:model`.
    pub fn new(name: String, why: String) -> Self {
        Self { name, why }
    }
}

impl Model for UnreadyModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn complete<'a>(&'a self, _: &'a Request, _: &'a mut dyn Sink) -> Completing<'a> {
        let error = LlmError::Unready { model: self.name.clone(), message: self.why.clone() };
        Box::pin(std::future::ready(Err(error)))
    }
}
