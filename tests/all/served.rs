//! A daemon of a home, and a client that does no more than the protocol asks for.

use crate::harness::Home;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Stdio};
use std::time::{Duration, Instant};

/// A guard against answers that never come; no test waits for it to pass.
const PATIENCE: Duration = Duration::from_secs(60);

/// `kiso serve` on a port that the system chose.
pub struct Served {
    child: Child,
    _stdout: BufReader<ChildStdout>,
    pub address: String,
    /// Sent with each request.
    pub token: Option<String>,
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: String,
    pub body: String,
}

impl Served {
    #[track_caller]
    pub fn start(home: &Home) -> Served {
        let mut command = home.command(&["--json", "serve", "--port", "0"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("kiso starts");
        let mut stdout = BufReader::new(child.stdout.take().expect("it is a pipe"));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("a pipe can be read");
        let Ok(first) = serde_json::from_str::<Value>(&line) else {
            let mut said = String::new();
            let _ = child.stderr.take().expect("it is a pipe").read_to_string(&mut said);
            panic!("the daemon does not start: {line}{said}");
        };
        // Whatever it logs is read, so that it never waits for a reader.
        let mut stderr = child.stderr.take().expect("it is a pipe");
        std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
        let address = first["url"].as_str().expect("it says where").trim_start_matches("http://").to_owned();
        Served { child, _stdout: stdout, address, token: None }
    }

    /// Ends it as `kill -9` does.
    pub fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }

    /// Asks it to end, and waits until it has.
    pub fn terminate(mut self) -> i32 {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
        self.child.wait().expect("it ends").code().unwrap_or(-1)
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time is set");
        stream
    }

    #[track_caller]
    pub fn request(&self, method: &str, path: &str, body: Option<&str>) -> Answer {
        self.ask(method, path, body).unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    /// The same, for a daemon that may be gone.
    pub fn ask(&self, method: &str, path: &str, body: Option<&str>) -> std::io::Result<Answer> {
        ask(&self.address, self.token.as_deref(), method, path, body)
    }

    #[track_caller]
    pub fn get(&self, path: &str) -> Value {
        self.request("GET", path, None).expect(200)
    }

    /// Sends a message; its id.
    #[track_caller]
    pub fn send(&self, session: &str, text: &str) -> i64 {
        let body = json!({ "session": session, "text": text }).to_string();
        self.request("POST", "/msg", Some(&body)).expect(202)["message"].as_i64().expect("it has an id")
    }

    /// What a command answers.
    #[track_caller]
    pub fn command(&self, session: &str, text: &str) -> String {
        let body = json!({ "session": session, "text": text }).to_string();
        self.request("POST", "/msg", Some(&body)).expect(200)["answer"].as_str().expect("it answers").to_owned()
    }

    /// Waits until a message is answered; its reply.
    #[track_caller]
    pub fn reply(&self, message: i64) -> String {
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

    /// Follows `/events`.
    pub fn follow(&self, query: &str, last: Option<i64>) -> Events {
        let mut stream = self.connect();
        let last = last.map(|id| format!("last-event-id: {id}\r\n")).unwrap_or_default();
        let head = format!("GET /events{query} HTTP/1.1\r\nhost: {}\r\n{last}\r\n", self.address);
        stream.write_all(head.as_bytes()).expect("it listens");
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        while reader.read_line(&mut line).expect("it answers") > 2 {
            line.clear();
        }
        Events(reader)
    }
}

/// One request, to a daemon that may be gone.
pub fn ask(
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
    }
}

impl Answer {
    fn parse(bytes: &[u8]) -> Option<Answer> {
        let text = String::from_utf8_lossy(bytes);
        let (headers, body) = text.split_once("\r\n\r\n")?;
        let status = headers.split(' ').nth(1)?.parse().ok()?;
        Some(Answer { status, headers: headers.to_lowercase(), body: body.to_owned() })
    }

    /// The JSON of an answer with this status.
    #[track_caller]
    pub fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Asserts an error with this code.
    #[track_caller]
    pub fn refuses(&self, status: u16, code: &str) {
        let body = self.expect(status);
        assert_eq!(body["error"]["code"], code, "{self:?}");
        assert!(body["error"]["message"].as_str().is_some_and(|text| !text.is_empty()), "{self:?}");
    }
}

/// Server-sent events as they come.
pub struct Events(BufReader<TcpStream>);

/// One of them.
#[derive(Debug, Default)]
pub struct Heard {
    pub id: Option<i64>,
    pub name: String,
    pub data: Value,
}

impl Events {
    /// The next event of one of these names.
    #[track_caller]
    pub fn next(&mut self, names: &[&str]) -> Heard {
        let mut heard = Heard::default();
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).expect("an event comes in time") > 0, "the stream ended");
            let line = line.trim_end();
            match line.split_once(": ") {
                Some(("id", id)) => heard.id = id.parse().ok(),
                Some(("event", name)) => heard.name = name.to_owned(),
                Some(("data", data)) => heard.data = serde_json::from_str(data).expect("data is JSON"),
                // The lines of chunks stand between, and the empty line behind each event.
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
