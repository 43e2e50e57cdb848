//! Headers of a request, compared with its message.

use axum::http::{HeaderMap, HeaderName, Uri, header};
use serde_json::{Map, Value};

use super::era::HEADER_MISMATCH;
use super::era::{self, Era, RequestMeta};
use crate::auth;
use crate::auth::browser::{self, Sender};
use crate::error::ApiError;
use kiso_base::rpc::RpcError;

const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// Prefix and suffix of an encoded `Mcp-Name`.
const ENCODED: (&str, &str) = ("=?base64?", "?=");

/// Refuses pages of other origins, even with a valid token.
pub(super) fn check_origin(headers: &HeaderMap) -> Result<(), ApiError> {
    match browser::sender(headers, &Uri::from_static("/mcp")) {
        Sender::Foreign => Err(auth::foreign()),
        Sender::Own | Sender::Nobody => Ok(()),
    }
}

/// Returns whether a client accepts JSON, and whether it accepts events.
pub(super) fn accepts(headers: &HeaderMap) -> (bool, bool) {
    let mut all = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok()).peekable();
    if all.peek().is_none() {
        return (true, false);
    }
    let (mut json, mut events) = (false, false);
    for one in all.flat_map(|value| value.split(',')) {
        match one.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
            "application/json" | "application/*" => json = true,
            "text/event-stream" | "text/*" => events = true,
            "*/*" => (json, events) = (true, true),
            _ => {}
        }
    }
    (json, events)
}

/// Returns the metadata of a message. In the newer era, headers repeat it for intermediaries, and must not contradict it.
pub(super) fn read_meta(
    headers: &HeaderMap,
    method: &str,
    params: &Map<String, Value>,
) -> Result<RequestMeta, RpcError> {
    let mismatch = |what: &str| Err(RpcError::new(HEADER_MISMATCH, format!("Header mismatch: {what}")));
    let version = headers.get(VERSION).map(|value| value.to_str().unwrap_or("?"));
    let said = era::version_of(params);
    if said.is_some() && said != version {
        return mismatch("MCP-Protocol-Version does not say what the message says");
    }
    let meta = RequestMeta::read(params)?;
    if meta.era == Era::Legacy {
        return match version {
            Some(version) if version == era::MODERN && method != "initialize" => {
                Err(RpcError::params("`_meta` must say the protocol version and the client's capabilities"))
            }
            Some(version) if !era::supported().contains(&version) => Err(era::unsupported(version)),
            _ => Ok(meta),
        };
    }
    if headers.get(METHOD).and_then(|value| value.to_str().ok()) != Some(method) {
        return mismatch("Mcp-Method does not say the method of the message");
    }
    let named = match method {
        "tools/call" | "prompts/get" => params.get("name"),
        "resources/read" => params.get("uri"),
        _ => return Ok(meta),
    };
    let said = headers.get(NAME).and_then(|value| value.to_str().ok()).and_then(decoded);
    if said.is_none() || said.as_deref() != named.and_then(Value::as_str) {
        return mismatch("Mcp-Name does not say what the message names");
    }
    Ok(meta)
}

/// Decodes the value of a header that may be encoded.
fn decoded(value: &str) -> Option<String> {
    let encoded = value.strip_prefix(ENCODED.0).and_then(|rest| rest.strip_suffix(ENCODED.1));
    match encoded {
        None => Some(value.to_owned()),
        Some(encoded) => String::from_utf8(data_encoding::BASE64.decode(encoded.as_bytes()).ok()?).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn a_client_says_what_it_takes() {
        let of = |value: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.extend(value.map(|value| (header::ACCEPT, HeaderValue::from_str(value).unwrap())));
            accepts(&headers)
        };
        assert_eq!(of(None), (true, false));
        assert_eq!(of(Some("application/json, text/event-stream")), (true, true));
        assert_eq!(of(Some("*/*;q=0.1")), (true, true));
        assert_eq!(of(Some("text/html")), (false, false));
    }

    #[test]
    fn a_name_may_be_encoded() {
        assert_eq!(decoded("echo").as_deref(), Some("echo"));
        assert_eq!(decoded("=?base64?SGVsbG8sIOS4lueVjA==?=").as_deref(), Some("Hello, 世界"));
        assert_eq!(decoded("=?base64?!?="), None);
    }
}
