//! One sentence for whoever asked: what is wrong with the file or the request, and what to do.

use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error(String);

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    /// A part of the file that cannot be read, with the reason of the library that tried.
    pub fn damaged(part: &str, reason: impl fmt::Display) -> Self {
        Self(format!("it is damaged: {part}: {reason}"))
    }

    /// A size or count that exceeds its limit.
    pub fn limit(subject: &str, limit: impl fmt::Display) -> Self {
        Self(format!("{subject}; the limit is {limit}"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self(error.to_string())
    }
}

impl From<&str> for Error {
    fn from(message: &str) -> Self {
        Self(message.to_owned())
    }
}

impl From<String> for Error {
    fn from(message: String) -> Self {
        Self(message)
    }
}
