//! The target of the attacks: a daemon with low limits, the binary on its home, and files and listeners that nobody may touch or
//! reach.

use super::archive;
use super::case::{Case, Component, Grant, Input, Outcome, Upload};
use crate::chat::Terminal;
use crate::harness::{Home, guest, root, wait_until};
use crate::served::{Answer, Served};
use crate::socket::Talk;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A guard against tests that never end; no case waits for it to pass.
const PATIENCE: Duration = Duration::from_secs(120);

/// Limits that are reached quickly.
const CONFIG: &str = r#"
model = "reflex"
[daemon]
debounce_ms = 0
[gateway]
request_timeout_s = 5
stalled_timeout_s = 5
max_body_kib = 256
max_upload_mib = 4
[exec]
timeout_s = {{deadline}}
memory_mib = 96
write_mib = 8
max_processes = 16
max_output_mib = 4
output_kib = 64
[engine]
max_timeout_s = 60
default_timeout_s = 10
host_calls = 200_000
max_files = 1_500
write_mib = 16
compile_timeout_s = 10
compile_memory_mib = 512
[http]
max_response_mib = 1
"#;

/// The deadline for cases that must reach it. On an idle machine, no other case comes close.
pub(super) const SHORT: Duration = Duration::from_secs(12);

/// The deadline for cases that must reach another limit, which takes longer on a busy machine.
pub(super) const LONG: Duration = Duration::from_secs(100);

/// Content of a file beside the home.
const CANARY: &str = "nobody may read or change this canary";

pub(super) struct Target {
    pub served: Served,
    home: Home,
    /// A listener to which nothing may connect.
    closed: Listener,
    /// A server that redirects to the address after the question mark.
    redirects: Listener,
}

/// A listener on loopback that counts who connects.
struct Listener {
    port: u16,
    heard: Arc<AtomicUsize>,
}

impl Listener {
    fn open(answer: fn(&str) -> String) -> Listener {
        // On every address of the machine, so that connections past the front are noticed, too.
        let listener = TcpListener::bind("[::]:0").or_else(|_| TcpListener::bind("0.0.0.0:0")).expect("a port is free");
        let port = listener.local_addr().expect("it has one").port();
        let heard = Arc::new(AtomicUsize::new(0));
        let count = heard.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                count.fetch_add(1, Ordering::SeqCst);
                let _ = stream.set_read_timeout(Some(PATIENCE));
                std::thread::spawn(move || {
                    let mut asked = BufReader::new(&stream);
                    let (mut line, mut more) = (String::new(), String::new());
                    let _ = asked.read_line(&mut line);
                    // Read the whole request: closing earlier could discard the response.
                    while asked.read_line(&mut more).is_ok_and(|read| read > 2) {}
                    let _ = (&stream).write_all(answer(&line).as_bytes());
                });
            }
        });
        Listener { port, heard }
    }
}

impl Target {
    /// A daemon that gives each command line this deadline.
    pub(super) fn start(deadline: Duration) -> Target {
        let home = Home::new();
        home.config(&CONFIG.replace("{{deadline}}", &deadline.as_secs().to_string()));
        home.file("canary", CANARY);
        home.add("hostile");
        home.add("echo");
        for manifest in ["short", "read-only", "no-work"] {
            let manifest = root().join(format!("tests/guests/hostile/manifests/{manifest}.toml"));
            let (wasm, manifest) = (guest("hostile"), manifest.display().to_string());
            let wasm = wasm.to_str().expect("a plain path");
            home.kiso(&["skill", "add", wasm, "--manifest", &manifest, "--grant", "all"]).ok();
        }
        let added = home.kiso(&["--json", "token", "add", "attacker", "--scope", "admin"]).json();
        let mut served = Served::start(&home);
        served.token = Some(added["token"].as_str().expect("it is shown once").to_owned());
        let reached =
            |_: &str| "HTTP/1.1 200 OK\r\ncontent-length: 15\r\nconnection: close\r\n\r\nthe closed door".to_owned();
        let redirect = |line: &str| {
            let to = line.split(' ').nth(1).and_then(|path| path.split_once('?')).map_or("/", |(_, to)| to);
            format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        };
        Target { served, home, closed: Listener::open(reached), redirects: Listener::open(redirect) }
    }

    /// Replaces `{{repeat TEXT COUNT}}`, `{{home}}` and `{{outside}}` (paths of this machine), `{{canary}}` (the content of the
    /// file of that name outside), `{{closed}}` (a port to which nothing may connect), `{{redirects}}` (a port that redirects to
    /// the address after `?`), and `{{token}}` (of an administrator).
    pub(super) fn fill(&self, text: &str) -> String {
        let Some((before, rest)) = text.split_once("{{") else { return text.to_owned() };
        let (inner, after) = rest.split_once("}}").expect("what begins with {{ ends with }}");
        let filled = match inner.split_once(' ') {
            Some(("repeat", what)) => {
                let (text, count) = what.rsplit_once(' ').expect("a text and a count");
                text.repeat(count.parse().expect("a count is a number"))
            }
            _ => match inner {
                "home" => self.home.path().display().to_string(),
                "outside" => self.home.dir.path().display().to_string(),
                "canary" => CANARY.to_owned(),
                "token" => self.token().to_owned(),
                "closed" => self.closed.port.to_string(),
                "redirects" => self.redirects.port.to_string(),
                other => panic!("{{{{{other}}}}} means nothing here"),
            },
        };
        before.to_owned() + &filled + &self.fill(after)
    }

    /// Runs a case in its own session, and deletes the session.
    pub(super) fn attempt(&self, category: &str, number: usize, case: &Case) -> Outcome {
        let session = format!("{category}-{number}");
        let fill = |text: &str| self.fill(&text.replace("{{session}}", &session));
        for upload in &case.file {
            self.upload(&session, upload);
        }
        for line in &case.before {
            let outcome = self.line(&session, &fill(line));
            assert_eq!(outcome.exit, Some(0), "before it: {line}\n{outcome}");
        }
        if let Some(grant) = &case.grant {
            self.grant(grant);
        }
        let outcome = match &case.input {
            Input::Line(line) => self.line(&session, &fill(line)),
            Input::Message(text) => self.message(&session, &fill(text)).0,
            Input::Call { tool, args } => {
                let body = json!({ "session": session, "args": filled(args, &fill) }).to_string();
                outcome(self.served.request("POST", &format!("/skills/{tool}/call"), Some(&body)))
            }
            Input::Request { method, path, body } => {
                let body = body.as_deref().map(&fill);
                outcome(self.served.request(method, &fill(path), body.as_deref()))
            }
            Input::Bytes(bytes) => self.bytes(&fill(bytes)),
            Input::Socket(lines) => self.socket(&session, lines.iter().map(|line| fill(line))),
            Input::Component(component) => self.component(&session, component, &fill),
            Input::Kiso(args) => {
                let args: Vec<String> = args.iter().map(|arg| fill(arg)).collect();
                let args: Vec<&str> = args.iter().map(String::as_str).collect();
                let ran = self.home.kiso(&args);
                Outcome { exit: Some(ran.code), text: ran.stdout + &ran.stderr, ..Outcome::default() }
            }
            Input::Terminal { args, keys } => {
                let args: Vec<String> = args.iter().map(|arg| fill(arg)).collect();
                let args: Vec<&str> = args.iter().map(String::as_str).collect();
                let (text, code) = Terminal::run(&self.home, &args, &fill(keys));
                Outcome { exit: Some(code), text, ..Outcome::default() }
            }
        };
        if let Some(grant) = &case.grant {
            let none = json!({ "grant": "none" }).to_string();
            self.served.request("PUT", &format!("/skills/{}/grants", grant.skill), Some(&none)).expect(200);
        }
        self.delete(&session);
        outcome
    }

    fn upload(&self, session: &str, upload: &Upload) {
        let bytes = match upload {
            Upload { text: Some(text), .. } => self.fill(text).into_bytes(),
            Upload { hex: Some(hex), .. } => bytes_of(hex),
            Upload { tar: Some(entries), .. } => archive::tar(entries, &|text| self.fill(text)),
            Upload { zip: Some(entries), .. } => archive::zip(entries, &|text| self.fill(text)),
            _ => panic!("{}: a file has a text, hex, tar or zip", upload.path),
        };
        let bytes = if upload.gzip { archive::gzip(&bytes) } else { bytes };
        let answer = self.send("PUT", &format!("/sessions/{session}/files/{}", upload.path), &bytes);
        assert_eq!(answer.status, 201, "{answer:?}");
    }

    fn token(&self) -> &str {
        self.served.token.as_deref().expect("the daemon has one")
    }

    /// Sends a request with a binary body.
    fn send(&self, method: &str, path: &str, body: &[u8]) -> Answer {
        let mut stream = self.served.connect();
        let (address, length, token) = (&self.served.address, body.len(), self.token());
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\nauthorization: Bearer {token}\r\n\
             content-type: application/octet-stream\r\ncontent-length: {length}\r\n\r\n"
        );
        // The daemon may respond before it has read all.
        let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        Answer::parse(&bytes).unwrap_or_else(|| panic!("{method} {path}: no answer"))
    }

    fn grant(&self, grant: &Grant) {
        let hosts = grant.hosts.iter().map(|host| json!({ "host": self.fill(host), "private": grant.private }));
        let body = json!({ "hosts": hosts.collect::<Vec<_>>() }).to_string();
        self.served.request("PUT", &format!("/skills/{}/grants", grant.skill), Some(&body)).expect(200);
    }

    /// Sends a message. Returns the outcome and the id of its run, if it had one.
    fn message(&self, session: &str, text: &str) -> (Outcome, Option<String>) {
        let body = json!({ "session": session, "text": text }).to_string();
        let answer = self.served.request("POST", "/msg", Some(&body));
        if answer.status != 202 {
            return (outcome(answer), None);
        }
        let message = answer.expect(202)["message"].as_i64().expect("it has an id");
        let began = Instant::now();
        loop {
            let job = self.served.get(&format!("/messages/{message}"));
            if let Some(text) = job["reply"]["text"].as_str() {
                let outcome = Outcome { status: Some(202), text: text.to_owned(), ..Outcome::default() };
                return (outcome, job["run"].as_str().map(str::to_owned));
            }
            assert!(began.elapsed() < PATIENCE, "it is not answered: {job}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn line(&self, session: &str, line: &str) -> Outcome {
        let (mut outcome, run) = self.message(session, &format!("$ {line}"));
        let Some(run) = run else { return outcome };
        let trace = self.served.get(&format!("/runs/{run}/trace"));
        if let Some(report) = report(&trace) {
            // The reply repeats the command line, and with it any text that the line would have printed.
            outcome.text.clear();
            outcome.exit = report["exit_code"].as_i64().map(|code| code as i32);
            outcome.limit = report["error"]["limit"].as_str().map(str::to_owned);
            for part in [&report["text"], &report["stderr"], &report["error"]["message"]] {
                outcome.text.push('\n');
                outcome.text += part.as_str().unwrap_or_default();
            }
        }
        outcome
    }

    fn bytes(&self, bytes: &str) -> Outcome {
        let mut stream = self.served.connect();
        let _ = stream.write_all(bytes.as_bytes());
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let text = String::from_utf8_lossy(&answer).into_owned();
        let status = text.split(' ').nth(1).and_then(|status| status.parse().ok());
        Outcome { status, text, ..Outcome::default() }
    }

    /// Returns the answers, or "closed" if the connection ended instead.
    fn socket(&self, session: &str, lines: impl Iterator<Item = String>) -> Outcome {
        let (mut talk, _) = Talk::register(&self.home, json!({ "session": session }));
        let mut text = String::new();
        for line in lines {
            let _ = talk.stream.write_all(format!("{line}\n").as_bytes());
            match talk.hear() {
                Some(answer) => text += &format!("{answer}\n"),
                None => return Outcome { text: text + "closed\n", ..Outcome::default() },
            }
        }
        let code = serde_json::from_str::<Value>(text.lines().last().unwrap_or_default()).ok();
        let code = code.and_then(|last| last["code"].as_str().map(str::to_owned));
        Outcome { code, text, ..Outcome::default() }
    }

    fn component(&self, session: &str, component: &Component, fill: &dyn Fn(&str) -> String) -> Outcome {
        let bytes = match component {
            Component { wat: Some(text), .. } => wat::parse_str(fill(text)).expect("the text is a component"),
            Component { hex: Some(hex), .. } => bytes_of(&fill(hex)),
            Component { wat_file: Some(name), .. } => {
                wat::parse_file(root().join(format!("tests/guests/wat/{name}.wat"))).expect("the text is a component")
            }
            Component { guest: Some(name), .. } => std::fs::read(guest(name)).expect("it is built"),
            _ => panic!("a component has wat, wat-file, hex or guest"),
        };
        let file = component
            .manifest_file
            .as_ref()
            .map(|file| std::fs::read_to_string(root().join(file)).expect("it is there"));
        let bytes = match component.manifest.as_ref().map(|manifest| fill(manifest)).or(file) {
            Some(manifest) => kiso_sandbox::skill::pack::pack(&bytes, &manifest),
            None => bytes,
        };
        let mut query = format!("grant={}", component.grant.as_deref().unwrap_or("none"));
        if let Some(name) = &component.name {
            query += &format!("&name={}", fill(name));
        }
        let began = Instant::now();
        let answer = loop {
            let answer = self.send("POST", &format!("/skills?{query}"), &bytes);
            // Only one upload is accepted at a time, and another category may be uploading.
            if answer.status != 409 || !answer.body.contains("\"busy\"") || began.elapsed() > PATIENCE {
                break answer;
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        if answer.status == 201 {
            let name = answer.expect(201)["skill"].as_str().expect("it has a name").to_owned();
            let body = component.call.as_ref().map(|args| json!({ "session": session, "args": filled(args, fill) }));
            let called =
                body.map(|body| self.served.request("POST", &format!("/skills/{name}/call"), Some(&body.to_string())));
            self.served.request("DELETE", &format!("/skills/{name}"), None).expect(200);
            return outcome(called.unwrap_or(answer));
        }
        outcome(answer)
    }

    /// Deletes the session with everything that the attempt left in it.
    fn delete(&self, session: &str) {
        let began = Instant::now();
        loop {
            let answer = self.served.request("DELETE", &format!("/sessions/{session}"), None);
            match answer.status {
                200 | 404 => break,
                409 if began.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(10)),
                _ => panic!("the session cannot be deleted: {answer:?}"),
            }
        }
        let left = self.home.path().join("sessions").join(session);
        assert!(!left.join("work").exists(), "{} is left", left.display());
    }

    /// Asserts that no attempt changed the home, the files outside or the daemon.
    pub(super) fn assert_whole(&self) {
        self.served.get("/health");
        assert!(self.home.path().join("key").exists(), "the key of the home is gone");
        let outside = self.home.dir.path();
        assert_eq!(std::fs::read_to_string(outside.join("canary")).expect("it is there"), CANARY);
        let names =
            std::fs::read_dir(outside).expect("it is there").map(|entry| entry.expect("it is there").file_name());
        let mut names: Vec<_> = names.map(|name| name.to_string_lossy().into_owned()).collect();
        names.sort();
        assert_eq!(names, ["canary", "home"]);
        assert_eq!(self.closed.heard.load(Ordering::SeqCst), 0, "something connected to the closed port");
        // Check that the listener would have noticed a connection.
        std::net::TcpStream::connect(("127.0.0.1", self.closed.port)).expect("it listens");
        wait_until("the connection to be heard", || self.closed.heard.load(Ordering::SeqCst) == 1);
    }
}

fn outcome(answer: Answer) -> Outcome {
    let body: Value = serde_json::from_str(&answer.body).unwrap_or_default();
    let part = |part: &Value| part.as_str().map(str::to_owned);
    let (code, limit) = (part(&body["error"]["code"]), part(&body["error"]["limit"]["limit"]));
    // The message as a person reads it, without JSON escapes.
    let message = part(&body["error"]["message"]).unwrap_or_default();
    let text = format!("{}\n{message}", answer.body);
    Outcome { status: Some(answer.status), code, limit, text, exit: None }
}

/// The first report of a command line in a trace.
fn report(trace: &Value) -> Option<&Value> {
    match trace {
        Value::Object(fields) if fields.contains_key("exit_code") => Some(trace),
        Value::Object(fields) => fields.values().find_map(report),
        Value::Array(items) => items.iter().find_map(report),
        _ => None,
    }
}

/// JSON with its texts filled in.
fn filled(value: &Value, fill: &dyn Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => fill(text).into(),
        Value::Array(items) => items.iter().map(|item| filled(item, fill)).collect(),
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), filled(value, fill))).collect(),
        other => other.clone(),
    }
}

fn bytes_of(hex: &str) -> Vec<u8> {
    let digits: Vec<char> = hex.chars().filter(|c| !c.is_whitespace()).collect();
    let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16).expect("hexadecimal digits");
    digits.chunks(2).map(byte).collect()
}
