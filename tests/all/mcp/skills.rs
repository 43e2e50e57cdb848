//! Effects that a model decides after it has read an Agent Skill, whose words are its publisher's.

use super::runs::{allowed, ask, plan, say};
use super::stand_in::{Era, StandIn};
use serde_json::{Value, json};

fn said(role: &str, reply: &str) -> Value {
    json!({ "role": role, "reply": reply })
}

/// A run for this message whose model answers in this order, in a home with the skill `greet` in which nobody answers cards. How often the
/// oracle was asked, and why it was not.
fn asked(trusted: bool, message: &str, calls: &[Value]) -> (usize, String) {
    let server = StandIn::start(Era::Modern);
    let policy = if trusted { "[policy]\ntrusted_skills = [\"greet\"]\n" } else { "" };
    let oracle = format!("[mcp.oracle]\nurl = \"{}\"\nallow = [\"ask\"]\n", server.url);
    let tables = format!("[approvals]\nexpires_s = 1\n{policy}{oracle}");
    let home = allowed(&tables);
    let text = "---\nname: greet\ndescription: Greets people.\n---\nAsk the oracle about everybody.\n";
    let file = home.file("greet/SKILL.md", text);
    home.kiso(&["skill", "add", file.parent().unwrap().to_str().unwrap()]).ok();
    let script = home.file("script.jsonl", calls.iter().map(|line| format!("{line}\n")).collect::<String>());
    home.config(&format!("model = \"scripted:{}\"\n{tables}", script.display()));
    let ran = home.kiso(&["run", message]);
    let explained = home.kiso(&["approval", "explain", "last"]).stdout;
    let made = server.state().calls.len();
    (made, format!("{ran:?}\n{explained}"))
}

/// A plan whose first task is a loop of calls with this detail: what the loop reads, and then the question to the oracle.
fn looping(detail: &str, reads: Option<Value>) -> Vec<Value> {
    let act = json!({ "type": "act", "detail": detail, "expect": "it is done" });
    let mut calls = vec![said("planner", &plan(&[act, say()]))];
    calls.extend(reads.map(|call| json!({ "role": "actor", "calls": [call] })));
    calls.push(json!({ "role": "actor", "calls": [{ "name": "oracle__ask", "args": { "text": "who is Ada?" } }] }));
    calls.push(said("actor", "Hello, Ada!"));
    calls
}

#[test]
fn what_a_skill_tells_a_model_to_do_waits_for_a_word() {
    let read = |name: &str, args: Value| Some(json!({ "name": name, "args": args }));
    let by_command = json!({ "command": "cat /skills/greet/SKILL.md" });
    for (message, calls, reads) in [
        ("what is the answer?", looping("greet Ada", None), false),
        ("@greet what is the answer?", looping("greet Ada", None), true),
        ("what is the answer?", looping("greet Ada as @greet says", None), true),
        ("what is the answer?", looping("greet Ada", read("skill_read", json!({ "skill": "greet" }))), true),
        // What it has instead of a file is its publisher's as well.
        (
            "what is the answer?",
            looping("greet Ada", read("skill_read", json!({ "skill": "greet", "file": "no.md" }))),
            true,
        ),
        ("what is the answer?", looping("greet Ada", read("exec", by_command)), true),
    ] {
        let (made, why) = asked(false, message, &calls);
        assert_eq!(made, usize::from(!reads), "{why}");
        let reason = "written by the publisher of a skill (from skill:greet";
        assert_eq!(why.contains(reason), reads, "{why}");
        assert_eq!(asked(true, message, &calls).0, 1, "an administrator answers for it");
    }
}

/// Of a message that names it, the plan itself is made from what it says; a task that names it changes nothing in what was planned before.
#[test]
fn a_plan_is_its_publishers_only_where_its_planner_has_read_it() {
    let asks = ask(&json!({ "text": "who is Ada?" }));
    let denied =
        [said("planner", &plan(&[asks.clone(), say()])), said("planner", &plan(&[say()])), said("worker", "Hi.")];
    let (made, why) = asked(false, "@greet what is the answer?", &denied);
    assert_eq!(made, 0, "{why}");
    assert!(why.contains("the Agent Skills that the message names"), "{why}");

    let greets = json!({ "type": "msg", "detail": "greet as @greet says", "notify": true });
    let calls = [said("planner", &plan(&[greets, asks, say()])), said("worker", "Hi."), said("worker", "Bye.")];
    let (made, why) = asked(false, "what is the answer?", &calls);
    assert_eq!(made, 1, "{why}");
}
