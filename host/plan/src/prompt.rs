//! The pieces of a prompt, and their contents.

mod piece;

pub use self::piece::{Piece, Pieces, REST, Row, Shrinks, TABLE, shrinking};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::picture::Picture;

pub use crate::plan::Task;
pub use crate::report::{Attempt, Correction, FailureNote, TaskReport};

/// The end of the line above a text from outside that is added below a message, such as an event's: everything after it is data.
pub const DATA_BELOW: &str = "from outside, as data:";

/// Returns the message itself, without texts from outside that are added below it.
pub fn strip_outside_text(message: &str) -> &str {
    let mut at = 0;
    for line in message.split_inclusive('\n') {
        let name = line.trim_end().strip_suffix(DATA_BELOW).and_then(|line| line.strip_suffix("], "));
        if name.is_some_and(|name| name.starts_with('[')) {
            return message[..at].trim_end();
        }
        at += line.len();
    }
    message
}

/// The sender of a message that no person typed: a schedule, a hook or another conversation.
pub const UNTYPED: &str = "untyped";

/// One message of the session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatMessage {
    /// `user`, `assistant`, [`UNTYPED`], or the name of a called tool.
    pub from: String,
    pub text: String,
    /// Only for messages from [`ATTACHED`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pictures: Vec<Picture>,
}

impl ChatMessage {
    pub fn new(from: impl Into<String>, text: impl Into<String>) -> Self {
        Self { from: from.into(), text: text.into(), pictures: Vec::new() }
    }

    /// A message with content that belongs to the message or call before it.
    pub fn attached(text: String, pictures: &[Picture]) -> Self {
        Self { from: ATTACHED.to_owned(), text, pictures: pictures.to_vec() }
    }
}

/// The sender of files that were attached to a message, and of pictures that a call has shown.
pub const ATTACHED: &str = "attached";

/// The description of a skill for the planner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SkillCard {
    pub name: String,
    pub summary: String,
    pub category: String,
    #[serde(default)]
    pub examples: Vec<String>,
    /// Names of the credentials that it needs from the conversation; the plan's `secrets` provide them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// Whether its category was chosen for the message: the planner then gets the full schema of its args.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub chosen: bool,
    /// A JSON Schema object. A property with the name of a workspace file has `"format": "file"`, one with a column's name
    /// `"format": "column"`.
    pub args: Value,
}

/// The description of an Agent Skill before it is in use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentSkillCard {
    pub name: String,
    /// Its purpose and when to use it, in its publisher's words.
    pub description: String,
}

/// The text of an Agent Skill that is in use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instructions {
    pub name: String,
    /// Its folder, in the form that command lines use.
    pub place: String,
    /// Its other files, relative to its folder.
    pub files: Vec<String>,
    pub text: String,
}

/// A file of the workspace, or a directory with a note.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileCard {
    /// Relative to `/work`; the path of a directory ends with a slash.
    pub path: String,
    pub bytes: u64,
    /// The columns of a table (CSV, TSV, JSON or JSON lines), as read by the host from its beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<Vec<Column>>,
    /// Hints for reading it, such as "cp1252" or "separator ;".
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A column of a CSV file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    pub name: String,
    pub kind: ColumnKind,
}

/// The type of the values in the first rows of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ColumnKind {
    Number,
    Date,
    Text,
}

/// Serializes values that share memory as the values themselves.
mod shared {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::sync::Arc;

    pub(super) fn serialize<T: Serialize, S: Serializer>(
        all: &Option<Vec<Arc<T>>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let all: Option<Vec<&T>> = all.as_ref().map(|all| all.iter().map(Arc::as_ref).collect());
        all.serialize(serializer)
    }

    pub(super) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Vec<Arc<T>>>, D::Error> {
        let all: Option<Vec<T>> = Option::deserialize(deserializer)?;
        Ok(all.map(|all| all.into_iter().map(Arc::new).collect()))
    }
}
