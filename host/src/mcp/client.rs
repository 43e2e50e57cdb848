//! A server as a client knows it: which era it speaks, its session, and what it says of its tools.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use ::http::{HeaderMap, HeaderName, HeaderValue, Uri};
use serde_json::{Map, Value, json};
use tokio::sync::{Mutex, Semaphore};
use tokio::time::Instant;

use super::definition::ToolDefinition;
use super::http::{self, Bounds, RpcAnswer, SESSION};
use super::outcome::McpOutcome;
use super::version::{CAPABILITIES, CLIENT, LEGACY, MODERN, VERSION};
use super::{McpError, McpFault};
use crate::config::McpSettings;
use crate::rpc::{self, RequestId};
use crate::secret::SecretValue;

/// Tools that a server may list.
const MAX_TOOLS: usize = 1_000;

/// Answers that a list may be divided into.
const MAX_PAGES: usize = 64;

/// Size in KiB of an answer that is no tool's: a page of the list of tools.
const MAX_LIST_KIB: u64 = 4_096;

/// How long a list is relied on at most. A tool that changes is noticed by then.
const FRESH: Duration = Duration::from_secs(60);

/// Calls of a server at once; more wait.
const MAX_CALLS: usize = 8;

const PROTOCOL: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// How a server is spoken to.
#[derive(Debug, Clone)]
enum Speaks {
    /// Each request says everything about itself.
    Modern,
    /// After `initialize`.
    Legacy { version: &'static str, session: Option<HeaderValue> },
}

/// What is known of a server until its list is old.
#[derive(Debug, Clone)]
struct Known {
    speaks: Speaks,
    tools: Arc<BTreeMap<String, ToolDefinition>>,
    until: Instant,
}

/// A server that can be asked.
#[derive(Debug)]
pub struct McpClient {
    pub settings: McpSettings,
    uri: Uri,
    /// Of the administrator, or the variable that is not there.
    headers: Result<HeaderMap, String>,
    /// Values of headers, by their variables.
    pub keys: Vec<(String, SecretValue)>,
    known: Mutex<Option<Known>>,
    places: Semaphore,
    count: AtomicI64,
}

impl McpClient {
    /// Does not connect. `environment` has the values of headers.
    pub fn new(settings: McpSettings, environment: impl Fn(&str) -> Option<String>) -> McpClient {
        let (mut headers, mut keys, mut missing) = (HeaderMap::new(), Vec::new(), None);
        for (name, variable) in settings.headers() {
            let value = environment(variable).map(|value| SecretValue::new(value.trim().to_owned()));
            let header = value.as_ref().filter(|value| !value.expose().is_empty());
            let header = header.and_then(|value| HeaderValue::from_str(value.expose()).ok());
            let name = HeaderName::from_bytes(name.as_bytes());
            match (name, header, value) {
                (Ok(name), Some(mut header), Some(value)) => {
                    header.set_sensitive(true);
                    headers.insert(name, header);
                    // What says the kind of the key, such as "Bearer", is not secret; what follows it is one alone as well.
                    if let Some((_, key)) = value.expose().rsplit_once(' ') {
                        keys.push((variable.to_owned(), SecretValue::new(key.to_owned())));
                    } else {
                        keys.push((variable.to_owned(), value));
                    }
                }
                _ => missing = Some(variable.to_owned()),
            }
        }
        let headers = missing.map_or(Ok(headers), Err);
        let uri = settings.url.parse().unwrap_or_default();
        let (known, places, count) = (Mutex::default(), Semaphore::new(MAX_CALLS), AtomicI64::new(0));
        McpClient { settings, uri, headers, keys, known, places, count }
    }

    /// What the server says of its tools now.
    pub async fn list(&self) -> Result<Arc<BTreeMap<String, ToolDefinition>>, McpError> {
        let bounds = self.bounds();
        *self.known.lock().await = None;
        let known = self.known(bounds).await;
        known.map(|known| known.tools).map_err(|fault| self.error(fault))
    }

    /// Calls a tool, if the server says the same of it as was allowed. What it says otherwise comes with the error.
    pub async fn call(
        &self,
        allowed: &ToolDefinition,
        args: &Value,
    ) -> Result<McpOutcome, (McpError, Option<ToolDefinition>)> {
        let bounds = self.bounds();
        let work = async {
            let _place = self.places.acquire().await.expect("the semaphore is never closed");
            let params = json!({ "name": allowed.name, "arguments": args });
            // What a session that is gone did not take can be sent once more.
            let mut again = true;
            loop {
                let known = self.known(bounds).await.map_err(|fault| (fault, None))?;
                match known.tools.get(&allowed.name) {
                    None => return Err((McpFault::Gone(allowed.name.clone()), None)),
                    Some(now) if now != allowed => {
                        return Err((McpFault::Changed(allowed.name.clone()), Some(now.clone())));
                    }
                    Some(_) => {}
                }
                match self.ask(&known.speaks, "tools/call", params.clone(), bounds).await {
                    Ok(answer) => return McpOutcome::read(answer.result).map_err(|fault| (fault, None)),
                    Err(fault) => {
                        let gone = fault == McpFault::SessionGone;
                        // Who cannot be reached may be another one by the next time.
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

    pub fn error(&self, fault: McpFault) -> McpError {
        McpError { server: self.settings.name.clone(), fault }
    }

    fn bounds(&self) -> Bounds {
        let McpSettings { timeout_s, max_result_kib, .. } = self.settings;
        Bounds { end: Instant::now() + Duration::from_secs(timeout_s), timeout_s, max_kib: max_result_kib }
    }

    /// Connects where that was not done, or long ago, and lists the tools.
    async fn known(&self, bounds: Bounds) -> Result<Known, McpFault> {
        let bounds = Bounds { max_kib: MAX_LIST_KIB, ..bounds };
        let mut kept = self.known.lock().await;
        let speaks = match kept.as_ref() {
            Some(known) if Instant::now() < known.until => return Ok(known.clone()),
            Some(known) => known.speaks.clone(),
            None => self.connect(bounds).await?,
        };
        // Whatever comes of it, the old list counts no more.
        *kept = None;
        let listed = match self.tools(&speaks, bounds).await {
            Err(McpFault::SessionGone) => {
                let speaks = self.connect(bounds).await?;
                self.tools(&speaks, bounds).await.map(|listed| (speaks, listed))
            }
            listed => listed.map(|listed| (speaks, listed)),
        };
        let (speaks, (tools, fresh)) = listed?;
        let known = Known { speaks, tools: Arc::new(tools), until: Instant::now() + fresh };
        *kept = Some(known.clone());
        Ok(known)
    }

    /// Finds out which era the server speaks: the newer one is tried first, which has no state.
    async fn connect(&self, bounds: Bounds) -> Result<Speaks, McpFault> {
        match self.ask(&Speaks::Modern, "server/discover", json!({}), bounds).await {
            Ok(answer) => {
                let versions = answer.result.get("supportedVersions").and_then(Value::as_array);
                if versions.is_some_and(|versions| versions.contains(&json!(MODERN))) {
                    return Ok(Speaks::Modern);
                }
            }
            Err(McpFault::Rpc { .. } | McpFault::Status(400..=428 | 430..=499)) => {}
            Err(fault) => return Err(fault),
        }
        let params = json!({ "protocolVersion": LEGACY[0], "capabilities": {}, "clientInfo": client_info() });
        let begin = Speaks::Legacy { version: "", session: None };
        let RpcAnswer { result, session } = self.ask(&begin, "initialize", params, bounds).await?;
        let version = result.get("protocolVersion").and_then(Value::as_str);
        let version = LEGACY.into_iter().find(|known| Some(*known) == version).ok_or(McpFault::Version)?;
        let speaks = Speaks::Legacy { version, session };
        let message = rpc::notification("notifications/initialized", json!({}));
        http::exchange(&self.uri, self.headers(&speaks, None)?, &message, None, bounds).await?;
        Ok(speaks)
    }

    /// All tools, and for how long that holds.
    async fn tools(
        &self,
        speaks: &Speaks,
        bounds: Bounds,
    ) -> Result<(BTreeMap<String, ToolDefinition>, Duration), McpFault> {
        let (mut tools, mut fresh, mut params) = (BTreeMap::new(), FRESH, json!({}));
        for _ in 0..MAX_PAGES {
            let page = self.ask(speaks, "tools/list", params, bounds).await?.result;
            let Some(entries) = page.get("tools").and_then(Value::as_array) else {
                return Err(McpFault::BadAnswer("a list of tools has no tools".to_owned()));
            };
            if tools.len() + entries.len() > MAX_TOOLS {
                return Err(McpFault::TooManyTools(MAX_TOOLS));
            }
            for entry in entries {
                let Some(tool) = ToolDefinition::read(entry) else {
                    return Err(McpFault::BadAnswer("a tool has no name or no inputSchema".to_owned()));
                };
                if tools.insert(tool.name.clone(), tool).is_some() {
                    return Err(McpFault::BadAnswer("two tools have one name".to_owned()));
                }
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
        speaks: &Speaks,
        method: &'static str,
        mut params: Value,
        bounds: Bounds,
    ) -> Result<RpcAnswer, McpFault> {
        let mut headers = self.headers(speaks, Some(method))?;
        if let Speaks::Modern = speaks {
            if let Some(Ok(name)) = params.get("name").and_then(Value::as_str).map(HeaderValue::from_str) {
                headers.insert(NAME, name);
            }
            params["_meta"] = json!({ VERSION: MODERN, CLIENT: client_info(), CAPABILITIES: Map::new() });
        }
        let id = RequestId::Number(self.count.fetch_add(1, Ordering::Relaxed) + 1);
        let message = rpc::request(&id, method, params);
        http::exchange(&self.uri, headers, &message, Some(&id), bounds).await
    }

    fn headers(&self, speaks: &Speaks, method: Option<&'static str>) -> Result<HeaderMap, McpFault> {
        let mut headers = self.headers.clone().map_err(McpFault::Variable)?;
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

fn client_info() -> Value {
    json!({ "name": "kiso", "title": "kiso", "version": env!("CARGO_PKG_VERSION") })
}
