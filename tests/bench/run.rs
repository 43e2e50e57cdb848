//! The time that kiso adds to a model's: until the first byte of an answer is on the terminal, between two calls of a model, and
//! before the first call, with few and with many messages in the store.
//!
//! The model is the tests' server, which records when it sent bytes and when requests arrived.

use super::{Times, row, show, skills, summary};
use kiso_agent::context::{render, select};
use kiso_agent::drive::{Cancel, Listener, RunExecutor};
use kiso_base::config::Config;
use kiso_base::home::{Home, SessionName};
use kiso_base::role::Role;
use kiso_plan::plan::CallerScope;
use kiso_plan::prompt::{ChatMessage, Pieces};
use kiso_sandbox::exec::Exec;
use kiso_sandbox::skill::GrantChoice;
use kiso_store::secret::Secrets;
use kiso_store::store::{MessageRole, Store};
use kiso_tests::guest;
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

#[path = "../all/model_server.rs"]
pub(crate) mod model_server;

use model_server::{Call, Fault, ModelServer, Reply, Script};

/// Variable with the address from which [`relay`] reads.
pub(crate) const RELAY: &str = "KISO_BENCH_RELAY";

/// Variable for the messages in the large store, so that a short run can use fewer.
pub(crate) const MESSAGES: &str = "KISO_BENCH_MESSAGES";

/// Measurements of the first byte.
const FIRST_BYTES: usize = 20;

/// Runs of six model calls each.
const RUNS: usize = 40;

/// Messages of the session in which they run.
const LONG_SESSION: u32 = 10_000;

/// Number of contexts to build.
const CONTEXTS: usize = 50;

/// The text of the first token.
const TOKEN: &str = "token";

/// Prints the rows.
pub(crate) async fn rows() {
    first_byte();
    steps().await;
    contexts().await;
}

fn reply(role: &str, text: &str) -> Reply {
    Reply { role: Some(role.to_owned()), text: text.to_owned(), pieces: Some(1), ..Reply::default() }
}

fn routing(effort: &str) -> Reply {
    let routing =
        json!({ "effort": effort, "categories": [], "tool_need": 1, "goal": "answer", "durable": false }).to_string();
    reply("router", &routing)
}

fn config(server: &ModelServer) -> String {
    format!(
        "model = \"test:m\"\n[providers.test]\nkind = \"openai\"\nbase_url = \"{}\"\n[routing]\nfast_path = false\n\
         [limits]\nmax_tokens_per_run = 1_000_000_000\n[pills.plan]\ntemplate = \"{{input}}\"\neffort = \"high\"\n",
        server.base_url()
    )
}

/// The time from the server sending the first token until it comes out of a pipe: through kiso, and through a process that copies
/// a socket to its standard output.
fn first_byte() {
    let dir = TempDir::new().expect("there is room");
    let home = dir.path().join("home");
    let (mut of_relay, mut of_kiso) = (Vec::new(), Vec::new());
    for turn in 0..=FIRST_BYTES {
        let relay = held(|server| {
            let mut command = Command::new(std::env::current_exe().expect("it has a path"));
            command.arg("--bench").env(RELAY, server.base_url());
            command
        });
        let kiso = held(|server| {
            Home::open(&home).expect("a home");
            std::fs::write(home.join("config.toml"), config(server)).expect("there is room");
            let mut command = Command::new(env!("CARGO_BIN_EXE_kiso"));
            command.args(["run", "tell me something"]).env("KISO_HOME", &home);
            command
        });
        // The first turn is a warm-up.
        if turn > 0 {
            of_relay.push(relay);
            of_kiso.push(kiso);
        }
    }
    let relay = summary(of_relay);
    row("socket to pipe: a model's first token", relay, None);
    row("`kiso run`: a model's first token to standard output", summary(of_kiso), Some((relay, "× socket to pipe")));
}

/// One measurement: the server sends one token and holds the rest until the token has come out.
fn held(command: impl FnOnce(&ModelServer) -> Command) -> Duration {
    let answer = Reply { fault: Some(Fault::StallMidStream), ..reply("worker", &format!("{TOKEN} ")) };
    let script = [routing("low"), answer, reply("titler", "Something")];
    let server = ModelServer::start(Script { reply: script.to_vec(), ..Script::default() });
    let mut child = command(&server);
    let mut child = child.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
    let mut stdout = child.stdout.take().expect("it is a pipe");
    let (mut text, mut buffer) = (Vec::new(), [0; 4096]);
    while !String::from_utf8_lossy(&text).contains(TOKEN) {
        let read = stdout.read(&mut buffer).expect("a pipe can be read");
        assert!(read > 0, "it ended without an answer: {:?}", server.problems());
        text.extend_from_slice(&buffer[..read]);
    }
    let arrived = Instant::now();
    server.release();
    child.wait().expect("it ends");
    let timings = server.timings();
    // The held answer has one more part than others: the wait.
    let answer = timings.iter().max_by_key(|timing| timing.parts.len()).expect("the server wrote it to its end");
    // The first part contains the role, the second the token.
    arrived - answer.parts[1]
}

/// The reference that [`held`] starts: requests the worker's answer and copies it to standard output.
pub(crate) fn relay(base_url: &str) {
    let address = base_url.trim_start_matches("http://").trim_end_matches("/v1");
    let mut stream = TcpStream::connect(address).expect("the server listens");
    let body = json!({ "stream": true, "stream_options": { "include_usage": true }, "messages": [] }).to_string();
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: bench\r\nx-kiso-role: worker\r\n";
    write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len()).expect("the server reads");
    let (mut stdout, mut buffer, mut tail) = (std::io::stdout(), [0; 4096], Vec::new());
    while let Ok(read @ 1..) = stream.read(&mut buffer) {
        stdout.write_all(&buffer[..read]).expect("somebody reads");
        stdout.flush().expect("somebody reads");
        tail.extend_from_slice(&buffer[..read]);
        if tail.ends_with(b"0\r\n\r\n") {
            break;
        }
    }
}

fn drive(path: &Path) -> RunExecutor {
    let home = Home::open(path).expect("a home");
    let config = Config::load(&home).expect("a configuration");
    let store = Store::open(&home.store_path()).expect("a store");
    let skills = skills(path);
    let exec = Exec::new(home.clone(), config.clone(), skills.clone());
    RunExecutor::open(skills, exec, store, |_| None).expect("its models")
}

struct Silent;

impl Listener for Silent {}

async fn run(drive: &RunExecutor, session: &SessionName, message: &str) {
    let cancel = Cancel::new();
    let ran = drive.run(session, message, CallerScope::Admin, Secrets::default(), &cancel, &mut Silent).await;
    let (id, outcome) = ran.expect("it runs");
    assert_eq!(outcome.reply, "Done.", "{id}");
}

fn parse(session: &str) -> SessionName {
    SessionName::parse(session).expect("a plain name")
}

/// The host's own time between the last byte of one answer and the first byte of the next request, through all roles, with 20
/// skills and a long session; compared with the commit of one event to disk.
async fn steps() {
    let dir = TempDir::new().expect("there is room");
    let path = dir.path().join("home");
    let tasks = json!([
        { "type": "act", "detail": "see what there is", "expect": "a list" },
        { "type": "msg", "detail": "say it", "notify": true },
    ]);
    let list = Call { name: "schedule_list".to_owned(), args: json!({}) };
    let of_run = [
        routing("high"),
        reply("planner", &format!("<FINAL_PRD>{}</FINAL_PRD>", json!({ "goal": "see", "tasks": tasks }))),
        Reply { calls: vec![list], ..reply("actor", "") },
        reply("actor", "There is nothing."),
        reply("worker", "Done."),
    ];
    let replies = (0..=RUNS).flat_map(|_| of_run.iter().cloned()).collect();
    let server = ModelServer::start(Script { reply: replies, ..Script::default() });
    Home::open(&path).expect("a home");
    std::fs::write(path.join("config.toml"), config(&server)).expect("there is room");
    let drive = drive(&path);
    let skills = skills(&path);
    for i in 0..20 {
        let candidate = skills.examine(&guest("echo"), None, Some(&format!("echo-{i}"))).expect("the guest is right");
        skills.install(candidate, GrantChoice::All).await.expect("it is installed");
    }
    let session = parse("long");
    drive.home.create_session(&session).expect("there is room");
    fill(&drive, &session, LONG_SESSION).await;
    for _ in 0..=RUNS {
        run(&drive, &session, "look around for me").await;
    }
    let timings = server.timings();
    server.finish();
    // The first run is a warm-up.
    let gaps = timings.chunks(of_run.len()).skip(1).flat_map(|run| {
        run.windows(2).map(|pair| pair[1].asked.saturating_duration_since(pair[0].answered)).collect::<Vec<_>>()
    });
    let mut gaps: Vec<_> = gaps.collect();
    gaps.sort();
    let late = gaps[gaps.len() * 95 / 100];
    let commit = commits(&drive).await;
    row("one event's commit", commit, None);
    row(
        "kiso: from a model's last byte to the next request, 20 tools, 10,000 messages",
        summary(gaps),
        Some((commit, "× a commit")),
    );
    let ratio = late.as_secs_f64() / commit.1.as_secs_f64();
    println!("| the same, 95th percentile | | {} | {ratio:.2} × a commit |", show(late));
}

/// The time to commit one row, on the same disk.
async fn commits(drive: &RunExecutor) -> Times {
    let mut times = Vec::new();
    for _ in 0..100 {
        let started = Instant::now();
        let write = drive.store.write(|tx| tx.add_message(&parse("commits"), MessageRole::User, "x", 0, None));
        write.await.expect("it is written");
        times.push(started.elapsed());
    }
    summary(times)
}

/// Adds messages to a session, a passage of memory for each hundred of them and a hundred facts, in one transaction.
async fn fill(drive: &RunExecutor, session: &SessionName, messages: u32) {
    let name = session.clone();
    let first = drive.store.write(move |tx| tx.add_message(&name, MessageRole::User, "hello", 0, None));
    first.await.expect("the session is made");
    let conn = rusqlite::Connection::open(drive.home.store_path()).expect("it is SQLite");
    let count = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2)";
    let words = "'it rained on day ' || i || ' and the market closed at ' || (i * 7919 % 1000) || ' as station ' || i";
    let of_session = "(SELECT id FROM sessions WHERE name = ?1)";
    let role = "iif(i % 2, 'user', 'assistant')";
    conn.execute_batch("BEGIN IMMEDIATE").expect("nobody else writes");
    let fill = |sql: &str, rows: u32| {
        conn.execute(&format!("{count} {sql}"), (session.as_str(), rows)).expect("the tables are as they are");
    };
    fill(
        &format!("INSERT INTO messages (session, role, text, at_ms) SELECT {of_session}, {role}, {words}, i FROM n"),
        messages,
    );
    fill(
        &format!(
            "INSERT INTO memory_chunks (digest, source, session, at_ms, text, grams)
             SELECT CAST('chunk ' || i AS BLOB), 'turn', {of_session}, i, {words}, '' FROM n"
        ),
        messages / 100,
    );
    fill(
        &format!(
            "INSERT OR IGNORE INTO facts (text, grams, source, session, confidence, at_ms)
             SELECT 'station ' || i || ' is near the sea', '', 'reviewer', {of_session}, 70, i FROM n"
        ),
        100,
    );
    conn.execute_batch("COMMIT").expect("there is room");
}

/// The time to read and render a run's context, and to its first request, in a small store and in a large one.
async fn contexts() {
    let many = std::env::var(MESSAGES).ok().and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    let (small, large) = (Filled::new(1_000).await, Filled::new(many).await);
    let (mut reads, mut ways) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    for turn in 0..=CONTEXTS {
        for (which, filled) in [&small, &large].into_iter().enumerate() {
            let (read, way) = (filled.read().await, filled.first_request().await);
            if turn > 0 {
                reads[which].push(read);
                ways[which].push(way);
            }
        }
    }
    let pair = |what: &str, times: [Vec<Duration>; 2]| {
        let [few, lots] = times.map(summary);
        row(&format!("kiso: {what}, 1,000 stored messages"), few, None);
        row(&format!("kiso: {what}, {} stored messages", grouped(many)), lots, Some((few, "× with 1,000")));
    };
    pair("build a context", reads);
    pair("from a message to the first request", ways);
}

/// A count with a comma before every three digits.
pub(crate) fn grouped(count: u32) -> String {
    let digits = count.to_string();
    let commas =
        |(at, digit): (usize, char)| [(at > 0 && (digits.len() - at).is_multiple_of(3)).then_some(','), Some(digit)];
    digits.chars().enumerate().flat_map(commas).flatten().collect()
}

/// A home with a number of messages in one session.
struct Filled {
    _dir: TempDir,
    server: ModelServer,
    drive: RunExecutor,
    session: SessionName,
}

impl Filled {
    async fn new(messages: u32) -> Self {
        let dir = TempDir::new().expect("there is room");
        let path = dir.path().join("home");
        let plan = json!({ "goal": "say", "tasks": [{ "type": "msg", "detail": "say it", "notify": true }] });
        let of_run = [reply("planner", &plan.to_string()), reply("worker", "Done.")];
        let script = (0..=CONTEXTS).flat_map(|_| of_run.iter().cloned()).collect();
        let server = ModelServer::start(Script { reply: script, ..Script::default() });
        Home::open(&path).expect("a home");
        std::fs::write(path.join("config.toml"), config(&server)).expect("there is room");
        let (drive, session) = (drive(&path), parse("long"));
        drive.home.create_session(&session).expect("there is room");
        fill(&drive, &session, messages).await;
        Self { _dir: dir, server, drive, session }
    }

    /// Reads the window, the summary, the facts and the digest of memory, and renders the planner's prompt.
    async fn read(&self) -> Duration {
        const MESSAGE: &str = "what did station 77 say about the rain?";
        let started = Instant::now();
        let (store, session) = (&self.drive.store, self.session.clone());
        let read =
            store.read(move |view| Ok((view.last_messages(&session, 21)?, view.summary(&session)?, view.facts(100)?)));
        let (messages, summary, facts) = read.await.expect("it can be read");
        let memory = kiso_store::memory::digest(store, MESSAGE, None, None, 5).await.expect("it can be read");
        let chat = |message: &kiso_store::store::Message| ChatMessage::new("user", message.text.clone());
        let pieces = Pieces {
            new_message: Some(MESSAGE.to_owned()),
            messages: Some(messages.iter().map(chat).collect()),
            summary: summary.map(|summary| summary.text),
            facts: Some(facts.into_iter().map(|fact| fact.text).collect()),
            memory: Some(memory),
            ..Pieces::default()
        };
        let prompt = render(&select(Role::Planner, &pieces), "0123456789abcdef", usize::MAX);
        let took = started.elapsed();
        assert!(prompt.contains("is near the sea") && prompt.contains("it rained on day"), "{prompt}");
        took
    }

    /// A whole run, whose pill goes to the planner at once.
    async fn first_request(&self) -> Duration {
        let (before, started) = (self.server.timings().len(), Instant::now());
        run(&self.drive, &self.session, "!plan what did station 77 say about the rain?").await;
        assert!(self.server.problems().iter().all(|problem| problem.ends_with("was never asked for")));
        self.server.timings()[before].asked - started
    }
}
