//! A connected server: its protocol era, its session, and its tools.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use ::http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value, json};
use tokio::sync::{Mutex, Semaphore};
use tokio::time::Instant;

use super::authorized;
use super::definition::ToolDefinition;
use super::http::{self, Bounds, RpcAnswer, SESSION};
use super::oauth::{Account, AccountSetup, Challenge, LoginState, OauthError};
use super::outcome::McpOutcome;
use super::stdio::StdioServer;
use super::transport::Transport;
use super::version::{CAPABILITIES, CLIENT, LEGACY, MODERN, VERSION};
use super::{McpError, McpFault};
use kiso_base::config::{McpPlace, McpSettings, RemotePlace};
use kiso_base::rpc::{self, RequestId};
use kiso_sandbox::skill::Skills;
use kiso_sandbox::skill::server::FileStamp;
use kiso_store::secret::SecretValue;
use kiso_store::store::Store;

/// Maximum number of tools in a server's list.
const MAX_TOOLS: usize = 1_000;

/// Maximum number of pages of the list.
const MAX_PAGES: usize = 64;

/// Maximum size in KiB of a page of the list of tools.
const MAX_LIST_KIB: u64 = 4_096;

/// How long a list is used at most. Changed tools are detected by then.
const FRESH: Duration = Duration::from_secs(60);

/// Maximum number of concurrent calls of a server; more wait.
const MAX_CALLS: usize = 8;

/// How long a new server may be silent at first. A server of the older era may not answer unknown messages.
const SILENCE: Duration = Duration::from_secs(5);

const PROTOCOL: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// The protocol era of a connection.
#[derive(Debug, Clone)]
enum Speaks {
    /// Each request contains all metadata.
    Modern,
    /// After `initialize`.
    Legacy { version: &'static str, session: Option<HeaderValue> },
}

/// An open connection to a server.
#[derive(Debug, Clone)]
struct Connection {
    speaks: Speaks,
    /// The process or component, unless it is reached over HTTP.
    server: Option<Arc<StdioServer>>,
}

impl Connection {
    fn is_over(&self) -> bool {
        self.server.as_ref().is_some_and(|server| server.is_over())
    }
}

/// Cached knowledge about a server.
#[derive(Debug, Clone)]
struct Known {
    connection: Connection,
    tools: Arc<BTreeMap<String, ToolDefinition>>,
    until: Instant,
    /// The file at the time of the start.
    file: Option<FileStamp>,
}

/// A client of one server.
#[derive(Debug)]
pub(super) struct McpClient {
    pub settings: McpSettings,
    transport: Transport,
    /// The login, if one is possible: for a server over HTTP without an administrator's key.
    account: Option<Account>,
    /// Values of headers and variables, with the names of their variables.
    pub keys: Vec<(String, SecretValue)>,
    known: Mutex<Option<Known>>,
    slots: Arc<Semaphore>,
    count: AtomicI64,
}

impl McpClient {
    /// Creates a client without connecting or starting anything. `environment` has the values of headers and variables.
    pub(super) fn new(
        settings: McpSettings,
        skills: &Skills,
        store: &Store,
        gateway_port: u64,
        environment: impl Fn(&str) -> Option<String>,
    ) -> McpClient {
        let account = account(&settings, skills, store, &environment);
        let (transport, mut keys) = Transport::new(&settings, skills, gateway_port, &environment);
        if let McpPlace::Remote(RemotePlace { client_secret_env: Some(variable), .. }) = &settings.place {
            let secret = environment(variable).map(|value| SecretValue::new(value.trim().to_owned()));
            keys.extend(secret.filter(|value| !value.expose().is_empty()).map(|value| (variable.clone(), value)));
        }
        let (known, slots, count) = (Mutex::default(), Arc::new(Semaphore::new(MAX_CALLS)), AtomicI64::new(0));
        McpClient { settings, transport, account, keys, known, slots, count }
    }

    /// Returns the transport of the server.
    pub(super) fn transport(&self) -> &Transport {
        &self.transport
    }

    /// Stops a started server. A later request starts another one.
    pub(super) async fn stop(&self) {
        let known = self.known.lock().await.take();
        if let Some(server) = known.and_then(|known| known.connection.server) {
            server.stop().await;
        }
    }

    /// Returns the server's current list of tools.
    pub(super) async fn list(&self) -> Result<Arc<BTreeMap<String, ToolDefinition>>, McpError> {
        self.transport.load().await.map_err(|fault| self.error(fault))?;
        let bounds = self.bounds();
        *self.known.lock().await = None;
        let known = self.known(bounds).await;
        known.map(|known| known.tools).map_err(|fault| self.error(self.before_call(fault)))
    }

    /// Calls a tool, if its definition is the allowed one. Otherwise the error contains the changed definition.
    #[tracing::instrument(name = "mcp.call", level = "debug", skip_all, fields(server = %self.settings.name, tool = allowed.name.as_str()))]
    pub(super) async fn call(
        &self,
        allowed: &ToolDefinition,
        args: &Value,
    ) -> Result<McpOutcome, (McpError, Option<ToolDefinition>)> {
        self.transport.load().await.map_err(|fault| (self.error(fault), None))?;
        let bounds = self.bounds();
        let work = async {
            let _slot = kiso_base::compute::permit(&self.slots).await;
            let params = json!({ "name": allowed.name, "arguments": args });
            // A message that an expired session refused can be sent once more.
            let mut again = true;
            loop {
                let known = self.known(bounds).await.map_err(|fault| (self.before_call(fault), None))?;
                match known.tools.get(&allowed.name) {
                    None => return Err((McpFault::Gone(allowed.name.clone()), None)),
                    Some(now) if now != allowed => {
                        return Err((McpFault::Changed(allowed.name.clone()), Some(now.clone())));
                    }
                    Some(_) => {}
                }
                let connection = match self.transport.is_for_each_call() {
                    false => known.connection,
                    true => {
                        let connected = self.connect(Some(&known.connection.speaks), bounds).await;
                        connected.map_err(|fault| (self.before_call(fault), None))?
                    }
                };
                match self.ask(&connection, "tools/call", params.clone(), bounds).await {
                    Ok(answer) => return McpOutcome::read(answer.result).map_err(|fault| (fault, None)),
                    Err(fault) => {
                        let gone = fault == McpFault::SessionGone;
                        // After a failed connection, another server may be there the next time.
                        if gone || matches!(fault, McpFault::Unreachable(_) | McpFault::Broken(_)) {
                            *self.known.lock().await = None;
                        }
                        if !(gone && std::mem::take(&mut again)) {
                            return Err((fault, None));
                        }
                    }
                }
            }
        };
        let ended = tokio::time::timeout_at(bounds.end, work).await;
        let ended = ended.unwrap_or(Err((McpFault::Timeout(bounds.timeout_s), None)));
        ended.map_err(|(fault, now)| (self.error(fault), now))
    }

    fn account(&self) -> Option<(&Account, &str)> {
        self.account.as_ref().map(|account| (account, self.settings.name.as_str()))
    }

    /// Returns the state of its login; `None` if a login is not possible.
    pub(super) fn login(&self) -> Option<LoginState> {
        self.account.as_ref().map(Account::state)
    }

    /// Starts a login by a person; returns the issuer. `None` if a login is not possible.
    pub(super) async fn log_in(
        &self,
        told: impl FnOnce(&str),
        pasted: impl Future<Output = String>,
    ) -> Option<Result<String, McpError>> {
        let (Some(account), Transport::Http { uri, .. }) = (&self.account, &self.transport) else { return None };
        let asked = async {
            // A request without a token reveals the server's requirements. A server of another era refuses this differently, and
            // may still require a login.
            let message = rpc::request(&RequestId::Number(0), "server/discover", json!({ "_meta": about_us() }));
            let headers = self.headers(&Speaks::Modern, Some("server/discover"))?;
            let bounds = Bounds { max_kib: MAX_LIST_KIB, ..self.bounds() };
            let challenge = match http::exchange(uri, headers, &message, Some(&RequestId::Number(0)), bounds).await {
                Err(McpFault::Challenged(_, challenge)) => challenge,
                Err(fault @ (McpFault::Unreachable(_) | McpFault::Timeout(_) | McpFault::Redirect(_))) => {
                    return Err(fault);
                }
                _ => Challenge::default(),
            };
            account.log_in(challenge, told, pasted).await.map_err(McpFault::Login)
        };
        Some(asked.await.map_err(|fault| self.error(fault)))
    }

    /// Deletes the login; returns whether there was one, and why the authorization server could not be notified.
    pub(super) async fn log_out(&self) -> Option<Result<(bool, Option<OauthError>), McpError>> {
        let out = self.account.as_ref()?.log_out().await;
        Some(out.map_err(|error| self.error(McpFault::Login(error))))
    }

    pub(super) fn error(&self, fault: McpFault) -> McpError {
        McpError { server: self.settings.name.clone(), fault }
    }

    /// Converts a fault of a server that was only just started.
    fn before_call(&self, fault: McpFault) -> McpFault {
        match (fault, &self.transport) {
            (fault, Transport::Http { .. }) => fault,
            (McpFault::Broken(why), _) => McpFault::Start(why),
            (fault, _) => fault,
        }
    }

    fn bounds(&self) -> Bounds {
        let McpSettings { timeout_s, max_result_kib, .. } = self.settings;
        Bounds { end: Instant::now() + Duration::from_secs(timeout_s), timeout_s, max_kib: max_result_kib }
    }

    /// Connects if necessary, and lists the tools.
    async fn known(&self, bounds: Bounds) -> Result<Known, McpFault> {
        let bounds = Bounds { max_kib: MAX_LIST_KIB, ..bounds };
        let file = self.transport.file();
        let mut kept = self.known.lock().await;
        // The old list is no longer used, whatever happens.
        let connection = match kept.take() {
            Some(known) if Instant::now() < known.until && !known.connection.is_over() && known.file == file => {
                return Ok(kept.insert(known).clone());
            }
            Some(known) if !known.connection.is_over() && !self.transport.is_for_each_call() => known.connection,
            _ => self.connect(None, bounds).await?,
        };
        let listed = match self.tools(&connection, bounds).await {
            Err(McpFault::SessionGone) => {
                let connection = self.connect(None, bounds).await?;
                self.tools(&connection, bounds).await.map(|listed| (connection, listed))
            }
            listed => listed.map(|listed| (connection, listed)),
        };
        let (mut connection, (tools, fresh)) = listed?;
        if self.transport.is_for_each_call() {
            connection.server = None;
        }
        let known = Known { connection, tools: Arc::new(tools), until: Instant::now() + fresh, file };
        *kept = Some(known.clone());
        Ok(known)
    }

    /// Detects the server's era: tries the newer one first, which has no state. `known` is the era of the previous connection.
    async fn connect(&self, known: Option<&Speaks>, bounds: Bounds) -> Result<Connection, McpFault> {
        let mut connection = Connection { speaks: Speaks::Modern, server: self.transport.start().await? };
        match known {
            Some(Speaks::Modern) => return Ok(connection),
            Some(Speaks::Legacy { .. }) => {}
            None => match self.discover(&connection, bounds).await {
                Ok(true) => return Ok(connection),
                Ok(false) => {}
                // A server of the older era may end, or fall silent, after an unknown message.
                Err(McpFault::Broken(_) | McpFault::Timeout(_) | McpFault::Noise(..)) if connection.is_over() => {
                    connection.server = self.transport.start().await?;
                }
                Err(McpFault::Timeout(_) | McpFault::Noise(..)) if connection.server.is_some() => {}
                Err(fault) => return Err(fault),
            },
        }
        let params = json!({ "protocolVersion": LEGACY[0], "capabilities": {}, "clientInfo": client_info() });
        connection.speaks = Speaks::Legacy { version: "", session: None };
        let RpcAnswer { result, session } = self.ask(&connection, "initialize", params, bounds).await?;
        let version = result.get("protocolVersion").and_then(Value::as_str);
        let version = LEGACY.into_iter().find(|known| Some(*known) == version).ok_or(McpFault::Version)?;
        connection.speaks = Speaks::Legacy { version, session };
        let message = rpc::notification("notifications/initialized", json!({}));
        match (&connection.server, &self.transport) {
            (Some(server), _) => server.tell(&message, bounds).await?,
            (None, Transport::Http { uri, .. }) => {
                let headers = self.headers(&connection.speaks, None)?;
                authorized::exchange(self.account(), uri, headers, &message, None, bounds).await?;
            }
            (None, _) => unreachable!("what is not reached over HTTP was started"),
        }
        Ok(connection)
    }

    /// Returns whether the server supports the newer era.
    async fn discover(&self, connection: &Connection, bounds: Bounds) -> Result<bool, McpFault> {
        let mut bounds = bounds;
        if connection.server.is_some() {
            let now = Instant::now();
            bounds.end = now + SILENCE.min(bounds.end.duration_since(now) / 2);
        }
        match self.ask(connection, "server/discover", json!({}), bounds).await {
            Ok(answer) => {
                let versions = answer.result.get("supportedVersions").and_then(Value::as_array);
                Ok(versions.is_some_and(|versions| versions.contains(&json!(MODERN))))
            }
            Err(McpFault::Rpc { .. } | McpFault::Status(400..=428 | 430..=499)) => Ok(false),
            Err(fault) => Err(fault),
        }
    }

    /// Returns all tools, and how long the list is valid.
    async fn tools(
        &self,
        connection: &Connection,
        bounds: Bounds,
    ) -> Result<(BTreeMap<String, ToolDefinition>, Duration), McpFault> {
        let (mut tools, mut fresh, mut params) = (BTreeMap::new(), FRESH, json!({}));
        for _ in 0..MAX_PAGES {
            let page = self.ask(connection, "tools/list", params, bounds).await?.result;
            let Some(entries) = page.get("tools").and_then(Value::as_array) else {
                return Err(McpFault::BadAnswer("a list of tools has no tools".to_owned()));
            };
            if tools.len() + entries.len() > MAX_TOOLS {
                return Err(McpFault::TooManyTools(MAX_TOOLS));
            }
            for entry in entries {
                let server = self.settings.name.as_str();
                let Some(tool) = ToolDefinition::read(entry) else {
                    tracing::warn!(server, "an entry of its list of tools has no name and is left out");
                    continue;
                };
                if tools.contains_key(&tool.name) {
                    tracing::warn!(server, tool = tool.name, "it lists two tools of one name; the first one counts");
                    continue;
                }
                tools.insert(tool.name.clone(), tool);
            }
            if let Some(ttl) = page.get("ttlMs").and_then(Value::as_u64) {
                fresh = fresh.min(Duration::from_millis(ttl));
            }
            match page.get("nextCursor").and_then(Value::as_str) {
                Some(cursor) => params = json!({ "cursor": cursor }),
                None => return Ok((tools, fresh)),
            }
        }
        Err(McpFault::TooManyTools(MAX_TOOLS))
    }

    async fn ask(
        &self,
        connection: &Connection,
        method: &'static str,
        mut params: Value,
        bounds: Bounds,
    ) -> Result<RpcAnswer, McpFault> {
        let name = params.get("name").and_then(Value::as_str).map(HeaderValue::from_str);
        let is_modern = matches!(connection.speaks, Speaks::Modern);
        if is_modern {
            params["_meta"] = about_us();
        }
        let id = RequestId::Number(self.count.fetch_add(1, Ordering::Relaxed) + 1);
        let message = rpc::request(&id, method, params);
        match (&connection.server, &self.transport) {
            (Some(server), _) => {
                let result = server.ask(&id, &message, bounds).await?;
                Ok(RpcAnswer { result, session: None })
            }
            (None, Transport::Http { uri, .. }) => {
                let mut headers = self.headers(&connection.speaks, Some(method))?;
                headers.extend(name.and_then(Result::ok).filter(|_| is_modern).map(|name| (NAME, name)));
                authorized::exchange(self.account(), uri, headers, &message, Some(&id), bounds).await
            }
            (None, _) => unreachable!("what is not reached over HTTP was started"),
        }
    }

    fn headers(&self, speaks: &Speaks, method: Option<&'static str>) -> Result<HeaderMap, McpFault> {
        let Transport::Http { headers, .. } = &self.transport else { return Ok(HeaderMap::new()) };
        let mut headers = headers.clone().map_err(McpFault::Variable)?;
        match speaks {
            Speaks::Modern => {
                headers.insert(PROTOCOL, HeaderValue::from_static(MODERN));
                headers.extend(method.map(|method| (METHOD, HeaderValue::from_static(method))));
            }
            Speaks::Legacy { version, session } => {
                if !version.is_empty() {
                    headers.insert(PROTOCOL, HeaderValue::from_static(version));
                }
                headers.extend(session.clone().map(|session| (SESSION, session)));
            }
        }
        Ok(headers)
    }
}

fn about_us() -> Value {
    json!({ VERSION: MODERN, CLIENT: client_info(), CAPABILITIES: Map::new() })
}

/// Returns the login of a server that can have one.
fn account(
    settings: &McpSettings,
    skills: &Skills,
    store: &Store,
    environment: impl Fn(&str) -> Option<String>,
) -> Option<Account> {
    let McpPlace::Remote(RemotePlace { url, client_id, client_secret_env, .. }) = &settings.place else { return None };
    if settings.headers().any(|(header, _)| header.eq_ignore_ascii_case("authorization")) {
        return None;
    }
    let value = |variable: &String| {
        let value = environment(variable).map(|value| value.trim().to_owned());
        (variable.clone(), value.filter(|value| !value.is_empty()).map(SecretValue::new))
    };
    Some(Account::new(AccountSetup {
        server: &settings.name,
        url,
        timeout_s: settings.timeout_s,
        client_id: client_id.clone(),
        secret: client_secret_env.as_ref().map(value),
        home: skills.home(),
        store,
    }))
}

fn client_info() -> Value {
    json!({ "name": "kiso", "title": "kiso", "version": env!("CARGO_PKG_VERSION") })
}
