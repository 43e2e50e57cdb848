//! The rules of tasks and reviews, tested with the real daemon and a scripted model server.

use crate::crash;
use crate::harness::Home;
use crate::served::Served;
use crate::webhooks::Inbox;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

const QUICK: &str = "[models]\ntitler = \"reflex\"\n[daemon]\ndebounce_ms = 20\n";

fn routed() -> (&'static str, Value) {
    let routing = json!({ "effort": "high", "categories": [], "tool_need": 0.9, "goal": "a goal", "durable": false });
    ("router", json!({ "text": routing.to_string() }))
}

fn plan(tasks: Value) -> (&'static str, Value) {
    ("planner", json!({ "text": json!({ "goal": "a goal", "tasks": tasks }).to_string() }))
}

fn reviewed(verdict: Value) -> (&'static str, Value) {
    ("reviewer", json!({ "text": verdict.to_string() }))
}

fn says(text: &str) -> (&'static str, Value) {
    ("worker", json!({ "text": text }))
}

/// "| `notify` | no | If `true`, output is sent to the webhook |": of every type, when it happens. "**Notify the user**: a
/// `msg` task with `notify: true` is sent automatically, informing the user that a replan is happening and why (using
/// `reason`)."
#[test]
fn output_is_sent_to_the_webhook_when_it_happens() {
    let (home, inbox) = (Home::new(), Inbox::open());
    home.add("echo");
    let first = json!([
        { "type": "msg", "detail": "Say that it begins", "notify": true },
        { "type": "skill", "skill": "echo", "args": { "text": "loud" }, "notify": true },
        { "type": "exec", "detail": "echo quiet" },
        { "type": "act", "detail": "Look around", "expect": "a sight", "notify": true },
        { "type": "exec", "detail": "echo bright", "notify": true, "review": true, "expect": "bright" },
        { "type": "exec", "detail": "echo dull", "notify": true, "review": true, "expect": "bright" },
        { "type": "msg", "detail": "Say that all is said", "notify": true },
    ]);
    let second = json!([
        { "type": "exec", "detail": "echo again", "notify": true },
        { "type": "msg", "detail": "Say that all is said", "notify": true },
    ]);
    let replies = [
        routed(),
        plan(first),
        says("Starting."),
        ("actor", json!({ "text": "seen" })),
        reviewed(json!({ "status": "ok" })),
        reviewed(json!({ "status": "replan", "reason": "it is too dark" })),
        plan(second),
        says("All said."),
    ];
    let hook = format!("[webhooks.a]\nurl = \"http://{}/\"\nallow_private = true\n", inbox.address);
    let model = crash::serve(&home, &replies, &format!("{QUICK}{hook}"));
    let served = Served::start(&home);
    let mut socket = UnixStream::connect(home.path().join("kiso.sock")).expect("the socket is there");
    socket.set_read_timeout(Some(crash::GUARD)).unwrap();
    writeln!(socket, "{}", json!({ "type": "register", "client": "test", "protocol": 1, "session": "main" })).unwrap();
    let mut lines = BufReader::new(socket.try_clone().unwrap()).lines().map(|line| line.expect("it is a line"));
    assert!(lines.next().unwrap().contains("registered"));
    let message = served.send("main", "say a few things about the project");

    let (mut told, mut replied) = (Vec::new(), Vec::new());
    // Deliveries have no order.
    while told.len() + replied.len() < 7 {
        let request = inbox.next();
        let body = request.json();
        match body["event"].as_str().unwrap() {
            "notify" => told.push(body["text"].as_str().unwrap().to_owned()),
            _ => replied.push(body["message"]["text"].as_str().unwrap().to_owned()),
        }
        request.answer("204 No Content", "");
    }
    told.sort();
    let why = "That plan did not work out, so I am making a new one (1 of 3). The reason: it is too dark";
    assert_eq!(
        told,
        ["Starting.", why, "again", "bright", "loud", "seen"],
        "and neither what was rejected nor the reply"
    );
    // A client that received the first part when it was sent does not receive it again.
    assert_eq!(replied, ["All said."]);

    let mut heard = Vec::new();
    for line in lines {
        let line: Value = serde_json::from_str(&line).unwrap();
        match line["type"].as_str().unwrap() {
            "notify" => heard.push(line["text"].as_str().unwrap().to_owned()),
            "outbound" => break,
            _ => {}
        }
    }
    assert_eq!(heard, ["Starting.", "loud", "seen", "bright", why, "again"], "and so hears every channel, in order");
    assert_eq!(served.get(&format!("/messages/{message}"))["status"], "done");
    assert_eq!(model.problems(), Vec::<String>::new());
}

/// "If all retries are exhausted, kiso marks the message as failed and notifies the user: "Planning failed: could not
/// parse planner response after {n} attempts.""
#[test]
fn the_message_of_a_run_that_failed_is_failed() {
    let home = Home::new();
    let broken = || ("planner", json!({ "text": "no plan" }));
    let replies = [routed(), broken(), broken()];
    let config = format!("{QUICK}[limits]\nmax_parse_retries = 1\n");
    let _model = crash::serve(&home, &replies, &config);
    let served = Served::start(&home);
    let message = served.send("main", "make a report");
    assert_eq!(served.reply(message), "Planning failed: could not parse planner response after 2 attempts.");
    let job = served.get(&format!("/messages/{message}"));
    assert_eq!(job["status"], "failed", "{job}");
    let run = job["run"].as_str().unwrap();
    assert_eq!(served.get(&format!("/runs/{run}"))["run"]["status"], "failed");
    assert_eq!(served.terminate(), 0);
    let lines = home.kiso(&["--json", "trace"]).ok().json_lines();
    assert_eq!(lines.last().unwrap()["status"], "failed");
}

/// "**Max depth**: after `max_review_depth` inject rounds in the same chain, the worker stops calling the reviewer and
/// moves on."
#[test]
fn behind_the_deepest_fix_the_run_moves_on_also_when_it_failed() {
    for code in [0, 3] {
        let home = Home::new();
        let fix = format!("echo fixed; exit {code}");
        let inject = json!([{ "type": "exec", "detail": fix, "review": true, "expect": "one" }]);
        let tasks = json!([
            { "type": "exec", "detail": "echo zero", "review": true, "expect": "one" },
            { "type": "exec", "detail": "echo next" },
            { "type": "msg", "detail": "Say so", "notify": true },
        ]);
        let replies = [
            routed(),
            plan(tasks),
            reviewed(json!({ "status": "needs_fix", "inject": inject, "reason": "it is zero" })),
            says("The next one is done."),
        ];
        let model = crash::serve(&home, &replies, &format!("{QUICK}[limits]\nmax_review_depth = 1\n"));
        let ran = home.kiso(&["run", "count to one"]);
        assert_eq!(
            model.problems(),
            Vec::<String>::new(),
            "the reviewer is asked once, and no new plan is made: {ran:?}"
        );
        ran.ok().prints(&["The next one is done."]).says(&["1 rounds of fixes are behind it", "and the plan goes on"]);
    }
}
