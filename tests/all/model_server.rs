//! A server that speaks both wire formats of models and answers from a script, faults included.
//!
//! A script is a list of replies. A request takes the first reply that nobody took yet and that is for its role, which
//! stands in its header `x-kiso-role`; a reply without a role is for anybody. So the order holds for each role, and
//! calls in the background cannot take what is not theirs. A request that finds no reply, or that does not fit the
//! expectations of its reply, is answered with 500, and [`ModelServer::finish`] panics with the reason.
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
//! Nothing here sleeps: an answer that stalls waits for [`ModelServer::release`] or for the client to go away.

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

// With their paths, so that a file elsewhere can include this one by a path of its own.
#[path = "model_server/connection.rs"]
mod connection;
#[path = "model_server/render.rs"]
mod render;

/// What the server answers.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Script {
    /// The key that requests must have; others are answered with 401, and take no reply.
    pub key: Option<String>,
    /// Fields of a request that are answered with 400, as a server answers that does not know them; they take no reply.
    pub refuses: Vec<String>,
    pub reply: Vec<Reply>,
    /// What it says of itself, as llama.cpp does; replies need its header `server` for that to be asked.
    pub props: Option<Value>,
    /// What texts mean, for `/embeddings`: those that share an entry are near each other.
    pub meaning: Vec<Meaning>,
}

/// Texts with one of these words have one meaning.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Meaning {
    pub words: Vec<String>,
    /// They are answered with 400.
    pub refused: bool,
}

/// One answer.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Reply {
    /// The role that it is for; anybody's without.
    pub role: Option<String>,
    /// Texts that the prompt must contain.
    pub expect_contains: Texts,
    /// Texts that the prompt must not contain.
    pub expect_absent: Texts,
    pub text: String,
    /// How many pieces the text and the arguments of calls are streamed in; 3 without.
    pub pieces: Option<usize>,
    /// Thoughts, as the provider tells them apart.
    pub reasoning: String,
    pub calls: Vec<Call>,
    /// 10 and 5 tokens without.
    pub usage: Option<Counted>,
    /// The reason of the end as the format calls it; without, what fits the calls.
    pub stop: Option<String>,
    pub fault: Option<Fault>,
    /// The body as it is, for what a particular provider does. The fields above do not count then, except that after
    /// it the connection can be cut or stalled.
    pub raw: Option<String>,
    /// Of the head; 200 without. Goes with `raw`.
    pub status: Option<u16>,
    /// More headers.
    pub headers: BTreeMap<String, String>,
    /// Cuts the body into pieces of so many bytes, wherever that is.
    pub chunk_bytes: Option<usize>,
}

impl Reply {
    /// All that it says, in whatever way.
    pub(crate) fn texts(&self) -> Vec<String> {
        let calls = self.calls.iter().map(|call| format!("{} {}", call.name, call.args));
        let mut texts = vec![self.text.clone(), self.reasoning.clone(), self.raw.clone().unwrap_or_default()];
        texts.extend(calls);
        texts
    }
}

/// A guard against what is never asked for; no test waits for it to pass.
const PATIENCE: Duration = Duration::from_secs(60);

/// A tool that is called.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Call {
    pub name: String,
    /// An object, or a string that stands as it is.
    #[serde(default)]
    pub args: Value,
}

/// What the provider counted.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Counted {
    pub input: u64,
    pub output: u64,
    /// Of the input, what was kept from requests before.
    #[serde(default)]
    pub cached: u64,
    /// Dollars; only OpenRouter says it.
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

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Fault {
    /// The head comes, and the first token when the server is told to go on.
    SlowFirstToken,
    /// Half of the answer comes, and the rest when the server is told to go on.
    StallMidStream,
    /// Each piece of the text comes when the server is told to go on.
    Stepped,
    /// Half of the answer comes, and the connection is cut.
    CutConnection,
    /// The connection is closed without a byte, as servers do that were just about to close it.
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
    /// The calls are of a tool that does not exist.
    WrongTool,
    /// An answer without text and calls.
    Empty,
    /// Text without end.
    Endless,
    /// An error event in place of an answer.
    #[serde(rename = "error_in_200")]
    ErrorIn200,
    /// An error object in place of an answer.
    #[serde(rename = "error_body_in_200")]
    ErrorBodyIn200,
    NoUsage,
    /// Calls have no ids.
    MissingIds,
    /// 400 as long as the request wants a schema; takes the reply only when it does not.
    RefuseSchema,
    /// Comments between the events.
    CommentLines,
    /// Comments without end, and never an answer.
    OnlyComments,
    /// One JSON object, although a stream was asked for.
    NotStreamed,
}

/// A request that came.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub path: String,
    /// Names in lower case.
    pub headers: BTreeMap<String, String>,
    pub body: Value,
    /// Which connection it came on, from 0.
    pub connection: usize,
}

/// When what happened, for each answer that came to its end.
#[derive(Debug, Clone)]
pub(crate) struct Timing {
    /// The first bytes of the request were there.
    pub asked: Instant,
    /// Each part of the body was about to be written.
    pub parts: Vec<Instant>,
    /// The last bytes were about to be written.
    pub answered: Instant,
}

impl Seen {
    /// The role that asked.
    pub(crate) fn role(&self) -> &str {
        self.headers.get("x-kiso-role").map_or("", String::as_str)
    }

    /// Every text of the system prompt and of the messages.
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

/// The server. It runs on a thread of its own, so that tests need no runtime, until it is dropped.
pub(crate) struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    script: Script,
    state: Mutex<State>,
    /// One permit for each answer that may go on.
    released: Semaphore,
}

#[derive(Default)]
struct State {
    /// For each reply of the script.
    taken: Vec<bool>,
    seen: Vec<Seen>,
    timings: Vec<Timing>,
    problems: Vec<String>,
    connections: usize,
    /// Answers that wait to be told to go on.
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

    /// With a script as TOML.
    #[track_caller]
    pub(crate) fn toml(script: &str) -> Self {
        Self::start(toml::from_str(script).unwrap_or_else(|error| panic!("the script: {error}")))
    }

    /// What stands before `/chat/completions` and `/messages`.
    pub(crate) fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// What was asked so far.
    pub(crate) fn requests(&self) -> Vec<Seen> {
        self.shared.state().seen.clone()
    }

    /// How long it took, in the order in which the answers ended.
    pub(crate) fn timings(&self) -> Vec<Timing> {
        self.shared.state().timings.clone()
    }

    /// Connections that were opened so far.
    pub(crate) fn connections(&self) -> usize {
        self.shared.state().connections
    }

    /// Answers that wait to be told to go on.
    pub(crate) fn held(&self) -> usize {
        self.shared.state().held
    }

    /// Lets one answer that waits go on, or the next that comes to wait.
    pub(crate) fn release(&self) {
        self.release_many(1);
    }

    /// The same, so many times.
    pub(crate) fn release_many(&self, times: usize) {
        self.shared.released.add_permits(times);
    }

    /// Whether every reply was taken.
    pub(crate) fn is_told(&self) -> bool {
        self.shared.state().taken.iter().all(|taken| *taken)
    }

    /// What did not go as the script says, replies that nobody took included.
    pub(crate) fn problems(&self) -> Vec<String> {
        let state = self.shared.state();
        let unused = state.taken.iter().zip(&self.shared.script.reply).zip(1..).filter(|((taken, _), _)| !**taken);
        let unused = unused.map(|((_, reply), number)| {
            format!("reply {number} ({}) was never asked for", reply.role.as_deref().unwrap_or("any role"))
        });
        state.problems.iter().cloned().chain(unused).collect()
    }

    /// Waits until every reply was asked for, since titles and summaries come after what a person is told, and panics if
    /// anything did not go as the script says.
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

    /// What `seen` gets.
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

    /// A vector for each text: a direction for each entry that it fits, and one of its own.
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
            // Each text has something that others have not, so that no two are the same.
            let own = text.bytes().fold(7_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(byte)));
            vector[32 + own % 32] += 0.3;
            vector
        };
        let data = texts.iter().enumerate().map(|(n, text)| json!({ "index": n, "embedding": vector(text) }));
        let data: Vec<_> = data.collect();
        render::Answer::json(200, &json!({ "data": data, "usage": { "prompt_tokens": 10 * texts.len() } }))
    }

    /// Waits to be told to go on; false if the client went away.
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
