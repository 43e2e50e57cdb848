//! `kiso cancel` and Ctrl-C: a run stops at any point and leaves a consistent record, and its session continues.

use crate::crash::{Running, serve, store, wait_on};
use crate::harness::{Home, Ran, root, wait_until};
use crate::model_server::ModelServer;
use rusqlite::OptionalExtension;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::process::{Child, Stdio};

const MESSAGE: &str = "Set the mark and tell me when it is there.";

/// The reply of a cancelled run.
const CANCELLED: &str = "The run was cancelled before the work was done.";

const CANCEL: [&str; 2] = ["cancel", "last"];

/// A server's reply for a role.
type Replies = Vec<(&'static str, Value)>;

fn text(object: &Value) -> Value {
    json!({ "text": object.to_string() })
}

fn routing(effort: &str) -> (&'static str, Value) {
    let routing = json!({ "effort": effort, "categories": [], "tool_need": 1, "goal": "a mark", "durable": false });
    ("router", text(&routing))
}

/// A plan of these tasks and a message.
fn plan(tasks: &[Value]) -> (&'static str, Value) {
    let message = json!({ "type": "msg", "detail": "say that the mark is there", "notify": true });
    let tasks: Vec<_> = tasks.iter().chain([&message]).collect();
    ("planner", text(&json!({ "goal": "a mark", "tasks": tasks })))
}

fn exec(line: &str) -> Value {
    json!({ "type": "exec", "detail": line })
}

fn held(role: &'static str, fault: &str) -> (&'static str, Value) {
    (role, json!({ "text": "The mark is there, and it will stay.", "pieces": 8, "fault": fault }))
}

/// A process whose output is kept.
fn start(home: &Home, args: &[&str]) -> Child {
    home.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("kiso starts")
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("it runs");
}

/// One text of the store, which may not exist yet.
fn row(home: &Home, sql: &str) -> Option<String> {
    let path = home.path().join("store.db");
    let conn = rusqlite::Connection::open_with_flags(path, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY).ok()?;
    conn.query_row(sql, (), |row| row.get(0)).optional().ok().flatten()
}

fn kind_of_last_event(home: &Home) -> Option<String> {
    row(home, "SELECT kind FROM events WHERE run = 1 ORDER BY seq DESC LIMIT 1")
}

fn effects(home: &Home) -> String {
    std::fs::read_to_string(home.work("default").join("effects")).unwrap_or_default()
}

/// Checks that the first run of a home is recorded as cancelled. Returns its tasks with their status.
#[track_caller]
fn is_clean(home: &Home) -> Vec<(String, String)> {
    let conn = store(home);
    let of = |sql: &str| conn.query_row::<String, _, _>(sql, (), |row| row.get(0)).unwrap();
    assert_eq!(of("SELECT status || ' ' || (ended_ms IS NOT NULL) FROM runs WHERE num = 1"), "cancelled 1");
    assert_eq!(of("SELECT outcome ->> '$.ending' FROM runs WHERE num = 1"), "cancelled");
    let reply = of("SELECT text FROM messages WHERE role = 'assistant' ORDER BY id LIMIT 1");
    assert!(reply.contains(CANCELLED), "{reply}");
    let kinds = of("SELECT group_concat(kind, ' ') FROM (SELECT kind FROM events WHERE run = 1 ORDER BY seq)");
    assert!(kinds.ends_with("cancelled finished"), "{kinds}");
    assert_eq!(of("SELECT count(*) || '' FROM tasks WHERE status IN ('planned', 'running')"), "0");
    let mut tasks = conn.prepare("SELECT label, status FROM tasks WHERE run = 1 ORDER BY id").unwrap();
    let tasks = tasks.query_map((), |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    tasks.collect::<Result<_, _>>().unwrap()
}

/// The next message in the session is answered normally, and its model knows about the cancelled run.
#[track_caller]
fn session_goes_on(home: &Home) {
    let replies = [
        routing("low"),
        ("worker", json!({ "text": "You are welcome.", "expect_contains": CANCELLED })),
        ("titler", json!({ "text": "Marks" })),
    ];
    let server = serve(home, &replies, "[routing]\nfast_path = false\n");
    let ran = home.kiso(&["run", "thanks all the same"]);
    ran.ok().prints(&["You are welcome."]);
    assert!(!ran.stderr.contains("cut off"), "{ran:?}");
    // The session may already have a title.
    assert!(server.problems().iter().all(|problem| problem.ends_with("(titler) was never asked for")), "{ran:?}");
}

/// A point at which a run is cancelled.
struct Place {
    name: &'static str,
    replies: Replies,
    /// Whether the run has reached it.
    there: fn(&Home, &ModelServer) -> bool,
    tasks: &'static [(&'static str, &'static str)],
    effects: &'static str,
}

fn places() -> Vec<Place> {
    const ENDLESS: &str = "echo one >> effects; while :; do :; done";
    let act = json!({ "type": "act", "detail": "set the mark", "expect": "it is there" });
    let call = |line: &str| json!({ "name": "exec", "args": { "command": line } });
    let calls = json!({ "calls": [call(ENDLESS), call("echo two >> effects")] });
    let slow = json!({ "type": "skill", "skill": "hostile", "args": { "mode": "slow", "amount": 60_000 } });
    let steps: Vec<_> = ["one", "two", "three"].map(|mark| exec(&format!("echo {mark} >> effects"))).into();
    let waits: fn(&Home, &ModelServer) -> bool = |_, server| server.held() == 1;
    vec![
        Place {
            name: "router",
            replies: vec![held("router", "slow_first_token")],
            there: waits,
            tasks: &[],
            effects: "",
        },
        Place {
            name: "planner",
            replies: vec![routing("high"), held("planner", "stall_mid_stream")],
            there: waits,
            tasks: &[],
            effects: "",
        },
        Place {
            name: "reasoner",
            // Two actions: a single one needs no reasoner.
            replies: vec![routing("high"), plan(&[act.clone(), act.clone()]), held("reasoner", "slow_first_token")],
            there: waits,
            tasks: &[("act", "dropped"), ("act", "dropped"), ("msg", "dropped")],
            effects: "",
        },
        Place {
            name: "actor",
            replies: vec![routing("high"), plan(std::slice::from_ref(&act)), held("actor", "stall_mid_stream")],
            there: waits,
            tasks: &[("act", "failed"), ("msg", "dropped")],
            effects: "",
        },
        Place {
            name: "worker",
            replies: vec![routing("high"), plan(&steps[..1]), held("worker", "stall_mid_stream")],
            there: waits,
            tasks: &[("$ echo one >> effects", "done"), ("msg", "failed")],
            effects: "one\n",
        },
        Place {
            name: "command line",
            replies: vec![routing("high"), plan(&[exec(ENDLESS), steps[1].clone()])],
            there: |home, _| effects(home) == "one\n",
            tasks: &[
                ("$ echo one >> effects; while :; do :; done", "interrupted"),
                ("$ echo two >> effects", "dropped"),
                ("msg", "dropped"),
            ],
            effects: "",
        },
        Place {
            name: "skill",
            replies: vec![routing("high"), plan(&[slow])],
            there: |home, _| kind_of_last_event(home).as_deref() == Some("started"),
            tasks: &[("skill hostile", "interrupted"), ("msg", "dropped")],
            effects: "",
        },
        Place {
            name: "tool",
            replies: vec![routing("high"), plan(&[act]), ("actor", calls)],
            there: |home, _| effects(home) == "one\n",
            tasks: &[("act", "interrupted"), ("msg", "dropped")],
            effects: "",
        },
    ]
}

#[test]
fn a_run_stops_wherever_it_is() {
    for Place { name, replies, there, tasks, effects: left } in places() {
        // By another process, by Ctrl-C, and by another process after the run's own process was killed.
        for how in ["cancel", "interrupt", "killed"] {
            let home = Home::new();
            if name == "skill" {
                home.add("hostile");
            }
            let mut replies = replies.clone();
            replies.push(("titler", json!({ "text": "Marks" })));
            let server = serve(&home, &replies, "");
            let mut child = start(&home, &["run", MESSAGE]);
            wait_on(&mut child, name, || there(&home, &server));
            if how == "killed" {
                child.kill().unwrap();
                child.wait().unwrap();
                home.kiso(&CANCEL).ok().prints(&["is cancelled"]);
            } else {
                match how {
                    // The run may have ended already.
                    "cancel" => {
                        let said = home.kiso(&CANCEL).ok().stdout.clone();
                        assert!(said.contains("is stopping") || said.contains("is cancelled"), "{said}");
                    }
                    _ => signal(&child, Signal::INT),
                }
                let ran = Ran::new(&["run", MESSAGE], child.wait_with_output().unwrap());
                ran.exit(1).prints(&[CANCELLED]);
            }
            wait_until(&format!("{name}, {how}: nobody waits for an answer any more"), || server.held() == 0);
            let found = is_clean(&home);
            let found: Vec<_> = found.iter().map(|(label, status)| (label.as_str(), status.as_str())).collect();
            assert_eq!(found, tasks, "{name}, {how}");
            // Changes of the cancelled command are undone; earlier changes by others stay.
            assert_eq!(effects(&home), left, "{name}, {how}");
            home.kiso(&CANCEL).exit(2).says(&["has already ended (cancelled)"]);
            drop(server);
            session_goes_on(&home);
            assert_eq!(effects(&home), left, "{name}, {how}: nothing is done later");
        }
    }
}

/// A run of many steps is cancelled at a random moment: finished steps are recorded, and nothing else was done.
#[test]
fn a_run_stops_between_its_steps() {
    // The last step does not end, so that the run still runs however late it is cancelled.
    let steps = (0..48).map(|n| format!("echo {n} >> effects"));
    let tasks: Vec<_> = steps.chain(["while :; do :; done".to_owned()]).map(|line| exec(&line)).collect();
    for after in [1, 3, 7, 12] {
        let home = Home::new();
        // The window is large enough for any number of steps, so nothing is summarized.
        let window = "[context]\nsliding_window = 200\nsummarize_threshold = 400\n";
        let server = serve(&home, &[routing("high"), plan(&tasks), ("titler", json!({ "text": "Marks" }))], window);
        let mut child = start(&home, &["run", MESSAGE]);
        wait_on(&mut child, "an effect", || effects(&home).lines().count() >= after);
        home.kiso(&CANCEL).ok().prints(&["is stopping"]);
        Ran::new(&["run", MESSAGE], child.wait_with_output().unwrap()).exit(1).prints(&[CANCELLED]);
        server.finish();
        let tasks = is_clean(&home);
        let count = |status: &str| tasks.iter().filter(|(_, of)| of == status).count();
        assert_eq!(count("done") + count("interrupted") + count("dropped"), tasks.len(), "{tasks:?}");
        assert!(count("interrupted") <= 1 && count("dropped") >= 1, "{tasks:?}");
        let written = effects(&home).lines().count();
        assert!((count("done")..=count("done") + count("interrupted")).contains(&written), "{written}: {tasks:?}");
    }
}

/// The process died while it was cancelling: the run is not resumed, and the next message is processed.
#[test]
fn a_wish_to_stop_outlives_the_process() {
    for resumes in [false, true] {
        let home = Home::new();
        let replies = [routing("high"), plan(&[exec("echo one >> effects")]), held("worker", "slow_first_token")];
        let server = serve(&home, &replies, "");
        let mut child = Running(start(&home, &["run", MESSAGE]));
        wait_on(&mut child.0, "the worker", || server.held() == 1);
        child.kill();
        drop(server);
        store(&home).execute("UPDATE runs SET cancel_requested = 1", ()).unwrap();
        if resumes {
            let server = serve(&home, &[("titler", json!({ "text": "Marks" }))], "");
            home.kiso(&["run", "--resume", "last"]).exit(1).prints(&[CANCELLED]);
            server.finish();
        } else {
            let replies = [
                routing("low"),
                ("worker", json!({ "text": "You are welcome.", "expect_contains": CANCELLED })),
                ("titler", json!({ "text": "Marks" })),
            ];
            let server = serve(&home, &replies, "[routing]\nfast_path = false\n");
            home.kiso(&["run", "thanks all the same"]).ok().prints(&["You are welcome."]).says(&[CANCELLED]);
            server.finish();
        }
        assert_eq!(is_clean(&home)[0].1, "done");
    }
}

/// The run cannot even record that it stops: the second Ctrl-C ends the process at once.
#[test]
fn a_second_interrupt_leaves_at_once() {
    let home = Home::new();
    let server = serve(&home, &[held("router", "slow_first_token")], "");
    let mut child = start(&home, &["run", MESSAGE]);
    wait_on(&mut child, "the router", || server.held() == 1);
    let conn = store(&home);
    conn.execute_batch("BEGIN IMMEDIATE").unwrap();
    signal(&child, Signal::INT);
    wait_on(&mut child, "the call is given up", || server.held() == 0);
    signal(&child, Signal::INT);
    let ran = Ran::new(&["run", MESSAGE], child.wait_with_output().unwrap());
    ran.exit(130).says(&["press Ctrl-C again to quit immediately"]);
    conn.execute_batch("ROLLBACK").unwrap();
    drop(server);
    home.kiso(&CANCEL).ok().prints(&["is cancelled"]);
    is_clean(&home);
    session_goes_on(&home);
}

/// Simulates a run that ends between the cancel request and the check for an active process.
#[test]
fn a_run_that_ends_as_soon_as_it_is_asked_to_is_cancelled() {
    let home = Home::new();
    let mut child = start(&home, &["run", "$ echo one > list; sleep 60"]);
    wait_on(&mut child, "the file", || home.work("default").join("list").exists());
    Running(child).kill();
    let ends = "CREATE TRIGGER ends AFTER UPDATE OF cancel_requested ON runs
                BEGIN UPDATE runs SET status = 'cancelled', ended_ms = 1 WHERE num = NEW.num; END";
    store(&home).execute_batch(ends).unwrap();
    home.kiso(&CANCEL).ok().prints(&["is cancelled"]);
}

#[test]
fn what_cannot_be_cancelled_is_an_error() {
    let home = Home::new();
    home.kiso(&CANCEL).exit(2).says(&["there is no run \"last\""]);
    home.kiso(&["run", "$ echo one"]).ok();
    home.kiso(&["cancel", "zzzz"]).exit(2).says(&["zzzz"]);
    home.kiso(&CANCEL).exit(2).says(&["has already ended (done)"]);
    home.kiso(&["cancel"]).exit(2);
    let error = home.kiso(&["--json", "cancel", "last"]).json();
    assert_eq!((error["type"].as_str(), error["code"].as_str()), (Some("error"), Some("usage")));
    home.kiso(&["trace", "last"]).ok().prints(&["done"]);
}

/// The commands of the section on stopping and resuming, in order.
#[test]
fn the_documented_commands_do_what_they_say() {
    let page = include_str!("../../docs/how-it-works.md");
    let section = page.split("## Stopping and resuming\n").nth(1).expect("there is the section");
    let section = section.split("\n## ").next().unwrap();
    let blocks = section.split("```sh\n").skip(1).map(|block| block.split("```").next().unwrap());
    let plain = |line: &'static str| line.split(" # exit").next().unwrap().trim_end_matches(" &");
    let lines = blocks.flat_map(str::lines).filter(|line| line.starts_with("kiso "));
    let commands: Vec<Vec<&str>> = lines.map(|line| words(plain(line))).collect();
    let [run, cancel, trace, again, resume, next] = &commands[..] else { panic!("{commands:#?}") };
    assert_eq!(run, again);
    let home = Home::new();
    let list = || std::fs::read_to_string(home.work("default").join("list")).unwrap_or_default();
    let started = |text: &str| {
        let mut child = start(&home, run);
        wait_on(&mut child, "the first line", || list() == text);
        child
    };
    let child = started("one\n");
    let cancelled = home.kiso(&[&["--json"], &cancel[..]].concat()).json();
    let row = page_row("docs/json.md", "## `kiso cancel`", "cancelled");
    assert!(
        cancelled.as_object().unwrap().keys().all(|key| key == "type" || row.contains(&format!("`{key}`"))),
        "{row}"
    );
    assert!(["stopping", "cancelled"].map(Some).contains(&cancelled["state"].as_str()), "{cancelled}");
    Ran::new(run, child.wait_with_output().unwrap()).exit(1).prints(&[CANCELLED]);
    home.kiso(trace).ok().prints(&["cancelled", CANCELLED]);
    assert_eq!(is_clean(&home)[0].1, "interrupted");
    assert_eq!(list(), "", "what it had changed is undone");

    Running(started("one\n")).kill();
    // The task is rolled back and done again.
    home.kiso(resume).ok();
    assert_eq!(list(), "one\ntwo\n");
    Running(started("one\ntwo\none\n")).kill();
    home.kiso(next).ok().says(&["resuming it first"]).prints(&["one\ntwo\none\ntwo\n"]);
}

/// The arguments of a `kiso` command, split as a shell does.
fn words(line: &str) -> Vec<&str> {
    let line = line.strip_prefix("kiso ").unwrap_or_else(|| panic!("{line} is not a command of kiso"));
    match line.split_once('\'') {
        Some((plain, quoted)) => plain.split_whitespace().chain([quoted.trim_end_matches('\'')]).collect(),
        None => line.split_whitespace().collect(),
    }
}

/// The row for a type in a section of a page.
fn page_row(page: &str, section: &str, kind: &str) -> String {
    let page = std::fs::read_to_string(root().join(page)).unwrap();
    let section = page.split(section).nth(1).unwrap_or_else(|| panic!("there is no {section}"));
    let row = section.lines().find(|line| line.starts_with(&format!("| `{kind}`")));
    row.unwrap_or_else(|| panic!("{kind} is not documented")).to_owned()
}
