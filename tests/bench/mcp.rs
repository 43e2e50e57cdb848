//! A skill's call over the Model Context Protocol, on standard streams and over HTTP, compared with the same call in process; one
//! at a time, eight at once, and beside ten calls that never end.

use super::{Times, row, show, summary};
use kiso_base::home::SessionName;
use kiso_sandbox::skill::Caller;
use kiso_store::secret::Secrets;
use kiso_tests::guest;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Calls that are timed one by one, and calls for the throughput.
const CALLS: usize = 500;
const MANY: usize = 2_000;

/// Calls that loop for ever.
const SPINNING: i64 = 10;

pub(crate) fn rows(runtime: &tokio::runtime::Runtime) {
    let dir = TempDir::new().expect("there is room");
    let home = dir.path().join("home");
    install(&home, "echo");
    install(&home, "command");
    let own = runtime.block_on(in_process(&home));
    row("kiso: call `echo` in process", own, None);
    let mut pipe = Pipe::start(&home);
    row("kiso mcp: the same over stdio", pipe.one_by_one(), Some((own, "× in process")));
    rate("kiso mcp: over stdio", 1, pipe.rate(1));
    rate("kiso mcp: over stdio", 8, pipe.rate(8));
    pipe.spin();
    row("kiso mcp: over stdio, ten spinning beside it", pipe.one_by_one(), Some((own, "× in process")));
    rate("kiso mcp: over stdio, ten spinning beside it", 8, pipe.rate(8));
    println!("| kiso mcp: resident memory | {} MiB | | |", resident(pipe.child.id()) >> 10);
    drop(pipe);
    let daemon = Daemon::start(&home);
    row("/mcp: the same over HTTP", daemon.one_by_one(), Some((own, "× in process")));
    rate("/mcp: over HTTP", 1, daemon.rate(1));
    rate("/mcp: over HTTP", 8, daemon.rate(8));
    let _spinning: Vec<TcpStream> = (0..SPINNING).map(|_| daemon.begin(&spin(1))).collect();
    row("/mcp: over HTTP, ten spinning beside it", daemon.one_by_one(), Some((own, "× in process")));
    rate("/mcp: over HTTP, ten spinning beside it", 8, daemon.rate(8));
}

fn rate(what: &str, at_once: usize, time: Duration) {
    let each = MANY as f64 / time.as_secs_f64();
    println!(
        "| {what}, {at_once} in flight | {} | {each:.0} a second | |",
        show(time / u32::try_from(MANY).expect("few"))
    );
}

fn install(home: &Path, name: &str) {
    let manifest = kiso_tests::root().join("tests/guests").join(name).join("kiso.toml");
    let mut command = Command::new(env!("CARGO_BIN_EXE_kiso"));
    command.args(["skill", "add"]).arg(guest(name)).arg("--manifest").arg(manifest).args(["--grant", "all"]);
    let output = command.env("KISO_HOME", home).output().expect("kiso starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

async fn in_process(home: &Path) -> Times {
    let skills = super::skills(home);
    let (session, secrets) = (SessionName::parse("bench").expect("a plain name"), Secrets::default());
    let mut times = Vec::new();
    for turn in 0..=CALLS {
        let started = Instant::now();
        let caller = Caller::by_hand(&session, &secrets);
        let ended = skills.call("echo", &json!({ "text": "hello" }), caller).await;
        ended.result.expect("it answers");
        if turn > 0 {
            times.push(started.elapsed());
        }
    }
    summary(times)
}

fn call(id: i64, name: &str, arguments: Value) -> Value {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "name": name, "arguments": arguments, "_meta": meta });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

fn echo(id: i64) -> Value {
    call(id, "echo", json!({ "text": "hello" }))
}

fn spin(id: i64) -> Value {
    call(id, "command", json!({ "mode": "loop" }))
}

/// Resident memory of a process in KiB.
fn resident(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0 kB");
    line.trim().trim_end_matches(" kB").parse().unwrap_or_default()
}

struct Pipe {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next: i64,
}

impl Pipe {
    fn start(home: &Path) -> Pipe {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kiso"));
        command.arg("mcp").env("KISO_HOME", home).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("kiso starts");
        let (input, output) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        let mut pipe = Pipe { child, input, output: BufReader::new(output), next: 1_000 };
        pipe.begin();
        pipe.hear();
        pipe
    }

    fn begin(&mut self) {
        self.next += 1;
        writeln!(self.input, "{}", echo(self.next)).expect("it reads");
    }

    /// Reads the next answer to an echo.
    fn hear(&mut self) {
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).expect("it can be read") > 0, "kiso mcp has ended");
            let answer: Value = serde_json::from_str(&line).expect("a line is JSON");
            if answer["id"].as_i64().is_some_and(|id| id > SPINNING) {
                assert_eq!(answer["result"]["content"][0]["text"], "hello", "{answer}");
                return;
            }
        }
    }

    fn spin(&mut self) {
        (1..=SPINNING).for_each(|id| writeln!(self.input, "{}", spin(id)).expect("it reads"));
    }

    fn one_by_one(&mut self) -> Times {
        let timed = (0..CALLS).map(|_| {
            let started = Instant::now();
            self.begin();
            self.hear();
            started.elapsed()
        });
        summary(timed.collect())
    }

    fn rate(&mut self, at_once: usize) -> Duration {
        let started = Instant::now();
        (0..at_once).for_each(|_| self.begin());
        for done in 1..=MANY {
            self.hear();
            if done + at_once <= MANY {
                self.begin();
            }
        }
        started.elapsed()
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Daemon {
    child: Child,
    address: String,
}

impl Daemon {
    fn start(home: &Path) -> Daemon {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kiso"));
        command.args(["--json", "serve", "--port", "0"]).env("KISO_HOME", home);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("kiso starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("it says where");
        let first: Value = serde_json::from_str(&line).expect("a line is JSON");
        let address = first["url"].as_str().expect("it says where").trim_start_matches("http://").to_owned();
        let daemon = Daemon { child, address };
        exchange(&mut BufReader::new(daemon.begin(&echo(1_000))));
        daemon
    }

    fn begin(&self, message: &Value) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        stream.set_nodelay(true).expect("it can be set");
        stream.write_all(self.request(message).as_bytes()).expect("it reads");
        stream
    }

    fn request(&self, message: &Value) -> String {
        let (body, name) = (message.to_string(), message["params"]["name"].as_str().expect("it has a name"));
        format!(
            "POST /mcp HTTP/1.1\r\nhost: {}\r\naccept: application/json, text/event-stream\r\nmcp-method: tools/call\r\n\
             mcp-name: {name}\r\nmcp-protocol-version: 2026-07-28\r\ncontent-length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        )
    }

    /// Makes calls over one connection, one after the other. Returns their durations.
    fn calls(&self, times: usize) -> Vec<Duration> {
        let mut reader = BufReader::new(self.begin(&echo(1_000)));
        exchange(&mut reader);
        let request = self.request(&echo(1_001));
        let timed = (0..times).map(|_| {
            let started = Instant::now();
            reader.get_mut().write_all(request.as_bytes()).expect("it reads");
            exchange(&mut reader);
            started.elapsed()
        });
        timed.collect()
    }

    fn one_by_one(&self) -> Times {
        summary(self.calls(CALLS))
    }

    fn rate(&self, at_once: usize) -> Duration {
        let started = Instant::now();
        std::thread::scope(|scope| {
            (0..at_once).for_each(|_| drop(scope.spawn(|| self.calls(MANY / at_once))));
        });
        started.elapsed()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads a response.
fn exchange(reader: &mut BufReader<TcpStream>) {
    let (mut head, mut length) = (String::new(), 0);
    while !head.ends_with("\r\n\r\n") {
        let mut line = String::new();
        assert!(reader.read_line(&mut line).expect("it answers") > 0, "the connection ended: {head}");
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
            length = value.trim().parse().expect("a number");
        }
        head += &line;
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("it answers");
    assert!(head.starts_with("HTTP/1.1 200") && body.windows(5).any(|part| part == b"hello"), "{head}");
}
