//! The pieces that a prompt is made of. Which role gets which piece is decided in `context.rs`.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

pub use crate::plan::Task;
pub use crate::report::{Attempt, Correction, FailureNote, TaskReport};

/// Everything that a role may be told. A piece that a role does not get is `None`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pieces {
    /// The message that the plan is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_message: Option<String>,
    /// The same message as the reviewer sees it: what was asked for in the first place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub original_message: Option<String>,
    /// With whose rights the plan is carried out, and what these are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
    /// Those of a process share them: each prompt of each run has them.
    #[serde(skip_serializing_if = "Option::is_none", with = "shared")]
    pub skills: Option<Vec<Arc<SkillCard>>>,
    /// The Agent Skills that are installed, in their publishers' words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_skills: Option<Vec<AgentSkillCard>>,
    /// What those of them say that the message or the task names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<Vec<Instructions>>,
    /// The date and time of the user, with time zone and locale.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub now: Option<String>,
    /// The files of the session's workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment: Option<Vec<FileCard>>,
    /// The session so far, in short.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The last messages, oldest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<Vec<ChatMessage>>,
    /// What was learned, those first that matter most: the last ones go where not all have room.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub facts: Option<Vec<String>>,
    /// What the workspace has of SOUL.md, IDENTITY.md and AGENTS.md, each under its name: anybody may have written it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guidance: Option<Vec<String>>,
    /// Core memory: what is always known, a line for each value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub core: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<Task>,
    /// What earlier tasks left behind, oldest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Vec<TaskReport>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expect: Option<String>,
    /// What the task under review left behind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<TaskReport>,
    /// A file that the reviewer asked for: its path and its content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub looked_at: Option<String>,
    /// Tasks that ran before the plan was given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed: Option<Vec<TaskReport>>,
    /// Tasks that were planned and did not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remaining: Option<Vec<Task>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureNote>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replan_history: Option<Vec<Attempt>>,
    /// What retrieval wants of the planner: the goal of this turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directive: Option<String>,
    /// Observational memory: what is known that matters for the goal (`shared_context_observational_memory`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Vec<String>>,
    /// What the skills of the plan need and have (`shared_context_skill_environment`), a line each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skill_environment: Option<Vec<String>>,
    /// What this run replied before the node ran for the first time, oldest first: its lane is seeded with that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replies: Option<Vec<String>>,
    /// What the planner said earlier in this run, and what was said about it, oldest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planner_lane: Option<Vec<String>>,
    /// The plan that is carried out, a line for each task with its state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Vec<String>>,
    /// What is there to execute with: files, skills, secrets by name, blockers; a line each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readiness: Option<Vec<String>>,
    /// Negative feedback of the critic in this run, oldest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feedback: Option<Vec<String>>,
    /// What the reasoner said earlier in this run, and what was said about it, oldest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_lane: Option<Vec<String>>,
    /// The brief of the current task, as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub brief: Option<String>,
    /// "Action Conversation Transcript": what the actor did, whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transcript: Option<Vec<String>>,
    /// The last few messages, for a message that may follow up on them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tail: Option<Vec<ChatMessage>>,
    /// Categories of tools, a line each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub categories: Option<Vec<String>>,
    /// Messages that are to become part of a summary, oldest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compress: Option<Vec<ChatMessage>>,
    /// Facts that are to become fewer, oldest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consolidate: Option<Vec<String>>,
    /// A turn that may have said something lasting, or changed what is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<Vec<ChatMessage>>,
    /// Facts that the turn may have changed, oldest first, each with its day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub known: Option<Vec<String>>,
    /// The first messages of a session that has no title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exchange: Option<Vec<ChatMessage>>,
    /// The role's own last answer, if it could not be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correction: Option<Correction>,
}

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
}

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
