//! Runs whose plans use the tool `oracle.ask`.

use crate::harness::{Home, Ran};
use serde_json::{Value, json};

pub(crate) fn plan(tasks: &[Value]) -> String {
    format!("<FINAL_PRD>{}</FINAL_PRD>", json!({ "goal": "know", "tasks": tasks }))
}

pub(crate) fn ask(args: &Value) -> Value {
    json!({ "type": "skill", "skill": "oracle.ask", "args": args })
}

pub(crate) fn say() -> Value {
    json!({ "type": "msg", "detail": "say what came out", "notify": true })
}

/// A run whose model gives these answers in order: role, text that the prompt must contain, answer. `tables` is the rest of
/// `config.toml`.
pub(crate) fn run(home: &Home, tables: &str, calls: &[(&str, &str, String)]) -> Ran {
    let line = |(role, expect, reply): &(&str, &str, String)| {
        json!({ "role": role, "expect_contains": expect, "reply": reply }).to_string() + "\n"
    };
    let script = home.file("script.jsonl", calls.iter().map(line).collect::<String>());
    home.config(&format!("model = \"scripted:{}\"\n{tables}", script.display()));
    home.kiso(&["run", "what is the answer?"])
}

/// A run in which the call fails; the next plan is told `told`, and works without it.
#[track_caller]
pub(crate) fn run_without(home: &Home, tables: &str, told: &str) -> Ran {
    let calls = [
        ("planner", "", plan(&[ask(&json!({ "text": "why" })), say()])),
        ("planner", told, plan(&[say()])),
        ("worker", "", "Nobody knows.".to_owned()),
    ];
    let ran = run(home, tables, &calls);
    assert!(ran.stdout.contains("Nobody knows."), "the run goes on: {ran:?}");
    ran
}

/// A run with one call whose result must contain `told`.
#[track_caller]
pub(crate) fn run_with(home: &Home, tables: &str, text: &str, told: &str) -> Ran {
    let calls =
        [("planner", "", plan(&[ask(&json!({ "text": text })), say()])), ("worker", told, "It is 42.".to_owned())];
    let ran = run(home, tables, &calls);
    ran.ok().prints(&["It is 42."]);
    ran
}

/// A home whose administrator has allowed the names in `allow` in these tables.
#[track_caller]
pub(crate) fn allowed(tables: &str) -> Home {
    let home = Home::new();
    home.config(tables);
    home.kiso(&["mcp", "allow", "oracle"]).ok().prints(&["Asks the oracle", "oracle.ask is allowed as it is now"]);
    home
}
