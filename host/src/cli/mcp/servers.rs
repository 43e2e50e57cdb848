//! `kiso mcp list` and `kiso mcp allow`: the tools of servers, and their approval by an administrator.

use super::super::show::{printable, printable_line};
use super::super::{Exit, Failure, Opened, Shared, block_on};
use futures_util::future::join_all;
use kiso_agent::mcp::{McpError, McpServers, ServerKind, ServerSummary, ToolDefinition, ToolState};
use kiso_base::clock::now_ms;
use kiso_base::config::McpSettings;
use kiso_plan::sink::ToolEffect;
use kiso_sandbox::skill::Quiet;
use serde_json::{Value, json};
use similar::TextDiff;
use std::sync::Arc;

/// Lists the tools of every server. Reports a server that fails, and continues with the others.
pub(super) fn list(shared: &Shared) -> Result<Exit, Failure> {
    let opened = Opened::new(shared, Arc::new(Quiet))?;
    let servers = opened.servers();
    if opened.config.mcp.is_empty() && !shared.json {
        errln!("there are no MCP servers; add one as [mcp.NAME] in config.toml");
    }
    let mut exit = Exit::Done;
    let looked = block_on(look(&opened.config.mcp, &servers))?;
    for ((settings, summary), looked) in opened.config.mcp.iter().zip(servers.summaries()).zip(looked) {
        head(shared, &summary, looked.as_ref().err());
        match looked {
            Ok(tools) => tools.iter().for_each(|(tool, state)| print(shared, settings, tool, state)),
            Err(_) => exit = Exit::Failed,
        }
    }
    opened.store.close();
    Ok(exit)
}

/// The tools of a server with their state.
type Looked = Result<Vec<(ToolDefinition, ToolState)>, McpError>;

/// Queries all servers at once, and stops those that were started for that.
async fn look(all: &[McpSettings], servers: &McpServers) -> Vec<Looked> {
    let looked = join_all(all.iter().map(|settings| servers.look(settings))).await;
    servers.stop().await;
    looked
}

/// Prints a server, and the error if it failed.
fn head(shared: &Shared, summary: &ServerSummary, error: Option<&McpError>) {
    if shared.json {
        let ServerSummary { name, kind, source, outside_the_sandbox, about, .. } = summary;
        let mut object = json!({
            "type": "mcp_server", "server": name, "kind": kind, "source": source,
            "outside_the_sandbox": outside_the_sandbox, "about": about,
        });
        if let Some(login) = &summary.login {
            object["login"] = login.as_str().into();
        }
        if let Some(error) = error {
            object["error"] = json!({ "code": error.fault.code(), "message": error.fault.to_string() });
        }
        outln!("{object}");
        return;
    }
    outln!("{}  {}", summary.name, printable_line(&summary.source));
    if summary.kind != ServerKind::Remote {
        outln!("  {}", printable_line(&summary.about));
    }
    // Most servers need no login.
    if let Some(login) = summary.login.as_deref().filter(|login| *login != "not logged in") {
        outln!("  {}", printable_line(login));
    }
    if let Some(error) = error {
        errln!("{}", printable_line(&error.to_string()));
    }
}

/// Returns the settings of the server with this name.
pub(super) fn settings<'a>(opened: &'a Opened, name: &str) -> Result<&'a McpSettings, Failure> {
    opened.config.mcp.iter().find(|settings| settings.name == name).ok_or_else(|| {
        let message = format!("there is no MCP server {name:?}; add it as [mcp.{name}] in config.toml");
        Failure::new(Exit::Usage, message)
    })
}

/// Allows the tools that `config.toml` names, or one of them.
pub(super) fn allow(shared: &Shared, name: &str, tool: Option<&str>) -> Result<Exit, Failure> {
    let opened = Opened::new(shared, Arc::new(Quiet))?;
    let settings = settings(&opened, name)?;
    if let Some(tool) = tool.filter(|tool| !settings.allow.iter().any(|allowed| allowed == tool)) {
        let message = format!("config.toml does not name {tool:?}; add it to allow of [mcp.{name}] first");
        return Err(Failure::new(Exit::Policy, message));
    }
    let servers = opened.servers();
    let allowed = block_on(allow_looked(shared, &servers, settings, tool))?;
    opened.store.close();
    allowed
}

async fn allow_looked(
    shared: &Shared,
    servers: &McpServers,
    settings: &McpSettings,
    wanted: Option<&str>,
) -> Result<Exit, Failure> {
    let looked = servers.look(settings).await;
    servers.stop().await;
    let looked = looked.map_err(|error| Failure::new(Exit::Failed, error.to_string()))?;
    let mut exit = Exit::Done;
    if settings.allow.is_empty() {
        errln!("allow of [mcp.{}] in config.toml names no tools; `kiso mcp list` shows which there are", settings.name);
    }
    let is_wanted = |tool: &ToolDefinition| wanted.is_none_or(|wanted| wanted == tool.name);
    for (tool, state) in looked.iter().filter(|(tool, _)| is_wanted(tool)) {
        match state {
            ToolState::Unlisted => continue,
            ToolState::Missing => exit = Exit::Failed,
            ToolState::Allowed => {}
            ToolState::New | ToolState::Changed(_) => match servers.allow(settings, tool, now_ms()).await {
                Ok(unchecked) => {
                    for pattern in unchecked {
                        let pattern = printable_line(&pattern);
                        errln!(
                            "{}.{}: its arguments are not checked against the pattern {pattern}, which kiso cannot read",
                            settings.name,
                            tool.name
                        );
                    }
                }
                Err(why) => {
                    errln!("error: {}.{} cannot be allowed: {why}", settings.name, tool.name);
                    exit = Exit::Failed;
                    continue;
                }
            },
        }
        // Shown in the state before the change, so that the accepted difference is visible.
        print(shared, settings, tool, state);
        if !shared.json && !matches!(state, ToolState::Missing) {
            outln!("  {}.{} is allowed as it is now", settings.name, tool.name);
        }
    }
    Ok(exit)
}

/// Describes the effect of a tool, as in config.toml.
fn words(effect: &ToolEffect) -> String {
    let roles = match effect {
        ToolEffect::Reads(_) => return "only reads".to_owned(),
        ToolEffect::Changes(roles) => roles,
    };
    let of = |role: &str, names: &[String]| match names {
        [] => None,
        names => Some(format!("{role} {}", printable_line(&names.join(", ")))),
    };
    let all = [of("address", &roles.address), of("value", &roles.value), of("content", &roles.content)];
    all.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn print(shared: &Shared, settings: &McpSettings, tool: &ToolDefinition, state: &ToolState) {
    let (word, said) = match state {
        ToolState::Allowed => ("allowed", "allowed"),
        ToolState::New => ("new", "off until it is allowed"),
        ToolState::Changed(_) => ("changed", "off, because it has changed"),
        ToolState::Unlisted => ("unlisted", "off, not in allow of config.toml"),
        ToolState::Missing => ("missing", "in allow of config.toml, but the server does not have it"),
    };
    let now: Value = serde_json::from_str(&tool.text()).unwrap_or_default();
    if shared.json {
        let mut object = json!({
            "type": "mcp_tool", "server": settings.name, "tool": tool.name, "state": word, "definition": now,
        });
        if let Some(effect) = settings.effects.get(&tool.name) {
            object["effect"] = json!(effect);
        }
        if let ToolState::Changed(before) = state {
            object["allowed"] = serde_json::from_str(&before.text()).unwrap_or_default();
        }
        outln!("{object}");
        return;
    }
    let effect = settings.effects.get(&tool.name).map(|effect| format!(", {}", words(effect))).unwrap_or_default();
    outln!("  {}.{}  {said}{effect}", settings.name, printable_line(&tool.name));
    match state {
        ToolState::New => out!("{}", indented(&tool.pretty())),
        ToolState::Changed(before) if before == tool => {
            out!("{}", indented("the server has taken the change back"));
        }
        ToolState::Changed(before) => {
            let (before, now) = (before.pretty() + "\n", tool.pretty() + "\n");
            let diff = TextDiff::from_lines(&before, &now);
            out!("{}", indented(&diff.unified_diff().context_radius(2).header("allowed", "now").to_string()));
        }
        ToolState::Allowed | ToolState::Unlisted | ToolState::Missing => {}
    }
}

fn indented(text: &str) -> String {
    printable(text).lines().map(|line| format!("    {line}\n")).collect()
}
