//! A server that speaks both wire formats of models and answers from a script, including faults.
//!
//! A script is a list of replies. A request takes the first unused reply for its role, which is in its header `x-kiso-role`; a
//! reply without a role fits any request. So each role has its own order, and background calls cannot take the replies of others.
//! A request that finds no reply, or that does not meet the expectations of its reply, gets status 500, and
//! [`ModelServer::finish`] panics with the reason.
//!
//! ```toml
//! [[reply]]
//! role = "planner"
//! expect_contains = "weather.csv"      # a text, or a list of them
//! expect_absent = ["hunter2"]
//! text = '{"goal": "…", "tasks": […]}'
//!
//! [[reply]]
//! role = "actor"
//! calls = [{ name = "exec", args = { command = "ls" } }]
//! fault = "missing_ids"
//! ```
//!
//! Nothing here sleeps: a stalled answer waits for [`ModelServer::release`] or for the client to disconnect.

#![allow(dead_code, reason = "scenarios, crash tests and the bench each use a part")]

use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};

// With paths, so that a file in another place can include this one.
#[path = "model_server/connection.rs"]
mod connection;
#[path = "model_server/render.rs"]
mod render;

/// A script of the server.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Script {
    /// The required key; requests without it get status 401, and take no reply.
    pub key: Option<String>,
    /// Fields of a request that get status 400, as from a server that does not know them; such requests take no reply.
    pub refuses: Vec<String>,
    pub reply: Vec<Reply>,
    /// The server's properties as llama.cpp reports them; they are only requested if replies have the header `server`.
    pub props: Option<Value>,
    /// Meanings of texts for `/embeddings`: texts that share an entry are near each other.
    pub meaning: Vec<Meaning>,
}

/// Texts with one of these words have the same meaning.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Meaning {
    pub words: Vec<String>,
    /// Whether these texts get status 400.
    pub refused: bool,
}

/// One answer.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Reply {
    /// The role that it is for; without one, any role.
    pub role: Option<String>,
    /// Texts that the prompt must contain.
    pub expect_contains: Texts,
    /// Texts that the prompt must not contain.
    pub expect_absent: Texts,
    pub text: String,
    /// Number of pieces in which the text and the arguments of calls are streamed; 3 by default.
    pub pieces: Option<usize>,
    /// Reasoning in the provider's separate field.
    pub reasoning: String,
    pub calls: Vec<Call>,
    /// Token counts; 10 and 5 by default.
    pub usage: Option<Counted>,
    /// The finish reason in the format's words; by default the one that fits the calls.
    pub stop: Option<String>,
    pub fault: Option<Fault>,
    /// The raw body, to imitate a particular provider. It replaces the fields above; the connection can still be cut or stalled
    /// after it.
    pub raw: Option<String>,
    /// Status of the response, 200 by default. Used with `raw`.
    pub status: Option<u16>,
    /// Additional headers.
    pub headers: BTreeMap<String, String>,
    /// Splits the body into chunks of this size, at any position.
    pub chunk_bytes: Option<usize>,
}

impl Reply {
    /// All texts of the reply.
    pub(crate) fn texts(&self) -> Vec<String> {
        let calls = self.calls.iter().map(|call| format!("{} {}", call.name, call.args));
        let mut texts = vec![self.text.clone(), self.reasoning.clone(), self.raw.clone().unwrap_or_default()];
        texts.extend(calls);
        texts
    }
}

/// A guard against replies that are never requested; no test waits for it to pass.
const PATIENCE: Duration = Duration::from_secs(60);

/// A tool call.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Call {
    pub name: String,
    /// An object, or a string that is sent unchanged.
    #[serde(default)]
    pub args: Value,
}

/// Token counts of the provider.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Counted {
    pub input: u64,
    pub output: u64,
    /// The part of the input that was cached from earlier requests.
    #[serde(default)]
    pub cached: u64,
    /// Cost in dollars; only OpenRouter reports it.
    pub cost: Option<f64>,
}

/// One text or several.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum Texts {
    One(String),
    Many(Vec<String>),
}

impl Default for Texts {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

impl Texts {
    fn iter(&self) -> std::slice::Iter<'_, String> {
        match self {
            Self::One(text) => std::slice::from_ref(text).iter(),
            Self::Many(texts) => texts.iter(),
        }
    }
}

/// A fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Fault {
    /// The head is sent at once, the first token only after a release.
    SlowFirstToken,
    /// Half of the answer is sent at once, the rest only after a release.
    StallMidStream,
    /// Each piece of the text waits for a release.
    Stepped,
    /// The connection is cut after half of the answer.
    CutConnection,
    /// The connection is closed without a byte, as by a server that was just about to close it.
    CloseUnanswered,
    #[serde(rename = "status_429")]
    Status429 {
        /// Seconds.
        retry_after: Option<u64>,
    },
    #[serde(rename = "status_500")]
    Status500,
    /// A piece in the middle is not JSON.
    MalformedChunk,
    /// The body ends properly, in the middle of an event.
    TruncatedJson,
    /// The arguments of the calls lack their end.
    BadArguments,
    /// The calls name a tool that does not exist.
    WrongTool,
    /// An answer without text and calls.
    Empty,
    /// Text without end.
    Endless,
    /// An error event instead of an answer.
    #[serde(rename = "error_in_200")]
    ErrorIn200,
    /// An error object instead of an answer.
    #[serde(rename = "error_body_in_200")]
    ErrorBodyIn200,
    NoUsage,
    /// Calls have no ids.
    MissingIds,
    /// Status 400 while the request has a schema; the reply is taken only by a request without one.
    RefuseSchema,
    /// Comments between the events.
    CommentLines,
    /// Comments without end, and no answer.
    OnlyComments,
    /// One JSON object, although a stream was requested.
    NotStreamed,
}

/// A received request.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub path: String,
    /// Names in lower case.
    pub headers: BTreeMap<String, String>,
    pub body: Value,
    /// Number of the connection on which it arrived, from 0.
    pub connection: usize,
}

/// Times of each completed answer.
#[derive(Debug, Clone)]
pub(crate) struct Timing {
    /// When the first bytes of the request arrived.
    pub asked: Instant,
    /// When each part of the body was about to be written.
    pub parts: Vec<Instant>,
    /// When the last bytes were about to be written.
    pub answered: Instant,
}

impl Seen {
    /// The role that sent the request.
    pub(crate) fn role(&self) -> &str {
        self.headers.get("x-kiso-role").map_or("", String::as_str)
    }

    /// All texts of the system prompt and the messages.
    pub(crate) fn prompt(&self) -> String {
        let mut texts = Vec::new();
        for part in ["system", "messages", "input"] {
            collect(&self.body[part], &mut texts);
        }
        texts.join("\n")
    }

    fn format(&self) -> render::Format {
        if self.path.ends_with("/messages") { render::Format::Anthropic } else { render::Format::OpenAi }
    }
}

fn collect<'a>(value: &'a Value, texts: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(parts) => parts.iter().for_each(|part| collect(part, texts)),
        Value::Object(parts) => parts.values().for_each(|part| collect(part, texts)),
        _ => {}
    }
}

/// The server. It runs on its own thread until it is dropped, so that tests need no runtime.
pub(crate) struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    script: Script,
    state: Mutex<State>,
    /// One permit for each answer that may continue.
    released: Semaphore,
}

#[derive(Default)]
struct State {
    /// Whether each reply of the script was taken.
    taken: Vec<bool>,
    seen: Vec<Seen>,
    timings: Vec<Timing>,
    problems: Vec<String>,
    connections: usize,
    /// Number of answers that wait for a release.
    held: usize,
}

impl ModelServer {
    /// Starts on a free port of this machine.
    pub(crate) fn start(script: Script) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        listener.set_nonblocking(true).expect("a listener can be asked without waiting");
        let address = listener.local_addr().expect("it has an address");
        let state = State { taken: vec![false; script.reply.len()], ..State::default() };
        let shared = Arc::new(Shared { script, state: Mutex::new(state), released: Semaphore::new(0) });
        let (stop, stopped) = oneshot::channel();
        let server = shared.clone();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().expect("a runtime");
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener).expect("the listener is not blocking");
                let serving = async {
                    while let Ok((stream, _)) = listener.accept().await {
                        let _ = stream.set_nodelay(true);
                        tokio::spawn(connection::serve(server.clone(), stream));
                    }
                };
                tokio::select! {
                    () = serving => {}
                    _ = stopped => {}
                }
            });
        });
        Self { address, shared, stop: Some(stop), thread: Some(thread) }
    }

    /// Starts with a script as TOML.
    #[track_caller]
    pub(crate) fn toml(script: &str) -> Self {
        Self::start(toml::from_str(script).unwrap_or_else(|error| panic!("the script: {error}")))
    }

    /// The URL before `/chat/completions` and `/messages`.
    pub(crate) fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Requests so far.
    pub(crate) fn requests(&self) -> Vec<Seen> {
        self.shared.state().seen.clone()
    }

    /// Timings of the answers, in the order in which they ended.
    pub(crate) fn timings(&self) -> Vec<Timing> {
        self.shared.state().timings.clone()
    }

    /// Number of connections so far.
    pub(crate) fn connections(&self) -> usize {
        self.shared.state().connections
    }

    /// Number of answers that wait for a release.
    pub(crate) fn held(&self) -> usize {
        self.shared.state().held
    }

    /// Releases one waiting answer, or the next one to wait.
    pub(crate) fn release(&self) {
        self.release_many(1);
    }

    /// Releases several.
    pub(crate) fn release_many(&self, times: usize) {
        self.shared.released.add_permits(times);
    }

    /// Whether every reply was taken.
    pub(crate) fn is_told(&self) -> bool {
        self.shared.state().taken.iter().all(|taken| *taken)
    }

    /// Deviations from the script, including replies that were not taken.
    pub(crate) fn problems(&self) -> Vec<String> {
        let state = self.shared.state();
        let unused = state.taken.iter().zip(&self.shared.script.reply).zip(1..).filter(|((taken, _), _)| !**taken);
        let unused = unused.map(|((_, reply), number)| {
            format!("reply {number} ({}) was never asked for", reply.role.as_deref().unwrap_or("any role"))
        });
        state.problems.iter().cloned().chain(unused).collect()
    }

    /// Waits until every reply was requested, since titles and summaries follow a run's reply, and panics if anything deviated
    /// from the script.
    #[track_caller]
    pub(crate) fn finish(self) {
        let began = Instant::now();
        while !self.is_told() && self.shared.state().problems.is_empty() && began.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(10));
        }
        let problems = self.problems();
        assert!(problems.is_empty(), "{problems:#?}\n{:#?}", self.requests());
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The answer to a request.
    fn answer(&self, seen: Seen) -> render::Answer {
        let mut state = self.state();
        let State { taken, seen: all, problems, .. } = &mut *state;
        let number = all.len() + 1;
        let (role, prompt, format) = (seen.role().to_owned(), seen.prompt(), seen.format());
        all.push(seen.clone());
        let sent = [("authorization", "Bearer "), ("x-api-key", "")].into_iter();
        let mut sent = sent.filter_map(|(name, before)| seen.headers.get(name)?.strip_prefix(before));
        if self.script.key.as_deref().is_some_and(|key| !sent.any(|sent| sent == key)) {
            return render::Answer::error(401, "Incorrect API key provided");
        }
        if seen.path.ends_with("/models") {
            let model = json!({ "id": "test-model", "object": "model", "type": "model" });
            return render::Answer::json(200, &json!({ "object": "list", "data": [model] }));
        }
        if seen.path == "/props"
            && let Some(props) = &self.script.props
        {
            return render::Answer::json(200, props);
        }
        let mut problem = |text: String| {
            let text = format!("request {number} (the {role}'s): {text}");
            let answer = render::Answer::error(500, &text);
            problems.push(text);
            answer
        };
        let embeds = seen.path.ends_with("/embeddings");
        if embeds && !self.script.reply.iter().enumerate().any(|(n, r)| !taken[n] && r.role.as_deref() == Some(&role)) {
            return self.embeddings(&seen.body);
        }
        if !embeds && !seen.path.ends_with("/messages") && !seen.path.ends_with("/chat/completions") {
            return problem(format!("there is nothing at {}", seen.path));
        }
        if let Some(field) = self.script.refuses.iter().find(|field| seen.body.get(field.as_str()).is_some()) {
            return render::Answer::error(400, &format!("Unsupported parameter: '{field}' is not supported"));
        }
        let mut replies = self.script.reply.iter().enumerate();
        let fits = |reply: &Reply| reply.role.as_deref().is_none_or(|name| name == role);
        let Some((position, reply)) = replies.find(|(n, reply)| !taken[*n] && fits(reply)) else {
            return problem("the script has no reply left".to_owned());
        };
        if let Some(text) = reply.expect_contains.iter().find(|text| !prompt.contains(text.as_str())) {
            return problem(format!("{text:?} is not in the prompt, and reply {} expects it", position + 1));
        }
        if let Some(text) = reply.expect_absent.iter().find(|text| prompt.contains(text.as_str())) {
            return problem(format!("{text:?} is in the prompt, and reply {} forbids it", position + 1));
        }
        if reply.fault == Some(Fault::RefuseSchema) && render::wants_schema(format, &seen.body) {
            let field = if format == render::Format::OpenAi { "response_format" } else { "tool_choice" };
            return render::Answer::error(400, &format!("{field} is not supported by this model"));
        }
        taken[position] = true;
        render::answer(reply, format, &seen.body)
    }

    /// A vector for each text: one direction for each matching entry, and one of its own.
    fn embeddings(&self, body: &Value) -> render::Answer {
        let texts: Vec<String> = serde_json::from_value(body["input"].clone()).unwrap_or_default();
        let meanings = &self.script.meaning;
        let fits = |meaning: &Meaning, text: &str| meaning.words.iter().any(|word| text.contains(word.as_str()));
        if texts.iter().any(|text| meanings.iter().any(|meaning| meaning.refused && fits(meaning, text))) {
            return render::Answer::error(400, "the input is not allowed");
        }
        let vector = |text: &String| {
            let mut vector = vec![0.0; 64];
            meanings.iter().zip(&mut vector).filter(|(meaning, _)| fits(meaning, text)).for_each(|(_, n)| *n = 1.0);
            // Each text has a unique component, so that no two vectors are equal.
            let own = text.bytes().fold(7_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(byte)));
            vector[32 + own % 32] += 0.3;
            vector
        };
        let data = texts.iter().enumerate().map(|(n, text)| json!({ "index": n, "embedding": vector(text) }));
        let data: Vec<_> = data.collect();
        render::Answer::json(200, &json!({ "data": data, "usage": { "prompt_tokens": 10 * texts.len() } }))
    }

    /// Waits for a release. Returns false if the client disconnected.
    async fn hold(&self, stream: &TcpStream) -> bool {
        self.state().held += 1;
        let gone = async { while connection::read(stream, &mut [0; 64]).await.is_some() {} };
        let told = tokio::select! {
            told = self.released.acquire() => told.map(|permit| permit.forget()).is_ok(),
            () = gone => false,
        };
        self.state().held -= 1;
        told
    }
}
