//! Describes a server to a person, without a request to it: where it runs, and how it is confined.

use super::McpFault;
use super::client::McpClient;
use super::oauth::LoginState;
use super::transport::Transport;
use kiso_base::config::{CommandPlace, ComponentPlace, McpPlace};
use schemars::JsonSchema;
use serde::Serialize;
use strum::IntoStaticStr;

/// Where a server runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum ServerKind {
    /// At an address.
    Remote,
    /// In the sandbox.
    Component,
    /// On this machine, outside of the sandbox.
    Command,
}

/// The description of a server.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ServerSummary {
    pub name: String,
    pub kind: ServerKind,
    /// Its URL, its file, or its command.
    pub source: String,
    /// Whether it is a program of this machine outside of the sandbox.
    pub outside_the_sandbox: bool,
    /// Where it runs, in a few words without names of this machine.
    pub place: String,
    /// Where it runs, and how it is confined: a sentence or two.
    pub about: String,
    /// State of its login: "logged in at ISSUER", "not logged in", or why a login is not valid. Only if a login is possible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub login: Option<String>,
    /// Why it cannot be used, as known without a request.
    pub trouble: Option<String>,
}

/// Describes a server; examines only this machine.
pub(super) fn describe(client: &McpClient) -> ServerSummary {
    let name = client.settings.name.clone();
    let missing = |variable: &String| McpFault::Variable(variable.clone()).to_string();
    let (kind, source, about, trouble) = match (&client.settings.place, client.transport()) {
        (McpPlace::Remote(place), transport) => {
            let trouble = match transport {
                Transport::Http { headers: Err(variable), .. } => Some(missing(variable)),
                _ => None,
            };
            (ServerKind::Remote, place.url.clone(), "runs elsewhere".to_owned(), trouble)
        }
        (McpPlace::Component(place), transport) => {
            let trouble = match transport {
                Transport::Component(Err(variable)) => Some(missing(variable)),
                Transport::Component(Ok(server)) if server.stamp().is_none() => {
                    Some(McpFault::Start(format!("there is no file {}", place.component)).to_string())
                }
                _ => None,
            };
            (ServerKind::Component, place.component.clone(), in_the_sandbox(place), trouble)
        }
        (McpPlace::Command(place), transport) => {
            let (about, trouble) = match transport {
                Transport::Native(Ok(server)) => match server.check() {
                    Ok(confined) => (outside(place, &server.dir().display().to_string(), confined), None),
                    Err(fault) => (OUTSIDE.to_owned(), Some(fault.to_string())),
                },
                Transport::Native(Err(variable)) => (OUTSIDE.to_owned(), Some(missing(variable))),
                Transport::Http { .. } | Transport::Component(_) => (OUTSIDE.to_owned(), None),
            };
            (ServerKind::Command, place.command.join(" "), about, trouble)
        }
    };
    let place = in_short(client);
    let (login, ended) = match client.login() {
        None => (None, None),
        Some(LoginState::None) => (Some("not logged in".to_owned()), None),
        Some(LoginState::LoggedIn(issuer)) => (Some(format!("logged in at {issuer}")), None),
        Some(LoginState::Unusable(why)) => (Some(why.clone()), Some(why)),
    };
    let place = if login.as_deref().is_some_and(|login| login.starts_with("logged in")) {
        place + ", logged in"
    } else {
        place
    };
    let outside_the_sandbox = kind == ServerKind::Command;
    ServerSummary { name, kind, source, outside_the_sandbox, place, about, login, trouble: trouble.or(ended) }
}

fn in_short(client: &McpClient) -> String {
    let (place, transport) = (&client.settings.place, client.transport());
    match (place, transport) {
        (McpPlace::Remote(_), _) => "on another server".to_owned(),
        (McpPlace::Component(_), _) => "in the sandbox".to_owned(),
        (McpPlace::Command(_), Transport::Native(Ok(server))) if server.check() != Ok(true) => {
            let unconfined = server.check().is_ok();
            format!("outside the sandbox{}", if unconfined { ", unconfined" } else { "" })
        }
        (McpPlace::Command(place), _) if place.connect_ports.is_empty() => {
            "outside the sandbox, confined, without network".to_owned()
        }
        (McpPlace::Command(place), _) => {
            format!("outside the sandbox, confined; TCP port {} of any host", ports(&place.connect_ports))
        }
    }
}

fn ports(ports: &[u16]) -> String {
    let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
    ports.join(", ")
}

fn in_the_sandbox(place: &ComponentPlace) -> String {
    let hosts = match place.hosts.as_slice() {
        [] => "it reaches no hosts".to_owned(),
        hosts => format!("it reaches {}", hosts.join(", ")),
    };
    format!("runs in the sandbox, with {} MiB of memory; {hosts}", place.memory_mib)
}

/// Applies to every program, however it is confined.
const OUTSIDE: &str = "runs OUTSIDE THE SANDBOX, as a program of this machine";

fn outside(place: &CommandPlace, dir: &str, confined: bool) -> String {
    if !confined {
        return format!(
            "{OUTSIDE}, and UNCONFINED: it can read and change whatever the user who runs kiso can, and reach every network"
        );
    }
    let read = match place.read.as_slice() {
        [] => String::new(),
        paths => format!("{}, ", paths.join(", ")),
    };
    let network = match place.connect_ports.as_slice() {
        [] => "it reaches no network".to_owned(),
        listed => {
            format!("it reaches TCP port {} of every host, this machine included: ports limit no host", ports(listed))
        }
    };
    format!(
        "{OUTSIDE}, confined by Landlock and seccomp: it can write to {dir} only, and read {read}programs and their libraries; {network}; \
         nothing limits its memory and time"
    )
}
