//! The servers of `config.toml`, and the tools that an administrator allowed.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use super::client::McpClient;
use super::definition::{MAX_DEFINITION, ToolDefinition};
use super::oauth::OauthError;
use super::summary::{self, ServerSummary};
use super::{McpError, McpFault, McpOutcome};
use kiso_base::config::{Config, McpSettings};
use kiso_plan::label::{Integrity, Label};
use kiso_plan::sink::ToolEffect;
use kiso_sandbox::skill::{ArgsSchema, Skills};
use kiso_store::secret::SecretValue;
use kiso_store::store::{McpToolRow, Store};

/// Returns the values of headers.
type Environment = fn(&str) -> Option<String>;

/// The servers of a home. Clones are cheap and share their connections.
#[derive(Debug, Clone)]
pub struct McpServers {
    store: Store,
    skills: Skills,
    clients: Arc<Vec<Arc<McpClient>>>,
    environment: Environment,
    allowed: Arc<Mutex<Kept>>,
}

/// The callable tools for a revision of the store.
#[derive(Debug, Default)]
struct Kept {
    revision: Option<(i64, i64)>,
    tools: Arc<Vec<Arc<AllowedTool>>>,
}

/// An allowed tool.
#[derive(Debug)]
pub struct AllowedTool {
    /// "SERVER.TOOL".
    pub name: String,
    pub server: String,
    pub summary: String,
    /// Whether a person must accept each call.
    pub ask: bool,
    /// Its effect, as stated by the administrator.
    pub effect: Option<ToolEffect>,
    /// Label of its answers.
    pub answers: Label,
    /// The schema that arguments are checked against.
    pub args: ArgsSchema,
    definition: ToolDefinition,
    /// Its stored form.
    text: String,
}

/// State of a server's tool.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolState {
    /// It may be called.
    Allowed,
    /// `allow` in `config.toml` names it, and it was not reviewed yet.
    New,
    /// The server has changed its definition; this is the allowed one. The tool is disabled.
    Changed(ToolDefinition),
    /// `allow` in `config.toml` does not name it.
    Unlisted,
    /// `allow` names it, and the server does not have it.
    Missing,
}

impl AllowedTool {
    /// Returns whether a call may change something: true unless the administrator states otherwise.
    pub fn changes(&self) -> bool {
        !matches!(self.effect, Some(ToolEffect::Reads(_)))
    }
}

impl McpServers {
    /// Opens the servers without connecting or starting any. Components run in the sandbox of `skills`.
    pub fn open(config: &Config, store: Store, skills: Skills, environment: Environment) -> McpServers {
        let none = McpServers { store, skills, clients: Arc::default(), environment, allowed: Arc::default() };
        none.reopened(config, &none.skills)
    }

    /// Returns the servers for a reloaded configuration. Knowledge about a server, and a running one, are kept if its settings
    /// are unchanged.
    pub fn reopened(&self, config: &Config, skills: &Skills) -> McpServers {
        let same = self.skills.is_same(skills);
        let client = |settings: &McpSettings| {
            let is_kept = |client: &&Arc<McpClient>| {
                client.settings == *settings && (same || !client.transport().is_for_each_call())
            };
            let old = self.clients.iter().find(is_kept).cloned();
            let port = config.gateway.port;
            old.unwrap_or_else(|| {
                Arc::new(McpClient::new(settings.clone(), skills, &self.store, port, self.environment))
            })
        };
        let clients = Arc::new(config.mcp.iter().map(client).collect());
        McpServers { clients, skills: skills.clone(), allowed: Arc::default(), ..self.clone() }
    }

    /// Stops every program that was started as a server.
    pub async fn stop(&self) {
        futures_util::future::join_all(self.clients.iter().map(|client| client.stop())).await;
    }

    /// Returns the description of each server for a person, without a request to it.
    pub fn summaries(&self) -> Vec<ServerSummary> {
        self.clients.iter().map(|client| summary::describe(client)).collect()
    }

    /// Returns the settings of each server.
    pub fn settings(&self) -> impl Iterator<Item = &McpSettings> {
        self.clients.iter().map(|client| &client.settings)
    }

    /// Returns the values of headers and variables, with the names of their variables: they must be redacted everywhere.
    pub fn keys(&self) -> impl Iterator<Item = (String, SecretValue)> {
        self.clients.iter().flat_map(|client| client.keys.clone())
    }

    /// Returns the tools that may be called now. The list stays the same as long as nothing has changed. Reads the store, and
    /// sends no requests.
    pub fn allowed(&self) -> Arc<Vec<Arc<AllowedTool>>> {
        if self.clients.is_empty() {
            return Arc::default();
        }
        let mut kept = self.allowed.lock().unwrap_or_else(PoisonError::into_inner);
        let known = kept.revision;
        let read = self.store.read_blocking(|view| {
            let revision = view.mcp_revision()?;
            let rows = if known == Some(revision) { None } else { Some(view.mcp_tools()?) };
            Ok((revision, rows))
        });
        match read {
            Ok((_, None)) => {}
            Ok((revision, Some(rows))) => {
                let tools = rows.iter().filter_map(|row| self.allowed_tool(row)).map(Arc::new).collect();
                *kept = Kept { revision: Some(revision), tools: Arc::new(tools) };
            }
            Err(error) => {
                tracing::error!("failed to read which tools of MCP servers are allowed: {error}");
                *kept = Kept::default();
            }
        }
        kept.tools.clone()
    }

    fn allowed_tool(&self, row: &McpToolRow) -> Option<AllowedTool> {
        let settings = &self.client(&row.server)?.settings;
        let is_on = row.seen.is_none() && row.source == settings.place.source() && settings.allow.contains(&row.tool);
        let definition = ToolDefinition::parse(&row.tool, &row.definition).filter(|_| is_on)?;
        let args = ArgsSchema::new(definition.schema()).ok()?;
        let ask = settings.ask.contains(&row.tool);
        let (server, text, summary) = (row.server.clone(), row.definition.clone(), definition.summary());
        let effect = settings.effects.get(&row.tool).cloned();
        let answers = Label::new(Integrity::World, settings.results, &format!("mcp:{server}"));
        let name = format!("{server}.{}", row.tool);
        Some(AllowedTool { name, server, summary, ask, effect, answers, args, definition, text })
    }

    fn client(&self, server: &str) -> Option<&Arc<McpClient>> {
        self.clients.iter().find(|client| client.settings.name == server)
    }

    /// Calls a tool with arguments that match its schema. A tool with a changed definition is disabled.
    pub async fn call(&self, tool: &AllowedTool, args: &Value) -> Result<McpOutcome, McpError> {
        let gone = || McpError { server: tool.server.clone(), fault: McpFault::Gone(tool.definition.name.clone()) };
        let client = self.client(&tool.server).ok_or_else(gone)?;
        let (error, now) = match client.call(&tool.definition, args).await {
            Ok(outcome) => return Ok(outcome),
            Err(failed) => failed,
        };
        if let Some(now) = now {
            let (server, name) = (tool.server.clone(), tool.definition.name.clone());
            let (allowed, seen) = (tool.text.clone(), cut_off(now.text()));
            let kept = self.store.write(move |tx| tx.mcp_tool_changed(&server, &name, &allowed, &seen)).await;
            if let Err(error) = kept {
                tracing::error!("failed to turn a tool of an MCP server off: {error}");
            }
        }
        Err(error)
    }

    /// Starts a login by a person at a server; returns the issuer. `None` if a login is not possible.
    pub async fn log_in(
        &self,
        settings: &McpSettings,
        told: impl FnOnce(&str),
        pasted: impl Future<Output = String>,
    ) -> Option<Result<String, McpError>> {
        self.client(&settings.name)?.log_in(told, pasted).await
    }

    /// Deletes a login; returns whether there was one, and why the authorization server could not be notified.
    pub async fn log_out(&self, settings: &McpSettings) -> Option<Result<(bool, Option<OauthError>), McpError>> {
        self.client(&settings.name)?.log_out().await
    }

    /// Returns the state of a server's tools as it lists them now, followed by the missing ones.
    pub async fn look(&self, settings: &McpSettings) -> Result<Vec<(ToolDefinition, ToolState)>, McpError> {
        let Some(client) = self.client(&settings.name) else { return Ok(Vec::new()) };
        let listed = client.list().await?;
        let rows = self.store.read(|view| view.mcp_tools()).await;
        let rows = rows.map_err(|error| client.error(McpFault::Store(error.to_string())))?;
        let state = |tool: &ToolDefinition| {
            if !settings.allow.contains(&tool.name) {
                return ToolState::Unlisted;
            }
            let row = rows.iter().find(|row| row.server == settings.name && row.tool == tool.name);
            let Some(row) = row.filter(|row| row.source == settings.place.source()) else { return ToolState::New };
            match ToolDefinition::parse(&row.tool, &row.definition) {
                // A disabled tool stays disabled, even if the server has reverted the change.
                Some(allowed) if allowed == *tool && row.seen.is_none() => ToolState::Allowed,
                Some(allowed) => ToolState::Changed(allowed),
                None => ToolState::New,
            }
        };
        let mut tools: Vec<_> = listed.values().map(|tool| (tool.clone(), state(tool))).collect();
        for name in settings.allow.iter().filter(|name| !listed.contains_key(*name)) {
            tools.extend(ToolDefinition::parse(name, "{}").map(|tool| (tool, ToolState::Missing)));
        }
        Ok(tools)
    }

    /// Allows a tool with its current definition, and returns the patterns that cannot be checked in its arguments. Fails if its
    /// schema cannot be checked at all.
    pub async fn allow(
        &self,
        settings: &McpSettings,
        tool: &ToolDefinition,
        now_ms: i64,
    ) -> Result<Vec<String>, String> {
        let definition = tool.text();
        if definition.len() > MAX_DEFINITION {
            return Err(format!(
                "what the server says of it has {} bytes, at most {MAX_DEFINITION} are taken",
                definition.len()
            ));
        }
        let schema = ArgsSchema::new(tool.schema())
            .map_err(|error| format!("its schema cannot be used: {}", super::shown(&error)))?;
        let row = McpToolRow {
            server: settings.name.clone(),
            tool: tool.name.clone(),
            source: settings.place.source(),
            definition,
            seen: None,
            allowed_ms: now_ms,
        };
        self.store.write(move |tx| tx.allow_mcp_tool(&row)).await.map_err(|error| error.to_string())?;
        Ok(schema.unchecked().to_vec())
    }
}

/// Shortens a definition that is stored only to show the change.
fn cut_off(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(MAX_DEFINITION));
    text
}
