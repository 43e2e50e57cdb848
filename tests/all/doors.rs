//! All interfaces at once: HTTP, the socket, OpenAI's interface, MCP, a hook and a channel send messages while the daemon is
//! killed repeatedly. Each message exists once, is answered once, and takes effect once.
//!
//! `KISO_DOOR_KILLS` is the number of kills (60 in `.ci/long`), `KISO_LOAD_SEED` determines their times.

use crate::channels::ntfy::Ntfy;
use crate::harness::{Home, wait_for, wait_until};
use crate::load::{Random, over_http, over_the_socket, the_store_is_whole};
use crate::mcp::{MODERN, modern, request};
use crate::served::{Answer, Served};
use rusqlite::Connection;
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

/// Each interface with the session of its messages.
const DOORS: [(&str, &str); 6] = [
    ("http", "http"),
    ("socket", "socket"),
    ("openai", "openai"),
    ("mcp", "mcp"),
    ("hook", "hook.doors"),
    ("ntfy", "channel.phone"),
];

/// Messages of each interface for each kill.
const EACH: usize = 2;

/// A guard against a daemon that makes no progress.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long a client waits for another daemon before it asks the same one again.
const AGAIN: Duration = Duration::from_secs(2);

/// State that the threads share.
#[derive(Default)]
struct Stage {
    known: Mutex<Known>,
    changed: Condvar,
}

#[derive(Default)]
struct Known {
    /// Number of the current daemon and its address; 0 before the first.
    generation: u64,
    address: String,
    /// Messages that a daemon has accepted, or will find.
    accepted: usize,
}

impl Stage {
    /// Waits for a condition.
    #[track_caller]
    fn wait<T>(&self, until: impl Fn(&Known) -> Option<T>) -> T {
        let mut known = self.known.lock().unwrap();
        loop {
            if let Some(found) = until(&known) {
                return found;
            }
            let before = (known.generation, known.accepted);
            let (after, late) = self.changed.wait_timeout(known, PATIENCE).unwrap();
            known = after;
            assert!(!late.timed_out() || before != (known.generation, known.accepted), "nothing happens: {before:?}");
        }
    }

    fn change(&self, what: impl FnOnce(&mut Known)) {
        what(&mut self.known.lock().unwrap());
        self.changed.notify_all();
    }

    /// Waits for a daemon later than this one.
    fn daemon_after(&self, generation: u64) -> (u64, String) {
        self.wait(|known| (known.generation > generation).then(|| (known.generation, known.address.clone())))
    }

    /// The same, or the current daemon if it still exists after a while: its answer may have come too late.
    fn daemon_after_or_same(&self, generation: u64) -> (u64, String) {
        let known = self.known.lock().unwrap();
        let is_same = |known: &mut Known| known.generation <= generation;
        let (known, _) = self.changed.wait_timeout_while(known, AGAIN, is_same).unwrap();
        (known.generation, known.address.clone())
    }

    /// Sends messages one after the other, each until a daemon has accepted it.
    fn send(&self, count: usize, mut send: impl FnMut(&str, usize) -> Option<()>) {
        let mut daemon = self.daemon_after(0);
        for n in 0..count {
            while send(&daemon.1, n).is_none() {
                daemon = self.daemon_after_or_same(daemon.0);
            }
            self.change(|known| known.accepted += 1);
        }
    }
}

fn command(door: &str, n: usize) -> String {
    format!("$ echo {door}-{n} >> done; echo {door}-{n}")
}

#[test]
fn nothing_is_lost_or_done_twice_at_any_door() {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<usize>().ok());
    let kills = number("KISO_DOOR_KILLS").unwrap_or(10);
    let seed = number("KISO_LOAD_SEED").unwrap_or(0x6b69_736f);
    println!("KISO_LOAD_SEED={seed} KISO_DOOR_KILLS={kills} gives the same kills again");
    let (count, ntfy, home) = (EACH * kills, Ntfy::open(), Home::new());
    home.config(&settings(&ntfy.address));
    let token = home.kiso(&["token", "add", "doors"]).ok().stdout.trim().to_owned();
    let secret = home.kiso(&["connect", "hook", "secret", "doors"]).ok().stdout.trim().to_owned();
    prepare(&home, &ntfy, &token);
    let stage = Stage::default();
    let mut served = std::thread::scope(|scope| {
        let (stage, home, ntfy, token, secret) = (&stage, &home, &ntfy, token.as_str(), secret.as_str());
        scope.spawn(move || {
            stage.send(count, |address, n| {
                let body = json!({ "session": "http", "text": command("http", n), "key": format!("h{n}") });
                over_http(address, token, &body).map(drop)
            });
        });
        scope.spawn(move || {
            let mut talk = None;
            stage.send(count, |_, n| {
                let body = json!({ "session": "socket", "text": command("socket", n), "key": format!("s{n}") });
                let taken = over_the_socket(&mut talk, home, &body);
                if taken.is_none() {
                    talk = None;
                }
                taken.map(drop)
            });
        });
        scope.spawn(move || stage.send(count, |address, n| by_openai(address, token, n)));
        scope.spawn(move || stage.send(count, |address, n| by_mcp(address, token, n)));
        scope.spawn(move || stage.send(count, |address, n| by_hook(address, secret, n)));
        scope.spawn(move || {
            // This interface gives no answers: it follows the progress of the others.
            for n in 0..count {
                stage.wait(|known| (known.generation > 0 && known.accepted >= n * (DOORS.len() - 1)).then_some(()));
                ntfy.publish("alpha", &command("ntfy", n));
                stage.change(|known| known.accepted += 1);
            }
        });
        kill_all_the_while(seed, kills, count * DOORS.len(), stage, home)
    });
    // A token of scope chat cannot read the sessions of the others.
    served.token = Some(home.kiso(&["token", "add", "reader", "--scope", "admin"]).ok().stdout.trim().to_owned());
    for (door, session) in DOORS {
        each_is_there_once(&served, &home, door, session, count);
    }
    each_answer_is_shown_once(&served, &ntfy);
    assert_eq!(served.terminate(), 0);
    // One earlier message created a session for a model to name.
    the_store_is_whole(&Connection::open(home.path().join("store.db")).unwrap(), count * DOORS.len() + 1);
}

fn settings(ntfy: &str) -> String {
    format!(
        "model = \"reflex\"\n[daemon]\ndebounce_ms = 0\nmax_queued = 10000\nhold_after = 1000\n\
         [hooks.doors]\nauth = \"token\"\ntemplate = \"Note {{body.said}}\"\nper_minute = 6000\nmax_waiting = 10000\n\
         [channels.phone]\ncomponent = \"ntfy\"\nurl = \"http://{ntfy}\"\noptions = [\"topic=alpha\"]\n\
         allow_private = true\npoll_s = 1\nper_minute = 6000\n"
    )
}

/// Pairs the channel's sender, and creates the session that a model names.
fn prepare(home: &Home, ntfy: &Ntfy, token: &str) {
    let mut served = Served::start(home);
    served.token = Some(token.to_owned());
    ntfy.publish("alpha", "hello");
    let code = wait_for("a pairing code", || {
        let texts = ntfy.texts();
        Some(texts.first()?.split("allow phone ").nth(1)?.split('`').next()?.to_owned())
    });
    home.kiso(&["connect", "channel", "allow", "phone", &code, "--owner"]).ok();
    wait_until("the welcome", || ntfy.texts().len() == 2);
    let body = json!({ "session": "openai", "text": "$ true", "key": "begin" });
    let message = over_http(&served.address, token, &body).expect("it serves");
    served.reply(message);
    served.terminate();
}

/// The operator: kills the daemon after a random number of accepted messages. Returns the last daemon, after all messages.
fn kill_all_the_while(seed: usize, kills: usize, messages: usize, stage: &Stage, home: &Home) -> Served {
    let mut random = Random::new(seed as u64);
    for kill in 0..=kills {
        let served = Served::start(home);
        stage.change(|known| (known.generation, known.address) = (known.generation + 1, served.address.clone()));
        let each = messages / (kills + 1);
        let until = if kill == kills { messages } else { kill * each + random.below(each) };
        stage.wait(|known| (known.accepted >= until).then_some(()));
        if kill == kills {
            return served;
        }
        served.kill();
    }
    unreachable!("the last round returns")
}

/// The same key identifies the same request.
fn by_openai(address: &str, token: &str, n: usize) -> Option<()> {
    let said = json!([{ "role": "user", "content": command("openai", n) }]);
    let body = json!({ "model": "kiso/openai", "messages": said });
    let headers = format!("authorization: Bearer {token}\r\nidempotency-key: o{n}\r\n");
    let answer = post(address, "/v1/chat/completions", &headers, &body)?;
    assert!(whole(&answer, 200)?["choices"][0]["message"]["content"].is_string(), "{answer:?}");
    Some(())
}

/// MCP has no keys: a client without an answer checks whether its message exists before it sends it again.
fn by_mcp(address: &str, token: &str, n: usize) -> Option<()> {
    let text = command("mcp", n);
    let listed = crate::served::ask(address, Some(token), "GET", "/sessions/mcp/messages?limit=500", None).ok()?;
    let is_there = match listed.status {
        404 => false,
        _ => whole(&listed, 200)?["items"].as_array()?.iter().any(|item| item["text"] == text.as_str()),
    };
    if is_there {
        return Some(());
    }
    let call = request(1, "tools/call", modern(json!({ "name": "run", "arguments": { "message": text } })));
    let headers = format!(
        "authorization: Bearer {token}\r\naccept: application/json, text/event-stream\r\n\
         mcp-protocol-version: {MODERN}\r\nmcp-method: tools/call\r\nmcp-name: run\r\n"
    );
    let answer = post(address, "/mcp?session=mcp", &headers, &call)?;
    assert!(whole(&answer, 200)?["result"]["structuredContent"]["run"].is_string(), "{answer:?}");
    Some(())
}

/// A repeated event is recognized by its id.
fn by_hook(address: &str, secret: &str, n: usize) -> Option<()> {
    let headers = format!("authorization: Bearer {secret}\r\nidempotency-key: e{n}\r\n");
    let answer = post(address, "/hooks/doors", &headers, &json!({ "said": format!("hook-{n}") }))?;
    let status = if answer.status == 202 { 202 } else { 200 };
    assert!(whole(&answer, status)?["message"].is_i64(), "{answer:?}");
    Some(())
}

/// Returns `None` if the daemon died meanwhile.
fn post(address: &str, path: &str, headers: &str, body: &Value) -> Option<Answer> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let body = body.to_string();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{headers}content-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).ok()?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).ok()?;
    Answer::parse(&bytes)
}

/// The JSON of a complete response. Another test's daemon, which knows no token of this one, may use the old address by now.
fn whole(answer: &Answer, status: u16) -> Option<Value> {
    if matches!(answer.status, 401 | 404) {
        return None;
    }
    // A slow request is answered by a stream, whose last event is the answer.
    let body = answer.body.lines().filter_map(|line| line.strip_prefix("data:")).next_back().unwrap_or(&answer.body);
    let body = serde_json::from_str(body).ok()?;
    assert_eq!(answer.status, status, "{answer:?}");
    Some(body)
}

fn items(served: &Served, session: &str, role: &str) -> Vec<Value> {
    let page = served.get(&format!("/sessions/{session}/messages?limit=500"));
    assert_eq!(page["next"], Value::Null, "all of them");
    page["items"].as_array().unwrap().iter().filter(|item| item["role"] == role).cloned().collect()
}

/// Checks that each message of an interface is in its session once, has a reply, and took effect at most once: interrupted work
/// is reported as such.
fn each_is_there_once(served: &Served, home: &Home, door: &str, session: &str, count: usize) {
    wait_until(door, || items(served, session, "user").len() >= count);
    let asked: Vec<Value> =
        items(served, session, "user").into_iter().filter(|item| item["text"] != "$ true").collect();
    let texts: HashSet<&str> = asked.iter().map(|item| item["text"].as_str().unwrap()).collect();
    assert_eq!((asked.len(), texts.len()), (count, count), "{door}: {texts:?}");
    for n in 0..count {
        let marker = format!("{door}-{n}");
        let has = |text: &&&str| text.split_whitespace().any(|word| word == marker);
        assert_eq!(texts.iter().filter(has).count(), 1, "{marker} in {texts:?}");
    }
    let replies: HashMap<i64, String> =
        asked.iter().map(|item| item["id"].as_i64().unwrap()).map(|message| (message, served.reply(message))).collect();
    assert_eq!(replies.len(), count, "{door}");
    let done = std::fs::read_to_string(home.work(session).join("done")).unwrap_or_default();
    let lines: Vec<_> = done.lines().collect();
    assert_eq!(lines.iter().collect::<HashSet<_>>().len(), lines.len(), "{door} did something twice: {done}");
}

/// A client of the channel shows each reply as often as it was written.
fn each_answer_is_shown_once(served: &Served, ntfy: &Ntfy) {
    let replies: Vec<String> = items(served, "channel.phone", "assistant")
        .iter()
        .map(|item| item["text"].as_str().unwrap().to_owned())
        .collect();
    let shown = |reply: &String| ntfy.texts().iter().filter(|text| *text == reply).count();
    wait_until("every answer", || replies.iter().all(|reply| shown(reply) > 0));
    for reply in &replies {
        let written = replies.iter().filter(|other| *other == reply).count();
        assert_eq!(shown(reply), written, "{reply}: {:?}", ntfy.texts());
    }
}
