//! Whole runs a second: a message arrives, its command runs in the sandbox, the reply is sent, each in its own session. For
//! comparison, the limit of the disk: SQLite commits a second, of one row each, one after the other.
//!
//! Measured from outside with the binary, HTTP, and one follower of the feed that passes replies to the clients.

use super::store::{Served, home};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::BufRead;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

/// Numbers of clients, each with the runs to measure.
const RUNS: [(usize, usize); 3] = [(1, 200), (8, 400), (64, 600)];

/// Commits to measure.
const COMMITS: u32 = 1_000;

/// Interval of a client that polls.
const POLL: Duration = Duration::from_millis(1);

/// A guard against a daemon that does not answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The client that waits for the reply in each session.
pub(crate) type Waiting = Mutex<HashMap<String, mpsc::Sender<()>>>;

/// Prints the rows.
pub(crate) fn rows() {
    let dir = home();
    let served = Served::start(dir.path());
    let waiting = Waiting::default();
    std::thread::scope(|scope| {
        let follower = served.follow();
        scope.spawn(|| follow(follower, &waiting));
        // The first runs are a warm-up.
        runs(&served, &waiting, "warm", 2, 20, false);
        let resident = served.resident();
        let commits = commits(dir.path());
        let events = events(dir.path());
        println!("| commits of one row, synced, one after the other | | {commits:.0}/s | |");
        for (clients, count) in RUNS {
            let per_s = runs(&served, &waiting, &format!("c{clients}"), clients, count, false);
            let allowed = commits / events;
            let ratio = format!("{:.2} × one commit for each of {events:.0} events", per_s / allowed);
            println!("| kiso: whole runs, {clients} at once | | {per_s:.0}/s | {ratio} |");
            let polled = runs(&served, &waiting, &format!("p{clients}"), clients, count, true);
            let ratio = format!("{:.2} × without", polled / per_s);
            println!("| the same, each asking `GET /messages/ID` once a millisecond | | {polled:.0}/s | {ratio} |");
        }
        let ratio = served.resident() as f64 / resident as f64;
        println!("| kiso: resident memory after them | | {} KiB | {ratio:.2} × before |", served.resident() >> 10);
        served.end();
    });
}

/// Runs a second.
fn runs(served: &Served, waiting: &Waiting, name: &str, clients: usize, count: usize, polls: bool) -> f64 {
    let (next, began) = (AtomicUsize::new(0), Instant::now());
    std::thread::scope(|scope| {
        for _ in 0..clients {
            scope.spawn(|| {
                let mut client = served.client();
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= count {
                        return;
                    }
                    let session = format!("{name}-{n}");
                    let (replied, reply) = mpsc::channel();
                    waiting.lock().expect("nobody panics").insert(session.clone(), replied);
                    let body = json!({ "session": session, "text": format!("$ echo {n}") }).to_string();
                    let answer: Value = serde_json::from_str(&client.ask("POST", "/msg", &body)).expect("it is JSON");
                    if polls {
                        let path = format!("/messages/{}", answer["message"]);
                        while !client.ask("GET", &path, "").contains("\"done\"") {
                            std::thread::sleep(POLL);
                        }
                    }
                    reply.recv_timeout(PATIENCE).expect("it is answered");
                }
            });
        }
    });
    count as f64 / began.elapsed().as_secs_f64()
}

/// Passes each reply to the client of its session.
pub(crate) fn follow(events: impl BufRead, waiting: &Waiting) {
    for line in events.lines().map_while(Result::ok) {
        let Some(data) = line.strip_prefix("data: ").or_else(|| line.strip_prefix("data:")) else { continue };
        let Ok(told) = serde_json::from_str::<Value>(data) else { continue };
        if told["role"] == "assistant"
            && let Some(session) = told["session"].as_str()
            && let Some(client) = waiting.lock().expect("nobody panics").remove(session)
        {
            let _ = client.send(());
        }
    }
}

/// Commits a second, of one row each, one after the other on disk.
fn commits(home: &Path) -> f64 {
    let conn = rusqlite::Connection::open(home.join("commits.db")).expect("there is room");
    conn.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE rows (id INTEGER PRIMARY KEY, text TEXT)",
    )
    .expect("it is SQLite");
    let mut insert = conn.prepare("INSERT INTO rows (text) VALUES (?1)").expect("the table is there");
    let began = Instant::now();
    for _ in 0..COMMITS {
        insert.execute(["a row that is as long as a short event of a run is"]).expect("there is room");
    }
    f64::from(COMMITS) / began.elapsed().as_secs_f64()
}

/// Number of events of a run.
fn events(home: &Path) -> f64 {
    let conn = rusqlite::Connection::open(home.join("store.db")).expect("it is SQLite");
    let mean = "SELECT count(*) * 1.0 / count(DISTINCT run) FROM events";
    conn.query_row(mean, (), |row| row.get(0)).expect("there are runs")
}
