//! The lines of the socket's protocol. Times are milliseconds since 1970 (UTC).

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::error::ApiError;
use crate::follow::Notification;
use kiso_base::home::SessionName;
use kiso_base::json::{self, JsonError};

/// The supported protocol version.
pub(super) const PROTOCOL: u64 = 1;

/// Maximum length in characters of a `ref`, which the answer repeats.
const MAX_REF: usize = 128;

/// Maximum length in characters of a JSON error about a line: it quotes the client's text, which may be long.
const MAX_REASON: usize = 300;

/// A line from the client.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Line {
    /// The first line: the client's name, and the events that it wants.
    Register {
        /// A name for the log.
        client: String,
        protocol: u64,
        #[serde(default)]
        session: Option<SessionName>,
        #[serde(default)]
        after: Option<i64>,
        #[serde(default)]
        live: bool,
    },
    /// A message of a person.
    Inbound {
        #[serde(default)]
        session: Option<SessionName>,
        text: String,
        #[serde(default)]
        key: Option<String>,
    },
    /// A slash command, without the slash.
    Command {
        #[serde(default)]
        session: Option<SessionName>,
        command: String,
        #[serde(default)]
        args: String,
    },
    /// A piece of a file for the workspace.
    File {
        #[serde(default)]
        session: Option<SessionName>,
        name: String,
        /// Encoded in base64.
        data: String,
        /// Whether another piece follows.
        #[serde(default)]
        more: bool,
    },
    /// Requests the status.
    Status {
        #[serde(default)]
        session: Option<SessionName>,
    },
}

/// A line with the `ref` that its answer repeats.
#[derive(Debug)]
pub(super) struct RequestLine {
    pub reference: Option<String>,
    pub line: Result<Line, ApiError>,
}

/// Parses a line. If it is invalid, the answer still has its `ref` if that can be read.
pub(super) fn read(text: &str) -> RequestLine {
    let no_json = |error: JsonError| ApiError::bad_request(format!("the line is not JSON: {error}"));
    let object = match json::parse::<Value>(text.as_bytes()).map_err(no_json) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(ApiError::bad_request("the line is not an object")),
        Err(error) => Err(error),
    };
    let mut object = match object {
        Ok(object) => object,
        Err(error) => return RequestLine { reference: None, line: Err(error) },
    };
    let reference = match object.remove("ref") {
        None | Some(Value::Null) => None,
        Some(Value::String(word)) if word.chars().count() <= MAX_REF => Some(word),
        Some(_) => {
            let error = ApiError::bad_request(format!("`ref` must be a string of at most {MAX_REF} characters"));
            return RequestLine { reference: None, line: Err(error) };
        }
    };
    let line = serde_json::from_value(Value::Object(object)).map_err(|error| {
        let reason: String = error.to_string().chars().take(MAX_REASON).collect();
        ApiError::bad_request(format!("the line is not one that is expected here: {reason}"))
            .hint("docs/socket.md lists the lines and their fields")
    });
    RequestLine { reference, line }
}

/// Returns the answer to a line: its type, the `ref` if there is one, and the other members.
pub(super) fn answer(kind: &str, reference: Option<&str>, rest: Value) -> Value {
    let mut object = Map::new();
    object.insert("type".to_owned(), kind.into());
    if let Some(reference) = reference {
        object.insert("ref".to_owned(), reference.into());
    }
    if let Value::Object(rest) = rest {
        object.extend(rest);
    }
    Value::Object(object)
}

/// Returns the answer to a refused line.
pub(super) fn error(reference: Option<&str>, error: &ApiError) -> Value {
    let mut rest = json!({ "code": error.code, "message": error.message });
    if let Some(hint) = &error.hint {
        rest["hint"] = hint.as_str().into();
    }
    answer("error", reference, rest)
}

/// Returns the line for an event. A reply has its own type, so that a simple client needs no other.
pub(super) fn format_event(told: Notification) -> Value {
    let Notification { name, id, data, answers } = told;
    match (name, id) {
        ("shutdown", _) => json!({ "type": "shutdown" }),
        ("message", Some(id)) if data["role"] == "assistant" => {
            json!({ "type": "outbound", "id": id, "session": data["session"], "answers": answers, "message": data })
        }
        ("notify", _) => {
            let mut line = data;
            line["type"] = "notify".into();
            line
        }
        (name, Some(id)) => json!({ "type": "event", "id": id, "event": name, "data": data }),
        (name, None) => json!({ "type": "event", "event": name, "data": data }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> (Option<String>, String) {
        let RequestLine { reference, line } = read(text);
        let error = line.unwrap_err();
        assert_eq!(error.code, "bad_request");
        (reference, error.message)
    }

    #[test]
    fn a_line_is_read_with_its_ref() {
        let RequestLine { reference, line } = read(r#"{"type":"inbound","text":"hi","ref":"7"}"#);
        assert_eq!(reference.as_deref(), Some("7"));
        assert_eq!(line.unwrap(), Line::Inbound { session: None, text: "hi".to_owned(), key: None });
        let registered = read(r#"{"type":"register","client":"c","protocol":1,"session":"a","after":3,"live":true}"#);
        let session = Some(SessionName::parse("a").unwrap());
        let client = "c".to_owned();
        assert_eq!(
            registered.line.unwrap(),
            Line::Register { client, protocol: 1, session, after: Some(3), live: true }
        );
    }

    #[test]
    fn what_is_no_line_is_refused_with_its_reason_and_its_ref() {
        for (text, reason) in [
            ("", "not JSON"),
            ("{\"type\":", "not JSON"),
            ("[]", "not an object"),
            (r#"{"text":"x"}"#, "missing field `type`"),
            (r#"{"type":"dance"}"#, "unknown variant `dance`"),
            (r#"{"type":"inbound","text":"x","txet":1}"#, "unknown field `txet`"),
            (r#"{"type":"inbound","text":3}"#, "expected a string"),
            (r#"{"type":"inbound","text":"x","session":"../etc"}"#, "cannot be the name of a session"),
            (r#"{"type":"status","ref":3}"#, "`ref` must be a string"),
        ] {
            let (_, message) = refused(text);
            assert!(message.contains(reason), "{text}: {message}");
        }
        assert_eq!(refused(r#"{"type":"dance","ref":"r"}"#).0.as_deref(), Some("r"));
        let (_, deep) = refused(&format!("{{\"type\":{}", "[".repeat(100_000)));
        assert!(deep.contains("nested more than 64 levels deep"), "{deep}");
        let (_, long) = refused(&format!("{{\"type\":\"{}\"}}", "x".repeat(100_000)));
        assert!(long.len() < 1_000, "{} bytes", long.len());
    }
}
