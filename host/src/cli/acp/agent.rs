//! The editor's connection: its requests, and the sessions that they belong to.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Duration;

use data_encoding::HEXLOWER;
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::ProjectAccess;
use super::session::{AcpSession, SessionRequest};
use super::update;
use kiso_agent::drive::RunExecutor;
use kiso_base::home::{PROJECT, SessionFolder, SessionName};
use kiso_base::rpc::stream::ReadMessage;
use kiso_base::rpc::{self, BUSY, INTERNAL_ERROR, METHOD_NOT_FOUND, RequestId, RpcError, RpcMessage};
use kiso_gateway::open_message;
use kiso_store::store::MessageRole;

/// The supported version of the protocol.
const PROTOCOL: u64 = 1;

/// Maximum bytes of a line: files are sent inside lines.
const MAX_LINE: u64 = 32 << 20;

/// Maximum messages of the editor that are read ahead.
const MAX_UNHEARD: usize = 16;

/// Maximum open conversations.
const MAX_SESSIONS: usize = 32;

/// Maximum requests that wait for a conversation.
const MAX_WAITING: usize = 16;

/// Maximum messages of an earlier conversation that the editor receives.
const MAX_REPLAYED: u32 = 200;

/// How long prompts may continue after the editor has closed its end, so that a script that sends and closes receives its
/// answers.
const GRACE: Duration = Duration::from_secs(30);

/// The protocol's code for a resource that does not exist.
const NOT_FOUND: i64 = -32_002;

/// Options of the command line.
#[derive(Debug, Clone)]
pub(super) struct AgentOptions {
    pub session: Option<SessionName>,
    pub project: Option<ProjectAccess>,
}

/// Serves the editor at `input` and `output` until it closes its end.
pub(super) async fn serve(
    drive: RunExecutor,
    options: AgentOptions,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
) -> io::Result<()> {
    let (out, writer) = rpc::stream::write(output)?;
    let (tell, mut heard) = mpsc::channel(MAX_UNHEARD);
    std::thread::Builder::new().name("kiso-acp-in".into()).spawn(move || {
        rpc::stream::read(input, MAX_LINE, "attach fewer or smaller files", |message| {
            tell.blocking_send(message).is_ok()
        });
    })?;
    let gone = out.clone();
    let mut agent = Agent { drive, options, out, sessions: HashMap::new() };
    loop {
        tokio::select! {
            message = heard.recv() => match message {
                Some(message) => agent.hear(message).await,
                None => break agent.finish().await,
            },
            // An editor that no longer reads has gone, too.
            () = gone.closed() => break,
        }
    }
    agent.sessions.into_values().for_each(|open| open.task.abort());
    drop((agent.out, gone));
    writer.finish().await
}

struct Agent {
    drive: RunExecutor,
    options: AgentOptions,
    out: mpsc::Sender<Value>,
    sessions: HashMap<SessionName, OpenSession>,
}

/// A conversation that is open in the editor.
struct OpenSession {
    requests: mpsc::Sender<SessionRequest>,
    task: JoinHandle<()>,
}

impl Agent {
    async fn hear(&mut self, message: ReadMessage) {
        match message {
            Ok(RpcMessage::Request { id, method, params }) => {
                let answered = match method.as_str() {
                    "initialize" => Ok(Some(initialized())),
                    // Whoever can start the program may use it.
                    "authenticate" => Ok(Some(json!({}))),
                    "session/new" => self.open_new(&id, &params).await.map(|()| None),
                    "session/load" => self.load(&id, &params).await.map(|()| None),
                    "session/prompt" => self.prompt(&id, &params).map(|()| None),
                    _ => Err(RpcError::new(METHOD_NOT_FOUND, format!("{method:?} is not a method of kiso's"))),
                };
                if let Some(result) = answered.transpose() {
                    self.say(rpc::response(&id, result)).await;
                }
            }
            Ok(RpcMessage::Notification { method, params }) if method == "session/cancel" => {
                if let Ok(open) = self.open_session(&params) {
                    let _ = open.requests.send(SessionRequest::Cancel).await;
                }
            }
            Ok(RpcMessage::Response { id: Some(RequestId::Text(id)), result }) => {
                let session = id.split_once('/').and_then(|(session, _)| SessionName::parse(session).ok());
                if let Some(open) = session.and_then(|session| self.sessions.get(&session)) {
                    let _ = open.requests.send(SessionRequest::Answer { id, result }).await;
                }
            }
            Ok(RpcMessage::Notification { .. } | RpcMessage::Response { .. }) => {}
            Err((id, error)) => self.say(rpc::refusal(id.as_ref(), error)).await,
        }
    }

    /// Lets prompts finish for a limited time.
    async fn finish(&mut self) {
        let mut tasks = Vec::new();
        for (_, open) in self.sessions.drain() {
            // Without its channel of requests, the conversation ends after its prompt.
            drop(open.requests);
            tasks.push(open.task);
        }
        let all = async {
            for task in &mut tasks {
                let _ = task.await;
            }
        };
        let _ = tokio::time::timeout(GRACE, all).await;
        tasks.iter().for_each(JoinHandle::abort);
    }

    async fn say(&self, message: Value) {
        let _ = self.out.send(message).await;
    }

    fn open_session(&self, params: &Map<String, Value>) -> Result<&OpenSession, RpcError> {
        let name = rpc::text_of(params, "sessionId")?;
        let open = SessionName::parse(name).ok().and_then(|session| self.sessions.get(&session));
        open.ok_or_else(|| RpcError::new(NOT_FOUND, "no session of this id is open; session/load opens one"))
    }

    async fn open_new(&mut self, id: &RequestId, params: &Map<String, Value>) -> Result<(), RpcError> {
        let session = match &self.options.session {
            Some(session) => session.clone(),
            None => new_name()?,
        };
        self.open(&session, params)?;
        self.say(rpc::response(id, Ok(json!({ "sessionId": session })))).await;
        self.tell_commands(&session).await;
        Ok(())
    }

    async fn load(&mut self, id: &RequestId, params: &Map<String, Value>) -> Result<(), RpcError> {
        let missing = || RpcError::new(NOT_FOUND, "there is no session of this id");
        let session = SessionName::parse(rpc::text_of(params, "sessionId")?).map_err(|_| missing())?;
        let of = session.clone();
        let read = self.drive.store.read(move |view| {
            let there = view.has_session(&of)?;
            Ok(if there { Some(view.messages_before(&of, None, MAX_REPLAYED)?) } else { None })
        });
        let messages = read.await.map_err(|error| RpcError::internal(&error))?.ok_or_else(missing)?;
        self.open(&session, params)?;
        for message in messages {
            let message = open_message(&self.drive.vault, session.clone(), message);
            let kind = match message.role {
                MessageRole::User => "user_message_chunk",
                MessageRole::Assistant => "agent_message_chunk",
            };
            self.say(update::text(&session, kind, &message.text)).await;
        }
        self.say(rpc::response(id, Ok(json!({})))).await;
        self.tell_commands(&session).await;
        Ok(())
    }

    async fn tell_commands(&self, session: &SessionName) {
        let commands = update::commands(session, &self.drive.newest_config());
        self.say(commands).await;
    }

    /// Opens a session, or reopens it: the editor may have forgotten that it is open.
    fn open(&mut self, session: &SessionName, params: &Map<String, Value>) -> Result<(), RpcError> {
        let cwd = rpc::text_of(params, "cwd")?;
        let servers = params.get("mcpServers").and_then(Value::as_array).map_or(0, Vec::len);
        if servers > 0 {
            tracing::info!(
                servers,
                "MCP servers of the editor are not used; an administrator adds them to config.toml"
            );
        }
        if !self.sessions.contains_key(session) && self.sessions.len() >= MAX_SESSIONS {
            return Err(RpcError::new(BUSY, format!("{MAX_SESSIONS} sessions are already open")));
        }
        let project = self.project(Path::new(cwd))?;
        if let Some(project) = &project {
            let opened = self.drive.home.open_folder(session, project.clone());
            opened.map_err(|error| RpcError::params(error.to_string()))?;
        }
        let (requests, asked) = mpsc::channel(MAX_WAITING);
        let task = AcpSession::start(session.clone(), self.drive.clone(), self.out.clone(), project, asked);
        if let Some(before) = self.sessions.insert(session.clone(), OpenSession { requests, task }) {
            before.task.abort();
        }
        Ok(())
    }

    /// Returns the editor's directory as a project, if the command line enables it.
    fn project(&self, cwd: &Path) -> Result<Option<SessionFolder>, RpcError> {
        if !cwd.is_absolute() {
            return Err(RpcError::params("`cwd` must be an absolute path"));
        }
        let Some(access) = self.options.project else { return Ok(None) };
        if self.drive.newest_config().mounts.iter().any(|mount| mount.at == PROJECT) {
            let message =
                format!("[exec.mounts] in config.toml has {PROJECT} already; rename it there, or leave --project out");
            return Err(RpcError::new(INTERNAL_ERROR, message));
        }
        let folder = SessionFolder::new(&self.drive.home, cwd, PROJECT, false);
        let folder = folder.map_err(|error| RpcError::params(format!("{error}; or leave --project out")))?;
        Ok(Some(SessionFolder { write: access == ProjectAccess::Ask, ..folder }))
    }

    fn prompt(&self, id: &RequestId, params: &Map<String, Value>) -> Result<(), RpcError> {
        let open = self.open_session(params)?;
        let Some(Value::Array(blocks)) = params.get("prompt") else {
            return Err(RpcError::params("`prompt` must be a list of content blocks"));
        };
        let request = SessionRequest::Prompt { id: id.clone(), blocks: blocks.clone() };
        open.requests.try_send(request).map_err(|_| RpcError::new(BUSY, "too many requests wait for this session"))
    }
}

fn initialized() -> Value {
    json!({
        "protocolVersion": PROTOCOL,
        "agentCapabilities": {
            "loadSession": true,
            "promptCapabilities": { "image": true, "audio": false, "embeddedContext": true },
            "mcpCapabilities": { "http": false, "sse": false },
        },
        "agentInfo": { "name": "kiso", "title": "kiso", "version": env!("CARGO_PKG_VERSION") },
        "authMethods": [],
    })
}

/// Returns a new session name for a conversation.
fn new_name() -> Result<SessionName, RpcError> {
    let mut bytes = [0; 6];
    SystemRandom::new().fill(&mut bytes).map_err(|_| RpcError::internal(&"the system provides no random numbers"))?;
    SessionName::parse(&format!("acp-{}", HEXLOWER.encode(&bytes))).map_err(|error| RpcError::internal(&error))
}
