//! Twenty clients, two hundred sessions, five thousand messages, and a daemon that is killed again and again: no accepted message
//! is lost, processed twice or answered out of order, and a receiver of webhooks gets every reply.

use crate::harness::Home;
use crate::served::Served;
use crate::socket::Talk;
use crate::webhooks::Inbox;
use rusqlite::Connection;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

const CLIENTS: usize = 20;
const SESSIONS: usize = 200;
const MESSAGES: usize = 5_000;

/// Minimum number of kills.
const KILLS: usize = 50;

/// Planned number of kills; a late kill may replace another one.
const PLANNED: usize = 60;

/// A guard against a daemon that makes no progress; no part of the test waits for it to pass.
const PATIENCE: Duration = Duration::from_secs(60);

/// Interval at which waiting threads check for the end of the test.
const LOOK: Duration = Duration::from_millis(100);

fn settings(webhook: &str) -> String {
    format!(
        "model = \"reflex\"\n[daemon]\ndebounce_ms = 0\nmax_queued = 10000\nhold_after = 1000\n[webhooks.load]\n\
         url = \"http://{webhook}/\"\nallow_private = true\nmax_attempts = 100\nretry_base_ms = 10\nretry_max_s = 1\n"
    )
}

#[test]
fn nothing_accepted_is_lost_however_often_the_daemon_is_killed() {
    let seed = std::env::var("KISO_LOAD_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0x6b69_736f);
    println!("KISO_LOAD_SEED={seed} gives the same kills again");
    let home = Home::new();
    let inbox = Inbox::open();
    home.config(&settings(&inbox.address));
    let token = home.kiso(&["token", "add", "load", "--scope", "admin"]).ok().stdout.trim().to_owned();
    let stage = Stage::default();
    let (mut served, kills) = std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (stage, home, token) = (&stage, &home, &token);
            scope.spawn(move || send_all(client, seed, stage, home, token));
        }
        let (stage, home) = (&stage, &home);
        scope.spawn(move || watch(stage, home));
        scope.spawn(move || receive(seed, stage, &inbox));
        kill_all_the_while(seed, stage, home)
    });
    served.token = Some(token);
    let seen = stage.lock();
    assert!(kills >= KILLS, "it was killed {kills} times");
    assert_eq!((seen.accepted.len(), seen.answered.len()), (MESSAGES, MESSAGES));
    assert_eq!(
        seen.replies,
        seen.delivered.keys().copied().collect(),
        "a webhook for each reply, and for nothing else"
    );
    let outputs = replies_are_in_order(&served, &seen);
    let mut written = 0;
    for session in 0..SESSIONS {
        let done = std::fs::read_to_string(home.work(&format!("s{session}")).join("done")).unwrap_or_default();
        let lines: Vec<_> = done.lines().collect();
        assert_eq!(lines.iter().collect::<HashSet<_>>().len(), lines.len(), "s{session} did something twice: {done}");
        written += lines.len();
    }
    // Work that a kill interrupted is rolled back and done again: no command is lost or reported as interrupted. A message sent
    // while another was processed may belong to that message's turn, whose plan does not contain it.
    let interrupted = Connection::open(home.path().join("store.db")).unwrap();
    let interrupted = count(&interrupted, "SELECT count(*) FROM tasks WHERE status = 'interrupted'");
    assert_eq!(interrupted, 0, "commands that were cut off");
    assert!(outputs > MESSAGES / 4, "{outputs} of {MESSAGES} commands show what they printed");
    assert!(outputs <= written, "{outputs} commands show what they printed, and {written} have written");
    assert_eq!(served.terminate(), 0);
    let store = Connection::open(home.path().join("store.db")).unwrap();
    the_store_is_whole(&store, MESSAGES);
    assert_eq!(count(&store, "SELECT count(*) FROM messages WHERE role = 'assistant'"), seen.replies.len());
    println!("{kills} kills, {} runs, {outputs} commands done", count(&store, "SELECT count(*) FROM runs"));
}

/// State that the threads share.
#[derive(Default)]
struct Stage {
    seen: Mutex<Seen>,
    changed: Condvar,
}

#[derive(Default)]
struct Seen {
    /// Number of the current daemon and its address; 0 before the first.
    generation: u64,
    address: String,
    /// Session and position of each accepted message, by id.
    accepted: HashMap<i64, (usize, usize)>,
    /// The reply of each message.
    answered: HashMap<i64, i64>,
    /// All replies, including those after which a run continues.
    replies: HashSet<i64>,
    /// The idempotency key with which each reply reached the webhook receiver.
    delivered: HashMap<i64, String>,
}

impl Seen {
    fn progress(&self) -> usize {
        self.accepted.len() + self.answered.len()
    }

    fn is_answered(&self) -> bool {
        self.answered.len() >= MESSAGES
    }

    fn is_over(&self) -> bool {
        self.is_answered() && self.delivered.len() >= self.replies.len()
    }
}

impl Stage {
    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().expect("no thread has failed")
    }

    fn change(&self, what: impl FnOnce(&mut Seen)) {
        what(&mut self.lock());
        self.changed.notify_all();
    }

    /// Waits for a condition, as long as there is some progress.
    #[track_caller]
    fn wait(&self, until: impl Fn(&Seen) -> bool) -> MutexGuard<'_, Seen> {
        let mut seen = self.lock();
        let now = |seen: &Seen| (seen.progress(), seen.delivered.len(), seen.generation);
        let (mut before, mut since) = (now(&seen), Instant::now());
        while !until(&seen) {
            seen = self.changed.wait_timeout(seen, PATIENCE).expect("no thread has failed").0;
            if now(&seen) != before {
                (before, since) = (now(&seen), Instant::now());
            }
            if since.elapsed() >= PATIENCE {
                let mut lost: Vec<_> = seen.accepted.keys().filter(|id| !seen.answered.contains_key(id)).collect();
                lost.sort();
                let (accepted, untold) = (seen.accepted.len(), seen.replies.len() - seen.delivered.len());
                panic!("nothing happens any more; {accepted} accepted, {untold} not told, without an answer: {lost:?}");
            }
        }
        seen
    }

    /// The current daemon, if it is a later one than `generation`.
    fn daemon_after(&self, generation: u64) -> (u64, String) {
        let seen = self.wait(|seen| seen.generation > generation);
        (seen.generation, seen.address.clone())
    }
}

/// The operator: kills the daemon after a random number of accepted or answered messages.
fn kill_all_the_while(seed: u64, stage: &Stage, home: &Home) -> (Served, usize) {
    let mut random = Random::new(seed);
    for kills in 0.. {
        let served = Served::start(home);
        stage.change(|seen| (seen.generation, seen.address) = (seen.generation + 1, served.address.clone()));
        let now = stage.lock().progress();
        let each = (2 * MESSAGES - now) / PLANNED.saturating_sub(kills).max(1);
        let until = if kills < PLANNED { now + random.below(2 * each + 1) } else { usize::MAX };
        if stage.wait(|seen| seen.progress() >= until || seen.is_over()).is_over() {
            return (served, kills);
        }
        served.kill();
    }
    unreachable!("the loop has no other end")
}

/// One client: writes to its own sessions in random order, over HTTP and the socket, and repeats interrupted requests.
fn send_all(client: usize, seed: u64, stage: &Stage, home: &Home, token: &str) {
    let mut random = Random::new(seed ^ (client as u64 + 1) << 32);
    let own = SESSIONS / CLIENTS;
    let mut turns: Vec<usize> = (0..MESSAGES / CLIENTS).map(|n| client * own + n % own).collect();
    random.shuffle(&mut turns);
    let mut sent: HashMap<usize, usize> = HashMap::new();
    let mut daemon = stage.daemon_after(0);
    let mut talk = None;
    // Messages over HTTP come from a user, those over the socket from an administrator, and a run never mixes both.
    let mut by_http: HashMap<usize, bool> = HashMap::new();
    for session in turns {
        let n = *sent.entry(session).and_modify(|n| *n += 1).or_insert(0);
        if n == 0 || random.below(8) == 0 {
            by_http.insert(session, random.below(2) == 0);
        }
        // Some belong to the current turn.
        let text = if random.below(40) == 0 { format!("also {n}") } else { format!("$ echo {n} >> done; echo {n}") };
        let body = json!({ "session": format!("s{session}"), "text": text, "key": format!("k{n}") });
        let message = loop {
            let accepted = match by_http[&session] {
                true => over_http(&daemon.1, token, &body),
                false => over_the_socket(&mut talk, home, &body),
            };
            match accepted {
                Some(message) => break message,
                None => {
                    talk = None;
                    daemon = stage.daemon_after(daemon.0);
                }
            }
        };
        stage.change(|seen| {
            assert_eq!(seen.accepted.insert(message, (session, n)), None, "two messages have one id");
        });
    }
}

/// Returns the message's id, or `None` if the daemon died meanwhile.
pub(crate) fn over_http(address: &str, token: &str, body: &Value) -> Option<i64> {
    let answer = crate::served::ask(address, Some(token), "POST", "/msg", Some(&body.to_string())).ok()?;
    // Another test's daemon may use the old address by now.
    if answer.status == 401 {
        return None;
    }
    answer.expect(202)["message"].as_i64()
}

pub(crate) fn over_the_socket(talk: &mut Option<Talk>, home: &Home, body: &Value) -> Option<i64> {
    if talk.is_none() {
        let mut fresh = Talk::connect(home).ok()?;
        fresh
            .try_say(&json!({ "type": "register", "client": "load", "protocol": 1, "session": body["session"] }))
            .ok()?;
        *talk = Some(fresh);
    }
    let talk = talk.as_mut()?;
    let mut line = body.clone();
    (line["type"], line["ref"]) = ("inbound".into(), "mine".into());
    talk.try_say(&line).ok()?;
    loop {
        let heard = talk.hear()?;
        assert_ne!(heard["type"], "error", "{heard}");
        if heard["ref"] == "mine" {
            return heard["message"].as_i64();
        }
    }
}

/// Follows the replies across all daemons: each arrives once.
fn watch(stage: &Stage, home: &Home) {
    let (mut generation, mut last) = (0, 0);
    while !stage.lock().is_answered() {
        generation = stage.daemon_after(generation).0;
        let Ok(mut talk) = Talk::connect(home) else { continue };
        let register = json!({ "type": "register", "client": "watch", "protocol": 1, "after": last });
        if talk.try_say(&register).is_err() {
            continue;
        }
        while let Some(line) = talk.hear() {
            let Some(id) = line["id"].as_i64() else { continue };
            assert!(id > last, "{line} after {last}");
            last = id;
            let (Some(answers), Some(reply)) = (line["answers"].as_array(), line["message"]["id"].as_i64()) else {
                continue;
            };
            stage.change(|seen| {
                seen.replies.insert(reply);
                for message in answers.iter().filter_map(Value::as_i64) {
                    assert_eq!(seen.answered.insert(message, reply), None, "message {message} was answered twice");
                }
            });
            if stage.lock().is_answered() {
                break;
            }
        }
    }
}

/// The receiver of webhooks: accepts most deliveries, refuses some, and cuts off others.
fn receive(seed: u64, stage: &Stage, inbox: &Inbox) {
    let mut random = Random::new(!seed);
    let mut keys = HashMap::new();
    while !stage.lock().is_over() {
        let request = match inbox.requests.recv_timeout(LOOK) {
            Ok(request) => request,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        // A progress message is not a reply; an interrupted plan is created again, and so is its message.
        if request.json()["event"] == "notify" {
            request.answer("204 No Content", "");
            continue;
        }
        let (key, reply) = (request.key(), request.json()["message"]["id"].as_i64().expect("it tells of a reply"));
        assert_eq!(*keys.entry(key.clone()).or_insert(reply), reply, "one key for two replies");
        match random.below(8) {
            0 => request.answer("500 Internal Server Error", ""),
            // Cut off, as if the receiver had died after it saved the delivery.
            1 => drop(request),
            _ => request.answer("204 No Content", ""),
        }
        stage.change(|seen| {
            let known = seen.delivered.entry(reply).or_insert_with(|| key.clone());
            assert_eq!(*known, key, "two keys for one reply");
        });
    }
}

/// Checks each session: every message once, in the order of sending; replies in the order of the messages; and output of joined
/// messages in their order. Returns the number of commands with output.
fn replies_are_in_order(served: &Served, seen: &Seen) -> usize {
    let mut outputs = 0;
    for session in 0..SESSIONS {
        let page = served.get(&format!("/sessions/s{session}/messages?limit=500"));
        let items = page["items"].as_array().unwrap();
        assert_eq!(page["next"], Value::Null, "all of them");
        let texts: BTreeMap<i64, &str> =
            items.iter().map(|item| (item["id"].as_i64().unwrap(), item["text"].as_str().unwrap())).collect();
        let users: Vec<_> = items.iter().filter(|item| item["role"] == "user").collect();
        assert_eq!(users.len(), MESSAGES / SESSIONS, "s{session} has each of its messages once");
        let (mut last_reply, mut shown) = (0, Vec::new());
        for (n, user) in users.iter().enumerate() {
            let (id, text) = (user["id"].as_i64().unwrap(), user["text"].as_str().unwrap());
            assert_eq!(seen.accepted[&id], (session, n), "s{session}");
            assert_eq!(text.rsplit(' ').next().unwrap(), n.to_string(), "s{session}: {text}");
            let reply = seen.answered[&id];
            assert!(reply > id && reply >= last_reply, "s{session}: {id} is answered by {reply}, after {last_reply}");
            if reply != last_reply {
                shown = texts[&reply].lines().filter_map(|line| line.parse::<usize>().ok()).collect();
                assert!(shown.is_sorted(), "s{session}: {}", texts[&reply]);
                last_reply = reply;
            }
            outputs += usize::from(shown.contains(&n));
        }
    }
    outputs
}

/// Checks the store of a stopped daemon: this many messages, all answered, and no run with two final replies.
pub(crate) fn the_store_is_whole(store: &Connection, messages: usize) {
    let answer: String = store.query_row("PRAGMA integrity_check", (), |row| row.get(0)).unwrap();
    assert_eq!(answer, "ok");
    assert_eq!(count(store, "SELECT count(*) FROM messages WHERE role = 'user'"), messages);
    assert_eq!(count(store, "SELECT count(*) FROM jobs WHERE state = 'done'"), messages);
    assert_eq!(count(store, "SELECT count(*) FROM runs WHERE status = 'running'"), 0);
    let doubly = "SELECT count(*) FROM (SELECT 1 FROM jobs GROUP BY run HAVING count(DISTINCT reply) > 1)";
    assert_eq!(count(store, doubly), 0, "runs with two final replies");
    // A text that a run sends before its last message arrived is not a final reply.
    let more = "SELECT count(*) FROM (
        SELECT 1 FROM jobs j JOIN runs r ON r.num = j.run JOIN messages m ON m.session = j.session AND m.run = r.id
        WHERE m.role = 'assistant' AND m.id > j.reply)";
    assert_eq!(count(store, more), 0, "runs that said something after their final reply");
    let foreign = "SELECT count(*) FROM pragma_foreign_key_check";
    assert_eq!(count(store, foreign), 0);
}

fn count(store: &Connection, query: &str) -> usize {
    store.query_row(query, (), |row| row.get::<_, i64>(0)).map(|count| usize::try_from(count).unwrap()).unwrap()
}

/// Pseudorandom numbers, the same for the same seed (xorshift64*).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        // A seed with few set bits gives similar numbers at first; zero would give only zeros.
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        (0..8).for_each(|_| {
            random.next();
        });
        random
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `end`, or 0 if `end` is 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() >> 1).unwrap_or(0) % end.max(1)
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at + 1));
        }
    }
}
