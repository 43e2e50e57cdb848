//! A server with ntfy's API: publishing with headers and files, polling the cache, errors in ntfy's JSON.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// The server.
pub(crate) struct Ntfy {
    pub address: String,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    messages: Vec<Value>,
    files: Vec<Vec<u8>>,
    /// The token that requests need; `None` allows everybody.
    token: Option<String>,
    /// Errors for the next publish requests: status and the seconds to wait.
    refusals: Vec<(u16, u32)>,
    /// Whether ids are unknown, so that a poll returns all messages.
    forgetful: bool,
    polls: usize,
    /// Heads of all requests.
    heads: Vec<String>,
}

impl Ntfy {
    pub(crate) fn open() -> Ntfy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let state = Arc::<Mutex<State>>::default();
        let (of_thread, own) = (state.clone(), address.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (state, own) = (of_thread.clone(), own.clone());
                std::thread::spawn(move || answer(stream, &state, &own));
            }
        });
        Ntfy { address, state }
    }

    /// Publishes a message as a telephone does.
    pub(crate) fn publish(&self, topic: &str, text: &str) -> String {
        self.put(topic, json!({ "message": text }))
    }

    /// Adds a message with these fields.
    pub(crate) fn put(&self, topic: &str, members: Value) -> String {
        let mut state = self.state.lock().unwrap();
        let id = format!("phone{:07}", state.messages.len());
        let mut message = json!({ "id": id, "time": 1_700_000_000, "event": "message", "topic": topic });
        message.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        state.messages.push(message);
        id
    }

    /// Presses a button: the app sends the action's request unchanged.
    pub(crate) fn press(&self, action: &Value) {
        assert_eq!((&action["action"], &action["method"]), (&json!("http"), &json!("POST")), "{action}");
        let url = action["url"].as_str().unwrap();
        let topic = url.strip_prefix(&format!("http://{}/", self.address)).expect("the server itself");
        assert!(action["headers"].is_null(), "nothing that is secret: {action}");
        self.publish(topic, action["body"].as_str().unwrap());
    }

    /// Stores a file and returns its path.
    pub(crate) fn keep(&self, bytes: &[u8]) -> String {
        let mut state = self.state.lock().unwrap();
        state.files.push(bytes.to_vec());
        format!("/file/{}.bin", state.files.len() - 1)
    }

    /// Messages of kiso as a client shows them: one with a known id replaces the earlier one.
    pub(crate) fn shown(&self) -> Vec<Value> {
        let state = self.state.lock().unwrap();
        let mut shown: Vec<Value> = Vec::new();
        for message in state.messages.iter().filter(|message| message["tags"][0] == "kiso") {
            match shown.iter_mut().find(|known| known["sequence_id"] == message["sequence_id"]) {
                Some(known) => *known = message.clone(),
                None => shown.push(message.clone()),
            }
        }
        shown
    }

    pub(crate) fn texts(&self) -> Vec<String> {
        self.shown().iter().map(|message| message["message"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// The number of texts equal to this one.
    pub(crate) fn count(&self, text: &str) -> usize {
        self.texts().iter().filter(|shown| shown.contains(text)).count()
    }

    pub(crate) fn token(&self, token: Option<&str>) {
        self.state.lock().unwrap().token = token.map(str::to_owned);
    }

    pub(crate) fn refuse(&self, status: u16, retry_after: u32) {
        self.state.lock().unwrap().refusals.push((status, retry_after));
    }

    pub(crate) fn refusals_left(&self) -> usize {
        self.state.lock().unwrap().refusals.len()
    }

    pub(crate) fn forget_ids(&self) {
        self.state.lock().unwrap().forgetful = true;
    }

    pub(crate) fn polls(&self) -> usize {
        self.state.lock().unwrap().polls
    }

    pub(crate) fn heads(&self) -> Vec<String> {
        self.state.lock().unwrap().heads.clone()
    }

    pub(crate) fn file(&self, path: &str) -> Vec<u8> {
        let index: usize = path.rsplit('/').next().unwrap().trim_end_matches(".bin").parse().unwrap();
        self.state.lock().unwrap().files[index].clone()
    }
}

fn header_of<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let lines = head.lines().filter_map(|line| line.split_once(": "));
    lines.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}

fn answer(mut stream: TcpStream, state: &Mutex<State>, own: &str) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        (reader.read_line(&mut head).ok()? > 0).then_some(())?;
    }
    let length = header_of(&head, "content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let (status, more, bytes) = respond(&head, body, &mut state.lock().unwrap(), own);
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-length: {}\r\ncontent-type: application/json\r\nconnection: close\r\n{more}\r\n",
        bytes.len()
    );
    stream.write_all(&[head.as_bytes(), &bytes].concat()).ok()
}

fn respond(head: &str, body: Vec<u8>, state: &mut State, own: &str) -> (u16, String, Vec<u8>) {
    state.heads.push(head.to_owned());
    let failed = |http: u16, error: &str| json!({ "code": u32::from(http) * 100 + 1, "http": http, "error": error });
    let refused = |http, error: &str, more: String| (http, more, failed(http, error).to_string().into_bytes());
    let mut words = head.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let of_query = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    let shows = header_of(head, "authorization").and_then(|value| value.strip_prefix("Bearer "));
    if state.token.is_some() && shows != state.token.as_deref() {
        // A service that repeats the received authorization.
        return refused(401, &format!("unauthorized: {}", shows.unwrap_or("nothing")), String::new());
    }
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    match (method, parts.as_slice()) {
        ("GET", ["file", name]) => {
            let index: usize = name.trim_end_matches(".bin").parse().unwrap();
            (200, String::new(), state.files[index].clone())
        }
        ("GET", [topics, "json"]) => {
            state.polls += 1;
            let since = of_query("since").unwrap_or_default();
            let at = state.messages.iter().position(|message| message["id"] == since).filter(|_| !state.forgetful);
            let from = at.map_or(0, |at| at + 1);
            let is_of = |message: &&Value| topics.split(',').any(|topic| message["topic"] == topic);
            let lines: String =
                state.messages[from..].iter().filter(is_of).map(|message| format!("{message}\n")).collect();
            (200, String::new(), lines.into_bytes())
        }
        ("POST" | "PUT", [topic]) => {
            if !state.refusals.is_empty() {
                let (status, wait) = state.refusals.remove(0);
                return refused(status, "limit reached: too many requests", format!("retry-after: {wait}\r\n"));
            }
            let id = format!("kiso{:08}", state.messages.len());
            let mut message = json!({ "id": id, "time": 1_700_000_000, "event": "message", "topic": topic });
            if let Some(sequence) = header_of(head, "x-sequence-id") {
                message["sequence_id"] = sequence.into();
            }
            if let Some(tags) = header_of(head, "x-tags") {
                message["tags"] = tags.split(',').collect();
            }
            if let Some(list) = header_of(head, "x-actions") {
                let actions: Vec<Value> = serde_json::from_str(list).expect("a list of actions");
                assert!((1..=3).contains(&actions.len()), "ntfy takes three: {list}");
                message["actions"] = actions.into();
            }
            match of_query("filename") {
                Some(name) => {
                    state.files.push(body);
                    let (index, size) = (state.files.len() - 1, state.files.last().unwrap().len());
                    let url = format!("http://{own}/file/{index}.bin");
                    message["message"] = format!("You received a file: {name}").into();
                    message["attachment"] = json!({ "name": name, "size": size, "url": url });
                }
                None if body.len() > 4_096 => return refused(413, "message too large", String::new()),
                None => message["message"] = String::from_utf8(body).unwrap().into(),
            }
            state.messages.push(message.clone());
            (200, String::new(), message.to_string().into_bytes())
        }
        _ => refused(404, "page not found", String::new()),
    }
}
