//! What both endpoints make of a request: what is asked, what was said before, and who asks.

use axum::http::HeaderMap;
use ring::digest::{Context, SHA256};
use serde_json::{Map, Value};

use super::content::{Content, Speaker};
use super::history::Line;
use super::models::Model;
use crate::attachment::{Attachment, MAX_ATTACHMENTS};
use crate::auth::{Via, Who};
use crate::error::ApiError;
use kiso_store::store::{MAX_CLIENT_KEY, SessionOwner};

/// Messages that a request may send along.
const MAX_MESSAGES: usize = 4_000;

/// Characters of a program's name for a chat or a person.
const MAX_ID: usize = 256;

/// Headers with a program's name for a chat: the first that is there counts.
const CHAT_HEADERS: [&str; 2] = ["x-openwebui-chat-id", "x-kiso-chat-id"];

/// The same in `metadata`.
const CHAT_MEMBERS: [&str; 3] = ["chat_id", "conversation_id", "session_id"];

/// Pairs of `metadata`, and characters of their names and values.
const MAX_PAIRS: usize = 16;
const MAX_PAIR: usize = 512;

/// A request of either endpoint.
#[derive(Debug)]
pub(super) struct Prompt {
    pub model: Model,
    /// The model as the program calls it.
    pub model_name: String,
    pub caller: Caller,
    /// Where the program says which of its chats it is.
    pub chat: Option<String>,
    /// What the program tells the model about itself.
    pub instructions: String,
    /// What was said before, and what is asked: at least the last line is the user's.
    pub lines: Vec<Line>,
    /// How many of the lines are asked.
    pub asked: usize,
    /// That came with what is asked.
    pub files: Vec<Attachment>,
    pub key: Option<String>,
    /// The response that it goes on from.
    pub previous: Option<String>,
    pub metadata: Map<String, Value>,
    /// Whether it can be asked for later.
    pub stored: bool,
}

/// Who asks.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    pub who: Who,
    /// Handle of the token; empty for a program of the machine that needs none.
    pub token: String,
    /// Whom the program asks for, if it says so.
    person: String,
}

impl Caller {
    pub(super) fn new(who: Who, person: Option<&str>) -> Result<Caller, ApiError> {
        let person = person.map(|person| id(person, "user")).transpose()?.unwrap_or_default();
        let token = match &who.via {
            Via::Machine => String::new(),
            Via::Token { handle } => handle.clone(),
            Via::Page { .. } => who.owner.as_ref().map_or("page", SessionOwner::as_str).to_owned(),
        };
        Ok(Caller { who, token, person })
    }

    /// Tells the conversations of one person with one token from all others.
    pub(super) fn owner(&self) -> String {
        name(&["owner", &self.token, &self.person])
    }
}

/// 32 digits for a list of texts; no two lists have the same.
pub(super) fn name(parts: &[&str]) -> String {
    let mut all = Context::new(&SHA256);
    for part in parts {
        all.update(&(part.len() as u64).to_le_bytes());
        all.update(part.as_bytes());
    }
    data_encoding::HEXLOWER.encode(&all.finish().as_ref()[..16])
}

/// The lines of a conversation, while a request is read.
#[derive(Debug, Default)]
pub(super) struct Lines {
    pub instructions: String,
    pub lines: Vec<Line>,
    pub asked: usize,
    pub files: Vec<Attachment>,
    /// Where the content of what is asked stands.
    open: Vec<(String, Content)>,
}

impl Lines {
    /// Adds what somebody said. `param` is where it stands in the request.
    pub(super) fn add(&mut self, speaker: Speaker, content: Option<Content>, param: &str) -> Result<(), ApiError> {
        if self.lines.len() >= MAX_MESSAGES {
            return Err(ApiError::bad_request(format!("a request has at most {MAX_MESSAGES} messages")).param(param));
        }
        let Some(content) = content else { return Ok(()) };
        let text = content.text();
        match speaker {
            Speaker::System | Speaker::Developer => self.instruct(&text),
            Speaker::User => {
                self.open.push((format!("{param}.content"), content));
                self.lines.push(Line { by_user: true, text });
            }
            Speaker::Assistant => {
                self.open.clear();
                self.lines.push(Line { by_user: false, text });
            }
            // Of another model's tools; what came of them is in what the assistant said.
            Speaker::Tool | Speaker::Function => {}
        }
        Ok(())
    }

    pub(super) fn instruct(&mut self, text: &str) {
        if !self.instructions.is_empty() {
            self.instructions.push_str("\n\n");
        }
        self.instructions.push_str(text.trim());
    }

    /// Takes the files of what is asked out of it. Those of earlier messages are in the workspace since then.
    pub(super) fn close(&mut self, param: &str) -> Result<(), ApiError> {
        if self.open.is_empty() {
            return Err(ApiError::bad_request("the last message must be the user's").param(param));
        }
        self.asked = self.open.len();
        for (param, content) in std::mem::take(&mut self.open) {
            self.files.extend(content.files(&param)?);
        }
        if self.files.len() > MAX_ATTACHMENTS {
            let message =
                format!("{} files come with the message; at most {MAX_ATTACHMENTS} are taken", self.files.len());
            return Err(ApiError::bad_request(message)
                .hint("upload more with PUT /sessions/SESSION/files/PATH, and use the model kiso/SESSION")
                .param(param));
        }
        Ok(())
    }
}

/// Where the program says which of its chats it is, by a header or in `metadata`.
pub(super) fn chat_id(headers: &HeaderMap, metadata: &Map<String, Value>) -> Result<Option<String>, ApiError> {
    let header = CHAT_HEADERS.iter().find_map(|name| Some((*name, headers.get(*name)?)));
    if let Some((name, value)) = header {
        let value = value.to_str().map_err(|_| ApiError::bad_request(format!("{name} has odd characters")))?;
        // A program that has no chat yet sends it empty.
        return if value.trim().is_empty() { Ok(None) } else { id(value.trim(), name).map(Some) };
    }
    let member = CHAT_MEMBERS.iter().find_map(|name| Some((*name, metadata.get(*name)?.as_str()?)));
    member.map(|(member, value)| id(value, &format!("metadata.{member}"))).transpose()
}

/// A name that a program gives.
pub(super) fn id(value: &str, param: &str) -> Result<String, ApiError> {
    if value.is_empty() || value.chars().count() > MAX_ID || value.chars().any(char::is_control) {
        let rule = format!("`{param}` must have 1 to {MAX_ID} characters, and no control characters");
        return Err(ApiError::bad_request(rule).param(param));
    }
    Ok(value.to_owned())
}

/// The key by which a request that comes again is known.
pub(super) fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(None) };
    let value = value.to_str().ok().filter(|key| (1..=MAX_CLIENT_KEY).contains(&key.chars().count()));
    let rule = || ApiError::bad_request(format!("Idempotency-Key must have 1 to {MAX_CLIENT_KEY} plain characters"));
    value.map(|key| Some(key.to_owned())).ok_or_else(rule)
}

/// What a program wants to have back with the answer.
pub(super) fn metadata(given: Option<Map<String, Value>>) -> Result<Map<String, Value>, ApiError> {
    let given = given.unwrap_or_default();
    let fits = |text: &str| text.chars().count() <= MAX_PAIR;
    let is_pair = |(name, value): (&String, &Value)| fits(name) && value.as_str().is_some_and(fits);
    if given.len() > MAX_PAIRS || !given.iter().all(is_pair) {
        let rule = format!("`metadata` has at most {MAX_PAIRS} texts of at most {MAX_PAIR} characters");
        return Err(ApiError::bad_request(rule).param("metadata"));
    }
    Ok(given)
}

/// What the interface has and kiso does not, where leaving it out would be another answer than was asked for.
pub(super) fn unsupported(param: &str, why: &str) -> ApiError {
    ApiError::bad_request(format!("`{param}` is not supported: {why}")).param(param)
}

/// Whether a choice of tools demands a call of a tool of the program's.
pub(super) fn check_tool_choice(choice: Option<&Value>) -> Result<(), ApiError> {
    match choice {
        None | Some(Value::Null) => Ok(()),
        Some(Value::String(word)) if word == "auto" || word == "none" => Ok(()),
        Some(_) => Err(unsupported("tool_choice", "kiso calls its own tools, and never one of the program's")),
    }
}

/// Whether a form of the answer is wanted that nobody can promise.
pub(super) fn check_form(format: Option<&Value>, param: &str) -> Result<(), ApiError> {
    match format.and_then(|format| format.get("type")).and_then(Value::as_str) {
        None | Some("text") => Ok(()),
        Some(_) => Err(unsupported(param, "answers are Markdown; ask for JSON in the message")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_asked_is_what_stands_behind_the_last_answer() {
        let mut lines = Lines::default();
        let text = |text: &str| Some(Content::Text(text.to_owned()));
        lines.add(Speaker::System, text("Be brief. "), "messages[0]").unwrap();
        lines.add(Speaker::User, text("a"), "messages[1]").unwrap();
        lines.add(Speaker::Assistant, text("b"), "messages[2]").unwrap();
        assert!(lines.close("messages").is_err());
        lines.add(Speaker::Assistant, None, "messages[3]").unwrap();
        lines.add(Speaker::User, text("c"), "messages[4]").unwrap();
        lines.add(Speaker::Developer, text("And kind."), "messages[5]").unwrap();
        lines.add(Speaker::User, text("d"), "messages[6]").unwrap();
        lines.close("messages").unwrap();
        assert_eq!((lines.asked, lines.lines.len(), lines.instructions.as_str()), (2, 4, "Be brief.\n\nAnd kind."));
    }

    #[test]
    fn a_chat_is_named_by_a_header_or_by_metadata() {
        let mut headers = HeaderMap::new();
        let metadata = json!({ "chat_id": "m", "other": 1 }).as_object().unwrap().clone();
        assert_eq!(chat_id(&headers, &Map::new()).unwrap(), None);
        assert_eq!(chat_id(&headers, &metadata).unwrap().as_deref(), Some("m"));
        headers.insert("x-kiso-chat-id", "k".parse().unwrap());
        assert_eq!(chat_id(&headers, &metadata).unwrap().as_deref(), Some("k"));
        headers.insert("x-openwebui-chat-id", "w".parse().unwrap());
        assert_eq!(chat_id(&headers, &metadata).unwrap().as_deref(), Some("w"));
        headers.insert("x-openwebui-chat-id", "".parse().unwrap());
        assert_eq!(chat_id(&headers, &metadata).unwrap(), None);
        headers.insert("x-openwebui-chat-id", "x".repeat(MAX_ID + 1).parse().unwrap());
        assert!(chat_id(&headers, &metadata).is_err());
    }

    #[test]
    fn names_of_lists_do_not_run_together() {
        assert_ne!(name(&["a", "bc"]), name(&["ab", "c"]));
        assert_eq!(name(&["a"]).len(), 32);
    }
}
