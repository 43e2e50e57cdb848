//! The code that the channels share: the bindings to `kiso:channel`, requests, texts in parts, and the parts already sent.

pub mod http;
mod parts;
mod sent;

pub use parts::parts;
pub use sent::Sent;

#[rustfmt::skip]
pub mod bindings;

pub use bindings::exports::kiso::channel::channel::Guest;
pub use bindings::kiso::channel::types::{Attachment, Batch, Choice, Config, Failure, File, Letter, Message};

/// A failure that says no more than its code and a sentence.
pub fn failure(code: &str, message: impl Into<String>) -> Failure {
    Failure { code: code.to_owned(), message: message.into(), retry_after_s: None }
}

/// The skill's store cannot be read or written now; the host tries again.
pub fn unavailable(error: bindings::kiso::skill::types::Failure) -> Failure {
    failure("unavailable", error.message)
}

/// Forgets a value that is kept.
pub fn forget(key: &str) -> Result<(), Failure> {
    bindings::kiso::skill::kv::delete(key).map(drop).map_err(unavailable)
}

/// An option of the configuration.
pub fn option<'a>(config: &'a Config, name: &str) -> Option<&'a str> {
    config.options.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// The beginning of a text, no longer than so many bytes.
pub fn head(text: &str, max: usize) -> String {
    text[..text.floor_char_boundary(max)].to_owned()
}
