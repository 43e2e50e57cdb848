//! A running kiso: command lines, calls of a skill, messages to a daemon, and the daemon's memory.
//!
//! Lines and calls go through `kiso mcp` on standard streams, messages through the daemon's socket. So each figure is that
//! of a program that a person can start, and an emulator that starts it affects all of them equally.

use super::Bench;
use super::figure::Figure;
use crate::cli::show::Show;
use crate::cli::{Exit, Failure};
use kiso_base::system::memory_of;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

/// Maximum bytes of a line from a process of kiso's.
const MAX_LINE: u64 = 8 << 20;

pub(super) fn measure(bench: &Bench, show: &Show, print: &dyn Fn(Figure)) -> Result<(), Failure> {
    show.busy("command lines and calls");
    let mut tools = Tools::start(bench)?;
    tools.call("exec", &json!({ "command": "printf 'city,t\\nOslo,1\\nLisbon,2\\n' > t.csv" }))?;
    let mut of = |tool: &'static str, args: Value| {
        tools.call(tool, &args)?;
        bench.repeat(300, || tools.call(tool, &args))
    };
    print(Figure::times("command", "one command in a running kiso: `true`", of("exec", json!({ "command": "true" }))?));
    let pipeline = json!({ "command": "seq 1 200 | grep 7 | wc -l" });
    print(Figure::times("pipeline", "a pipeline of three commands", of("exec", pipeline)?));
    let described = json!({ "file": "t.csv", "describe": true });
    print(Figure::times("call", "one call of a skill: `data` describes a table", of("data", described)?));
    drop(tools);

    show.busy("messages to a daemon");
    let mut daemon = Daemon::start(bench)?;
    let idle = daemon.memory();
    let mut n = 0;
    let message = || {
        n += 1;
        daemon.message(&format!("$ echo {n}"))
    };
    print(Figure::times("message", "a message to its reply: one command", bench.repeat(200, message)?));
    if let (Some((idle, _)), Some((_, work))) = (idle, daemon.memory()) {
        print(Figure::bytes("idle_memory", "resident memory of a daemon that waits", idle));
        print(Figure::bytes("work_memory", "the most while it answered these messages", work));
    }
    Ok(())
}

/// A process that is killed when it is dropped.
struct Process(Child);

impl Process {
    #[expect(clippy::expect_used, reason = "it is piped")]
    fn start(bench: &Bench, args: &[&str]) -> Result<(Self, ChildStdin, BufReader<ChildStdout>), Failure> {
        let mut command = bench.kiso("running", args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| bench.not_started(&error))?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (stdin, stdout) = (stdin.expect("it is piped"), stdout.expect("it is piped"));
        Ok((Self(child), stdin, BufReader::new(stdout)))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `kiso mcp`, which runs lines and calls skills for a client.
struct Tools {
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    id: u64,
    _process: Process,
}

impl Tools {
    fn start(bench: &Bench) -> Result<Self, Failure> {
        let (process, to, from) = Process::start(bench, &["mcp"])?;
        let mut tools = Self { to, from, id: 0, _process: process };
        let client = json!({ "name": "kiso bench", "version": env!("CARGO_PKG_VERSION") });
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
        tools.ask("initialize", &hello)?;
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        writeln!(tools.to, "{ready}").map_err(gone)?;
        Ok(tools)
    }

    /// Returns the duration of a call.
    fn call(&mut self, tool: &str, arguments: &Value) -> Result<Duration, Failure> {
        let began = Instant::now();
        let result = self.ask("tools/call", &json!({ "name": tool, "arguments": arguments }))?;
        let took = began.elapsed();
        match result["isError"] == true {
            true => Err(Failure::new(Exit::Failed, format!("{tool} failed: {}", result["content"]))),
            false => Ok(took),
        }
    }

    fn ask(&mut self, method: &str, params: &Value) -> Result<Value, Failure> {
        self.id += 1;
        let asked = json!({ "jsonrpc": "2.0", "id": self.id, "method": method, "params": params });
        writeln!(self.to, "{asked}").map_err(gone)?;
        loop {
            let answer = line(&mut self.from)?;
            if answer["id"] != self.id {
                continue;
            }
            if answer["error"].is_object() {
                return Err(Failure::new(Exit::Failed, format!("{method} failed: {}", answer["error"]["message"])));
            }
            return Ok(answer["result"].clone());
        }
    }
}

/// `kiso serve` with a client on its socket.
struct Daemon {
    to: UnixStream,
    from: BufReader<UnixStream>,
    process: Process,
}

impl Daemon {
    fn start(bench: &Bench) -> Result<Self, Failure> {
        let home = bench.home("running");
        // The measurement covers work, without the wait for further messages of the user.
        std::fs::write(home.join("config.toml"), "model = \"reflex\"\n[daemon]\ndebounce_ms = 0\n").map_err(gone)?;
        let (process, _, mut from) = Process::start(bench, &["--json", "serve", "--port", "0"])?;
        line(&mut from)?;
        let stream = UnixStream::connect(home.join("kiso.sock")).map_err(gone)?;
        let mut daemon = Self { to: stream.try_clone().map_err(gone)?, from: BufReader::new(stream), process };
        let register = json!({ "type": "register", "client": "kiso bench", "protocol": 1, "session": "bench" });
        writeln!(daemon.to, "{register}").map_err(gone)?;
        daemon.until("registered")?;
        Ok(daemon)
    }

    /// Returns the time from a message to its reply.
    fn message(&mut self, text: &str) -> Result<Duration, Failure> {
        let began = Instant::now();
        let inbound = json!({ "type": "inbound", "text": text });
        writeln!(self.to, "{inbound}").map_err(gone)?;
        self.until("outbound")?;
        Ok(began.elapsed())
    }

    fn until(&mut self, kind: &str) -> Result<(), Failure> {
        loop {
            let told = line(&mut self.from)?;
            if told["type"] == "error" {
                return Err(Failure::new(Exit::Failed, format!("the daemon: {}", told["message"])));
            }
            if told["type"] == kind {
                return Ok(());
            }
        }
    }

    /// Returns the current and the maximum memory in bytes, if the system reports them.
    fn memory(&self) -> Option<(u64, u64)> {
        memory_of(self.process.0.id())
    }
}

fn line(from: &mut impl BufRead) -> Result<Value, Failure> {
    let mut line = String::new();
    from.by_ref().take(MAX_LINE).read_line(&mut line).map_err(gone)?;
    let value = serde_json::from_str(&line);
    value.map_err(|_| {
        Failure::new(
            Exit::Failed,
            "the kiso that was measured ended before it answered; `kiso doctor` may say why".to_owned(),
        )
    })
}

fn gone(error: std::io::Error) -> Failure {
    Failure::new(Exit::Failed, format!("the kiso that was measured went away ({error}); `kiso doctor` may say why"))
}
