//! Deeply nested JSON: every input refuses it, and everything on record can be read.

use crate::crash;
use crate::harness::Home;
use crate::served::Served;
use serde_json::{Value, json};

const QUICK: &str = "[models]\ntitler = \"reflex\"\n[daemon]\ndebounce_ms = 20\n";

fn nested(levels: usize) -> String {
    format!("{}1{}", "[".repeat(levels), "]".repeat(levels))
}

fn routed(effort: &str) -> (&'static str, Value) {
    let routing = json!({ "effort": effort, "categories": [], "tool_need": 0.9, "goal": "a goal", "durable": false });
    ("router", json!({ "text": routing.to_string() }))
}

fn plan(args: &str) -> (&'static str, Value) {
    let tasks = format!(
        r#"{{"goal": "g", "tasks": [{{"type": "skill", "skill": "hostile", "args": {args}}},
            {{"type": "msg", "detail": "m", "notify": true}}]}}"#
    );
    ("planner", json!({ "text": tasks }))
}

fn says(text: &str) -> (&'static str, Value) {
    ("worker", json!({ "text": text }))
}

/// A skill's reply of 126 levels used to be stored and could not be read again, by `kiso trace` or by a resume.
#[test]
fn whatever_a_skill_replies_the_run_can_be_read() {
    for (levels, exit, status) in [(64, 0, "done"), (65, 1, "failed"), (126, 1, "failed"), (100_000, 1, "failed")] {
        let home = Home::new();
        home.add("hostile");
        let replies =
            [routed("high"), plan(&json!({ "mode": "deep-data", "amount": levels }).to_string()), says("It is there.")];
        let _model = crash::serve(&home, &replies, &format!("{QUICK}[limits]\nmax_replan_depth = 0\n"));
        home.kiso(&["run", "call the skill and tell me what it says"]).exit(exit);
        let lines = home.kiso(&["--json", "trace", "last"]).ok().json_lines();
        assert!(lines.iter().any(|line| line["kind"] == "executed"), "{levels}: {lines:#?}");
        let store = crash::store(&home);
        let now: String = store.query_row("SELECT status FROM runs", (), |row| row.get(0)).unwrap();
        assert_eq!(now, status, "{levels}");
        home.kiso(&["session", "export", "default"]).ok();
        // Simulates an interruption after the last event: all events are read again.
        store.execute_batch("UPDATE runs SET status = 'running', ended_ms = NULL, outcome = NULL").unwrap();
        home.kiso(&["run", "--resume", "last"]).exit(exit);
    }
}

#[test]
fn what_models_and_clients_say_is_bounded_where_it_comes_in() {
    let home = Home::new();
    home.add("hostile");
    let deep = json!({ "name": "exec", "args": format!("{{\"command\": {}}}", nested(100)) });
    let replies = [
        routed("high"),
        plan(&format!("{{\"mode\": {}}}", nested(100))),
        (
            "planner",
            json!({ "text": "{\"goal\": \"g\", \"tasks\": [{\"type\": \"msg\", \"detail\": \"m\", \"notify\": true}]}", "expect_contains": "nested more than 64 levels deep" }),
        ),
        says("No skill, then."),
        routed("medium"),
        ("actor", json!({ "calls": [deep] })),
        ("actor", json!({ "text": "That was too deep.", "expect_contains": "nested more than 64 levels deep" })),
    ];
    let model = crash::serve(&home, &replies, QUICK);
    let served = Served::start(&home);
    let one = served.send("main", "call the skill and tell me what it says");
    assert_eq!(served.reply(one), "No skill, then.");
    let other = served.send("main", "write three numbers into a file");
    assert_eq!(served.reply(other), "That was too deep.");
    assert_eq!(model.problems(), Vec::<String>::new());
    for levels in [64, 127, 100_000] {
        let body = format!("{{\"text\": {}}}", nested(levels));
        let answer = served.request("POST", "/msg", Some(&body));
        assert!(answer.body.contains("nested more than 64 levels deep"), "{levels}: {}", answer.body);
        answer.refuses(400, "bad_request");
    }
    served.request("GET", "/health", None).expect(200);
}
