use crate::bindings::exports::kiso::skill::skill as wit;
use crate::bindings::kiso::skill::types;
use std::fmt;

/// The result of a successful call: text for people and models, JSON for tools, files for both.
#[derive(Debug, Clone, Default)]
pub struct Reply {
    text: String,
    data: Option<String>,
    files: Vec<File>,
}

#[derive(Debug, Clone)]
struct File {
    path: String,
    media_type: Option<String>,
    title: Option<String>,
}

impl Reply {
    /// A reply of text. Long results belong in a file: a reply over the output limit (256 KiB) ends the call.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Adds the result as JSON.
    ///
    /// # Panics
    /// If `data` has no JSON form, such as a map whose keys are not strings.
    pub fn data(mut self, data: &impl serde::Serialize) -> Self {
        self.data = Some(serde_json::to_string(data).expect("reply data has a JSON form"));
        self
    }

    /// Adds the result as JSON text that the skill already has, such as the body of an answer. The host refuses a reply
    /// whose data does not parse.
    pub fn json(mut self, text: impl Into<String>) -> Self {
        self.data = Some(text.into());
        self
    }

    /// Names a file under `/work` that the call produced.
    pub fn file(self, path: impl Into<String>) -> Self {
        self.push(path.into(), None, None)
    }

    /// Names a file with a title for its link, a few words.
    pub fn titled_file(self, path: impl Into<String>, title: impl Into<String>) -> Self {
        self.push(path.into(), None, Some(title.into()))
    }

    /// Names a file whose media type its name does not tell.
    pub fn typed_file(self, path: impl Into<String>, media_type: impl Into<String>) -> Self {
        self.push(path.into(), Some(media_type.into()), None)
    }

    fn push(mut self, path: String, media_type: Option<String>, title: Option<String>) -> Self {
        self.files.push(File { path, media_type, title });
        self
    }
}

impl From<Reply> for wit::Reply {
    fn from(reply: Reply) -> Self {
        let files = reply.files.into_iter();
        Self {
            text: reply.text,
            data: reply.data,
            files: files.map(|f| types::File { path: f.path, media_type: f.media_type, title: f.title }).collect(),
        }
    }
}

/// Why something did not work: a stable code and one sentence that says what, where and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Stable, short, lower-case with dashes, such as "not-found".
    pub code: String,
    /// One sentence for the user.
    pub message: String,
    /// Whether the same call may work later without any change.
    pub retryable: bool,
}

impl Failure {
    /// A failure that will happen again when called the same way.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), retryable: false }
    }

    /// A failure that may be gone at the next try, such as a server that is down.
    pub fn retryable(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { retryable: true, ..Self::new(code, message) }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for Failure {}

/// Lets `?` turn a plain message into a failure with code "failed".
impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self::new("failed", message)
    }
}

impl From<&str> for Failure {
    fn from(message: &str) -> Self {
        Self::new("failed", message)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::new("failed", error.to_string())
    }
}

impl From<types::Failure> for Failure {
    fn from(f: types::Failure) -> Self {
        Self { code: f.code, message: f.message, retryable: f.retryable }
    }
}

impl From<Failure> for types::Failure {
    fn from(f: Failure) -> Self {
        Self { code: f.code, message: f.message, retryable: f.retryable }
    }
}
