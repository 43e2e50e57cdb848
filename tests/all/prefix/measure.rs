//! Measures the input that a model has to read again: runs work against a server that records requests, and counts the part of
//! each request that is not the beginning of an earlier one. Counts bytes, so that every machine gets the same result.

use super::model_server::{ModelServer, Script, Seen};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Work to do, with the answers of the models.
pub(super) struct Course {
    pub name: &'static str,
    config: &'static str,
    says: Vec<String>,
    replies: Vec<Value>,
}

/// Requests to the models during a course.
#[derive(Debug, Default)]
pub(super) struct Figures {
    pub roles: BTreeMap<String, Figure>,
}

/// Requests to the model of one role.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Figure {
    pub requests: usize,
    /// Bytes of the longest request: the minimum that has to be read.
    pub longest: usize,
    /// Bytes that were not the beginning of an earlier request.
    pub fresh: usize,
}

impl Figure {
    pub(super) fn ratio(self) -> f64 {
        self.fresh as f64 / self.longest as f64
    }
}

impl Figures {
    /// The sum over all roles for which the user waits.
    pub(super) fn total(&self) -> Figure {
        self.roles.values().fold(Figure::default(), |sum, role| Figure {
            requests: sum.requests + role.requests,
            longest: sum.longest + role.longest,
            fresh: sum.fresh + role.fresh,
        })
    }

    fn from_requests(requests: &[Seen]) -> Self {
        let mut figures = Self::default();
        let mut before: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        // Work after the reply is requested only once.
        for seen in requests.iter().filter(|seen| !["titler", "summarizer"].contains(&seen.role())) {
            let (text, earlier) = (read_as(&seen.body), before.entry(seen.role()).or_default());
            let known = earlier.iter().map(|earlier| same_start(earlier, &text)).max().unwrap_or(0);
            let figure = figures.roles.entry(seen.role().to_owned()).or_default();
            figure.requests += 1;
            figure.longest = figure.longest.max(text.len());
            figure.fresh += text.len() - known;
            earlier.push(text);
        }
        figures
    }
}

/// A request in the order in which models' templates arrange it: the tools, then the messages.
fn read_as(body: &Value) -> String {
    let list = |of: &str| body[of].as_array().cloned().unwrap_or_default();
    list("tools").iter().chain(&list("messages")).map(|part| format!("{part}\n")).collect()
}

fn same_start(a: &str, b: &str) -> usize {
    a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count()
}

/// Runs a course with `kiso` in a new home.
pub(super) fn figures(kiso: &Path, course: &Course) -> Figures {
    let script = json!({ "reply": course.replies });
    let script: Script = serde_json::from_value(script).expect("a script has this form");
    let server = ModelServer::start(script);
    let dir = tempfile::TempDir::new().expect("there is room");
    let home = dir.path().join("home");
    std::fs::create_dir(&home).expect("there is room");
    let config = format!(
        "model = \"lab:m\"\n[providers.lab]\nkind = \"openai\"\nbase_url = {:?}\n[llm]\nmax_attempts = 1\n{}",
        server.base_url(),
        course.config
    );
    std::fs::write(home.join("config.toml"), config).expect("there is room");
    for said in &course.says {
        let mut command = Command::new(kiso);
        command.args(["run", "--session", "main", said]).env("KISO_HOME", &home).env_remove("KISO_LOG");
        let ran = command.output().expect("kiso starts");
        assert!(ran.status.success(), "{}: {}", course.name, String::from_utf8_lossy(&ran.stderr));
    }
    assert_eq!(server.problems(), Vec::<String>::new(), "{}", course.name);
    Figures::from_requests(&server.requests())
}

fn reply(role: &str, text: &str) -> Value {
    json!({ "role": role, "text": text })
}

fn routing(effort: &str, categories: &[&str]) -> Value {
    let routing = json!({
        "effort": effort, "categories": categories, "tool_need": 0.9, "goal": "What was asked for is done", "durable": false,
    });
    reply("router", &routing.to_string())
}

/// A loop of `rounds` rounds, each with a command that prints some hundred bytes.
pub(super) fn tool_loop(name: &'static str, rounds: usize) -> Course {
    let call = |round: usize| {
        let args = json!({ "command": format!("seq {} {}", round * 1_000, round * 1_000 + 120) });
        json!({ "role": "actor", "text": "I look.", "calls": [{ "name": "exec", "args": args }] })
    };
    let mut replies = vec![routing("medium", &["shell"])];
    replies.extend((1..=rounds).map(call));
    replies.extend([reply("actor", "All of it was counted."), reply("titler", "Counting")]);
    let says = vec!["count in the shell, a thousand after the other".to_owned()];
    Course { name, config: "[limits]\nmax_tool_call_rounds = 20\n", says, replies }
}

/// A plan of five tasks that is abandoned twice; the actor works out one of the tasks.
pub(super) fn plan() -> Course {
    let plan = |number: usize| {
        let exec = |from: usize| {
            let detail = format!("seq {from} {}", from + 120);
            json!({ "type": "exec", "detail": detail, "expect": "a hundred numbers", "review": true })
        };
        let plan = json!({ "goal": "The numbers are counted", "tasks": [
            exec(number * 1_000),
            exec(number * 2_000),
            { "type": "act", "detail": "Find out what is missing", "expect": "its name" },
            { "type": "act", "detail": "Find out why", "expect": "a reason", "brief": "The numbers go up" },
            exec(number * 3_000),
            { "type": "msg", "detail": "Say the sum", "notify": true },
        ]});
        reply("planner", &format!("I count. <FINAL_PRD>{plan}</FINAL_PRD>"))
    };
    let verdict = |status: &str| {
        let reason = (status == "replan").then_some("this is not the way to the numbers");
        reply("reviewer", &json!({ "status": status, "reason": reason.unwrap_or("as expected") }).to_string())
    };
    let brief = json!({
        "goal": "The numbers are counted", "required": ["a name"], "delta": "one is missing", "success": ["its name is known"],
        "context": { "discovery": ["the numbers go up"], "credentials": [], "artifacts": [], "blockers": [], "recheck": "none" },
        "action": "look for it",
    });
    let acts = ["The last one is missing.", "Nobody counted it."].map(|said| reply("actor", said));
    let act = [vec![reply("reasoner", &brief.to_string())], acts.into()].concat();
    let mut replies = vec![routing("high", &[]), plan(1), verdict("ok"), verdict("replan")];
    replies.extend([plan(2), verdict("ok"), verdict("ok")]);
    replies.extend(act.clone());
    replies.extend([verdict("replan"), plan(3), verdict("ok"), verdict("ok")]);
    replies.extend(act);
    replies.extend([verdict("ok"), reply("worker", "The sum is known."), reply("titler", "Sums")]);
    let says = vec!["add up all the numbers in the shell, and say what is missing".to_owned()];
    Course { name: "a plan of 5 tasks, given up twice", config: "[limits]\nmax_replan_depth = 3\n", says, replies }
}

/// A conversation whose answers have some hundred bytes, and whose window is full `summaries` times.
pub(super) fn talk(name: &'static str, config: &'static str, turns: usize, summaries: usize) -> Course {
    let things =
        ["a tide", "a comet", "a glacier", "a monsoon", "a delta", "an atoll", "a geyser", "a fjord", "a moraine"];
    let said = |turn: usize| format!("what is {}?", things[turn % things.len()]);
    let answer = |turn: usize| {
        format!("Answer {turn}. {}", "It is one of the slow things of the earth, and older than we are. ".repeat(8))
    };
    let mut replies: Vec<_> = (0..turns).map(|turn| reply("worker", &answer(turn))).collect();
    replies.extend((0..summaries).map(|_| reply("summarizer", "They spoke of slow things.")));
    replies.push(reply("titler", "Slow things"));
    Course { name, config, says: (0..turns).map(said).collect(), replies }
}
