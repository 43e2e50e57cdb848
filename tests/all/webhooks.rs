//! Webhooks: a real daemon, and a receiver that responds as and when the test wants.

mod documented;

use crate::harness::{Home, missing_tool, root, wait_for};
use crate::served::Served;
use ring::hmac;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// A guard against tests that never end; no test waits for it to pass.
const PATIENCE: Duration = Duration::from_secs(60);

/// A receiver of webhooks.
pub(crate) struct Inbox {
    pub address: String,
    pub requests: Receiver<Request>,
}

/// A received request that waits for its response.
pub(crate) struct Request {
    path: String,
    headers: String,
    body: Vec<u8>,
    stream: TcpStream,
}

impl Inbox {
    pub(crate) fn open() -> Inbox {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (sender, requests) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let sender = sender.clone();
                std::thread::spawn(move || take(stream, &sender));
            }
        });
        Inbox { address, requests }
    }

    /// A home that sends its replies to this inbox; `more` are further lines of the webhook.
    fn home(&self, more: &str) -> Home {
        let home = Home::new();
        home.config(&config(&[("a", &self.address, more)]));
        home
    }

    #[track_caller]
    pub(crate) fn next(&self) -> Request {
        self.requests.recv_timeout(PATIENCE).expect("a request comes in time")
    }

    /// Asserts that there are no further requests.
    #[track_caller]
    fn is_empty(&self) {
        assert!(self.requests.try_recv().is_err(), "one request too many");
    }
}

fn take(stream: TcpStream, sender: &Sender<Request>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut headers = String::new();
    while !headers.ends_with("\r\n\r\n") {
        (reader.read_line(&mut headers).ok()? > 0).then_some(())?;
    }
    let path = headers.split(' ').nth(1)?.to_owned();
    let length = header_of(&headers, "content-length")?.parse().ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    sender.send(Request { path, headers, body, stream }).ok()
}

fn header_of(headers: &str, name: &str) -> Option<String> {
    let lines = headers.lines().filter_map(|line| line.split_once(": "));
    lines.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned())
}

impl Request {
    fn header(&self, name: &str) -> String {
        header_of(&self.headers, name).unwrap_or_else(|| panic!("no {name}: {}", self.headers))
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("the body is JSON")
    }

    pub(crate) fn key(&self) -> String {
        self.header("idempotency-key")
    }

    fn attempt(&self) -> i64 {
        self.json()["attempt"].as_i64().expect("it is counted")
    }

    /// Responds with "200 OK", or with headers after it.
    pub(crate) fn answer(mut self, head: &str, body: &str) {
        let head = format!("HTTP/1.1 {head}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len());
        // The sender may have disconnected.
        let _ = self.stream.write_all(head.as_bytes());
    }
}

fn config(webhooks: &[(&str, &str, &str)]) -> String {
    let mut text = "model = \"reflex\"\n[daemon]\ndebounce_ms = 20\n".to_owned();
    for (name, address, more) in webhooks {
        text += &format!(
            "[webhooks.{name}]\nurl = \"http://{address}/hook?for=hidden\"\nallow_private = true\nretry_base_ms = 10\n\
             timeout_s = 300\n{more}\n"
        );
    }
    text
}

/// The webhook's line in `kiso connect webhook list`.
#[track_caller]
fn line(home: &Home, name: &str) -> Value {
    let lines = home.kiso(&["--json", "connect", "webhook", "list"]).ok().json_lines();
    lines.into_iter().find(|line| line["webhook"] == name).expect("it is listed")
}

/// Asserts that a body matches the OpenAPI document.
#[track_caller]
fn is_as_documented(body: &Value) {
    let mut document: Value =
        serde_json::from_str(&std::fs::read_to_string(root().join("docs/openapi.json")).unwrap()).unwrap();
    let schema = json!({ "$ref": "#/components/schemas/Told", "components": document["components"].take() });
    let known = schema["components"]["schemas"]["Told"]["properties"].as_object().unwrap();
    assert!(body.as_object().unwrap().keys().all(|key| known.contains_key(key)), "{body}");
    if let Err(error) = jsonschema::validate(&schema, body) {
        panic!("{error}: {body}");
    }
}

/// Polls `kiso connect webhook list` until a condition holds, because there is no event for it.
#[track_caller]
fn until_listed(home: &Home, name: &str, holds: impl Fn(&Value) -> bool) -> Value {
    wait_for(&format!("the webhook {name}"), || Some(line(home, name)).filter(&holds))
}

#[test]
fn a_reply_is_delivered_once_with_a_signature_that_holds() {
    let inbox = Inbox::open();
    let home = inbox.home("");
    let served = Served::start(&home);
    let message = served.send("main", "$ echo hello | tr a-z A-Z");
    let request = inbox.next();
    assert_eq!(request.path, "/hook?for=hidden");
    assert_eq!((request.header("host"), request.header("kiso-event")), (inbox.address.clone(), "reply".to_owned()));
    assert_eq!(request.header("content-type"), "application/json");
    let body = request.json();
    let reply = &served.get(&format!("/messages/{message}"))["reply"];
    assert_eq!(&body["message"], reply, "the message is as in the API");
    assert!(reply["text"].as_str().unwrap().contains("HELLO"));
    assert_eq!((&body["event"], &body["session"], &body["attempt"]), (&json!("reply"), &json!("main"), &json!(1)));
    assert_eq!((&body["run"], &body["at_ms"]), (&reply["run"], &reply["at_ms"]));
    assert_eq!(body["id"].as_str(), Some(request.key().as_str()));

    is_as_documented(&body);
    let secret = home.kiso(&["connect", "webhook", "secret", "a"]).ok().stdout.trim().to_owned();
    let signature = request.header("kiso-signature");
    let (time, code) = signature.strip_prefix("t=").unwrap().split_once(",v1=").unwrap();
    let signed = [time.as_bytes(), b".", &request.body].concat();
    let code: Vec<u8> =
        (0..code.len()).step_by(2).map(|at| u8::from_str_radix(&code[at..at + 2], 16).unwrap()).collect();
    hmac::verify(&hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()), &signed, &code).expect("it is signed");

    let key = request.key();
    request.answer("204 No Content", "");
    until_listed(&home, "a", |line| line["delivered"] == 1 && line["pending"] == 0);
    served.send("main", "$ echo again");
    let second = inbox.next();
    assert_ne!(second.key(), key);
    second.answer("200 OK", "");
    until_listed(&home, "a", |line| line["delivered"] == 2);
    inbox.is_empty();
    let metrics = served.request("GET", "/metrics", None).body;
    for line in ["kiso_webhook_pending{webhook=\"a\"} 0", "kiso_webhook_delivered_total{webhook=\"a\"} 2"] {
        assert!(metrics.contains(line), "{metrics}");
    }
    assert_eq!(served.terminate(), 0);
}

#[test]
fn what_fails_is_sent_again_with_the_same_key() {
    let inbox = Inbox::open();
    let home = inbox.home("");
    let served = Served::start(&home);
    served.send("main", "$ echo hello");
    let first = inbox.next();
    let (key, text) = (first.key(), first.json()["message"].clone());
    first.answer("500 Internal Server Error", "not\n now");
    // The second is cut off without a response.
    let second = inbox.next();
    assert_eq!((second.key(), second.attempt()), (key.clone(), 2));
    drop(second);
    let third = inbox.next();
    assert_eq!((third.key(), third.attempt(), &third.json()["message"]), (key, 3, &text));
    third.answer("200 OK", "");
    let line = until_listed(&home, "a", |line| line["delivered"] == 1);
    assert_eq!((&line["pending"], &line["failed"], &line["next_ms"]), (&json!(0), &json!(0), &json!(null)));
    drop(served);
    inbox.is_empty();
}

#[test]
fn a_receiver_may_ask_for_time_and_a_person_may_be_faster() {
    let inbox = Inbox::open();
    let home = inbox.home("retry_max_s = 7200");
    let served = Served::start(&home);
    served.send("main", "$ echo hello");
    let request = inbox.next();
    let at = request.json()["at_ms"].as_i64().unwrap();
    request.answer("503 Service Unavailable\r\nretry-after: 3600", "");
    let line = until_listed(&home, "a", |line| line["next_ms"].as_i64().is_some_and(|next| next > at + 1_000));
    assert!(line["next_ms"].as_i64().unwrap() >= at + 3_600_000, "{line}");
    home.kiso(&["connect", "webhook", "retry", "a"]).ok().prints(&["1 delivery is due now"]);
    let again = inbox.next();
    assert_eq!(again.attempt(), 2);
    again.answer("200 OK", "");
    until_listed(&home, "a", |line| line["delivered"] == 1);
    drop(served);
}

#[test]
fn a_redirect_is_not_followed_and_what_is_given_up_can_be_brought_back() {
    let inbox = Inbox::open();
    let home = inbox.home("max_attempts = 2");
    let served = Served::start(&home);
    served.send("main", "$ echo hello");
    for _ in 0..2 {
        let request = inbox.next();
        assert!(request.path.starts_with("/hook"), "{}", request.path);
        request.answer(&format!("302 Found\r\nlocation: http://{}/other", inbox.address), "");
    }
    until_listed(&home, "a", |line| line["failed"] == 1);
    let failed = home.kiso(&["connect", "webhook", "failed"]);
    failed.ok().prints(&["a  reply  message 2  2 attempts: it answered 302, a redirect, which is not followed"]);
    let object = home.kiso(&["--json", "connect", "webhook", "failed"]).json();
    assert_eq!((&object["type"], &object["attempts"], &object["message"]), (&json!("delivery"), &json!(2), &json!(2)));
    let metrics = served.request("GET", "/metrics", None).body;
    assert!(metrics.contains("kiso_webhook_failed_total{webhook=\"a\"} 1"), "{metrics}");
    home.kiso(&["connect", "webhook", "retry"]).ok().prints(&["1 delivery is"]);
    let back = inbox.next();
    assert_eq!((back.attempt(), back.key()), (1, object["id"].as_str().unwrap().to_owned()));
    // A receiver that responds with 410 gets no retry.
    back.answer("410 Gone", "moved away");
    until_listed(&home, "a", |line| line["failed"] == 2 && line["pending"] == 0);
    home.kiso(&["connect", "webhook", "failed"]).ok().prints(&["1 attempt: it answered 410: moved away"]);
    inbox.is_empty();
}

#[test]
fn private_addresses_are_refused_unless_they_are_allowed() {
    let inbox = Inbox::open();
    let port = inbox.address.split(':').nth(1).unwrap().to_owned();
    let home = Home::new();
    let with = |url: &str, more: &str| {
        home.config(&format!(
            "model = \"reflex\"\n[daemon]\ndebounce_ms = 20\n[webhooks.a]\nurl = \"{url}\"\nmax_attempts = 1\n{more}\n"
        ));
    };
    with(&format!("https://127.0.0.1:{port}/hidden"), "");
    for args in
        [&["connect", "webhook", "test", "a"][..], &["serve", "--port", "0"], &["connect", "webhook", "secret", "a"]]
    {
        let ran = home.kiso(args);
        ran.exit(4).says(&["[webhooks.a] is at 127.0.0.1", "allow_private = true"]);
        assert!(!ran.stderr.contains("hidden"), "{ran:?}");
    }
    home.kiso(&["doctor", "--offline"]).exit(4).prints(&["webhook a", "a private address"]);
    with(&format!("http://127.0.0.1:{port}/"), "");
    home.kiso(&["config", "check"]).exit(3).says(&["must begin with https://", "allow_private = true"]);

    // A name is resolved only when something is sent.
    with(&format!("https://localhost:{port}/hidden"), "");
    home.kiso(&["connect", "webhook", "test", "a"]).exit(4).says(&["its address is private"]);
    let served = Served::start(&home);
    served.send("main", "$ echo hello");
    until_listed(&home, "a", |line| line["failed"] == 1);
    home.kiso(&["connect", "webhook", "failed"])
        .ok()
        .prints(&["its address is private; allow_private = true allows it"]);
    drop(served);
    inbox.is_empty();

    // Unencrypted, with allow_private, the same receiver is reached.
    with(&format!("http://localhost:{port}/"), "allow_private = true");
    let tested = std::thread::scope(|scope| {
        let testing = scope.spawn(|| home.kiso(&["connect", "webhook", "test", "a"]));
        let request = inbox.next();
        assert_eq!((request.header("kiso-event"), &request.json()["event"]), ("test".to_owned(), &json!("test")));
        request.answer("200 OK", "");
        testing.join().unwrap()
    });
    tested.ok().prints(&["received it and answered 200"]);
}

#[test]
fn a_slow_receiver_holds_up_nobody_else() {
    let (slow, quick) = (Inbox::open(), Inbox::open());
    let home = Home::new();
    home.config(&config(&[("slow", &slow.address, ""), ("quick", &quick.address, "")]));
    let served = Served::start(&home);
    for n in 0..6 {
        served.send(&format!("s{n}"), "$ echo hello");
    }
    // The slow receiver has its maximum of requests and does not respond.
    let held: Vec<_> = (0..4).map(|_| slow.next()).collect();
    for _ in 0..6 {
        quick.next().answer("200 OK", "");
    }
    until_listed(&home, "quick", |line| line["delivered"] == 6);
    slow.is_empty();
    let mut keys: Vec<_> = held.iter().map(Request::key).collect();
    for request in held {
        request.answer("200 OK", "");
    }
    for _ in 0..2 {
        let request = slow.next();
        keys.push(request.key());
        request.answer("200 OK", "");
    }
    until_listed(&home, "slow", |line| line["delivered"] == 6 && line["pending"] == 0);
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 6, "each was sent once");
}

/// The power may fail between the receiver's response and its record: the delivery is repeated with the same key.
#[test]
fn after_a_crash_what_has_no_end_on_record_is_sent_again() {
    let inbox = Inbox::open();
    let home = inbox.home("");
    let served = Served::start(&home);
    served.send("main", "$ echo hello");
    let before = inbox.next();
    served.kill();
    let key = before.key();
    before.answer("200 OK", "");
    // Without a daemon, replies are recorded for the next one.
    home.kiso(&["run", "$ echo by hand"]).ok();
    assert_eq!(line(&home, "a")["pending"], 2);
    let served = Served::start(&home);
    let (one, other) = (inbox.next(), inbox.next());
    let (again, new) = if one.key() == key { (one, other) } else { (other, one) };
    assert_eq!(again.key(), key);
    assert!(new.json()["message"]["text"].as_str().unwrap().contains("by hand"));
    again.answer("200 OK", "");
    new.answer("200 OK", "");
    until_listed(&home, "a", |line| line["delivered"] == 2 && line["pending"] == 0);
    assert_eq!(served.terminate(), 0);
    inbox.is_empty();
}

#[test]
fn an_answer_without_end_is_cut_off() {
    let inbox = Inbox::open();
    let home = inbox.home("max_attempts = 1");
    let served = Served::start(&home);
    let endless = |head: &str| {
        let mut request = inbox.next();
        request.stream.write_all(format!("HTTP/1.1 {head}\r\n").as_bytes()).unwrap();
        let chunk = "many words ".repeat(1_000);
        // Until the other side closes the connection.
        while request.stream.write_all(chunk.as_bytes()).is_ok() {}
    };
    served.send("main", "$ echo hello");
    endless("500 No\r\n");
    until_listed(&home, "a", |line| line["failed"] == 1);
    let error = home.kiso(&["--json", "connect", "webhook", "failed"]).json()["error"].as_str().unwrap().to_owned();
    assert!(error.starts_with("it answered 500: many words many") && error.len() < 300, "{error}");
    served.send("main", "$ echo hello");
    endless("200 OK\r\n");
    until_listed(&home, "a", |line| line["delivered"] == 1);
    // A head without end is not a response.
    served.send("main", "$ echo hello");
    endless("200 OK\r\nx-long: ");
    until_listed(&home, "a", |line| line["failed"] == 2);
}

#[test]
fn a_webhook_that_goes_leaves_a_record() {
    let inbox = Inbox::open();
    let home = inbox.home("");
    let served = Served::start(&home);
    served.send("main", "$ echo hello");
    inbox.next().answer("500 No\r\nretry-after: 3600", "");
    until_listed(&home, "a", |line| line["next_ms"].is_i64());
    assert_eq!(served.terminate(), 0);
    home.config("model = \"reflex\"\n");
    let served = Served::start(&home);
    home.kiso(&["connect", "webhook", "failed"]).ok().prints(&["it is not in config.toml any more"]);
    home.kiso(&["connect", "webhook", "list"]).ok().says(&["there are no webhooks"]);
    home.kiso(&["connect", "webhook", "retry", "a"]).exit(2).says(&["config.toml has no webhook \"a\"; there is none"]);
    assert!(!served.request("GET", "/metrics", None).body.contains("kiso_webhook"));
}

#[test]
fn a_webhook_is_told_of_what_it_asked_for() {
    let inbox = Inbox::open();
    let home = inbox.home("sessions = [\"team-*\"]\nevents = [\"run\"]");
    let served = Served::start(&home);
    served.reply(served.send("other", "$ echo hello"));
    served.reply(served.send("team-red", "$ exit 3"));
    let request = inbox.next();
    let body = request.json();
    assert_eq!((&body["event"], &body["session"], &body["message"]), (&json!("run"), &json!("team-red"), &Value::Null));
    let run = served.get(&format!("/runs/{}", body["run"].as_str().unwrap()));
    assert_eq!((&body["status"], &body["status"]), (&run["run"]["status"], &json!("failed")), "{run}");
    is_as_documented(&body);
    request.answer("200 OK", "");
    until_listed(&home, "a", |line| line["delivered"] == 1 && line["pending"] == 0);
    inbox.is_empty();
}

#[test]
fn neither_address_nor_key_is_shown() {
    let inbox = Inbox::open();
    let home = inbox.home("");
    let url = format!("http://{}/very-hidden-path", inbox.address);
    home.config(
        "model = \"reflex\"\n[webhooks.a]\nurl_env = \"HOOK_URL\"\nsecret_env = \"HOOK_KEY\"\nallow_private = true\n",
    );
    home.kiso(&["config", "check"]).ok().prints(&["HOOK_URL, a variable of [webhooks.a], is not set here"]);
    home.kiso(&["connect", "webhook", "test", "a"])
        .exit(3)
        .says(&["HOOK_URL, the variable with the address of [webhooks.a]"]);
    home.kiso(&["serve", "--port", "0"]).exit(3).says(&["HOOK_URL"]);
    let with = |args: &[&str]| {
        home.kiso_with(args, |command| {
            command.env("HOOK_URL", &url).env("HOOK_KEY", "very-hidden-key-of-hook").env("KISO_LOG", "trace");
        })
    };
    let tested = std::thread::scope(|scope| {
        let testing = scope.spawn(|| with(&["connect", "webhook", "test", "a"]));
        let request = inbox.next();
        assert_eq!(request.path, "/very-hidden-path");
        request.answer("400 Bad Request", "no such thing");
        testing.join().unwrap()
    });
    tested.exit(1).says(&["did not receive it: it answered 400: no such thing"]);
    let seen = [
        &["connect", "webhook", "list"][..],
        &["doctor", "--offline"],
        &["config", "show"],
        &["--json", "config", "show"],
    ];
    for ran in seen.into_iter().map(with).chain([tested]) {
        ran.exit(ran.code);
        assert!(!ran.stdout.contains("very-hidden") && !ran.stderr.contains("very-hidden"), "{ran:?}");
    }
    with(&["doctor", "--offline"]).ok().prints(&["webhook a: 127.0.0.1:"]);
    with(&["connect", "webhook", "secret", "a"]).ok().prints(&["very-hidden-key-of-hook"]);
    with(&["connect", "webhook", "test", "b"]).exit(2).says(&["config.toml has no webhook \"b\"; there are a"]);
}
