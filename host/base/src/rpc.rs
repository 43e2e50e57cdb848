//! JSON-RPC 2.0: the envelope of the protocols that are based on it, over any transport. Each protocol defines its own methods.

pub mod stream;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::json;

/// Maximum bytes of an id that is a text.
const MAX_ID: usize = 256;

/// Maximum bytes of a method's name.
const MAX_METHOD: usize = 128;

pub const PARSE_ERROR: i64 = -32_700;
pub const INVALID_REQUEST: i64 = -32_600;
pub const METHOD_NOT_FOUND: i64 = -32_601;
pub const INVALID_PARAMS: i64 = -32_602;
pub const INTERNAL_ERROR: i64 = -32_603;
/// kiso's own code: too many requests in progress. Outside of the ranges that JSON-RPC and the protocols reserve.
pub const BUSY: i64 = 429;

/// Connects a response with its request.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize)]
#[serde(untagged)]
pub enum RequestId {
    Number(i64),
    Text(String),
}

impl From<&RequestId> for Value {
    fn from(id: &RequestId) -> Value {
        match id {
            RequestId::Number(number) => json!(number),
            RequestId::Text(text) => json!(text),
        }
    }
}

/// A message of the peer.
#[derive(Debug, PartialEq)]
pub enum RpcMessage {
    Request {
        id: RequestId,
        method: String,
        params: Map<String, Value>,
    },
    Notification {
        method: String,
        params: Map<String, Value>,
    },
    /// The response to a request of this side. The error of an unreadable request has no id.
    Response {
        id: Option<RequestId>,
        result: Result<Value, RpcError>,
    },
}

/// Why a request failed.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcError {
    pub code: i64,
    pub message: String,
    pub data: Option<Box<Value>>,
}

impl RpcError {
    pub fn new(code: i64, message: impl Into<String>) -> RpcError {
        RpcError { code, message: message.into(), data: None }
    }

    pub fn params(message: impl Into<String>) -> RpcError {
        RpcError::new(INVALID_PARAMS, message)
    }

    /// Reads an error object of the peer. The code defaults to [`INTERNAL_ERROR`].
    fn from_object(error: &Value) -> RpcError {
        let code = error["code"].as_i64().unwrap_or(INTERNAL_ERROR);
        let message = error["message"].as_str().unwrap_or("an error without a message").to_owned();
        RpcError { code, message, data: error.get("data").cloned().map(Box::new) }
    }

    /// A failure of the host. Its reason is logged and not sent to the client.
    pub fn internal(error: &dyn std::fmt::Display) -> RpcError {
        tracing::error!("a request failed: {error}");
        RpcError::new(INTERNAL_ERROR, "internal error; kiso's log says why")
    }
}

/// Parses a message. The error has the id of the request, if that could be read.
pub fn read(bytes: &[u8]) -> Result<RpcMessage, (Option<RequestId>, RpcError)> {
    let message: Value = json::parse(bytes).map_err(|error| {
        let code = if matches!(error, json::JsonError::Depth) { INVALID_REQUEST } else { PARSE_ERROR };
        (None, RpcError::new(code, format!("the message is not the JSON that is expected here: {error}")))
    })?;
    let invalid = |id: Option<RequestId>, why: &str| (id, RpcError::new(INVALID_REQUEST, why));
    let Value::Object(mut message) = message else {
        return Err(invalid(None, "a message is one JSON object; batches are not taken"));
    };
    let id = match message.remove("id") {
        None => None,
        // Only an error may have a null id: that of a request whose id could not be read.
        Some(Value::Null) if message.contains_key("error") => None,
        Some(id) => match RequestId::deserialize(id) {
            Ok(RequestId::Text(text)) if text.len() > MAX_ID => {
                return Err(invalid(None, "an id has at most 256 bytes"));
            }
            Ok(id) => Some(id),
            Err(_) => return Err(invalid(None, "an id is a text or a whole number")),
        },
    };
    // Some servers write all members of a message, with null for absent ones.
    for (absent, other) in [("error", "result"), ("method", "result"), ("method", "error")] {
        if message.get(absent).is_some_and(Value::is_null) && message.contains_key(other) {
            message.remove(absent);
        }
    }
    if message.get("jsonrpc") != Some(&json!("2.0")) {
        return Err(invalid(id, "`jsonrpc` must be \"2.0\""));
    }
    let method = match message.remove("method") {
        Some(Value::String(method)) if method.len() <= MAX_METHOD => method,
        None if message.contains_key("error") => {
            let error = message.remove("error").unwrap_or_default();
            return Ok(RpcMessage::Response { id, result: Err(RpcError::from_object(&error)) });
        }
        None if message.contains_key("result") => {
            let result = message.remove("result").unwrap_or_default();
            return Ok(RpcMessage::Response { id, result: Ok(result) });
        }
        _ => return Err(invalid(id, "`method` is missing, or is not a short text")),
    };
    let params = match message.remove("params") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(params)) => params,
        Some(_) => return Err((id, RpcError::params("`params` must be an object"))),
    };
    Ok(match id {
        Some(id) => RpcMessage::Request { id, method, params },
        None => RpcMessage::Notification { method, params },
    })
}

/// Returns a text parameter.
pub fn text_of<'p>(params: &'p Map<String, Value>, name: &str) -> Result<&'p str, RpcError> {
    match params.get(name) {
        Some(Value::String(text)) if text.len() <= 4_096 => Ok(text),
        Some(Value::String(_)) => Err(RpcError::params(format!("`{name}` has more than 4,096 bytes"))),
        _ => Err(RpcError::params(format!("`{name}` must be a text"))),
    }
}

/// Builds the response to a request.
pub fn response(id: &RequestId, result: Result<Value, RpcError>) -> Value {
    match result {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": Value::from(id), "result": result }),
        Err(error) => refusal(Some(id), error),
    }
}

/// Builds an error response, possibly without an id.
pub fn refusal(id: Option<&RequestId>, error: RpcError) -> Value {
    let RpcError { code, message, data } = error;
    let mut error = json!({ "code": code, "message": message });
    if let Some(data) = data {
        error["data"] = *data;
    }
    json!({ "jsonrpc": "2.0", "id": id.map(Value::from), "error": error })
}

pub fn request(id: &RequestId, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": Value::from(id), "method": method, "params": params })
}

pub fn notification(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_a_request_a_notification_or_a_response() {
        let read = |text: &str| read(text.as_bytes()).map_err(|(id, error)| (id, error.code));
        let (id, method) = (RequestId::Text("a".to_owned()), "ping".to_owned());
        assert_eq!(
            read(r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#),
            Ok(RpcMessage::Request { id, method: method.clone(), params: Map::new() })
        );
        assert_eq!(
            read(r#"{"jsonrpc":"2.0","method":"ping","params":{}}"#),
            Ok(RpcMessage::Notification { method, params: Map::new() })
        );
        let (id, result) = (Some(RequestId::Number(1)), Ok(json!({})));
        assert_eq!(read(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#), Ok(RpcMessage::Response { id, result }));
        let result = Err(RpcError::new(PARSE_ERROR, "no"));
        assert_eq!(
            read(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}"#),
            Ok(RpcMessage::Response { id: None, result })
        );
        for text in [
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":null}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":null,"params":null,"result":{},"error":null}"#,
        ] {
            let (id, result) = (Some(RequestId::Number(1)), Ok(json!({})));
            assert_eq!(read(text), Ok(RpcMessage::Response { id, result }), "{text}");
        }
        let (id, result) = (Some(RequestId::Number(1)), Err(RpcError::new(5, "no")));
        let text = r#"{"jsonrpc":"2.0","id":1,"method":null,"result":null,"error":{"code":5,"message":"no"}}"#;
        assert_eq!(read(text), Ok(RpcMessage::Response { id, result }));
        let seven = Some(RequestId::Number(7));
        for (text, refused) in [
            ("{", (None, PARSE_ERROR)),
            ("[]", (None, INVALID_REQUEST)),
            (r#"{"jsonrpc":"2.0","id":null,"method":"x"}"#, (None, INVALID_REQUEST)),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"x"}"#, (None, INVALID_REQUEST)),
            (r#"{"jsonrpc":"1.0","id":7,"method":"x"}"#, (seven.clone(), INVALID_REQUEST)),
            (r#"{"jsonrpc":"2.0","id":7}"#, (seven.clone(), INVALID_REQUEST)),
            (r#"{"jsonrpc":"2.0","id":7,"method":"x","params":[1]}"#, (seven, INVALID_PARAMS)),
        ] {
            assert_eq!(read(text), Err(refused), "{text}");
        }
        let deep = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{}1{}}}"#, "[".repeat(99), "]".repeat(99));
        assert_eq!(read(&deep), Err((None, INVALID_REQUEST)));
    }
}
