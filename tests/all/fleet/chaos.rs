//! Members are killed, their network is cut and the server is killed, while clients send messages through all members.
//!
//! `KISO_FLEET=full` runs at full size: 5,000 messages in 500 sessions, 40 kills of members, 5 of the server, 10 cuts.
//! `KISO_LOAD_SEED` determines the times. A receiver with fencing gets each reply and accepts it once, although before each
//! failure one delivery is delayed until after those of the next owner.

use super::members::{Machine, begun};
use super::nats::Nats;
use super::sink::Sink;
use crate::harness::wait_until;
use crate::load::{Random, the_store_is_whole};
use crate::served::{Answer, Served};
use rusqlite::Connection;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const MEMBERS: [&str; 3] = ["pi", "desk", "shed"];
const CLIENTS: usize = 6;

/// A guard against a fleet that makes no progress.
const PATIENCE: Duration = Duration::from_secs(180);

/// Timeout of a client before it asks another member.
const ANSWER: Duration = Duration::from_secs(5);

struct Size {
    messages: usize,
    sessions: usize,
    kills: usize,
    server_kills: usize,
    cuts: usize,
}

impl Size {
    fn wanted() -> Size {
        match std::env::var("KISO_FLEET").as_deref() {
            Ok("full") => Size { messages: 5_000, sessions: 500, kills: 40, server_kills: 5, cuts: 10 },
            _ => Size { messages: 72, sessions: 12, kills: 2, server_kills: 1, cuts: 1 },
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Harm {
    Member,
    Server,
    Network,
}

#[test]
fn nothing_is_lost_or_done_twice_whichever_machine_dies() {
    let Some(mut nats) = Nats::start() else { return };
    let seed = std::env::var("KISO_LOAD_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0x666c_6565);
    println!("KISO_LOAD_SEED={seed} gives the same order again");
    let (size, mut random) = (Size::wanted(), Random::new(seed));
    let (sink, cables) = (Sink::open(), MEMBERS.map(|_| nats.cable()));
    let more = sink.settings(&["reply"]);
    let machines: Vec<Machine> =
        MEMBERS.iter().zip(&cables).map(|(name, cable)| Machine::behind(name, &nats, cable, &more)).collect();
    begun(&machines[0]);
    let mut daemons: Vec<Served> = machines.iter().map(Machine::start).collect();
    let addresses: Vec<String> = daemons.iter().map(|daemon| daemon.address.clone()).collect();
    let mut harms: Vec<Harm> = Vec::new();
    for (harm, times) in [(Harm::Member, size.kills), (Harm::Server, size.server_kills), (Harm::Network, size.cuts)] {
        harms.extend(std::iter::repeat_n(harm, times));
    }
    let answered = AtomicUsize::new(0);
    let replies = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let (addresses, size, answered) = (&addresses, &size, &answered);
                scope.spawn(move || send_all(client, addresses, size, answered))
            })
            .collect();
        let all = harms.len();
        for done in 0..all {
            let come = |half: usize| {
                let due = size.messages * half / (2 * all);
                wait_until("clients come that far", || answered.load(Ordering::Relaxed) >= due);
            };
            // A delivery of the current owner is still in flight when the failure happens.
            come((2 * done).saturating_sub(1));
            sink.hold_next();
            come(2 * done);
            let harm = harms.swap_remove(random.below(harms.len()));
            match harm {
                Harm::Server => {
                    nats.kill();
                    nats.restart();
                }
                Harm::Member => {
                    let at = owner(&machines).unwrap_or_else(|| random.below(MEMBERS.len()));
                    daemons.remove(at).kill();
                    daemons.insert(at, machines[at].start());
                }
                Harm::Network => {
                    let at = owner(&machines).unwrap_or(0);
                    cables[at].freeze();
                    wait_until("another one takes over", || owner_but(&machines, at).is_some());
                    cables[at].thaw();
                }
            }
        }
        clients.into_iter().flat_map(|client| client.join().expect("a client comes to its end")).collect::<Vec<_>>()
    });
    assert_eq!(replies.len(), size.messages);
    sink.release();
    wait_until("the receiver has every reply", || sink.taken().len() >= size.messages);
    let told: HashSet<i64> = sink.taken().iter().filter_map(|told| told.message).collect();
    assert_eq!((sink.taken().len(), told.len()), (size.messages, size.messages), "each reply under one key");
    assert!(!sink.refused().is_empty(), "nothing of an earlier owner was tried");
    println!("{} deliveries of earlier owners were tried, and refused", sink.refused().len());
    // Every member returns the same reply again, whoever owns the home now.
    for (id, reply) in replies.iter().step_by(replies.len().div_ceil(30)) {
        let again = reply_of(&addresses, *id);
        assert_eq!(&again, reply, "message {id}");
    }
    let at = owner(&machines).expect("somebody owns the home");
    for (index, daemon) in daemons.into_iter().enumerate() {
        if index == at {
            assert_eq!(daemon.terminate(), 0);
        } else {
            daemon.kill();
        }
    }
    let home = &machines[at].home;
    the_store_is_whole(&Connection::open(home.path().join("store.db")).unwrap(), size.messages);
    for session in 0..size.sessions {
        let done = std::fs::read_to_string(home.work(&format!("s{session}")).join("done")).unwrap_or_default();
        let each = size.messages / size.sessions;
        let expected: String = (0..each).map(|n| format!("m{n}\n")).collect();
        assert_eq!(done, expected, "s{session}: each once, and in order");
    }
}

/// Index of the machine that owns the home.
fn owner(machines: &[Machine]) -> Option<usize> {
    let name = machines.iter().find_map(Machine::owner)?;
    MEMBERS.iter().position(|member| *member == name)
}

/// The owner according to the machines that are not cut off.
fn owner_but(machines: &[Machine], cut: usize) -> Option<usize> {
    let others = machines.iter().enumerate().filter(|(index, _)| *index != cut);
    let name = others.map(|(_, machine)| machine).find_map(Machine::owner)?;
    MEMBERS.iter().position(|member| *member == name).filter(|owner| *owner != cut)
}

/// Sends the messages of some sessions, one after the other in each. Returns their ids and replies.
fn send_all(client: usize, addresses: &[String], size: &Size, answered: &AtomicUsize) -> Vec<(i64, String)> {
    let mut replies = Vec::new();
    let sessions: Vec<usize> = (0..size.sessions).filter(|session| session % CLIENTS == client).collect();
    for n in 0..size.messages / size.sessions {
        for session in &sessions {
            let text = format!("$ echo m{n} >> done; wc -l < done");
            let body = json!({ "session": format!("s{session}"), "text": text, "key": format!("s{session}-{n}") });
            let taken = asked(addresses, n + session, "POST", "/msg", Some(&body), |answer| answer.status == 202);
            let id = taken["message"].as_i64().expect("it has an id");
            let reply = reply_of(addresses, id);
            assert!(reply.contains(&format!("{}", n + 1)), "s{session}, message {n}: {reply}");
            replies.push((id, reply));
            answered.fetch_add(1, Ordering::Relaxed);
        }
    }
    replies
}

fn reply_of(addresses: &[String], id: i64) -> String {
    let path = format!("/messages/{id}");
    let found = asked(addresses, usize::try_from(id).unwrap_or(0), "GET", &path, None, |answer| {
        answer.status == 200
            && serde_json::from_str::<Value>(&answer.body).is_ok_and(|job| job["reply"]["text"].is_string())
    });
    found["reply"]["text"].as_str().expect("it has a text").to_owned()
}

/// Asks one member after the other until one gives an acceptable answer.
fn asked(
    addresses: &[String],
    first: usize,
    method: &str,
    path: &str,
    body: Option<&Value>,
    so: impl Fn(&Answer) -> bool,
) -> Value {
    let began = Instant::now();
    for attempt in first.. {
        let answer = ask(&addresses[attempt % addresses.len()], method, path, body);
        if let Ok(answer) = &answer
            && so(answer)
        {
            return serde_json::from_str(&answer.body).expect("it is JSON");
        }
        assert!(began.elapsed() < PATIENCE, "{method} {path}: {answer:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
    unreachable!("there are always more attempts")
}

/// Sends one request to a member that may be dead or cut off.
fn ask(address: &str, method: &str, path: &str, body: Option<&Value>) -> std::io::Result<Answer> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(ANSWER))?;
    let body = body.map(Value::to_string).unwrap_or_default();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes())?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    Answer::parse(&bytes).ok_or_else(|| std::io::Error::other("it broke off"))
}
