//! Rule: "**Job Registration**: Enforces 10-job concurrency limit": for the home, across all its processes.

use crate::crash::{self, Running, wait_on};
use crate::harness::{Home, wait_until};
use crate::served::Served;
use serde_json::{Value, json};

fn stalls() -> (&'static str, Value) {
    ("worker", json!({ "text": "The sea.", "fault": "slow_first_token" }))
}

const CONFIG: &str =
    "[models]\ntitler = \"reflex\"\n[daemon]\ndebounce_ms = 0\nmax_jobs = 2\n[llm]\nmax_concurrent_llm = 64\n";

/// Two slots: one used by the daemon, one by `kiso run`. A third run waits until one of them ends.
#[test]
fn kiso_run_counts_beside_the_daemon() {
    for third in ["daemon", "command line"] {
        let home = Home::new();
        let model = crash::serve(&home, &[stalls(), stalls(), stalls()], CONFIG);
        let served = Served::start(&home);
        let first = served.send("one", "what is a tide?");
        wait_until("the first to be at work", || model.requests().len() == 1);
        let mut second = Running::start(home.command(&["run", "--session", "two", "what is a tide?"]));
        wait_on(&mut second.0, "the second is at work", || model.requests().len() == 2);
        let mut waiting = None;
        match third {
            "daemon" => drop(served.send("three", "what is a tide?")),
            _ => {
                let run = Running::start(home.command(&["run", "--session", "three", "what is a tide?"]));
                waiting = Some(run);
            }
        }
        // It has locked its session, so it now waits for a slot.
        let lock = home.path().join("sessions/three/lock");
        wait_until("the third to lock its session", || {
            std::fs::read_to_string(&lock).is_ok_and(|pid| !pid.trim().is_empty())
        });
        assert_eq!(model.requests().len(), 2, "{third}: two run, and the third waits");
        model.release();
        wait_until("the third to be at work", || model.requests().len() == 3);
        model.release_many(2);
        assert_eq!(served.reply(first), "The sea.");
        for mut run in [Some(second), waiting].into_iter().flatten() {
            assert!(run.0.wait().expect("it was started here").success(), "{third}");
        }
        wait_until("the third to be answered", || model.requests().len() == 3 && model.held() == 0);
    }
}

/// The default limit.
#[test]
fn ten_jobs_run_at_once_and_the_eleventh_waits() {
    let home = Home::new();
    let replies: Vec<_> = (0..11).map(|_| stalls()).collect();
    let model = crash::serve(&home, &replies, &CONFIG.replace("max_jobs = 2\n", ""));
    let served = Served::start(&home);
    let mut by_hand = Running::start(home.command(&["run", "--session", "by-hand", "what is a tide?"]));
    wait_on(&mut by_hand.0, "the first is at work", || model.requests().len() == 1);
    for n in 0..10 {
        served.send(&format!("s{n}"), "what is a tide?");
    }
    wait_until("ten to be at work", || model.requests().len() == 10);
    // All messages were started: all sessions are locked, and one of them waits for a slot.
    let locked = |n: usize| {
        let pid = std::fs::read_to_string(home.path().join(format!("sessions/s{n}/lock")));
        pid.is_ok_and(|pid| !pid.trim().is_empty())
    };
    wait_until("all sessions to be locked", || (0..10).all(locked));
    assert_eq!(model.requests().len(), 10);
    model.release();
    wait_until("the eleventh to be at work", || model.requests().len() == 11);
    model.release_many(10);
    wait_until("everybody to be answered", || model.held() == 0);
}
