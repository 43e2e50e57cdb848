//! A receiver of webhooks with fencing: it accepts nothing from an owner after it has accepted something from a later one.

use super::cable::Cable;
use super::members::{Machine, begun};
use super::nats::Nats;
use crate::harness::wait_until;
use crate::served::Served;
use rustix::process::Signal;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};

/// A receiver that compares the header `kiso-epoch` and recognizes repeated deliveries by `idempotency-key`. It can delay a
/// delivery.
pub(super) struct Sink {
    address: String,
    ledger: Arc<Mutex<Ledger>>,
}

#[derive(Default)]
struct Ledger {
    /// The epoch of the latest owner from which something was accepted.
    newest: u64,
    /// Accepted deliveries by key.
    taken: BTreeMap<String, Told>,
    /// Epochs of refused deliveries.
    refused: Vec<u64>,
    /// Requests without an epoch, or malformed ones.
    problems: Vec<String>,
    holds_next: bool,
    /// Connections that are not read until something of a later owner was accepted.
    held: Vec<TcpStream>,
}

/// An accepted delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Told {
    pub epoch: u64,
    /// The reply's id; `None` for other events.
    pub message: Option<i64>,
    pub text: String,
}

impl Sink {
    pub(super) fn open() -> Sink {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let address = listener.local_addr().expect("it has one").to_string();
        let ledger: Arc<Mutex<Ledger>> = Arc::default();
        let kept = ledger.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut ledger = kept.lock().expect("no thread panics with it");
                if std::mem::take(&mut ledger.holds_next) {
                    ledger.held.push(stream);
                } else {
                    drop(ledger);
                    spawn_answer(&kept, stream);
                }
            }
        });
        Sink { address, ledger }
    }

    /// Lines of `config.toml` that send these events to it.
    pub(super) fn settings(&self, events: &[&str]) -> String {
        format!(
            "[webhooks.sink]\nurl = \"http://{}/\"\nallow_private = true\nevents = {events:?}\ntimeout_s = 5\n\
             max_attempts = 100\nretry_base_ms = 10\nretry_max_s = 1\n",
            self.address
        )
    }

    /// Delays the next delivery until something of a later owner has arrived, or until [`Sink::release`].
    pub(super) fn hold_next(&self) {
        self.ledger().holds_next = true;
    }

    /// Whether a delivery is delayed.
    pub(super) fn holds(&self) -> bool {
        !self.ledger().held.is_empty()
    }

    /// Releases all delayed deliveries.
    pub(super) fn release(&self) {
        let mut ledger = self.ledger();
        ledger.holds_next = false;
        for stream in ledger.held.drain(..) {
            spawn_answer(&self.ledger, stream);
        }
    }

    /// Accepted deliveries, each once.
    #[track_caller]
    pub(super) fn taken(&self) -> Vec<Told> {
        let ledger = self.ledger();
        assert_eq!(ledger.problems, Vec::<String>::new());
        ledger.taken.values().cloned().collect()
    }

    /// Epochs of deliveries that were refused because something of a later owner came first.
    pub(super) fn refused(&self) -> Vec<u64> {
        self.ledger().refused.clone()
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().expect("no thread panics with it")
    }
}

impl Ledger {
    /// Returns the status of the response, and the delayed connections to read now.
    fn judge(&mut self, headers: &str, body: &[u8]) -> (&'static str, Vec<TcpStream>) {
        let told = serde_json::from_slice::<Value>(body).ok();
        let epoch = header(headers, "kiso-epoch").and_then(|epoch| epoch.parse::<u64>().ok());
        let (Some(told), Some(epoch), Some(key)) = (told, epoch, header(headers, "idempotency-key")) else {
            self.problems.push(headers.to_owned());
            return ("400 Bad Request", Vec::new());
        };
        if epoch < self.newest {
            self.refused.push(epoch);
            return ("409 Conflict", Vec::new());
        }
        let is_later = std::mem::replace(&mut self.newest, epoch) < epoch;
        let text = told["text"].as_str().or(told["message"]["text"].as_str()).unwrap_or_default().to_owned();
        self.taken.entry(key).or_insert(Told { epoch, message: told["message"]["id"].as_i64(), text });
        ("204 No Content", if is_later { std::mem::take(&mut self.held) } else { Vec::new() })
    }
}

fn spawn_answer(ledger: &Arc<Mutex<Ledger>>, stream: TcpStream) {
    let ledger = ledger.clone();
    std::thread::spawn(move || answer(&ledger, stream));
}

fn answer(ledger: &Arc<Mutex<Ledger>>, mut stream: TcpStream) {
    // A sender that was killed in the middle has sent nothing that could be accepted.
    let Ok((headers, body)) = read(&stream) else { return };
    let (status, come) = ledger.lock().expect("no thread panics with it").judge(&headers, &body);
    let _ = stream.write_all(format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").as_bytes());
    for held in come {
        spawn_answer(ledger, held);
    }
}

fn read(stream: &TcpStream) -> std::io::Result<(String, Vec<u8>)> {
    let broken = || std::io::Error::other("it broke off");
    let (mut reader, mut headers) = (BufReader::new(stream), String::new());
    while !headers.ends_with("\r\n\r\n") {
        if reader.read_line(&mut headers)? == 0 {
            return Err(broken());
        }
    }
    let length = header(&headers, "content-length").and_then(|length| length.parse().ok()).ok_or_else(broken)?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok((headers, body))
}

fn header(headers: &str, name: &str) -> Option<String> {
    let mut lines = headers.lines().filter_map(|line| line.split_once(": "));
    lines.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned())
}

/// The owner is lost while it delivers, and returns after another one has delivered the same.
fn replaced_while_it_delivers(away: impl Fn(&Served, &Cable), back: impl Fn(&Served, &Cable)) {
    let Some(nats) = Nats::start() else { return };
    let (sink, cable) = (Sink::open(), nats.cable());
    let more = sink.settings(&["reply"]);
    let pi = Machine::behind("pi", &nats, &cable, &more);
    let desk = Machine::new("desk", &nats, &nats.url(), &more);
    begun(&pi);
    let owner = pi.start();
    pi.owns();
    let standby = desk.start();
    owner.send("main", "$ echo one");
    wait_until("the first reply is told", || sink.taken().len() == 1);
    let before = sink.taken()[0].epoch;
    sink.hold_next();
    owner.send("main", "$ echo two");
    wait_until("the second is on its way", || sink.holds());
    away(&owner, &cable);
    desk.owns();
    wait_until("the next owner tells it, too", || sink.taken().len() == 2);
    wait_until("what was on its way comes behind that", || sink.refused() == [before]);
    back(&owner, &cable);
    owner.logs("does not own the home any more", 1);
    standby.send("main", "$ echo three");
    wait_until("the third is told", || sink.taken().len() == 3);
    let mut taken = sink.taken();
    taken.sort_by_key(|told| told.message);
    for (told, word) in taken.iter().zip(["one", "two", "three"]) {
        assert!(told.text.contains(word), "each once: {taken:?}");
    }
    assert!(taken[1].epoch > before && taken[2].epoch == taken[1].epoch, "after {before}: {taken:?}");
    assert_eq!(sink.refused(), [before], "nothing else was tried");
}

#[test]
fn what_comes_late_from_an_owner_that_was_stopped_is_refused() {
    replaced_while_it_delivers(|owner, _| owner.signal(Signal::STOP), |owner, _| owner.signal(Signal::CONT));
}

#[test]
fn what_comes_late_from_an_owner_that_was_cut_off_is_refused() {
    replaced_while_it_delivers(|_, cable| cable.freeze(), |_, cable| cable.thaw());
}
