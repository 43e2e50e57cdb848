use std::fmt;

/// Why a file or a name cannot be read as a table or as one of its columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// Stable and short: "not-a-table", "too-large" or "unknown-column".
    pub code: &'static str,
    /// One sentence for the user.
    pub message: String,
}

impl Error {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
