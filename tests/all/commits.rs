//! How often a run waits for the disk: before an effect and before a reply, and not more often.

use crate::harness::{Home, wait_until};
use crate::served::Served;
use crate::wal::Written;
use rusqlite::Connection;

/// Runs of each kind. Something else may be written beside one of them, but not beside all.
const RUNS: usize = 5;

/// The smallest number of commits for this text among these runs, each in its own session, from the request to the reply.
fn commits(home: &Home, served: &Served, text: &str) -> u64 {
    let of_run = |n: usize| {
        let session = format!("{}-{n}", text.lines().count());
        let before = Written::read(&home.path());
        let message = served.send(&session, text);
        served.reply(message);
        let written = Written::read(&home.path()).since(before);
        // Check that the run's own records are included.
        let store = Connection::open(home.path().join("store.db")).unwrap();
        let of = |sql: &str| store.query_row::<i64, _, _>(sql, [&session], |row| row.get(0)).unwrap();
        assert_eq!(of("SELECT count(*) FROM sessions WHERE name = ? AND title IS NOT NULL"), 1, "it has a name");
        assert_eq!(of("SELECT count(*) FROM background WHERE ? IS NOT NULL"), 0, "nothing is left to do");
        written.commits
    };
    (0..RUNS).map(of_run).min().unwrap()
}

/// Rule: with the built-in rules, a route, a plan and the start of its first task are one commit.
#[test]
fn a_run_waits_for_the_disk_before_each_effect_and_before_its_reply() {
    let home = Home::new();
    home.config("model = \"reflex\"\n[daemon]\ndebounce_ms = 0\n");
    let served = Served::start(&home);
    // The message; the start of the run; all steps up to the command; its result and the reply.
    assert_eq!(commits(&home, &served, "$ echo one"), 4);
    // The result of each task is committed with the start of the next.
    let five: Vec<_> = (1..=5).map(|n| format!("$ echo {n}")).collect();
    assert_eq!(commits(&home, &served, &five.join("\n")), 8);
    // Nothing is started, so nothing must be on disk before the reply.
    assert_eq!(commits(&home, &served, "hello"), 3);
}

/// Rule: each answer of a paid model is committed before the next call.
#[test]
fn an_answer_that_was_paid_for_is_on_disk_before_the_next_call() {
    use crate::crash::serve;
    use serde_json::json;
    let home = Home::new();
    let routing = json!({ "effort": "high", "categories": [], "tool_need": 1.0, "goal": "a mark", "durable": false });
    let plan = json!({ "goal": "a mark", "tasks": [{ "type": "msg", "detail": "say it", "notify": true }] });
    let replies = [
        ("router", json!({ "text": routing.to_string() })),
        ("planner", json!({ "text": plan.to_string() })),
        ("worker", json!({ "text": "It is there.", "fault": "slow_first_token" })),
        ("titler", json!({ "text": "A mark" })),
    ];
    let server = serve(&home, &replies, "[daemon]\ndebounce_ms = 0\n");
    let served = Served::start(&home);
    let message = served.send("paid", "Set up the mark for me and tell me when it is there.");
    wait_until("the model to be asked", || server.held() == 1);
    let store = Connection::open(home.path().join("store.db")).unwrap();
    let of = |sql: &str| store.query_row::<i64, _, _>(sql, (), |row| row.get(0)).unwrap();
    assert_eq!(of("SELECT count(*) FROM events WHERE kind IN ('routed', 'planned', 'started')"), 3);
    assert_eq!(of("SELECT count(*) FROM usage WHERE role IN ('router', 'planner')"), 2);
    server.release();
    assert!(served.reply(message).contains("It is there."));
}

/// One write that failed for a moment used to lose a command's result: the resumed run reported it as interrupted.
#[test]
fn a_store_that_is_locked_for_a_moment_loses_no_result() {
    let home = Home::new();
    home.config("model = \"reflex\"\n[daemon]\ndebounce_ms = 0\n");
    let served = Served::start(&home);
    let message = served.send("one", "$ until test -e go; do sleep 0.05; done; echo it is $((40 + 2))");
    let store = Connection::open(home.path().join("store.db")).unwrap();
    let count = |sql: &str| store.query_row::<i64, _, _>(sql, (), |row| row.get(0)).unwrap();
    wait_until("the command to begin", || count("SELECT count(*) FROM events WHERE kind = 'started'") == 1);
    store.execute_batch("BEGIN IMMEDIATE").unwrap();
    std::fs::write(home.path().join("sessions/one/work/go"), "").unwrap();
    served.logs("is locked", 1);
    store.execute_batch("ROLLBACK").unwrap();
    let reply = served.reply(message);
    assert!(reply.contains("it is 42"), "{reply}");
    assert_eq!(count("SELECT count(*) FROM tasks WHERE status = 'interrupted'"), 0);
    assert_eq!(count("SELECT count(*) FROM events WHERE kind = 'executed'"), 2, "the command and the reply");
}
