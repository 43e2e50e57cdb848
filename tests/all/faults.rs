//! All faults of a model, in every role, seen from outside: a run recovers, or it ends and says why.
//!
//! Each fault occurs once, so that only one answer is bad, and always, so that the role never gives a usable answer. A run in
//! these tests has few attempts, few rounds and short timeouts; the server, not the run, counts the requests.

use crate::crash::{GUARD, store};
use crate::harness::{Home, Ran};
use crate::model_server::{ModelServer, Script};
use serde_json::{Value, json};
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};

/// Parallel runs: each mostly waits for a timeout.
const AT_ONCE: usize = 4;

/// The worker's text at the end of a successful run.
const REPLY: &str = "All is done.";

/// Attempts with one model, as configured below.
const ATTEMPTS: usize = 2;

/// Number of retries after an unreadable answer.
const RETRIES: usize = 2;

/// Rounds of the action loop.
const ROUNDS: usize = 3;

/// Calls for a message if the model gives no answer.
const WRITES: usize = 3;

/// Plans for one message.
const PLANS: usize = 2;

/// The effect of a fault on a call.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    /// No answer; another attempt may succeed.
    Passes,
    /// No answer, and no further attempt.
    Final,
    /// An unusable answer.
    Useless,
    /// A usable answer.
    Harmless,
}

struct Fault {
    /// The fault in the server's script.
    fault: Value,
    kind: Kind,
    /// The error message, if the fault is an error.
    says: &'static str,
}

impl Fault {
    /// Whether the server makes its client wait.
    fn waits(&self) -> bool {
        self.says.starts_with("no answer") || self.says.starts_with("no further piece")
    }
}

fn faults(role: &str) -> Vec<Fault> {
    let fault = |name: &str, kind, says| Fault { fault: json!(name), kind, says };
    let too_many = |retry_after: Option<u32>, kind, says| {
        let fault = json!({ "status_429": { "retry_after": retry_after } });
        Fault { fault, kind, says }
    };
    let mut all = vec![
        fault("slow_first_token", Kind::Passes, "no answer within "),
        fault("stall_mid_stream", Kind::Passes, "no further piece of the answer within "),
        fault("cut_connection", Kind::Passes, "the connection broke in the middle of the answer"),
        fault("close_unanswered", Kind::Passes, "the connection broke before the answer"),
        too_many(None, Kind::Passes, "Too many requests"),
        too_many(Some(3_600), Kind::Final, "it asks to wait 3600 s"),
        fault("status_500", Kind::Passes, "Internal error"),
        fault("malformed_chunk", Kind::Passes, "a piece of its answer is not JSON"),
        fault("truncated_json", Kind::Passes, "a piece of its answer is not JSON"),
        fault("error_in_200", Kind::Passes, "Upstream failed"),
        fault("error_body_in_200", Kind::Passes, "Upstream failed"),
        fault("endless", Kind::Final, "its answer is longer than 1048576 bytes"),
        fault("only_comments", Kind::Passes, "no answer within "),
        fault("empty", Kind::Useless, ""),
        fault("no_usage", Kind::Harmless, ""),
        fault("refuse_schema", Kind::Harmless, ""),
        fault("comment_lines", Kind::Harmless, ""),
        fault("not_streamed", Kind::Harmless, ""),
    ];
    if role == "actor" {
        all.push(fault("bad_arguments", Kind::Useless, ""));
        all.push(fault("wrong_tool", Kind::Useless, ""));
        all.push(fault("missing_ids", Kind::Harmless, ""));
    }
    all
}

fn routing() -> Value {
    json!({ "effort": "high", "categories": [], "tool_need": 1, "goal": "numbers", "durable": false })
}

fn brief() -> Value {
    json!({
        "goal": "numbers", "required": [], "delta": "all are missing", "success": ["they are there"],
        "context": { "discovery": [], "credentials": [], "artifacts": [], "blockers": [] }, "action": "count",
    })
}

/// Answers of the roles, each in order, for as many requests as a run may make.
fn replies(role: &str) -> Vec<(&'static str, Value)> {
    let act = json!({ "type": "act", "detail": "count to six hundred", "review": true, "expect": "the numbers" });
    let message = json!({ "type": "msg", "detail": "say that it is done", "notify": true });
    // The reasoner is asked only if there are several acts, and the worker writes a message that does not follow an act.
    let briefed = json!({ "type": "act", "detail": "look at them", "expect": "a look", "brief": "they are few" });
    let exec = json!({ "type": "exec", "detail": "true" });
    let tasks = match role {
        "reasoner" => vec![act, briefed, exec, message],
        "worker" => vec![act, exec, message],
        _ => vec![act, message],
    };
    let plan = json!({ "goal": "numbers", "tasks": tasks });
    let (brief, routing) = (brief(), routing());
    let text = |value: &Value| json!({ "text": value.to_string() });
    let mut replies = vec![("titler", json!({ "text": "Numbers" }))];
    for _ in 0..PLANS {
        replies.push(("router", text(&routing)));
        replies.push(("planner", text(&plan)));
        replies.push(("reasoner", text(&brief)));
        // The summarizer needs several rounds to shorten.
        let rounds = if role == "summarizer" { ROUNDS } else { 1 };
        for round in 0..rounds {
            let line = if role == "summarizer" { format!("seq {round} 600") } else { "seq 3".to_owned() };
            replies.push(("actor", json!({ "calls": [{ "name": "exec", "args": { "command": line } }] })));
        }
        replies.push(("actor", json!({ "text": format!("GOAL ACHIEVED\n{REPLY}") })));
        replies.push(("reviewer", text(&json!({ "status": "ok" }))));
        if role == "reasoner" {
            replies.push(("actor", json!({ "text": "They were looked at." })));
        }
        replies.push(("worker", json!({ "text": REPLY })));
        replies.push(("summarizer", json!({ "text": "Numbers were counted." })));
        replies.push(("summarizer", json!({ "text": "Numbers were counted again." })));
    }
    replies
}

/// The same replies with the first of the role spoiled, or all of them.
fn script(role: &str, fault: &Fault, always: bool) -> Vec<Value> {
    let mut script = Vec::new();
    let mut spoil = |mut reply: Value, faulty: bool| {
        if faulty {
            reply["fault"] = fault.fault.clone();
        }
        script.push(reply);
    };
    let mut first = true;
    for (of, mut reply) in replies(role) {
        reply["role"] = json!(of);
        if of != role {
            spoil(reply, false);
        } else if always && fault.kind == Kind::Harmless {
            spoil(reply, true);
        } else if std::mem::take(&mut first) {
            // If no answer is good, the spoiled ones follow each other; otherwise there is one additional reply.
            let times = if always { 4 * ATTEMPTS * PLANS * (RETRIES + 1) } else { 1 };
            (0..times).for_each(|_| spoil(reply.clone(), true));
            if !always {
                spoil(reply, false);
            }
        } else if !always {
            spoil(reply, false);
        }
    }
    script
}

fn config(home: &Home, server: &ModelServer, kind: &str, fault: &Fault, always: bool) {
    let patience = patience(fault, always);
    // A stream of comments could reach either limit first, depending on the machine.
    let most = if fault.fault == json!("only_comments") { 4_096 } else { 1 };
    home.config(&format!(
        "model = \"lab:m\"\n[models]\nactor = \"lab:small\"\n\
         [model_settings.\"lab:small\"]\ncontext_budget = 6_000\n\
         [providers.lab]\nkind = \"{kind}\"\nbase_url = \"{}\"\nmax_response_mib = {most}\n\
         [llm]\nconnect_timeout_s = 60\nfirst_token_timeout_s = {patience}\nnext_token_timeout_s = {patience}\n\
         total_timeout_s = 120\n\
         max_attempts = {ATTEMPTS}\nmax_retry_wait_s = 0\nbreaker_failures = 100\n\
         [limits]\nmax_parse_retries = {RETRIES}\nmax_tool_call_rounds = {}\nmax_replan_depth = {}\n\
         [context]\nsummarize_threshold = 2\n[routing]\nfast_path = false\n",
        server.base_url(),
        ROUNDS + 1,
        PLANS - 1
    ));
}

/// Runs the binary until it ends, within the time limit.
fn run(home: &Home, args: &[&str]) -> Result<Ran, String> {
    let child = home.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("kiso starts");
    let pid = rustix::process::Pid::from_child(&child);
    let (ended, end) = mpsc::channel();
    let waiting = std::thread::spawn(move || ended.send(child.wait_with_output()));
    let output = end.recv_timeout(2 * GUARD);
    if output.is_err() {
        // The process must not be left running; the thread reaps it.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
    let _ = waiting.join();
    match output {
        Ok(output) => Ok(Ran::new(args, output.expect("it was started here"))),
        Err(_) => Err(format!("it did not end within {:?}", 2 * GUARD)),
    }
}

/// Seconds that a run waits for a part of an answer. Only a fault that is a delay needs a short timeout; everything else has all
/// the time that a busy machine may need. A fault that occurs once leaves one good attempt, which must not time out.
fn patience(fault: &Fault, always: bool) -> u32 {
    match (fault.waits(), always) {
        (false, _) => 60,
        (true, false) => 5,
        (true, true) => 2,
    }
}

/// Whether a run with this fault must fail.
fn fails(role: &str, kind: Kind, always: bool) -> bool {
    match (role, kind) {
        (_, Kind::Harmless) => false,
        ("planner" | "actor", Kind::Final) => true,
        ("planner" | "actor" | "worker", _) => always,
        _ => false,
    }
}

/// Maximum number of requests of the role in a run that gets no usable answer from it.
fn most(role: &str, fault: &Fault) -> usize {
    let calls = match role {
        "worker" => WRITES,
        // One in the run, and one for each of the two in the background.
        "summarizer" => 3,
        _ => 1,
    };
    let each = match fault.kind {
        Kind::Final => 1,
        // The server may have closed a kept connection; the request is then sent a second time.
        Kind::Passes if fault.fault == json!("close_unanswered") => 2 * ATTEMPTS,
        Kind::Passes => ATTEMPTS,
        Kind::Useless if role == "actor" => ROUNDS + 2,
        Kind::Useless => RETRIES + 1,
        Kind::Harmless => usize::MAX / 8,
    };
    calls * each
}

/// Runs with one fault and returns all deviations from the expected behavior.
fn play(role: &str, fault: &Fault, always: bool, kind: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let home = Home::new();
    let script: Script = serde_json::from_value(json!({ "reply": script(role, fault, always) })).expect("a script");
    let server = ModelServer::start(script);
    config(&home, &server, kind, fault, always);
    let ran = match run(&home, &["run", "Count to six hundred and show me the numbers in between."]) {
        Ok(ran) => ran,
        Err(hangs) => return vec![hangs],
    };
    // A message is requested again, except if that is useless.
    let failed = fails(role, fault.kind, always) || role == "worker" && fault.fault == json!("endless");
    let codes: &[i32] = if failed { &[1, 5] } else { &[0] };
    if !codes.contains(&ran.code) {
        wrong.push(format!("exit code {}", ran.code));
    }
    // Text of an attempt that broke off comes before the reply.
    if failed == ran.stdout.trim_end().ends_with(REPLY) || ran.stdout.trim().is_empty() {
        wrong.push("that is not the reply".to_owned());
    }
    let traced = home.kiso(&["--json", "trace", "last"]).stdout;
    let silent = ["titler", "summarizer"].contains(&role);
    let met = always || fault.kind == Kind::Final;
    let told = if failed { &ran.stdout } else { &format!("{}{traced}", ran.stderr) };
    if met && !silent && !told.contains(fault.says) {
        wrong.push(format!("it does not say {:?}", fault.says));
    }
    // Work that failed only in the background is postponed, and the session continues.
    let mut ran = vec![ran];
    if role == "summarizer" {
        match run(&home, &["run", "Count to six hundred again."]) {
            Ok(next) => ran.push(next),
            Err(hangs) => wrong.push(hangs),
        }
    }
    for ran in &ran {
        if ran.stderr.contains("panicked") {
            wrong.push("it panicked".to_owned());
        }
    }
    let asked = server.requests().iter().filter(|seen| seen.role() == role).count();
    if asked == 0 || (met && asked > most(role, fault)) {
        wrong.push(format!("the {role} was asked {asked} times"));
    }
    wrong.extend(server.problems().into_iter().filter(|problem| !problem.ends_with("was never asked for")));
    let unclean = "SELECT (SELECT count(*) FROM runs WHERE status = 'running' OR ended_ms IS NULL OR outcome IS NULL)
        + (SELECT count(*) FROM tasks WHERE status IN ('planned', 'running'))
        + (SELECT count(*) FROM runs WHERE id NOT IN (SELECT run FROM messages WHERE role = 'assistant'))";
    let unclean: u32 = store(&home).query_row(unclean, (), |row| row.get(0)).expect("it can be read");
    if unclean > 0 {
        wrong.push("the record is not clean".to_owned());
    }
    if !wrong.is_empty() {
        let end = |text: &str| text.chars().skip(text.chars().count().saturating_sub(2_000)).collect::<String>();
        wrong.extend(ran.iter().map(|ran| format!("  stdout: {}\n  stderr: {}", end(&ran.stdout), end(&ran.stderr))));
    }
    wrong
}

/// Every fault of one role, once and always. The formats alternate.
#[track_caller]
fn table(role: &str) {
    let faults = faults(role);
    let cases: Vec<_> = faults.iter().flat_map(|fault| [(fault, false), (fault, true)]).collect();
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let nth = next.fetch_add(1, Ordering::Relaxed);
                    let Some((fault, always)) = cases.get(nth) else { break };
                    let kind = if (nth + nth / 2).is_multiple_of(2) { "openai" } else { "anthropic" };
                    let wrong = play(role, fault, *always, kind);
                    if !wrong.is_empty() {
                        let often = if *always { "always" } else { "once" };
                        let text = format!("{} {often}, {kind}:\n{}", fault.fault, wrong.join("\n"));
                        failed.lock().expect("no thread panics with it").push(text);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().expect("no thread panicked with it");
    assert!(failed.is_empty(), "{} faults of the {role} went wrong\n\n{}", failed.len(), failed.join("\n\n"));
}

#[test]
fn every_fault_of_the_router() {
    table("router");
}

#[test]
fn every_fault_of_the_planner() {
    table("planner");
}

#[test]
fn every_fault_of_the_reasoner() {
    table("reasoner");
}

#[test]
fn every_fault_of_the_actor() {
    table("actor");
}

#[test]
fn every_fault_of_the_reviewer() {
    table("reviewer");
}

#[test]
fn every_fault_of_the_worker() {
    table("worker");
}

#[test]
fn every_fault_of_the_summarizer() {
    table("summarizer");
}

#[test]
fn every_fault_of_the_titler() {
    table("titler");
}

/// An endless run stops at its cap, and no call was made that could have exceeded it.
#[test]
fn no_run_exceeds_its_tokens_by_the_servers_own_count() {
    const CAP: u64 = 20_000;
    // Between half and twice the estimate of each request; estimates follow a server no further.
    const ASKED: u64 = 1_000;
    const ANSWERED: u64 = 100;
    let exec = json!({ "type": "exec", "detail": "seq 3", "review": true, "expect": "four numbers" });
    let message = json!({ "type": "msg", "detail": "say that it is done", "notify": true });
    let plan = json!({ "goal": "numbers", "tasks": [exec, message] });
    let verdict = json!({ "status": "replan", "reason": "there are only three" });
    let (brief, routing) = (brief(), routing());
    let again =
        json!([{ "name": "exec", "args": { "command": "seq 3" } }, { "name": "exec", "args": { "command": "ls" } }]);
    let act = json!({ "type": "act", "detail": "count for ever", "expect": "all numbers" });
    let long = json!({ "goal": "numbers", "tasks": [act, message] });
    let reply = |role: &str, text: &Value, calls: &Value| {
        let calls = if calls.is_null() { json!([]) } else { calls.clone() };
        let text = text.as_str().map_or_else(|| text.to_string(), str::to_owned);
        json!({ "role": role, "text": text, "calls": calls, "usage": { "input": ASKED, "output": ANSWERED } })
    };
    let (none, words) = (Value::Null, json!("Let me see."));
    let many = |reply: Value| vec![reply; 40];
    let first = vec![reply("router", &routing, &none)];
    let scripts = [
        // The plan fails again and again, and the run plans again.
        [first.clone(), many(reply("planner", &plan, &none)), many(reply("reviewer", &verdict, &none))],
        // The planner never gives a plan.
        [first.clone(), many(reply("planner", &words, &none)), Vec::new()],
        // The actor calls tools for ever.
        [
            first,
            vec![reply("planner", &long, &none), reply("reasoner", &brief, &none)],
            many(reply("actor", &words, &again)),
        ],
    ];
    for (script, kind) in scripts.into_iter().zip(["openai", "anthropic", "openai"]) {
        let home = Home::new();
        // The same calls twice in a row would end the loop, so they differ.
        let mut script = script.concat();
        for (nth, reply) in script.iter_mut().enumerate() {
            if reply["role"] == "actor" {
                reply["calls"][0]["args"]["command"] = json!(format!("seq {nth}"));
            }
        }
        let server = ModelServer::start(serde_json::from_value(json!({ "reply": script })).expect("a script"));
        home.config(&format!(
            "model = \"lab:m\"\n[providers.lab]\nkind = \"{kind}\"\nbase_url = \"{}\"\n[limits]\n\
             max_tokens_per_run = {CAP}\nmax_parse_retries = 20\nmax_replan_depth = 20\nmax_tool_call_rounds = 100\n\
             [llm]\nmax_attempts = 1\n[models]\ntitler = \"reflex\"\nsummarizer = \"reflex\"\n[routing]\nfast_path = false\n",
            server.base_url()
        ));
        let ran = run(&home, &["run", "Count and count and never stop counting."]).expect("it ends");
        ran.exit(5).prints(&["max_tokens_per_run", "20000", "limits.max_tokens_per_run"]);
        let problems: Vec<_> = server.problems().into_iter().filter(|text| !text.ends_with("asked for")).collect();
        assert_eq!(problems, Vec::<String>::new(), "{ran:?}");
        let mut counted = 0;
        let requests = server.requests();
        for seen in &requests {
            let most = ["max_tokens", "max_completion_tokens"].map(|key| seen.body[key].as_u64().unwrap_or(0));
            // A request costs what the server reports. The estimate follows it within a tenth, because this server reports the
            // same for long and short requests.
            assert!(counted + ASKED * 9 / 10 + most[0].max(most[1]) <= CAP, "{counted} + {most:?}");
            counted += ASKED + ANSWERED;
        }
        assert!(counted <= CAP && requests.len() > 5, "{counted} in {} calls", requests.len());
        let stored = "SELECT sum(input + output) FROM usage WHERE model = 'lab:m'";
        let stored: i64 = store(&home).query_row(stored, (), |row| row.get(0)).expect("it can be read");
        assert_eq!(stored, i64::try_from(counted).unwrap(), "what is on record is what the server counted");
    }
}

/// Background work also respects the caps.
#[test]
fn nothing_is_asked_in_the_background_beyond_a_cap() {
    for limit in ["max_tokens_per_session", "max_tokens_per_day"] {
        for (cap, asked) in [(30, 0), (31, 1)] {
            let home = Home::new();
            let routing =
                json!({ "effort": "low", "categories": [], "tool_need": 0, "goal": "an answer", "durable": false });
            let replies =
                [("router", routing.to_string()), ("worker", REPLY.to_owned()), ("titler", "Numbers".to_owned())];
            let replies = replies.map(|(role, text)| json!({ "role": role, "text": text }));
            let server = ModelServer::start(serde_json::from_value(json!({ "reply": replies })).expect("a script"));
            home.config(&format!(
                "model = \"lab:m\"\n[providers.lab]\nkind = \"openai\"\nbase_url = \"{}\"\n\
                 [limits]\n{limit} = {cap}\n[routing]\nfast_path = false\n",
                server.base_url()
            ));
            let ran = run(&home, &["run", "What is a number?"]).expect("it ends");
            ran.ok().prints(&[REPLY]);
            let titler = server.requests().iter().filter(|seen| seen.role() == "titler").count();
            assert_eq!(titler, asked, "{limit} = {cap}");
        }
    }
}
