//! `/mcp` as documented.

use super::Api;
use serde_json::json;

/// A session of an older version of the protocol, from its handshake to its end.
#[track_caller]
pub(super) fn a_session(api: &mut Api) {
    let token = Some(api.chat.clone());
    let handshake = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": { "protocolVersion": "2025-11-25", "capabilities": {} },
    });
    let begun = api.ask("POST", "/mcp", "/mcp", token.as_deref(), handshake.to_string().as_bytes());
    let id = begun.headers.lines().find(|line| line.starts_with("mcp-session-id: ")).expect("it has a session");
    api.more = format!("{id}\r\n");
    let said = br#"{"jsonrpc": "2.0", "method": "notifications/initialized"}"#;
    for (method, body, status) in
        [("POST", &said[..], 202), ("GET", b"", 200), ("DELETE", b"", 204), ("DELETE", b"", 404)]
    {
        let answer = api.ask(method, "/mcp", "/mcp", token.as_deref(), body);
        assert_eq!(answer.status, status, "{method} /mcp: {answer:?}");
    }
    api.more.clear();
}
