//! The lines of the socket from the client's side; docs/socket.md describes the protocol.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The supported version of the protocol.
pub(crate) const PROTOCOL: u64 = 1;

/// A line to the daemon. Without a session, it belongs to the registered one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Say {
    Register {
        client: &'static str,
        protocol: u64,
        session: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        after: Option<i64>,
        live: bool,
    },
    Inbound {
        text: String,
        /// The same if the message is sent again, so that it is processed once.
        key: String,
        #[serde(rename = "ref")]
        reference: String,
    },
    Command {
        command: String,
        args: String,
        #[serde(rename = "ref")]
        reference: String,
    },
    /// A piece of a file; the answers arrive in order.
    File {
        name: String,
        /// In base64.
        data: String,
        more: bool,
    },
    Status {
        #[serde(rename = "ref")]
        reference: String,
    },
}

/// A line from the daemon. Unknown types and fields are ignored.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum ServerLine {
    Registered {
        last: i64,
    },
    Accepted {
        #[serde(rename = "ref")]
        reference: Option<String>,
        message: i64,
    },
    Outbound(Outbound),
    Status {
        running: Option<String>,
        queued: u64,
    },
    /// The answer to a piece of a file; has a path if the piece was the last.
    File {
        path: Option<String>,
        #[serde(default)]
        bytes: u64,
        #[serde(default)]
        media_type: String,
    },
    Event(NoticeLine),
    Error {
        #[serde(rename = "ref")]
        reference: Option<String>,
        code: String,
        message: String,
        hint: Option<String>,
    },
    Shutdown,
    #[serde(other)]
    Other,
}

/// The answer to a command, or a reply.
#[derive(Debug, Deserialize)]
pub(crate) struct Outbound {
    #[serde(rename = "ref")]
    pub reference: Option<String>,
    pub id: Option<i64>,
    pub answer: Option<String>,
    pub message: Option<MessageLine>,
    /// The messages that a reply answers.
    #[serde(default)]
    pub answers: Vec<i64>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct NoticeLine {
    /// The id with which a client resumes; short-lived lines have none.
    pub id: Option<i64>,
    pub event: String,
    pub data: Value,
}

#[derive(Debug, Deserialize)]
pub(crate) struct MessageLine {
    pub id: i64,
    pub role: String,
    pub text: String,
    pub run: Option<String>,
    /// Only for a reply.
    reply: Option<ReplyLine>,
}

/// A reply in parts.
#[derive(Debug, Deserialize)]
struct ReplyLine {
    #[serde(default)]
    blocks: Vec<Value>,
}

impl MessageLine {
    /// Returns the text without the list of files at its end, for a client that shows the files itself.
    pub(crate) fn without_files(&self) -> &str {
        match self.reply.as_ref().map(|reply| &reply.blocks[..]) {
            Some([block]) if block["type"] == "text" => block["text"].as_str().unwrap_or(&self.text),
            _ => &self.text,
        }
    }
}

/// The start or end of a run.
#[derive(Debug, Deserialize)]
pub(crate) struct RunNotice {
    pub id: String,
    /// "running", "waiting", "done", "failed" or "cancelled".
    pub status: String,
}

/// A step of a run.
#[derive(Debug, Deserialize)]
pub(crate) struct StepLine {
    pub run: String,
    /// The number of the event in its run, from 1.
    #[serde(default)]
    pub seq: u32,
    /// Null if it is too large or sealed.
    pub body: Value,
}

/// A live text or activity of a run.
#[derive(Debug, Deserialize)]
pub(crate) struct LiveLine {
    pub run: String,
    /// The number that the event of the step will have.
    #[serde(default)]
    pub seq: u32,
    #[serde(flatten)]
    pub said: LiveText,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum LiveText {
    Token {
        role: String,
        text: String,
    },
    Restart {
        role: String,
    },
    Thought {
        kind: String,
        text: String,
    },
    Output {
        text: String,
    },
    #[serde(other)]
    Other,
}

impl ServerLine {
    /// Returns the `ref` of the line that this one answers.
    pub(crate) fn reference(&self) -> Option<&str> {
        match self {
            ServerLine::Accepted { reference, .. }
            | ServerLine::Outbound(Outbound { reference, .. })
            | ServerLine::Error { reference, .. } => reference.as_deref(),
            _ => None,
        }
    }

    /// Returns the id with which a client resumes.
    pub(crate) fn id(&self) -> Option<i64> {
        match self {
            ServerLine::Outbound(outbound) => outbound.id,
            ServerLine::Event(happened) => happened.id,
            _ => None,
        }
    }
}
