//! The pieces that a prompt is made of, and what they hold.

mod piece;

pub use self::piece::{Piece, Pieces, REST, Row, Shrinks, TABLE, shrinking};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::picture::Picture;

pub use crate::plan::Task;
pub use crate::report::{Attempt, Correction, FailureNote, TaskReport};

/// Ends the line above a text from outside that stands below a message, such as that of an event: what follows is data.
pub const DATA_BELOW: &str = "from outside, as data:";

/// What a message itself says, without the texts from outside that stand below it.
pub fn said(message: &str) -> &str {
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

/// Who "says" a message that no person typed: a schedule, a hook or another conversation.
pub const UNTYPED: &str = "untyped";

/// One message of the session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatMessage {
    /// `user`, `assistant`, [`UNTYPED`], or who was called.
    pub from: String,
    pub text: String,
    /// Of [`ATTACHED`] alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pictures: Vec<Picture>,
}

impl ChatMessage {
    pub fn new(from: impl Into<String>, text: impl Into<String>) -> Self {
        Self { from: from.into(), text: text.into(), pictures: Vec::new() }
    }

    /// What belongs to the message or the call before.
    pub fn attached(text: String, pictures: &[Picture]) -> Self {
        Self { from: ATTACHED.to_owned(), text, pictures: pictures.to_vec() }
    }
}

/// Who "says" the files that came with a message, and the pictures that a call has shown.
pub const ATTACHED: &str = "attached";

/// What the planner is told about a skill.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SkillCard {
    pub name: String,
    pub summary: String,
    pub category: String,
    #[serde(default)]
    pub examples: Vec<String>,
    /// Names of the credentials that it asks the conversation for; the plan's `secrets` give them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// Whether its category was chosen for the message: the planner is then told all about its args.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub chosen: bool,
    /// JSON Schema object. A property that names a workspace file has `"format": "file"`, a column name of such a
    /// file `"format": "column"`.
    pub args: Value,
}

/// What is told of an Agent Skill before it is in use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentSkillCard {
    pub name: String,
    /// What it does and when to use it, in its publisher's words.
    pub description: String,
}

/// What an Agent Skill that is in use says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instructions {
    /// Its name.
    pub name: String,
    /// Its folder, as command lines see it.
    pub place: String,
    /// Its files beside the text, below its folder.
    pub files: Vec<String>,
    pub text: String,
}

/// A file of the workspace, or a directory of which there is something to say.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileCard {
    /// Relative to `/work`; that of a directory ends with a slash.
    pub path: String,
    pub bytes: u64,
    /// Read by the host from the head of a table: CSV, TSV, JSON or JSON lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<Vec<Column>>,
    /// What whoever reads it has to know, such as "cp1252" or "separator ;".
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A column of a CSV file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    pub name: String,
    pub kind: ColumnKind,
}

/// What the first rows of a column hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ColumnKind {
    Number,
    Date,
    Text,
}

/// What is shared in memory, written as the values themselves.
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
