//! Texts and addresses among the arguments of a call.

use serde_json::Value;

/// Every text in a value, at any depth.
pub fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(values) => values.iter().flat_map(texts).collect(),
        Value::Object(map) => map.values().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

/// The host of an address, with its port where that is not the scheme's own.
pub fn host_and_port(text: &str) -> Option<String> {
    let uri: http::Uri = text.trim().parse().ok()?;
    let own = match uri.scheme_str()? {
        "http" => 80,
        "https" => 443,
        _ => return None,
    };
    let host = uri.host()?.to_ascii_lowercase();
    Some(match uri.port_u16().filter(|port| *port != own) {
        Some(port) => format!("{host}:{port}"),
        None => host,
    })
}

/// A host without its port.
pub fn bare(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    }
}
