//! A request of either endpoint, in common form: the question, the earlier messages, and the caller.

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

/// Maximum number of messages in a request.
const MAX_MESSAGES: usize = 4_000;

/// Maximum length in characters of a program's id for a chat or a user.
const MAX_ID: usize = 256;

/// Headers with a program's id for a chat; the first that exists is used.
const CHAT_HEADERS: [&str; 2] = ["x-openwebui-chat-id", "x-kiso-chat-id"];

/// The same, as members of `metadata`.
const CHAT_MEMBERS: [&str; 3] = ["chat_id", "conversation_id", "session_id"];

/// Maximum number of pairs in `metadata`, and maximum lengths in characters of their names and values.
const MAX_PAIRS: usize = 16;
const MAX_PAIR: usize = 512;

/// A request of either endpoint.
#[derive(Debug)]
pub(super) struct Prompt {
    pub model: Model,
    /// The model's name in the request.
    pub model_name: String,
    pub caller: Caller,
    /// The program's id of the chat, if it sends one.
    pub chat: Option<String>,
    /// The program's instructions for the model.
    pub instructions: String,
    /// All messages, ending with the question; the last one is from the user.
    pub lines: Vec<Line>,
    /// Number of messages at the end that form the question.
    pub asked: usize,
    /// Files of the question.
    pub files: Vec<Attachment>,
    pub key: Option<String>,
    /// The earlier response that this request continues.
    pub previous: Option<String>,
    pub metadata: Map<String, Value>,
    /// Whether the response can be retrieved later.
    pub stored: bool,
}

/// The caller.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    pub who: Who,
    /// Handle of the token; empty for a program of this machine, which needs none.
    pub token: String,
    /// The end user of the program, if it names one.
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

    /// Returns an identifier for the conversations of one end user with one token.
    pub(super) fn owner(&self) -> String {
        name(&["owner", &self.token, &self.person])
    }
}

/// Returns 32 digits for a list of texts, different for every list.
pub(super) fn name(parts: &[&str]) -> String {
    let mut all = Context::new(&SHA256);
    for part in parts {
        all.update(&(part.len() as u64).to_le_bytes());
        all.update(part.as_bytes());
    }
    data_encoding::HEXLOWER.encode(&all.finish().as_ref()[..16])
}

/// The messages of a conversation, while a request is parsed.
#[derive(Debug, Default)]
pub(super) struct Lines {
    pub instructions: String,
    pub lines: Vec<Line>,
    pub asked: usize,
    pub files: Vec<Attachment>,
    /// Locations and contents of the question's messages.
    open: Vec<(String, Content)>,
}

impl Lines {
    /// Adds a message. `param` is its location in the request.
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
            // Results of another model's tools; the assistant's messages contain what matters.
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

    /// Extracts the files of the question. Files of earlier messages are already in the workspace.
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

/// Returns the program's id of the chat, from a header or from `metadata`.
pub(super) fn chat_id(headers: &HeaderMap, metadata: &Map<String, Value>) -> Result<Option<String>, ApiError> {
    let header = CHAT_HEADERS.iter().find_map(|name| Some((*name, headers.get(*name)?)));
    if let Some((name, value)) = header {
        let value = value.to_str().map_err(|_| ApiError::bad_request(format!("{name} has odd characters")))?;
        // A program without a chat yet sends an empty value.
        return if value.trim().is_empty() { Ok(None) } else { id(value.trim(), name).map(Some) };
    }
    let member = CHAT_MEMBERS.iter().find_map(|name| Some((*name, metadata.get(*name)?.as_str()?)));
    member.map(|(member, value)| id(value, &format!("metadata.{member}"))).transpose()
}

/// Checks an id that a program sends.
pub(super) fn id(value: &str, param: &str) -> Result<String, ApiError> {
    if value.is_empty() || value.chars().count() > MAX_ID || value.chars().any(char::is_control) {
        let rule = format!("`{param}` must have 1 to {MAX_ID} characters, and no control characters");
        return Err(ApiError::bad_request(rule).param(param));
    }
    Ok(value.to_owned())
}

/// Returns the key that identifies repeated requests.
pub(super) fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(None) };
    let value = value.to_str().ok().filter(|key| (1..=MAX_CLIENT_KEY).contains(&key.chars().count()));
    let rule = || ApiError::bad_request(format!("Idempotency-Key must have 1 to {MAX_CLIENT_KEY} plain characters"));
    value.map(|key| Some(key.to_owned())).ok_or_else(rule)
}

/// Checks the metadata that the response must repeat.
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

/// The error for a feature that kiso does not have and that cannot be ignored without changing the answer.
pub(super) fn unsupported(param: &str, why: &str) -> ApiError {
    ApiError::bad_request(format!("`{param}` is not supported: {why}")).param(param)
}

/// Refuses a `tool_choice` that demands a call of one of the program's tools.
pub(super) fn check_tool_choice(choice: Option<&Value>) -> Result<(), ApiError> {
    match choice {
        None | Some(Value::Null) => Ok(()),
        Some(Value::String(word)) if word == "auto" || word == "none" => Ok(()),
        Some(_) => Err(unsupported("tool_choice", "kiso calls its own tools, and never one of the program's")),
    }
}

/// Refuses a format of the answer that cannot be guaranteed.
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
