//! The three kinds of MCP servers (remote, component, program), and their keys.

use super::super::fields::TableFields;
use super::super::provider::{is_secret, variable};
use serde::Serialize;

/// How a server is reached. Each kind has its own keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum McpPlace {
    /// At an address.
    Remote(RemotePlace),
    /// A component, which runs in the sandbox.
    Component(ComponentPlace),
    /// A program of this machine, which runs outside of the sandbox.
    Command(CommandPlace),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RemotePlace {
    /// https; http only with `allow_http` or on this machine.
    pub url: String,
    /// "HEADER = VARIABLE" each.
    pub headers_env: Vec<String>,
    pub allow_http: bool,
    /// kiso's client id, if it was registered by hand at the server's authorization server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// The variable with the client secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret_env: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ComponentPlace {
    /// Absolute path of a `.wasm` file.
    pub component: String,
    /// Hosts that it may send requests to.
    pub hosts: Vec<String>,
    /// Whether these hosts may have private addresses.
    pub allow_private: bool,
    pub memory_mib: u64,
    /// "NAME = value" each.
    pub env: Vec<String>,
    /// "NAME" or "NAME = VARIABLE" each.
    pub env_from: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CommandPlace {
    /// Absolute path of a program, and its arguments.
    pub command: Vec<String>,
    /// Confirms that an administrator knows this; always true.
    pub outside_the_sandbox: bool,
    /// Whether it may start unconfined on a machine that has no confinement.
    pub unconfined: bool,
    /// Absolute paths that it may read.
    pub read: Vec<String>,
    /// TCP ports that it may connect to, on any host.
    pub connect_ports: Vec<u16>,
    /// "NAME = value" each.
    pub env: Vec<String>,
    /// "NAME" or "NAME = VARIABLE" each.
    pub env_from: Vec<String>,
}

/// The keys that only one kind has, by the key that names the kind.
const OWN: [(&str, &[&str]); 3] = [
    ("url", &["headers_env", "allow_http", "client_id", "client_secret_env"]),
    ("component", &["hosts", "allow_private", "memory_mib"]),
    ("command", &["outside_the_sandbox", "unconfined", "read", "connect_ports"]),
];

impl McpPlace {
    /// The identity of the server, stored with its allowed tools: if it changes, it is a different server.
    pub fn source(&self) -> String {
        match self {
            Self::Remote(place) => place.url.clone(),
            Self::Component(place) => format!("component {}", place.component),
            Self::Command(place) => {
                // As JSON, so that different commands never look the same.
                format!("command {}", serde_json::to_string(&place.command).unwrap_or_default())
            }
        }
    }

    /// Variables that a program is started with: from the file and from the environment.
    pub fn environment(&self) -> (&[String], &[String]) {
        match self {
            Self::Remote(_) => (&[], &[]),
            Self::Component(ComponentPlace { env, env_from, .. })
            | Self::Command(CommandPlace { env, env_from, .. }) => (env, env_from),
        }
    }
}

/// Splits "NAME = value".
pub fn name_and_value(entry: &str) -> Option<(&str, &str)> {
    let (name, value) = entry.split_once('=')?;
    Some((name.trim(), value.trim()))
}

/// Splits "NAME" or "NAME = VARIABLE": the name that the program sees, and the variable that holds the value.
pub fn name_and_variable(entry: &str) -> (&str, &str) {
    name_and_value(entry).unwrap_or((entry.trim(), entry.trim()))
}

/// Reads the keys of a server's kind. Errors are noted in `fields`.
pub(super) fn read(fields: &mut TableFields<'_>) -> Option<McpPlace> {
    let kinds: Vec<&str> = OWN.iter().map(|(kind, _)| *kind).filter(|kind| fields.has(kind)).collect();
    let allow_http = fields.bool("allow_http");
    let url = fields.checked("url", |url| check_url(url, allow_http).map(|()| url.to_owned()));
    let rule =
        "must be a list such as [\"Authorization = VARIABLE\"]: headers, and the variable with the value of each";
    let headers_env = fields.list("headers_env", rule, |entry| header_and_variable(entry).is_some());
    let client_id = fields.checked("client_id", |id| {
        let is_id = (1..=2_000).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_graphic());
        if is_id { Ok(id.to_owned()) } else { Err("must be the client id, of ASCII characters without spaces") }
    });
    let client_secret_env = fields.checked("client_secret_env", variable);
    let component = fields.checked("component", |path| {
        let is_path = path.starts_with('/') && path.ends_with(".wasm");
        if is_path { Ok(path.to_owned()) } else { Err("must be the absolute path of a .wasm file") }
    });
    let rule = "must be a list of hosts such as \"api.example.org\", \"*.example.org\" or \"api.example.org:8080\"";
    let hosts = fields.list("hosts", rule, is_host);
    let allow_private = fields.bool("allow_private");
    let memory_mib = fields.int("memory_mib");
    let rule = "must be a list of a program and its arguments, such as [\"/usr/bin/python3\", \"server.py\"]";
    let command = fields.list("command", rule, |word| !word.is_empty() && word.len() <= 4_096 && !word.contains('\0'));
    let outside_the_sandbox = fields.bool("outside_the_sandbox");
    let unconfined = fields.bool("unconfined");
    let rule = "must be a list of absolute paths";
    let read = fields.list("read", rule, |path| path.starts_with('/') && !path.contains('\0'));
    let connect_ports = fields.ports("connect_ports");
    let rule = "must be a list such as [\"LANG = C.UTF-8\"]; values that are secrets belong in the environment, and env_from \
                names their variables";
    let env = fields.list("env", rule, |entry| {
        let fits = |(name, value): (&str, &str)| {
            variable(name).is_ok() && !is_secret(name) && !value.chars().any(char::is_control)
        };
        name_and_value(entry).is_some_and(fits)
    });
    let rule = "must be a list of variables of the environment such as \"API_KEY\" or \"API_KEY = TRACKER_KEY\"";
    let env_from = fields.list("env_from", rule, |entry| {
        let (name, value) = name_and_variable(entry);
        variable(name).is_ok() && variable(value).is_ok()
    });
    let [kind] = kinds.as_slice() else {
        match kinds.as_slice() {
            [] => fields.missing("url", "such as \"https://mcp.example.org/mcp\", or component or command"),
            _ => fields.unfit(kinds[1], "cannot stand beside another of url, component and command"),
        }
        return None;
    };
    for (other, keys) in OWN.iter().filter(|(other, _)| other != kind) {
        for key in keys.iter() {
            fields.unfit(key, &format!("belongs to a server with {other}, and this one has {kind}"));
        }
    }
    if *kind == "url" {
        for key in ["env", "env_from"] {
            fields.unfit(key, "is for servers that kiso starts; use headers_env");
        }
        if client_id.is_none() && client_secret_env.is_some() {
            fields.unfit("client_secret_env", "needs client_id");
        }
        let url = url?;
        return Some(McpPlace::Remote(RemotePlace { url, headers_env, allow_http, client_id, client_secret_env }));
    }
    if *kind == "component" {
        let component = component?;
        let place = ComponentPlace { component, hosts, allow_private, memory_mib, env, env_from };
        return Some(McpPlace::Component(place));
    }
    if command.first().is_none_or(|program| !program.starts_with('/')) {
        fields.unfit("command", "must begin with the absolute path of a program");
    }
    if !outside_the_sandbox {
        fields.missing(
            "outside_the_sandbox = true",
            "command starts a program of this machine, and nothing of the sandbox holds for it",
        );
    }
    Some(McpPlace::Command(CommandPlace {
        command,
        outside_the_sandbox,
        unconfined,
        read,
        connect_ports,
        env,
        env_from,
    }))
}

/// Headers that are set by the protocol or the connection.
const TAKEN: [&str; 6] = ["accept", "connection", "content-length", "content-type", "host", "transfer-encoding"];

pub(super) fn header_and_variable(entry: &str) -> Option<(&str, &str)> {
    let (header, value) = name_and_value(entry)?;
    let lower = header.to_ascii_lowercase();
    let is_free = !TAKEN.contains(&lower.as_str()) && !lower.starts_with("mcp-");
    (is_free && http::HeaderName::from_bytes(header.as_bytes()).is_ok() && variable(value).is_ok())
        .then_some((header, value))
}

fn is_host(host: &str) -> bool {
    let name = host.strip_prefix("*.").unwrap_or(host);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']' | '_');
    (1..=260).contains(&name.len()) && name.chars().all(is_plain)
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
