//! `[mcp.NAME]`: servers of the Model Context Protocol whose tools plans may use. Keys never stand here: variables of the environment
//! hold the values of headers.
//!
//! ```toml
//! [mcp.tracker]
//! url = "https://mcp.example.org/mcp"
//! headers_env = ["Authorization = TRACKER_AUTHORIZATION"]
//! allow = ["search_issues", "get_issue"]
//! ```

use super::fields::{NAME_RULE, TableFields, is_name};
use super::key::{Effect, Kind, NamedTable, ValueError, keys};
use super::provider::{is_secret, variable};
use serde::Serialize;
use std::borrow::Cow;
use toml::Spanned;
use toml::de::DeValue;

/// One `[mcp.NAME]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct McpSettings {
    pub name: String,
    /// Where it is reached: https, or http where `allow_http` or on this machine.
    pub url: String,
    /// "HEADER = VARIABLE" each.
    pub headers_env: Vec<String>,
    /// The tools that may be used, once an administrator has looked at them.
    pub allow: Vec<String>,
    pub allow_http: bool,
    /// Seconds for a call, from the connection to the end of the answer.
    pub timeout_s: u64,
    /// Size in KiB of an answer.
    pub max_result_kib: u64,
}

impl McpSettings {
    /// Headers that are sent, each with the variable that holds its value.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.headers_env.iter().filter_map(|entry| header_and_variable(entry))
    }
}

/// Its keys, and what the documentation says about these tables.
#[rustfmt::skip]
pub(super) const TABLE: NamedTable = NamedTable {
    name: "mcp",
    heading: "[mcp.NAME]",
    doc: "MCP servers whose tools plans can use; see docs/mcp.md.",
    example: EXAMPLE,
    after: "http",
    effect: Effect::NextRun,
    id: "name",
    keys: &keys(Effect::NextRun, [
        ("url", Kind::Characters(2_000, true), "URL of the server (Streamable HTTP), with https."),
        ("headers_env", Kind::List(8), "Headers with the environment variable that holds the value of each, such as `Authorization = TRACKER_AUTHORIZATION`."),
        ("allow", Kind::List(64), "Tools that can be used after `kiso mcp allow NAME`; all others are off."),
        ("allow_http", Kind::Bool(false), "Whether to allow http:// to another machine. Anyone on the way can then read and change what is sent."),
        ("timeout_s", Kind::Int(60, 1, 3_600), "Seconds for a call."),
        ("max_result_kib", Kind::Int(256, 1, 16_384), "Size in KiB of the response to a call; longer ones are errors."),
    ]),
};

/// Each is a category that the router chooses from.
const MAX_SERVERS: usize = 32;

/// Bytes of a tool's name. With the server's, it must fit into what providers of models take.
const MAX_TOOL: usize = 48;

/// How the commented file of a fresh home shows servers.
const EXAMPLE: &str = "
# MCP servers whose tools plans can use; see docs/mcp.md. `kiso mcp allow NAME` shows the tools and allows them.
# [mcp.tracker]
# url = \"https://mcp.example.org/mcp\"
# headers_env = [\"Authorization = TRACKER_AUTHORIZATION\"]
# allow = [\"search_issues\"]
";

/// Headers that the protocol or the connection sets.
const TAKEN: [&str; 6] = ["accept", "connection", "content-length", "content-type", "host", "transfer-encoding"];

/// Reads one table. `others` are those that were read before it.
pub(super) fn read<'a>(
    name: &'a Spanned<Cow<'a, str>>,
    value: &'a Spanned<DeValue<'a>>,
    others: usize,
) -> Result<McpSettings, Vec<ValueError>> {
    let text = name.get_ref().as_ref();
    // Two underscores divide server and tool in the names that models know.
    if !is_name(text) || text.contains("__") || text.len() > 14 {
        let rule = format!("a server's name has {NAME_RULE}, no two underscores in a row, and at most 14 characters");
        return Err(vec![(name.span(), format!("mcp.{text:?}: {rule}"))]);
    }
    if others >= MAX_SERVERS {
        return Err(vec![(name.span(), format!("mcp.{text}: there may be {MAX_SERVERS} servers"))]);
    }
    let mut fields = TableFields::new(&TABLE, format!("mcp.{text}"), name.span(), value)?;
    let allow_http = fields.bool("allow_http");
    let url = fields.checked("url", |url| check_url(url, allow_http).map(|()| url.to_owned()));
    if !fields.has("url") {
        fields.missing("url", "such as \"https://mcp.example.org/mcp\"");
    }
    let rule =
        "must be a list such as [\"Authorization = VARIABLE\"]: headers, and the variable with the value of each";
    let headers_env = fields.list("headers_env", rule, |entry| header_and_variable(entry).is_some());
    let rule = "must be a list of names of tools: 1 to 48 letters, digits, - or _";
    let allow = fields.list("allow", rule, |tool| {
        let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
        (1..=MAX_TOOL).contains(&tool.len()) && tool.bytes().all(is_plain)
    });
    let timeout_s = fields.int("timeout_s");
    let max_result_kib = fields.int("max_result_kib");
    fields.finish(|key| match key {
        "command" | "args" => Some("kiso starts no programs of this machine as servers."),
        key => is_secret(key)
            .then_some("keys do not belong into this file; name the environment variable with headers_env."),
    })?;
    let Some(url) = url else { return Err(Vec::new()) };
    Ok(McpSettings { name: text.to_owned(), url, headers_env, allow, allow_http, timeout_s, max_result_kib })
}

fn header_and_variable(entry: &str) -> Option<(&str, &str)> {
    let (header, value) = entry.split_once('=')?;
    let (header, value) = (header.trim(), value.trim());
    let lower = header.to_ascii_lowercase();
    let is_free = !TAKEN.contains(&lower.as_str()) && !lower.starts_with("mcp-");
    (is_free && http::HeaderName::from_bytes(header.as_bytes()).is_ok() && variable(value).is_ok())
        .then_some((header, value))
}

fn check_url(url: &str, allow_http: bool) -> Result<(), &'static str> {
    if url.contains(|c: char| c.is_whitespace() || c.is_control() || !c.is_ascii()) || url.contains('#') {
        return Err("must have no spaces, no # and only ASCII characters");
    }
    let Ok(uri) = url.parse::<http::Uri>() else {
        return Err("must be an address, such as \"https://example.org/mcp\"");
    };
    let Some(host) = uri.host().filter(|host| !host.is_empty()) else { return Err("must name a host") };
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err("must hold no user or password; use headers_env");
    }
    let is_here = matches!(host, "localhost" | "127.0.0.1" | "[::1]");
    match uri.scheme_str() {
        Some("https") => Ok(()),
        Some("http") if is_here || allow_http => Ok(()),
        Some("http") => Err("must begin with https://; http:// to another machine needs allow_http = true"),
        _ => Err("must begin with https://"),
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    fn problems(text: &str) -> String {
        let problems = Config::parse(text.as_bytes()).unwrap_err();
        problems.iter().map(|problem| format!("{problem}\n")).collect()
    }

    #[test]
    fn a_server_is_shown_as_it_is_read() {
        let text = "[mcp.a]\nurl = \"https://example.org/mcp\"\nheaders_env = [\"X-Key=A_KEY\"]\nallow = [\"b_c\"]\n\
                    timeout_s = 5\n[mcp.here]\nurl = \"http://127.0.0.1:8080\"\n";
        let config = Config::parse(text.as_bytes()).unwrap();
        assert_eq!(config.mcp[0].headers().collect::<Vec<_>>(), [("X-Key", "A_KEY")]);
        assert_eq!((config.mcp[0].timeout_s, config.mcp[1].max_result_kib), (5, 256));
        let shown = config.effective(|_| true);
        assert_eq!(Config::parse(shown.as_bytes()).unwrap(), config, "{shown}");
    }

    #[test]
    fn what_is_wrong_with_a_server_is_told() {
        let url = |url: &str| format!("[mcp.a]\nurl = \"{url}\"\n");
        let fine = url("https://example.org/");
        for (text, said) in [
            ("[mcp.a]\n".to_owned(), "[mcp.a] needs url"),
            (url("http://example.org/mcp"), "needs allow_http = true"),
            (url("https://u:hidden@example.org/"), "must hold no user or password"),
            (url("ftp://example.org"), "must begin with https://"),
            (fine.clone() + "headers_env = [\"Host = X\"]\n", "must be a list such as"),
            (fine.clone() + "headers_env = [\"X = sk-hidden\"]\n", "must be a list such as"),
            (fine.clone() + "token = \"hidden\"\n", "name the environment variable with headers_env"),
            (fine.clone() + "command = [\"x\"]\n", "starts no programs of this machine"),
            (fine.clone() + "allow = [\"*\"]\n", "must be a list of names of tools"),
            (fine + "max_result_kib = 0\n", "out of range"),
            ("[mcp.a__b]\n".to_owned(), "no two underscores"),
        ] {
            let told = problems(&text);
            assert!(told.contains(said) && !told.contains("hidden"), "{text}: {told}");
        }
    }
}
