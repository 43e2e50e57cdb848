//! A home in a fleet compared with the same home on one machine: whole runs a second with clients at every member, and the time
//! from a message to its reply, with one, two and three members. For comparison, publishes to JetStream, each confirmed after it
//! is on the server's disk.
//!
//! Measured from outside with the binary, HTTP and a NATS server. Without a server, only a message is printed.

mod member;
mod size;

#[path = "../all/fleet/cable.rs"]
#[allow(dead_code, reason = "the tests cut cables")]
mod cable;
#[path = "../all/fleet/nats.rs"]
#[allow(dead_code, reason = "the tests kill the server")]
mod nats;
#[path = "../all/fleet/wire.rs"]
#[allow(dead_code, reason = "the tests use all of it")]
mod wire;

use super::runs::{PATIENCE, Waiting, follow};
use super::store::{Client, Served, home};
use super::{Times, row, show, summary};
use member::{Appended, Machine, publish, stream};
use nats::Nats;
use serde_json::json;
use std::io::BufRead;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use wire::Wire;

/// Numbers of clients, each with the runs to measure in a turn.
const RUNS: [(usize, usize); 3] = [(1, 40), (8, 160), (64, 320)];

/// Turns in which all homes are measured one after the other, so that other load on the machine affects all equally.
const TURNS: usize = 5;

/// Messages measured in each turn, one after the other.
const MESSAGES: usize = 20;

/// Members of the largest fleet.
const MEMBERS: usize = 3;

/// Publishes to measure one after the other, and for each of several parallel clients.
const PUBLISHES: u64 = 500;

/// Prints the rows.
pub(crate) fn rows() {
    let Some(nats) = Nats::start() else { return };
    let (alone, fleets) = (Side::alone(), (1..=MEMBERS).map(|members| Side::of_fleet(&nats, members)));
    let sides: Vec<Side> = std::iter::once(alone).chain(fleets).collect();
    throughput(&nats, &sides);
    latency(&sides);
    for side in sides {
        side.end();
    }
    size::rows(&nats);
}

/// A daemon as seen by its clients.
struct Door {
    served: Served,
    replies: Arc<Waiting>,
}

impl Door {
    fn open(served: Served) -> Door {
        let (mut feed, replies) = (served.follow(), Arc::new(Waiting::default()));
        // Events from now on follow the head.
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            assert!(feed.read_line(&mut line).expect("it answers") > 0, "the feed ended");
        }
        let told = replies.clone();
        std::thread::spawn(move || follow(feed, &told));
        Door { served, replies }
    }

    /// Sends a message and returns the time until its reply, both through the same daemon.
    fn message(&self, client: &mut Client, session: &str, text: &str) -> Duration {
        let (replied, reply) = mpsc::channel();
        self.replies.lock().expect("nobody panics").insert(session.to_owned(), replied);
        let (body, began) = (json!({ "session": session, "text": text }).to_string(), Instant::now());
        client.ask("POST", "/msg", &body);
        reply.recv_timeout(PATIENCE).expect("it is answered");
        began.elapsed()
    }
}

/// A home with all daemons for its clients, the owner first.
struct Side {
    what: String,
    fleet: Option<String>,
    doors: Vec<Door>,
    machines: Vec<TempDir>,
}

impl Side {
    /// A home on one machine.
    fn alone() -> Side {
        let dir = home();
        let doors = vec![Door::open(Served::start(dir.path()))];
        Side { what: "without a fleet".to_owned(), fleet: None, doors, machines: vec![dir] }
    }

    fn of_fleet(nats: &Nats, members: usize) -> Side {
        let fleet = format!("bench-{members}");
        let first = Machine::new(home(), nats, &fleet, "m0");
        first.begin();
        let (mut doors, mut machines) = (vec![Door::open(first.start())], Vec::new());
        for n in 1..members {
            let another = first.another(nats, &format!("m{n}"));
            doors.push(Door::open(another.start()));
            machines.push(another.dir);
        }
        machines.push(first.dir);
        let what =
            if members == 1 { "a fleet of 1 member".to_owned() } else { format!("a fleet of {members} members") };
        Side { what, fleet: Some(fleet), doors, machines }
    }

    /// Runs a second: clients use the doors in turn, each with its own session.
    fn rate(&self, clients: usize, count: usize) -> f64 {
        let (next, began) = (AtomicUsize::new(0), Instant::now());
        std::thread::scope(|scope| {
            for n in 0..clients {
                let (next, door) = (&next, &self.doors[n % self.doors.len()]);
                scope.spawn(move || {
                    let (mut client, session) = (door.served.client(), format!("c{clients}-{n}"));
                    loop {
                        let run = next.fetch_add(1, Ordering::Relaxed);
                        if run >= count {
                            return;
                        }
                        door.message(&mut client, &session, &format!("$ echo {run}"));
                    }
                });
            }
        });
        count as f64 / began.elapsed().as_secs_f64()
    }

    fn end(self) {
        // The owner ends last, so that no member takes over.
        self.doors.into_iter().rev().for_each(|door| door.served.end());
        drop(self.machines);
    }
}

/// Results for a number of clients of one home, in all turns.
#[derive(Default)]
struct Rates {
    per_s: Vec<f64>,
    /// Data published to JetStream for them.
    appended: Appended,
    runs: usize,
}

fn throughput(nats: &Nats, sides: &[Side]) {
    let mut wire = nats.connect();
    let mut rates: Vec<[Rates; RUNS.len()]> = sides.iter().map(|_| Default::default()).collect();
    for turn in 0..=TURNS {
        for (side, rates) in sides.iter().zip(&mut rates) {
            for ((clients, count), rates) in RUNS.into_iter().zip(rates) {
                let mut appended =
                    || side.fleet.as_ref().map(|fleet| Appended::read(&mut wire, fleet)).unwrap_or_default();
                let before = appended();
                let per_s = side.rate(clients, count);
                // The first turn is a warm-up.
                if turn > 0 {
                    rates.per_s.push(per_s);
                    rates.runs += count;
                    rates.appended.add(appended().since(before));
                }
            }
        }
    }
    // The average size of the fleets' publishes.
    let all = rates.iter().flatten().fold(Appended::default(), |mut all, rates| {
        all.add(rates.appended);
        all
    });
    let bytes = usize::try_from(all.log_bytes / all.log_messages.max(1)).expect("it is short");
    let published = publishes(&mut wire, bytes);
    row(&format!("nats: a publish of {bytes} bytes, confirmed when it is on disk"), published, None);
    for clients in [1, 8, 64] {
        let per_s = published_at_once(nats, clients, bytes);
        println!("| nats: the same, {clients} at once, each to a stream of its own | | {per_s:.0}/s | |");
    }
    for (at, (clients, _)) in RUNS.into_iter().enumerate() {
        let alone = median(&rates[0][at].per_s);
        println!("| kiso: whole runs, {clients} at once, {} | | {alone:.1}/s | |", sides[0].what);
        for (side, rates) in sides.iter().zip(&rates).skip(1) {
            let (rates, what) = (&rates[at], &side.what);
            let per_s = median(&rates.per_s);
            println!("| the same, {what} | | {per_s:.1}/s | {:.2} × without |", per_s / alone);
            let appends = (rates.appended.log_messages + rates.appended.pieces) as f64 / rates.runs as f64;
            let ratio = per_s * appends * published.1.as_secs_f64();
            println!(
                "| its publishes, {appends:.1} for each run | | {:.0}/s | {ratio:.2} × one client's that only publishes |",
                per_s * appends
            );
        }
    }
}

fn median(all: &[f64]) -> f64 {
    let mut sorted = all.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// Publishes one after the other, each with its stream position and an id, as an owner appends a commit.
fn publishes(wire: &mut Wire, bytes: usize) -> Times {
    stream(wire, "BENCH", "bench");
    let payload = vec![7; bytes];
    let timed = (0..PUBLISHES).map(|after| {
        let began = Instant::now();
        publish(wire, "bench", after, &payload);
        began.elapsed()
    });
    summary(timed.collect())
}

/// Publishes a second by several clients that do not wait for each other.
fn published_at_once(nats: &Nats, clients: usize, bytes: usize) -> f64 {
    let mut wires: Vec<Wire> = (0..clients).map(|_| nats.connect()).collect();
    let names: Vec<String> = (0..clients).map(|n| format!("bench-{clients}-{n}")).collect();
    for (wire, name) in wires.iter_mut().zip(&names) {
        stream(wire, name, name);
    }
    let (each, payload) = (PUBLISHES.min(4 * PUBLISHES / clients as u64), vec![7; bytes]);
    let began = Instant::now();
    std::thread::scope(|scope| {
        for (wire, name) in wires.iter_mut().zip(&names) {
            let payload = &payload;
            scope.spawn(move || (0..each).for_each(|after| publish(wire, name, after, payload)));
        }
    });
    clients as f64 * each as f64 / began.elapsed().as_secs_f64()
}

/// The time from a message to its reply, without other load, at each door.
fn latency(sides: &[Side]) {
    let doors: Vec<(String, &Door)> = sides
        .iter()
        .flat_map(|side| {
            side.doors.iter().enumerate().map(|(n, door)| match (&side.fleet, n) {
                (None, _) => (side.what.clone(), door),
                (Some(_), 0) => (format!("{}, at the owner", side.what), door),
                (Some(_), n) => (format!("{}, at one that stands by ({n})", side.what), door),
            })
        })
        .collect();
    let mut times: Vec<Vec<Duration>> = vec![Vec::new(); doors.len()];
    for turn in 0..=TURNS {
        for (at, ((_, door), times)) in doors.iter().zip(&mut times).enumerate() {
            // A separate session, because messages of other doors arrive here, too.
            let (mut client, session) = (door.served.client(), format!("latency-{at}"));
            for n in 0..MESSAGES {
                let took = door.message(&mut client, &session, &format!("$ echo {n}"));
                times.extend((turn > 0).then_some(took));
            }
        }
    }
    let times: Vec<Times> = times.into_iter().map(summary).collect();
    let alone = times[0].1;
    for ((what, _), (least, median)) in doors.iter().zip(times) {
        let ratio = match what == &sides[0].what {
            true => String::new(),
            false => {
                let more = show(median.saturating_sub(alone));
                format!("{:.2} × without, {more} more", median.as_secs_f64() / alone.as_secs_f64())
            }
        };
        println!("| kiso: from a message to its reply, {what} | {} | {} | {ratio} |", show(least), show(median));
    }
}
