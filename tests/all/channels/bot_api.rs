//! A server with Telegram's Bot API: the token in the path, updates that are repeated until confirmed, errors with `error_code`,
//! `description` and `parameters`, and limits of texts and entities.

mod buttons;

use serde_json::{Value, json};
use std::collections::{BTreeMap, HashSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub(super) const TOKEN: &str = "110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw";

/// The server holds a request open if it follows the last one within this time. The real one uses three seconds.
const HOLD: Duration = Duration::from_millis(300);

/// Within this time, the server returns only one update.
const HASTE: Duration = Duration::from_millis(50);

/// The server.
pub(super) struct BotApi {
    pub address: String,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Notified after each write.
    news: Condvar,
}

#[derive(Default)]
struct State {
    token: String,
    /// Unconfirmed updates.
    updates: Vec<Value>,
    /// Number of updates and messages so far.
    count: i64,
    /// Messages of the bot that clients show.
    shown: Vec<Sent>,
    /// Button presses that can still be answered, and the answers.
    presses: HashSet<String>,
    answers: Vec<(String, String)>,
    /// Content of files by name.
    files: BTreeMap<String, Vec<u8>>,
    /// Chats that accept messages, and those that blocked the bot.
    chats: HashSet<i64>,
    blocked: HashSet<i64>,
    /// Errors to return for the next calls of a method.
    refusals: Vec<Refusal>,
    /// The address of a marker connection: connections after it are not refused. And the number of the first of those.
    mark: Option<SocketAddr>,
    accepted_from: usize,
    /// Whether confirmations are ignored.
    forgetful: bool,
    /// Whether errors repeat the requested address.
    echoes: bool,
    /// Whether a text repeats the requested address.
    gossips: bool,
    polls: usize,
    last_poll: Option<(i64, Instant)>,
    /// Called methods, and the heads of all requests.
    calls: Vec<String>,
    heads: Vec<String>,
}

/// A message that the bot sent.
#[derive(Debug, Clone)]
pub(super) struct Sent {
    pub id: i64,
    pub method: String,
    pub chat: i64,
    pub text: String,
    pub arguments: Value,
    /// Name, media type and content.
    pub file: Option<(String, String, Vec<u8>)>,
}

struct Refusal {
    method: String,
    status: u16,
    description: String,
    retry_after: Option<u32>,
}

impl Shared {
    /// Whether a connection is the marker after which nothing is refused.
    fn accepts_from(&self, number: usize, stream: &TcpStream) -> bool {
        let mut state = self.state.lock().unwrap();
        let is_mark = state.mark.is_some() && state.mark == stream.peer_addr().ok();
        if is_mark {
            (state.mark, state.accepted_from) = (None, number);
            state.refusals.clear();
            self.news.notify_all();
        }
        is_mark
    }
}

/// A request and the number of its connection.
struct Asked {
    number: usize,
    head: String,
    path: String,
    body: Vec<u8>,
}

type Reply = (u16, String, Vec<u8>);

impl BotApi {
    pub(super) fn open() -> BotApi {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let shared = Arc::<Shared>::default();
        TOKEN.clone_into(&mut shared.state.lock().unwrap().token);
        let of_thread = shared.clone();
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().flatten().enumerate() {
                if !of_thread.accepts_from(number, &stream) {
                    let shared = of_thread.clone();
                    std::thread::spawn(move || answer(number, stream, &shared));
                }
            }
        });
        BotApi { address, shared }
    }

    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let changed = change(&mut self.shared.state.lock().unwrap());
        self.shared.news.notify_all();
        changed
    }

    /// A person writes to the bot. Returns the message's number.
    pub(super) fn write(&self, person: i64, text: &str) -> i64 {
        self.put(person, json!({ "text": text }))
    }

    /// Adds a person's message with these fields.
    pub(super) fn put(&self, person: i64, members: Value) -> i64 {
        self.with(|state| {
            state.count += 1;
            state.chats.insert(person);
            let name = format!("Person{person}");
            let mut message = json!({
                "message_id": state.count, "date": now(),
                "from": { "id": person, "is_bot": false, "first_name": name, "language_code": "en" },
                "chat": { "id": person, "first_name": name, "type": "private" },
            });
            message.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
            let id = state.count;
            state.update(json!({ "message": message }));
            id
        })
    }

    /// Adds an update other than a new message in a private chat.
    pub(super) fn update(&self, update: Value) {
        self.with(|state| state.update(update));
    }

    /// Stores a file and returns its id.
    pub(super) fn keep(&self, bytes: &[u8]) -> String {
        self.with(|state| {
            let id = format!("BQACAgIAAxkBAAM{}", state.files.len());
            state.files.insert(id.clone(), bytes.to_vec());
            id
        })
    }

    pub(super) fn shown(&self) -> Vec<Sent> {
        self.with(|state| state.shown.clone())
    }

    pub(super) fn texts(&self) -> Vec<String> {
        self.shown().into_iter().map(|sent| sent.text).collect()
    }

    /// The number of texts that contain this.
    pub(super) fn count(&self, text: &str) -> usize {
        self.texts().iter().filter(|shown| shown.contains(text)).count()
    }

    pub(super) fn token(&self, token: &str) {
        self.with(|state| token.clone_into(&mut state.token));
    }

    /// Refuses the next call of a method.
    pub(super) fn refuse(&self, method: &str, status: u16, description: &str, retry_after: Option<u32>) {
        let (method, description) = (method.to_owned(), description.to_owned());
        self.with(|state| state.refusals.push(Refusal { method, status, description, retry_after }));
    }

    pub(super) fn refusals_left(&self) -> usize {
        self.with(|state| state.refusals.len())
    }

    /// Refuses nothing any more, except requests already on their way, whose sender may be gone.
    pub(super) fn accept_all(&self) {
        let mut state = self.shared.state.lock().unwrap();
        let mark = TcpStream::connect(&self.address).unwrap();
        state.mark = Some(mark.local_addr().unwrap());
        drop(self.shared.news.wait_while(state, |state| state.mark.is_some()).unwrap());
    }

    pub(super) fn confirm_nothing(&self) {
        self.with(|state| state.forgetful = true);
    }

    pub(super) fn echo(&self) {
        self.with(|state| state.echoes = true);
    }

    /// The next text contains the address at which updates were requested.
    pub(super) fn gossip(&self) {
        self.with(|state| state.gossips = true);
    }

    pub(super) fn block(&self, person: i64) {
        self.with(|state| state.blocked.insert(person));
    }

    pub(super) fn polls(&self) -> usize {
        self.with(|state| state.polls)
    }

    pub(super) fn calls(&self, method: &str) -> usize {
        self.with(|state| state.calls.iter().filter(|called| *called == method).count())
    }

    pub(super) fn heads(&self) -> Vec<String> {
        self.with(|state| state.heads.clone())
    }
}

impl State {
    fn update(&mut self, mut update: Value) {
        self.count += 1;
        update["update_id"] = (870_000_000 + self.count).into();
        self.updates.push(update);
    }

    fn respond(&mut self, asked: &Asked) -> Reply {
        self.heads.push(asked.head.clone());
        let own = format!("/bot{}/", self.token);
        let (is_file, path) = match asked.path.strip_prefix("/file") {
            Some(path) => (true, path),
            None => (false, asked.path.as_str()),
        };
        let Some(method) = path.strip_prefix(&own) else {
            return self.refused(asked, 401, "Unauthorized", None);
        };
        let called = if is_file { "file" } else { method };
        self.calls.push(called.to_owned());
        if let Some(at) = self.refusals.iter().position(|refusal| refusal.method == called) {
            let Refusal { status, description, retry_after, .. } = self.refusals.remove(at);
            return self.refused(asked, status, &description, retry_after);
        }
        if called == "sendMessage" && asked.number < self.accepted_from {
            return self.refused(asked, 502, "Bad Gateway", None);
        }
        if is_file {
            let kept = method.strip_prefix("documents/file_").and_then(|id| self.files.get(id));
            return match kept {
                Some(content) => (200, String::new(), content.clone()),
                None => self.refused(asked, 404, "Not Found", None),
            };
        }
        let content_type = header_of(&asked.head, "content-type").unwrap_or_default();
        let (arguments, file) = match content_type.split_once("boundary=") {
            Some((_, boundary)) => parts_of(&asked.body, boundary),
            None if content_type == "application/json" => (serde_json::from_slice(&asked.body).unwrap(), None),
            None => return self.refused(asked, 400, "Bad Request: unsupported content type", None),
        };
        match method {
            "getUpdates" => self.updates_from(&arguments),
            "getFile" => self.file(asked, &arguments),
            "sendMessage" | "sendPhoto" | "sendDocument" | "sendChatAction" => {
                self.take(asked, method, arguments, file)
            }
            "editMessageText" | "editMessageReplyMarkup" => self.edit(asked, &arguments),
            "answerCallbackQuery" => self.answer(asked, &arguments),
            _ => self.refused(asked, 404, "Not Found: method not found", None),
        }
    }

    fn updates_from(&mut self, arguments: &Value) -> Reply {
        assert_eq!(arguments["allowed_updates"], json!(["message", "callback_query"]));
        let offset = arguments["offset"].as_i64().unwrap_or(0);
        let mut limit = usize::try_from(arguments["limit"].as_u64().unwrap()).unwrap();
        assert!((1..=100).contains(&limit));
        if self.last_poll.is_some_and(|(last, at)| last == offset && at.elapsed() < HASTE) {
            limit = 1;
        }
        self.last_poll = Some((offset, Instant::now()));
        self.polls += 1;
        if !self.forgetful {
            self.updates.retain(|update| update["update_id"].as_i64().unwrap() >= offset);
        }
        ok(&json!(self.updates[..self.updates.len().min(limit)]))
    }

    fn file(&mut self, asked: &Asked, arguments: &Value) -> Reply {
        let id = arguments["file_id"].as_str().unwrap();
        match self.files.get(id) {
            Some(content) if content.len() > 20 << 20 => self.refused(asked, 400, "Bad Request: file is too big", None),
            Some(content) => ok(&json!({
                "file_id": id, "file_unique_id": "AgADAQ", "file_size": content.len(),
                "file_path": format!("documents/file_{id}"),
            })),
            None => self.refused(asked, 400, "Bad Request: invalid file_id", None),
        }
    }

    fn take(
        &mut self,
        asked: &Asked,
        method: &str,
        arguments: Value,
        file: Option<(String, String, String, Vec<u8>)>,
    ) -> Reply {
        let chat = arguments["chat_id"].as_i64().expect("a number");
        if !self.chats.contains(&chat) {
            return self.refused(asked, 400, "Bad Request: chat not found", None);
        }
        if self.blocked.contains(&chat) {
            return self.refused(asked, 403, "Forbidden: bot was blocked by the user", None);
        }
        if method == "sendChatAction" {
            assert_eq!(arguments["action"], "typing");
            return ok(&json!(true));
        }
        let text = arguments["text"].as_str().unwrap_or_default().to_owned();
        let units = text.encode_utf16().count();
        let wanted = match method {
            "sendMessage" if text.trim().is_empty() => {
                return self.refused(asked, 400, "Bad Request: message text is empty", None);
            }
            "sendMessage" if units > 4_096 => {
                return self.refused(asked, 400, "Bad Request: message is too long", None);
            }
            "sendMessage" => None,
            "sendPhoto" => Some("photo"),
            _ => Some("document"),
        };
        buttons::check(&arguments);
        assert_eq!(file.as_ref().map(|(field, ..)| field.as_str()), wanted, "{method}");
        let file = file.map(|(_, name, media_type, content)| (name, media_type, content));
        self.count += 1;
        self.shown.push(Sent { id: self.count, method: method.to_owned(), chat, text, arguments, file });
        ok(&json!({ "message_id": self.count, "date": now(), "chat": { "id": chat, "type": "private" } }))
    }

    fn refused(&self, asked: &Asked, status: u16, description: &str, retry_after: Option<u32>) -> Reply {
        let said = if self.echoes { format!("{description}: {}", asked.path) } else { description.to_owned() };
        let mut body = json!({ "ok": false, "error_code": status, "description": said });
        let mut more = String::new();
        if let Some(seconds) = retry_after {
            body["parameters"] = json!({ "retry_after": seconds });
            more = format!("retry-after: {seconds}\r\n");
        }
        if self.echoes {
            more += &format!("x-asked: {}\r\n", asked.path);
        }
        (status, more, body.to_string().into_bytes())
    }
}

fn ok(result: &Value) -> Reply {
    (200, String::new(), json!({ "ok": true, "result": result }).to_string().into_bytes())
}

pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

fn header_of<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = head.lines().filter_map(|line| line.split_once(": "));
    lines.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}

/// The fields of a form, and its file: field, name, type, content.
type Form = (Value, Option<(String, String, String, Vec<u8>)>);

fn parts_of(body: &[u8], boundary: &str) -> Form {
    let (mut fields, mut file) = (json!({}), None);
    let line = format!("--{boundary}");
    let find = |bytes: &[u8], what: &str| bytes.windows(what.len()).position(|window| window == what.as_bytes());
    let mut rest = &body[find(body, &line).unwrap() + line.len()..];
    while rest.starts_with(b"\r\n") {
        let end = find(rest, &format!("\r\n{line}")).unwrap();
        let part = &rest[2..end];
        rest = &rest[end + 2 + line.len()..];
        let at = find(part, "\r\n\r\n").unwrap();
        let (head, content) = (String::from_utf8(part[..at].to_vec()).unwrap(), &part[at + 4..]);
        let of = |name: &str| Some(head.split_once(&format!("{name}=\""))?.1.split_once('"')?.0.to_owned());
        let field = of(" name").unwrap();
        match of("filename") {
            Some(name) => {
                let media_type = header_of(&head, "content-type").unwrap().to_owned();
                file = Some((field, name, media_type, content.to_vec()));
            }
            // A number may be sent as a number or as text.
            None => fields[field] = serde_json::from_slice(content).unwrap(),
        }
    }
    assert_eq!(rest, b"--\r\n");
    (fields, file)
}

fn answer(number: usize, mut stream: TcpStream, shared: &Shared) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        (reader.read_line(&mut head).ok()? > 0).then_some(())?;
    }
    let length = header_of(&head, "content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let path = head.split(' ').nth(1)?.to_owned();
    let asked = Asked { number, head, path, body };
    hold(&asked, shared);
    let (status, more, bytes) = shared.state.lock().unwrap().respond(&asked);
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-length: {}\r\ncontent-type: application/json\r\nconnection: close\r\n{more}\r\n",
        bytes.len()
    );
    stream.write_all(&[head.as_bytes(), &bytes].concat()).ok()
}

/// Holds a repeated request for updates until there is one.
fn hold(asked: &Asked, shared: &Shared) {
    if !asked.path.ends_with("/getUpdates") {
        return;
    }
    let arguments: Value = serde_json::from_slice(&asked.body).unwrap();
    let offset = arguments["offset"].as_i64().unwrap_or(0);
    let mut state = shared.state.lock().unwrap();
    if std::mem::take(&mut state.gossips) {
        let chat = *state.chats.iter().next().unwrap();
        state.count += 1;
        let message = json!({
            "message_id": state.count, "date": now(), "text": format!("I was asked for {} by {}", asked.path, asked.head),
            "from": { "id": chat, "is_bot": false, "first_name": "X" }, "chat": { "id": chat, "type": "private" },
        });
        state.update(json!({ "message": message }));
    }
    let again = state.last_poll.is_some_and(|(last, at)| last == offset && at.elapsed() < HOLD);
    let none = |state: &mut State| {
        let is_new = |update: &Value| update["update_id"].as_i64().unwrap() >= offset;
        again && state.refusals.is_empty() && !state.updates.iter().any(is_new)
    };
    drop(shared.news.wait_timeout_while(state, HOLD, none).unwrap());
}
