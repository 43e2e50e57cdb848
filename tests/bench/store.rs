//! The cost of a large store, and of a store for its disk: a daemon with a million messages in one session and ten thousand
//! sessions compared with a small one; bytes written for a message; and the daemon's resident memory under steady load.
//!
//! Measured from outside with the binary, HTTP and `/proc`.

use super::run::{MESSAGES, grouped};
use super::wal::Written;
use super::{Times, row, summary};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Variable for the seconds of steady load, such as an hour.
const STEADY: &str = "KISO_BENCH_STEADY_S";

/// Messages and sessions of the small store: a full page of each listing.
const FEW: u32 = 200;

/// Sessions of the large store.
const SESSIONS: u32 = 10_000;

/// Starts of each daemon.
const STARTS: usize = 15;

/// Repetitions of each request.
const REQUESTS: usize = 200;

/// Runs whose writes are counted: too few to restart the log.
const WRITTEN: u64 = 40;

/// Existing sessions in which they run.
const AMONG: u64 = 8;

/// Messages in flight under steady load, each in its own session.
const AT_ONCE: u64 = 4;

/// Rows of start-up, status and listings, by size of the store.
pub(crate) fn flat_rows() {
    let many = std::env::var(MESSAGES).ok().and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    let homes = [filled(FEW, FEW), filled(many, SESSIONS)];
    let mut starts = [Vec::new(), Vec::new()];
    for turn in 0..=STARTS {
        for (home, times) in homes.iter().zip(&mut starts) {
            let started = Instant::now();
            let served = Served::start(home.path());
            // The first turn is a warm-up.
            times.extend((turn > 0).then_some(started.elapsed()));
            served.end();
        }
    }
    let size = format!("{} messages and {} sessions", grouped(many), grouped(SESSIONS));
    pair("start of `kiso serve` until it listens", &size, starts);
    let mut daemons = homes.each_ref().map(|home| Served::start(home.path()));
    for path in ["/status/long", "/sessions", "/sessions/long/messages", "/runs", "/runs?session=long", "/metrics"] {
        let mut times = [Vec::new(), Vec::new()];
        for turn in 0..REQUESTS {
            for (daemon, times) in daemons.iter_mut().zip(&mut times) {
                let started = Instant::now();
                daemon.get(path);
                times.extend((turn >= REQUESTS / 10).then_some(started.elapsed()));
            }
        }
        pair(&format!("`GET {path}`"), &size, times);
    }
    daemons.into_iter().for_each(Served::end);
}

fn pair(what: &str, size: &str, times: [Vec<Duration>; 2]) {
    let [few, lots]: [Times; 2] = times.map(summary);
    row(&format!("kiso: {what}, a few messages"), few, None);
    row(&format!("kiso: {what}, {size}"), lots, Some((few, "× with a few")));
}

/// A home with a number of answered messages in the session `long`, and other sessions with one message each.
pub(crate) fn filled(messages: u32, sessions: u32) -> TempDir {
    let dir = home();
    Served::start(dir.path()).end();
    let conn = rusqlite::Connection::open(dir.path().join("store.db")).expect("it is SQLite");
    let count = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)";
    conn.execute_batch("BEGIN IMMEDIATE").expect("nobody else writes");
    let fill = |sql: &str, rows: u32| {
        conn.execute(&format!("{count} {sql}"), [rows]).expect("the tables are as they are");
    };
    // Each message has a run and a job; every second one is a reply.
    fill("INSERT INTO sessions (name, created_ms, active_ms) SELECT 's' || i, i, i FROM n", sessions);
    fill("INSERT INTO sessions (name, created_ms, active_ms) SELECT 'long', ?1, ?1 FROM n WHERE i = 1", 1_000_000);
    let long = "(SELECT id FROM sessions WHERE name = 'long')";
    let id = "printf('%014d', (i + 1) / 2)";
    fill(
        &format!(
            "INSERT INTO messages (session, role, text, at_ms, run)
             SELECT {long}, iif(i % 2, 'user', 'assistant'), 'it rained on day ' || i, i, {id} FROM n"
        ),
        messages,
    );
    let first = "(SELECT min(id) FROM messages)";
    fill(
        &format!(
            "INSERT INTO runs (id, session, message, status, started_ms, ended_ms, outcome)
             SELECT {id}, {long}, {first} + i - 1, 'done', i, i, '{{}}' FROM n WHERE i % 2"
        ),
        messages,
    );
    fill(
        &format!(
            "INSERT INTO jobs (message, session, state, caller, priority, run, reply)
             SELECT message, {long}, 'done', 'admin', 'interactive', num, message + 1 FROM runs WHERE num <= ?1"
        ),
        messages,
    );
    fill(
        "INSERT INTO messages (session, role, text, at_ms)
         SELECT (SELECT id FROM sessions WHERE name = 's' || i), 'user', 'hello', i FROM n",
        sessions,
    );
    fill("UPDATE messages SET run = printf('%014d', 0) WHERE run IS NULL AND ?1", 1);
    fill(
        &format!("INSERT INTO feed (session, kind, message) SELECT {long}, 'message', {first} + i - 1 FROM n"),
        messages.min(100_000),
    );
    conn.execute_batch("COMMIT").expect("there is room");
    dir
}

/// Writes of a run: synced commits, pages, bytes of the log, and bytes written according to the kernel, log and store; and the
/// part that stays in the store. The first run of a session also creates its directories.
pub(crate) fn write_rows() {
    let cases = [
        ("a run of one command", 1, WRITTEN, AMONG),
        ("one that is the first of its session", 1, WRITTEN, u64::MAX),
        ("a run of 5 tasks", 5, WRITTEN / 4, AMONG),
    ];
    for (what, tasks, runs, sessions) in cases {
        let dir = home();
        let mut served = Served::start(dir.path());
        let mut work = |from: u64, runs: u64| {
            for n in from..from + runs {
                let lines: Vec<_> = (0..tasks).map(|task| format!("$ echo {n}.{task}")).collect();
                let sent = served.send(&format!("s{}", n % sessions), &lines.join("\n"));
                served.wait(sent);
            }
            (space(dir.path()), served.written(), Written::read(dir.path()))
        };
        let before = work(0, runs);
        let after = work(runs, runs);
        served.end();
        let of_run = |now: u64, then: u64| (now - then) / runs;
        let log = after.2.since(before.2);
        let (kept, written) = (of_run(after.0, before.0), of_run(after.1, before.1));
        let commits = log.commits as f64 / runs as f64;
        println!("| kiso: commits of {what}, each synced | | {commits:.1} | |");
        println!("| kiso: what they write to the log | | {} bytes | {} pages |", log.bytes / runs, log.pages / runs);
        match written {
            0 => println!("| kiso: written to disk for it | | not known: the file system does not count | |"),
            _ => println!("| kiso: written to disk for it, log and store | | {written} bytes | |"),
        }
        println!("| kiso: of that stays in the store | | {kept} bytes | |");
    }
}

/// Used pages of the store in bytes, including those in the log.
pub(crate) fn space(home: &Path) -> u64 {
    let conn = rusqlite::Connection::open(home.join("store.db")).expect("it is SQLite");
    let number =
        |pragma: &str| conn.pragma_query_value(None, pragma, |row| row.get::<_, u32>(0)).expect("it is a number");
    u64::from(number("page_count") - number("freelist_count")) * u64::from(number("page_size"))
}

/// Resident memory under steady load: at the end compared with a twelfth of the time, such as the fifth minute of an hour.
pub(crate) fn steady_rows() {
    let seconds = std::env::var(STEADY).ok().and_then(|text| text.parse().ok()).unwrap_or(60_u64).max(12);
    let dir = home();
    let mut served = Served::start(dir.path());
    let (began, mut sent, mut early) = (Instant::now(), 0, None);
    while began.elapsed() < Duration::from_secs(seconds) {
        served.work(AT_ONCE, sent);
        sent += AT_ONCE;
        if began.elapsed() >= Duration::from_secs(seconds / 12) && early.is_none() {
            early = Some(served.resident());
        }
    }
    let (early, late) = (early.unwrap_or_else(|| served.resident()), served.resident());
    served.end();
    let ratio = late as f64 / early as f64;
    println!("| kiso: resident memory after {} s of steady load | | {} KiB | |", seconds / 12, early >> 10);
    println!("| kiso: the same after {seconds} s, {sent} messages | | {} KiB | {ratio:.3} × |", late >> 10);
}

pub(crate) fn home() -> TempDir {
    let dir = TempDir::new().expect("there is room");
    // A daemon without debounce and retention.
    let config = "model = \"reflex\"\n[daemon]\ndebounce_ms = 0\n[retention]\nprompts_days = 0\ntraces_days = 0\nfeed_entries = 10_000_000\n";
    std::fs::write(dir.path().join("config.toml"), config).expect("there is room");
    dir
}

/// `kiso serve`, and a client.
pub(crate) struct Served {
    child: Child,
    _stdout: BufReader<ChildStdout>,
    address: String,
    client: Client,
}

/// A connection to it.
pub(crate) struct Client(BufReader<TcpStream>);

impl Served {
    pub(crate) fn start(home: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_kiso"))
            .args(["--json", "serve", "--port", "0"])
            .env("KISO_HOME", home)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("kiso starts");
        let mut stdout = BufReader::new(child.stdout.take().expect("it is a pipe"));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("a pipe can be read");
        let listening: Value = serde_json::from_str(&line).expect("it says where it listens");
        let address = listening["url"].as_str().expect("it says where").trim_start_matches("http://").to_owned();
        let client = Client::new(&address);
        Self { child, _stdout: stdout, address, client }
    }

    /// Another client.
    pub(crate) fn client(&self) -> Client {
        Client::new(&self.address)
    }

    /// Opens the feed.
    pub(crate) fn follow(&self) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        stream.write_all(b"GET /events HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n").expect("it reads");
        BufReader::new(stream)
    }

    /// Whether requests are answered: a standby member of a fleet may not know the owner yet.
    pub(crate) fn answers(&self) -> bool {
        let asked = TcpStream::connect(&self.address).and_then(|mut stream| {
            stream.write_all(b"GET /sessions HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")?;
            let mut line = String::new();
            BufReader::new(stream).read_line(&mut line).map(|_| line)
        });
        asked.is_ok_and(|line| line.starts_with("HTTP/1.1 200"))
    }

    fn get(&mut self, path: &str) -> String {
        self.client.ask("GET", path, "")
    }

    /// Sends a message. Returns its id.
    fn send(&mut self, session: &str, text: &str) -> i64 {
        let body = json!({ "session": session, "text": text }).to_string();
        let answer: Value = serde_json::from_str(&self.client.ask("POST", "/msg", &body)).expect("it is JSON");
        answer["message"].as_i64().expect("it has an id")
    }

    /// Sends messages to [`AT_ONCE`] sessions in turn, and waits until all are answered. `number` makes them unique.
    fn work(&mut self, messages: u64, number: u64) {
        let mut sent = Vec::new();
        for n in number..number + messages {
            sent.push(self.send(&format!("s{}", n % AT_ONCE), &format!("$ echo {n}")));
            // At most this many in flight: each message has its own run.
            if sent.len() as u64 == AT_ONCE {
                sent.drain(..).for_each(|id| self.wait(id));
            }
        }
        sent.into_iter().for_each(|id| self.wait(id));
    }

    fn wait(&mut self, message: i64) {
        while !self.get(&format!("/messages/{message}")).contains("\"done\"") {
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Bytes that the kernel wrote to disk for it, without writes that were cancelled before.
    fn written(&self) -> u64 {
        self.number("io", "write_bytes:").saturating_sub(self.number("io", "cancelled_write_bytes:"))
    }

    pub(crate) fn resident(&self) -> u64 {
        self.number("status", "VmRSS:") << 10
    }

    fn number(&self, file: &str, name: &str) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/{file}", self.child.id())).expect("this is Linux");
        let line = text.lines().find(|line| line.starts_with(name)).expect("it is there");
        line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("it is a number")
    }

    pub(crate) fn end(mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
        let _ = self.client.0.get_ref().shutdown(Shutdown::Both);
        self.child.wait().expect("it ends");
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = (self.child.kill(), self.child.wait());
    }
}

impl Client {
    fn new(address: &str) -> Self {
        let stream = TcpStream::connect(address).expect("it listens");
        stream.set_nodelay(true).expect("it is TCP");
        Self(BufReader::new(stream))
    }

    pub(crate) fn ask(&mut self, method: &str, path: &str, body: &str) -> String {
        let head = format!("{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n");
        let request = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
        self.0.get_mut().write_all(request.as_bytes()).expect("it reads");
        let (mut line, mut length) = (String::new(), 0);
        self.0.read_line(&mut line).expect("it answers");
        assert!(line.starts_with("HTTP/1.1 2"), "{method} {path}: {line}");
        while line.trim() != "" {
            line.clear();
            self.0.read_line(&mut line).expect("it answers");
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().expect("it is a number");
            }
        }
        let mut bytes = vec![0; length];
        self.0.read_exact(&mut bytes).expect("it answers");
        String::from_utf8(bytes).expect("it is text")
    }
}
