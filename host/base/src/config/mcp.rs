//! `[mcp.NAME]`: servers of the Model Context Protocol whose tools plans may use. The file never contains keys: environment
//! variables hold the values of headers and the environment of programs.
//!
//! ```toml
//! [mcp.tracker]
//! url = "https://mcp.example.org/mcp"
//! headers_env = ["Authorization = TRACKER_AUTHORIZATION"]
//! allow = ["search_issues", "get_issue"]
//!
//! [mcp.units]
//! component = "/srv/units.wasm"
//! allow = ["convert"]
//!
//! [mcp.notes]
//! command = ["/usr/bin/python3", "/srv/notes/server.py"]
//! outside_the_sandbox = true
//! read = ["/srv/notes"]
//! allow = ["find"]
//! ```

mod place;

pub use self::place::{CommandPlace, ComponentPlace, McpPlace, RemotePlace, name_and_value, name_and_variable};

use self::place::header_and_variable;
use super::fields::{NAME_RULE, TableFields, is_name};
use super::key::{Effect, Kind, NamedTable, ValueError, keys};
use super::provider::is_secret;
use kiso_plan::label::Confidentiality;
use kiso_plan::sink::ToolEffect;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeMap;
use toml::Spanned;
use toml::de::DeValue;

/// One `[mcp.NAME]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct McpSettings {
    pub name: String,
    /// The server's address, or what to start.
    #[serde(flatten)]
    pub place: McpPlace,
    /// The tools that may be used, once an administrator has approved them.
    pub allow: Vec<String>,
    /// Those of them that need a person's approval before each call in a run.
    pub ask: Vec<String>,
    /// Effects of tools, where the administrator states them. All arguments of other tools count as addresses.
    pub effects: BTreeMap<String, ToolEffect>,
    /// Who may read the server's results.
    pub results: Confidentiality,
    /// Timeout of a call in seconds, from the connection to the end of the response.
    pub timeout_s: u64,
    /// Maximum size of a response in KiB.
    pub max_result_kib: u64,
}

impl McpSettings {
    /// Headers that are sent, each with the name of the variable that holds its value.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        let entries = match &self.place {
            McpPlace::Remote(place) => place.headers_env.as_slice(),
            McpPlace::Component(_) | McpPlace::Command(_) => &[],
        };
        entries.iter().filter_map(|entry| header_and_variable(entry))
    }
}

/// The keys and the documentation of these tables.
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
        ("url", Kind::Characters(2_000, false), "URL of the server (Streamable HTTP), with https. A server has `url`, `component` or `command`."),
        ("headers_env", Kind::List(8), "Headers with the environment variable that holds the value of each, such as `Authorization = TRACKER_AUTHORIZATION`."),
        ("allow", Kind::List(64), "Tools that can be used after `kiso mcp allow NAME`; all others are off."),
        ("ask", Kind::List(64), "Tools among those of `allow` that are called only after you have accepted the call; see docs/approvals.md."),
        ("effects", Kind::Effects(64), "What tools do: `\"read\"` for one that changes nothing, or which of its arguments are `address`, `value` and `content`; see docs/policy.md."),
        ("results", Kind::Word("session", &["everybody", "session", "hosts", "nobody"]), "Who can be sent what the server answers: everybody, whoever a trusted decision names, the server alone, or nobody."),
        ("allow_http", Kind::Bool(false), "Whether to allow http:// to another machine. Anyone on the way can then read and change what is sent."),
        ("client_id", Kind::Characters(2_000, false), "Client id for `kiso mcp login`, where kiso was registered by hand; also the URL of a client metadata document."),
        ("client_secret_env", Kind::Characters(64, false), "Environment variable that holds the secret of `client_id`, if it has one."),
        ("component", Kind::Characters(1_000, false), "Absolute path of a `.wasm` file (`wasi:cli/command`) that is started as the server, in the sandbox."),
        ("hosts", Kind::List(16), "Hosts that the component can send HTTP requests to, such as `api.example.org`."),
        ("allow_private", Kind::Bool(false), "Whether these hosts can have private addresses and be reached over http."),
        ("memory_mib", Kind::Int(128, 1, 4_096), "Memory in MiB of the component, at most `engine.max_memory_mib`."),
        ("command", Kind::List(64), "Program of this machine that is started as the server, by its absolute path, and its arguments. It runs **outside the sandbox**."),
        ("outside_the_sandbox", Kind::Bool(false), "Must be `true` for a server with `command`."),
        ("read", Kind::List(16), "Absolute paths that the program can read, besides what it needs to start."),
        ("connect_ports", Kind::Ports(16), "TCP ports that the program can connect to, on any host; they limit no host."),
        ("unconfined", Kind::Bool(false), "Whether to start the program without confinement if this machine cannot confine it."),
        ("env", Kind::List(32), "Environment variables of the component or program, such as `LANG = C.UTF-8`. It has no others."),
        ("env_from", Kind::List(32), "Environment variables that it gets from kiso's environment, such as `API_KEY`, or `API_KEY = TRACKER_KEY` for one with another name."),
        ("timeout_s", Kind::Int(60, 1, 3_600), "Seconds for a call; for a component at most `engine.max_timeout_s`."),
        ("max_result_kib", Kind::Int(256, 1, 16_384), "Size in KiB of the response to a call; longer ones are errors."),
    ]),
};

/// Words of `results`.
const RESULTS: [(&str, Confidentiality); 4] = [
    ("everybody", Confidentiality::Everybody),
    ("session", Confidentiality::Session),
    ("hosts", Confidentiality::Hosts),
    ("nobody", Confidentiality::Nobody),
];

/// Each server is a category that the router chooses from.
const MAX_SERVERS: usize = 32;

/// Maximum bytes of a tool's name. Together with the server's name, it must fit the limit of model providers.
const MAX_TOOL: usize = 48;

/// How the commented file of a fresh home shows servers.
const EXAMPLE: &str = "
# MCP servers whose tools plans can use; see docs/mcp.md. `kiso mcp allow NAME` shows the tools and allows them.
# [mcp.tracker]
# url = \"https://mcp.example.org/mcp\"
# headers_env = [\"Authorization = TRACKER_AUTHORIZATION\"]
# allow = [\"search_issues\"]
# A server can also be a component in the sandbox (component), or a program outside of it (command).
";

/// Reads one table. `others` are the tables that were read before it.
pub(super) fn read<'a>(
    name: &'a Spanned<Cow<'a, str>>,
    value: &'a Spanned<DeValue<'a>>,
    others: usize,
) -> Result<McpSettings, Vec<ValueError>> {
    let text = name.get_ref().as_ref();
    // Two underscores separate server and tool in the names that models see.
    if !is_name(text) || text.contains("__") || text.len() > 14 {
        let rule = format!("a server's name has {NAME_RULE}, no two underscores in a row, and at most 14 characters");
        return Err(vec![(name.span(), format!("mcp.{text:?}: {rule}"))]);
    }
    if others >= MAX_SERVERS {
        return Err(vec![(name.span(), format!("mcp.{text}: there may be {MAX_SERVERS} servers"))]);
    }
    let mut fields = TableFields::new(&TABLE, format!("mcp.{text}"), name.span(), value)?;
    let place = place::read(&mut fields);
    let rule = "must be a list of names of tools: 1 to 48 letters, digits, - or _";
    let is_tool = |tool: &str| {
        let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
        (1..=MAX_TOOL).contains(&tool.len()) && tool.bytes().all(is_plain)
    };
    let allow = fields.list("allow", rule, is_tool);
    let rule = "must be a list of tools that `allow` names, too";
    let ask = fields.list("ask", rule, |tool| is_tool(tool) && allow.iter().any(|allowed| allowed == tool));
    let rule = "must name tools that `allow` names, too";
    let effects = fields.effects("effects", rule, |tool| allow.iter().any(|allowed| allowed == tool));
    let results = fields.one_of("results", &RESULTS).unwrap_or(Confidentiality::Session);
    let timeout_s = fields.int("timeout_s");
    let max_result_kib = fields.int("max_result_kib");
    fields.finish(|key| match key {
        "args" => Some("arguments stand in command, behind the program."),
        key => is_secret(key)
            .then_some("keys do not belong in this file; name the environment variable with headers_env or env_from."),
    })?;
    let Some(place) = place else { return Err(Vec::new()) };
    Ok(McpSettings { name: text.to_owned(), place, allow, ask, effects, results, timeout_s, max_result_kib })
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
        let text = "[mcp.a]\nurl = \"https://example.org/mcp\"\nheaders_env = [\"X-Key=A_KEY\"]\nallow = [\"b_c\", \"d\"]\nask = [\"b_c\"]\n\
                    results = \"hosts\"\neffects = { b_c = { address = [\"to\"], content = [\"x-y z\"] }, d = \"read\" }\ntimeout_s = 5\n[mcp.here]\nurl = \"http://127.0.0.1:8080\"\n";
        let config = Config::parse(text.as_bytes()).unwrap();
        assert_eq!(config.mcp[0].headers().collect::<Vec<_>>(), [("X-Key", "A_KEY")]);
        assert_eq!((config.mcp[0].timeout_s, config.mcp[1].max_result_kib), (5, 256));
        let text = "[mcp.a]\ncomponent = \"/a.wasm\"\nhosts = [\"a.example:8080\"]\nenv = [\"A = b=c\"]\n[mcp.b]\n\
                    command = [\"/bin/b\", \"--x\"]\noutside_the_sandbox = true\nread = [\"/srv\"]\nenv_from = [\"K = L\", \"M\"]\n\
                    connect_ports = [443, 18_080]\n";
        let started = Config::parse(text.as_bytes()).unwrap();
        for config in [&config, &started] {
            let shown = config.effective(|_| true);
            assert_eq!(Config::parse(shown.as_bytes()).unwrap(), *config, "{shown}");
        }
        let sources: Vec<_> = started.mcp.iter().map(|settings| settings.place.source()).collect();
        assert_eq!(sources, ["component /a.wasm", "command [\"/bin/b\",\"--x\"]"]);
        let shown = config.effective(|_| true);
        assert_eq!(Config::parse(shown.as_bytes()).unwrap(), config, "{shown}");
    }

    #[test]
    fn what_is_wrong_with_a_server_is_told() {
        let url = |url: &str| format!("[mcp.a]\nurl = \"{url}\"\n");
        let fine = url("https://example.org/");
        let native = |more: &str| format!("[mcp.a]\ncommand = [\"/bin/x\"]\noutside_the_sandbox = true\n{more}\n");
        for (text, said) in [
            ("[mcp.a]\n".to_owned(), "[mcp.a] needs url"),
            (url("http://example.org/mcp"), "needs allow_http = true"),
            (url("https://u:hidden@example.org/"), "must hold no user or password"),
            (url("ftp://example.org"), "must begin with https://"),
            (fine.clone() + "headers_env = [\"Host = X\"]\n", "must be a list such as"),
            (fine.clone() + "headers_env = [\"X = sk-hidden\"]\n", "must be a list such as"),
            (fine.clone() + "token = \"hidden\"\n", "name the environment variable with headers_env"),
            (fine.clone() + "command = [\"/x\"]\n", "cannot stand beside another"),
            (fine.clone() + "client_secret_env = \"X\"\n", "needs client_id"),
            (native("client_id = \"x\""), "belongs to a server with url"),
            (fine.clone() + "hosts = [\"a.example\"]\n", "belongs to a server with component"),
            (fine.clone() + "env = [\"A = b\"]\n", "is for servers that kiso starts"),
            ("[mcp.a]\ncommand = [\"/bin/x\"]\n".to_owned(), "needs outside_the_sandbox = true"),
            ("[mcp.a]\ncommand = [\"x\"]\noutside_the_sandbox = true\n".to_owned(), "absolute path of a program"),
            (native("connect_ports = [0]"), "ports from 1 to 65535"),
            (native("connect_ports = [\"443\"]"), "ports from 1 to 65535"),
            (native("read = [\"srv\"]"), "must be a list of absolute paths"),
            (native("env = [\"API_KEY = hidden\"]"), "env_from names their variables"),
            (native("env_from = [\"sk-hidden\"]"), "must be a list of variables"),
            (native("memory_mib = 5"), "belongs to a server with component, and this one has command"),
            ("[mcp.a]\ncomponent = \"a.wasm\"\n".to_owned(), "must be the absolute path of a .wasm file"),
            (fine.clone() + "allow = [\"*\"]\n", "must be a list of names of tools"),
            (fine.clone() + "allow = [\"a\"]\nask = [\"b\"]\n", "must be a list of tools that `allow` names"),
            (fine.clone() + "allow = [\"a\"]\n[mcp.a.effects]\nb = \"read\"\n", "must name tools that `allow` names"),
            (fine.clone() + "allow = [\"a\"]\n[mcp.a.effects]\na = \"write\"\n", "must be \"read\", or a table"),
            (fine.clone() + "allow = [\"a\"]\n[mcp.a.effects]\na = { to = [\"x\"] }\n", "must be \"read\", or a table"),
            (fine.clone() + "results = \"all\"\n", "must be \"everybody\" or"),
            (fine + "max_result_kib = 0\n", "out of range"),
            ("[mcp.a__b]\n".to_owned(), "no two underscores"),
        ] {
            let told = problems(&text);
            assert!(told.contains(said) && !told.contains("hidden"), "{text}: {told}");
        }
    }
}
