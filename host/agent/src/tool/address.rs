//! Texts and addresses in the arguments of a call.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use kiso_sandbox::skill::InstalledSkill;

/// Returns every text in a value, at any depth.
pub(super) fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(values) => values.iter().flat_map(texts).collect(),
        Value::Object(map) => map.values().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

/// Returns the host of an address, with its port if that is not the default of the scheme.
pub(crate) fn host_and_port(text: &str) -> Option<String> {
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

/// Returns a host without its port.
pub(crate) fn bare(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    }
}

/// Returns the addresses among the words of a text, even after a prefix ("url=https://a.example").
pub(crate) fn addresses(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| c.is_whitespace() || "\"'`;|&()<>,".contains(c));
    words.filter_map(|word| {
        let (scheme, _) = word.split_once("://")?;
        let before = scheme.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || "+-.".contains(c)).len();
        Some(&word[before..])
    })
}

/// Returns a filter for skills that a command line names.
pub(super) fn named_in(line: &str) -> impl FnMut(&&Arc<InstalledSkill>) -> bool {
    let words: BTreeSet<&str> = line.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))).collect();
    move |skill| words.contains(skill.name().as_str())
}
