//! Detects the protocol era of a request, and adapts results to it.

use serde_json::{Map, Value, json};

use kiso_base::rpc::RpcError;

use kiso_agent::mcp::version::{CAPABILITIES, CLIENT, UNSUPPORTED_VERSION, VERSION};
pub(super) use kiso_agent::mcp::version::{LEGACY, MODERN};

/// A header contradicts the message.
pub(super) const HEADER_MISMATCH: i64 = -32_020;

const SERVER: &str = "io.modelcontextprotocol/serverInfo";
pub(super) const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// Milliseconds for which a client may cache a list of tools or prompts. Listening clients are notified of changes.
const LIST_TTL_MS: u64 = 60_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Era {
    /// Up to 2025-11-25.
    Legacy,
    /// From 2026-07-28 on.
    Modern,
}

/// How long a client may cache a result, in the modern era.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Caching {
    /// This kind of result has no caching information.
    None,
    /// The same for all clients.
    Public,
    /// Belongs to a session and expires at once.
    Private,
}

/// Metadata of a request.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RequestMeta {
    pub era: Era,
    /// The client's name, if the request contains it.
    pub client: Option<String>,
    /// Token for progress notifications, if the client wants them.
    pub progress: Option<Value>,
}

impl RequestMeta {
    /// Reads `_meta`.
    pub(super) fn read(params: &Map<String, Value>) -> Result<RequestMeta, RpcError> {
        let none = Map::new();
        let meta = match params.get("_meta") {
            None => &none,
            Some(Value::Object(meta)) => meta,
            Some(_) => return Err(RpcError::params("`_meta` must be an object")),
        };
        let progress = match meta.get("progressToken") {
            Some(token @ Value::String(text)) if text.len() <= 256 => Some(token.clone()),
            Some(token @ Value::Number(number)) if number.is_i64() || number.is_u64() => Some(token.clone()),
            Some(_) => return Err(RpcError::params("`progressToken` is a short text or a whole number")),
            None => None,
        };
        let Some(version) = meta.get(VERSION) else {
            return Ok(RequestMeta { era: Era::Legacy, client: None, progress });
        };
        let Some(version) = version.as_str() else {
            return Err(RpcError::params(format!("`{VERSION}` must be a text")));
        };
        if version != MODERN {
            return Err(unsupported(version));
        }
        if !meta.get(CAPABILITIES).is_some_and(Value::is_object) {
            return Err(RpcError::params(format!("`_meta` must have `{CAPABILITIES}`, an object")));
        }
        let client = meta.get(CLIENT).and_then(|client| client["name"].as_str()).map(str::to_owned);
        Ok(RequestMeta { era: Era::Modern, client, progress })
    }
}

/// Returns the version that a message states.
pub(super) fn version_of(params: &Map<String, Value>) -> Option<&str> {
    params.get("_meta")?.get(VERSION)?.as_str()
}

/// The error for an unsupported version.
pub(super) fn unsupported(version: &str) -> RpcError {
    let requested: String = version.chars().take(64).collect();
    let data = json!({ "supported": supported(), "requested": requested });
    RpcError { data: Some(Box::new(data)), ..RpcError::new(UNSUPPORTED_VERSION, "Unsupported protocol version") }
}

/// Returns all supported versions.
pub(super) fn supported() -> Vec<&'static str> {
    std::iter::once(MODERN).chain(LEGACY).collect()
}

/// Adapts a result to its era.
pub(super) fn dress(era: Era, caching: Caching, mut result: Value) -> Value {
    if era == Era::Modern {
        result["resultType"] = json!("complete");
        let (ttl, scope) = match caching {
            Caching::None => (None, ""),
            Caching::Public => (Some(LIST_TTL_MS), "public"),
            Caching::Private => (Some(0), "private"),
        };
        if let Some(ttl) = ttl {
            (result["ttlMs"], result["cacheScope"]) = (json!(ttl), json!(scope));
        }
        result["_meta"][SERVER] = server_info();
    }
    result
}

pub(super) fn server_info() -> Value {
    json!({ "name": "kiso", "title": "kiso", "version": env!("CARGO_PKG_VERSION") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(meta: Value) -> Result<RequestMeta, i64> {
        let params = json!({ "_meta": meta });
        RequestMeta::read(params.as_object().unwrap()).map_err(|error| error.code)
    }

    #[test]
    fn what_says_its_version_is_of_the_newer_era() {
        let modern = json!({ VERSION: MODERN, CAPABILITIES: {}, CLIENT: { "name": "c" }, "progressToken": 1 });
        let read = meta(modern).unwrap();
        assert_eq!((read.era, read.client.as_deref(), read.progress), (Era::Modern, Some("c"), Some(json!(1))));
        assert_eq!(meta(json!({})).unwrap().era, Era::Legacy);
        assert_eq!(meta(json!({ VERSION: MODERN })), Err(-32_602));
        assert_eq!(meta(json!({ VERSION: "1900-01-01", CAPABILITIES: {} })), Err(-32_022));
        assert_eq!(meta(json!({ "progressToken": {} })), Err(-32_602));
    }

    #[test]
    fn only_the_newer_era_is_told_how_long_to_keep_a_list() {
        let list = || json!({ "tools": [] });
        assert_eq!(dress(Era::Legacy, Caching::Public, list()), list());
        let dressed = dress(Era::Modern, Caching::Public, list());
        assert_eq!((&dressed["resultType"], &dressed["cacheScope"]), (&json!("complete"), &json!("public")));
        assert_eq!(dress(Era::Modern, Caching::None, list()).get("ttlMs"), None);
    }
}
