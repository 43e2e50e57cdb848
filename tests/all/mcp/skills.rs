//! Effects that a model decides after it has read an Agent Skill, whose text is its publisher's.

use super::runs::{allowed, ask, plan, say};
use super::stand_in::{Era, StandIn};
use serde_json::{Value, json};

fn scripted_reply(role: &str, reply: &str) -> Value {
    json!({ "role": role, "reply": reply })
}

/// A run with this message and these answers, in a home with the skill `greet` where nobody answers cards. Returns how often the
/// oracle was asked, and the reason if it was not.
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

/// A plan whose first task is a loop of calls with this detail, which reads something and then asks the oracle.
fn looping(detail: &str, reads: Option<Value>) -> Vec<Value> {
    let act = json!({ "type": "act", "detail": detail, "expect": "it is done" });
    let mut calls = vec![scripted_reply("planner", &plan(&[act, say()]))];
    calls.extend(reads.map(|call| json!({ "role": "actor", "calls": [call] })));
    calls.push(json!({ "role": "actor", "calls": [{ "name": "oracle__ask", "args": { "text": "who is Ada?" } }] }));
    calls.push(scripted_reply("actor", "Hello, Ada!"));
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
        // The error for a missing file comes from the publisher as well.
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

/// If the message names the skill, the plan itself is based on its text; if only a task names it, the earlier plan does not
/// change.
#[test]
fn a_plan_is_its_publishers_only_where_its_planner_has_read_it() {
    let asks = ask(&json!({ "text": "who is Ada?" }));
    let denied = [
        scripted_reply("planner", &plan(&[asks.clone(), say()])),
        scripted_reply("planner", &plan(&[say()])),
        scripted_reply("worker", "Hi."),
    ];
    let (made, why) = asked(false, "@greet what is the answer?", &denied);
    assert_eq!(made, 0, "{why}");
    assert!(why.contains("the Agent Skills that the message names"), "{why}");

    let greets = json!({ "type": "msg", "detail": "greet as @greet says", "notify": true });
    let calls = [
        scripted_reply("planner", &plan(&[greets, asks, say()])),
        scripted_reply("worker", "Hi."),
        scripted_reply("worker", "Bye."),
    ];
    let (made, why) = asked(false, "what is the answer?", &calls);
    assert_eq!(made, 1, "{why}");
}
