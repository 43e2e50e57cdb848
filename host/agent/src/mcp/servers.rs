//! The servers of `config.toml`, and which of their tools an administrator allowed.

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

/// Where the values of headers are looked up.
type Environment = fn(&str) -> Option<String>;

/// The servers of a home. Cheap to clone; clones share their connections.
#[derive(Debug, Clone)]
pub struct McpServers {
    store: Store,
    skills: Skills,
    clients: Arc<Vec<Arc<McpClient>>>,
    environment: Environment,
    allowed: Arc<Mutex<Kept>>,
}

/// What may be called, as of a revision of the store.
#[derive(Debug, Default)]
struct Kept {
    revision: Option<(i64, i64)>,
    tools: Arc<Vec<Arc<AllowedTool>>>,
}

/// A tool that may be called.
#[derive(Debug)]
pub struct AllowedTool {
    /// "SERVER.TOOL".
    pub name: String,
    pub server: String,
    pub summary: String,
    /// Whether a person must have accepted each call.
    pub ask: bool,
    /// What it does, as far as the administrator says.
    pub effect: Option<ToolEffect>,
    /// Of what it answers.
    pub answers: Label,
    /// What arguments are checked against.
    pub args: ArgsSchema,
    definition: ToolDefinition,
    /// The same as it is kept.
    text: String,
}

/// How a tool of a server stands.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolState {
    /// It may be called.
    Allowed,
    /// `allow` of `config.toml` names it, and nobody has looked at it yet.
    New,
    /// The server says something else of it than was allowed, which was this; it is off.
    Changed(ToolDefinition),
    /// `allow` of `config.toml` does not name it.
    Unlisted,
    /// `allow` names it, and the server does not have it.
    Missing,
}

impl AllowedTool {
    /// Whether a call may change something: unless the administrator says otherwise.
    pub fn changes(&self) -> bool {
        !matches!(self.effect, Some(ToolEffect::Reads(_)))
    }
}

impl McpServers {
    /// Does not connect to any, and starts none. Components run in the sandbox of `skills`.
    pub fn open(config: &Config, store: Store, skills: Skills, environment: Environment) -> McpServers {
        let none = McpServers { store, skills, clients: Arc::default(), environment, allowed: Arc::default() };
        none.reopened(config, &none.skills)
    }

    /// The same under a configuration that was read anew. What is known of a server, and one that runs, is kept if nothing of it
    /// has changed.
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

    /// Ends every program that was started as a server.
    pub async fn stop(&self) {
        futures_util::future::join_all(self.clients.iter().map(|client| client.stop())).await;
    }

    /// What a person is told of each before it is asked for anything.
    pub fn summaries(&self) -> Vec<ServerSummary> {
        self.clients.iter().map(|client| summary::of(client)).collect()
    }

    /// What `config.toml` says of each.
    pub fn settings(&self) -> impl Iterator<Item = &McpSettings> {
        self.clients.iter().map(|client| &client.settings)
    }

    /// The values of headers and variables, by the variables that have them: values that must be kept out of everything written.
    pub fn keys(&self) -> impl Iterator<Item = (String, SecretValue)> {
        self.clients.iter().flat_map(|client| client.keys.clone())
    }

    /// The tools that may be called now. The same list as long as nothing has changed. Reads the store, and no server.
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
        let answers = Label::of(Integrity::World, settings.results, &format!("mcp:{server}"));
        let name = format!("{server}.{}", row.tool);
        Some(AllowedTool { name, server, summary, ask, effect, answers, args, definition, text })
    }

    fn client(&self, server: &str) -> Option<&Arc<McpClient>> {
        self.clients.iter().find(|client| client.settings.name == server)
    }

    /// Calls a tool with arguments that fit its schema. One that is another than was allowed is turned off.
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

    /// Asks a person to log in at a server; the issuer. `None` where there can be no login.
    pub async fn log_in(
        &self,
        settings: &McpSettings,
        told: impl FnOnce(&str),
        pasted: impl Future<Output = String>,
    ) -> Option<Result<String, McpError>> {
        self.client(&settings.name)?.log_in(told, pasted).await
    }

    /// Forgets a login: whether there was one, and why the authorization server could not be told.
    pub async fn log_out(&self, settings: &McpSettings) -> Option<Result<(bool, Option<OauthError>), McpError>> {
        self.client(&settings.name)?.log_out().await
    }

    /// How the tools of a server stand, as it lists them now; then those that it should have.
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
                // One that was turned off stays so, also if the server has taken the change back.
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

    /// Allows a tool as it is, and returns the patterns that its arguments are not checked against. Refused, with the reason, where its
    /// schema cannot be checked against.
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

/// What is kept of a definition that is not used, only shown to be another one.
fn cut_off(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(MAX_DEFINITION));
    text
}
