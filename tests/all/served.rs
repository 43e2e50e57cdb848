//! A home's daemon, and a client that does only what the protocol requires.

use crate::harness::{Home, everywhere, wait_for, wait_until};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A guard against answers that never come; no test waits for it to pass.
const PATIENCE: Duration = Duration::from_secs(60);

/// `kiso serve` on a port chosen by the system.
pub(crate) struct Served {
    child: Child,
    _stdout: BufReader<ChildStdout>,
    pub address: String,
    log: Arc<Mutex<String>>,
    /// The token sent with each request.
    pub token: Option<String>,
}

/// A response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub status: u16,
    pub headers: String,
    pub body: String,
}

impl Served {
    #[track_caller]
    pub(crate) fn start(home: &Home) -> Served {
        Served::start_with(home, &[], |_| {})
    }

    /// The same with more arguments; `adjust` changes the command.
    #[track_caller]
    pub(crate) fn start_with(home: &Home, args: &[&str], adjust: impl FnOnce(&mut Command)) -> Served {
        Served::start_on(0, home, args, adjust)
    }

    /// The same on a fixed port, which another daemon of this home can use later.
    #[track_caller]
    pub(crate) fn start_on(port: u16, home: &Home, args: &[&str], adjust: impl FnOnce(&mut Command)) -> Served {
        everywhere::join(home);
        let mut command = home.command(&[&["--json", "serve", "--port", &port.to_string()], args].concat());
        adjust(&mut command);
        let served = Served::spawn(command);
        if everywhere::is_so() {
            // A member is on standby until it notices that the previous process ended.
            wait_until("the home to be served", || {
                served.ask("GET", "/health", None).is_ok_and(|answer| answer.status == 200)
            });
        }
        served
    }

    /// Starts a command that is a daemon.
    #[track_caller]
    pub(crate) fn spawn(mut command: Command) -> Served {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("kiso starts");
        let mut stdout = BufReader::new(child.stdout.take().expect("it is a pipe"));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("a pipe can be read");
        let Ok(first) = serde_json::from_str::<Value>(&line) else {
            let mut said = String::new();
            let _ = child.stderr.take().expect("it is a pipe").read_to_string(&mut said);
            panic!("the daemon does not start: {line}{said}");
        };
        // Reads the log, so that the daemon never blocks on it.
        let stderr = BufReader::new(child.stderr.take().expect("it is a pipe"));
        let log: Arc<Mutex<String>> = Arc::default();
        let lines = log.clone();
        std::thread::spawn(move || {
            stderr.lines().map_while(Result::ok).for_each(|line| *lines.lock().unwrap() += &format!("{line}\n"));
        });
        let address = first["url"].as_str().expect("it says where").trim_start_matches("http://").to_owned();
        assert!(first["socket"].as_str().is_some_and(|path| path.ends_with("/kiso.sock")), "{first}");
        Served { child, _stdout: stdout, address, log, token: None }
    }

    /// Kills it with SIGKILL.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }

    /// Asks it to end, and waits until it has.
    pub(crate) fn terminate(mut self) -> i32 {
        self.signal(rustix::process::Signal::TERM);
        self.child.wait().expect("it ends").code().unwrap_or(-1)
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), signal).expect("it runs");
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it has ended. Returns its exit code.
    pub(crate) fn ended(&mut self) -> i32 {
        self.child.wait().expect("it can be waited for").code().unwrap_or(-1)
    }

    /// The log so far.
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Waits until the log contains this text that often.
    #[track_caller]
    pub(crate) fn logs(&self, text: &str, times: usize) -> String {
        let began = Instant::now();
        loop {
            let log = self.log();
            if log.matches(text).count() >= times {
                return log;
            }
            assert!(began.elapsed() < PATIENCE, "{text:?} is not logged:\n{log}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time is set");
        stream.set_write_timeout(Some(PATIENCE)).expect("a time is set");
        stream
    }

    #[track_caller]
    pub(crate) fn request(&self, method: &str, path: &str, body: Option<&str>) -> Answer {
        self.ask(method, path, body).unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    /// The same, for a daemon that may have ended.
    pub(crate) fn ask(&self, method: &str, path: &str, body: Option<&str>) -> std::io::Result<Answer> {
        ask(&self.address, self.token.as_deref(), method, path, body)
    }

    /// The raw response to a GET with this token.
    pub(crate) fn ask_with(&self, token: &str, path: &str) -> String {
        let mut stream = self.connect();
        let head = format!(
            "GET {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n",
            self.address
        );
        stream.write_all(head.as_bytes()).expect("it listens");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        answer
    }

    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Value {
        self.request("GET", path, None).expect(200)
    }

    /// The folders of a session after its runs.
    #[track_caller]
    pub(crate) fn folders(&self, session: &str) -> Value {
        let list = || self.get(&format!("/sessions/{session}/folders"));
        wait_for("the end of the run", || Some(list()).filter(|list| list["at_work"] == false))
    }

    /// Sends a message. Returns its id.
    #[track_caller]
    pub(crate) fn send(&self, session: &str, text: &str) -> i64 {
        let body = json!({ "session": session, "text": text }).to_string();
        self.request("POST", "/msg", Some(&body)).expect(202)["message"].as_i64().expect("it has an id")
    }

    /// The answer to a command.
    #[track_caller]
    pub(crate) fn command(&self, session: &str, text: &str) -> String {
        let body = json!({ "session": session, "text": text }).to_string();
        self.request("POST", "/msg", Some(&body)).expect(200)["answer"].as_str().expect("it answers").to_owned()
    }

    /// Waits for the reply to a message.
    #[track_caller]
    pub(crate) fn reply(&self, message: i64) -> String {
        let began = Instant::now();
        loop {
            let job = self.get(&format!("/messages/{message}"));
            if let Some(text) = job["reply"]["text"].as_str() {
                return text.to_owned();
            }
            assert!(began.elapsed() < PATIENCE, "message {message} was not answered: {job}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Memory of the daemon in KiB.
    pub(crate) fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it runs, on Linux");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it says how much it has");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    }

    /// Opens a stream of `/events`.
    pub(crate) fn follow(&self, query: &str, last: Option<i64>) -> Events {
        let last = last.map(|id| format!("last-event-id: {id}\r\n")).unwrap_or_default();
        let token = self.token.as_ref().map(|token| format!("authorization: Bearer {token}\r\n")).unwrap_or_default();
        self.follow_with(query, &format!("{token}{last}"))
    }

    /// The same with only these headers.
    pub(crate) fn follow_with(&self, query: &str, headers: &str) -> Events {
        let mut stream = self.connect();
        let head = format!("GET /events{query} HTTP/1.1\r\nhost: {}\r\n{headers}\r\n", self.address);
        stream.write_all(head.as_bytes()).expect("it listens");
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        while reader.read_line(&mut line).expect("it answers") > 2 {
            line.clear();
        }
        Events(reader)
    }
}

/// Sends one request to a daemon that may have ended.
pub(crate) fn ask(
    address: &str,
    token: Option<&str>,
    method: &str,
    path: &str,
    body: Option<&str>,
) -> std::io::Result<Answer> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n", address);
    if let Some(token) = token {
        head += &format!("authorization: Bearer {token}\r\n");
    }
    if let Some(body) = body {
        head += &format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len());
    }
    stream.write_all(format!("{head}\r\n{}", body.unwrap_or_default()).as_bytes())?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    Answer::parse(&bytes).ok_or_else(|| std::io::Error::other("it broke off"))
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let log = self.log.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let lines: Vec<&str> = log.lines().collect();
            eprintln!("--- the end of the daemon's log\n{}", lines[lines.len().saturating_sub(100)..].join("\n"));
        }
    }
}

impl Answer {
    pub(crate) fn parse(bytes: &[u8]) -> Option<Answer> {
        let text = String::from_utf8_lossy(bytes);
        let (headers, body) = text.split_once("\r\n\r\n")?;
        let status = headers.split(' ').nth(1)?.parse().ok()?;
        Some(Answer { status, headers: headers.to_lowercase(), body: body.to_owned() })
    }

    /// The cookie that the response sets, in the form for a request.
    #[track_caller]
    pub(crate) fn cookie(&self) -> String {
        let line = self.headers.lines().find_map(|line| line.strip_prefix("set-cookie: "));
        let line = line.unwrap_or_else(|| panic!("it sets no cookie: {self:?}"));
        line.split(';').next().expect("there is a first part").to_owned()
    }

    /// The JSON body of a response with this status.
    #[track_caller]
    pub(crate) fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Asserts an error with this code.
    #[track_caller]
    pub(crate) fn refuses(&self, status: u16, code: &str) {
        let body = self.expect(status);
        assert_eq!(body["error"]["code"], code, "{self:?}");
        assert!(body["error"]["message"].as_str().is_some_and(|text| !text.is_empty()), "{self:?}");
    }
}

/// Server-sent events as they arrive.
pub(crate) struct Events(BufReader<TcpStream>);

/// An event.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    pub id: Option<i64>,
    pub name: String,
    pub data: Value,
}

impl Events {
    /// Reads the rest of the stream. Returns whether it has ended.
    pub(crate) fn ended(&mut self) -> bool {
        let mut left = String::new();
        self.0.read_to_string(&mut left).is_ok() && !left.contains("event:")
    }

    /// The next event with one of these names.
    #[track_caller]
    pub(crate) fn next(&mut self, names: &[&str]) -> Heard {
        let mut heard = Heard::default();
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).expect("an event comes in time") > 0, "the stream ended");
            let line = line.trim_end();
            match line.split_once(": ") {
                Some(("id", id)) => heard.id = id.parse().ok(),
                Some(("event", name)) => heard.name = name.to_owned(),
                Some(("data", data)) => heard.data = serde_json::from_str(data).expect("data is JSON"),
                // The lines of HTTP chunks come between, and an empty line follows each event.
                _ if line.is_empty() && !heard.name.is_empty() => {
                    if names.contains(&heard.name.as_str()) {
                        return heard;
                    }
                    heard = Heard::default();
                }
                _ => {}
            }
        }
    }
}
