//! A process is killed at any event of a run; after a restart the run ends as if it had not been interrupted.
//!
//! A trigger in the store decides where a process dies: it makes the transaction of one event last for ever. When the write lock
//! stays taken, the step of that event is done with its effects, but the event is not on disk. That is the worst moment, and the
//! process is killed there with SIGKILL. Then the trigger is dropped, a model server starts with the replies that the stored
//! events did not use up, and kiso starts again.

mod middle;

use crate::harness::{Home, Ran};
use crate::model_server::{ModelServer, Script};
use rusqlite::{Connection, ErrorCode, OptionalExtension};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// A guard against tests that never end; no test waits for it to pass.
pub(crate) const GUARD: Duration = Duration::from_secs(60);

const MESSAGE: &str = "Set up the seven marks from the list and tell me when all of them are there.";

/// Lines that the run writes to `/work/effects`, each once.
const MARKS: [&str; 7] = ["one", "two", "three", "four", "five", "six", "seven"];

const RESUME: [&str; 3] = ["run", "--resume", "last"];

/// A server's reply for a role.
type Replies = Vec<(&'static str, Value)>;

fn mark(word: &str) -> String {
    format!("echo {word} >> effects")
}

fn exec(line: &str) -> Value {
    json!({ "type": "exec", "detail": line, "review": true, "expect": "the mark is there" })
}

fn skill(args: Value) -> Value {
    json!({ "type": "skill", "skill": "hostile", "args": args, "review": true, "expect": "it was called" })
}

fn plan(tasks: &[Value]) -> Value {
    json!({ "text": format!("<FINAL_PRD>{}</FINAL_PRD>", json!({ "goal": "seven marks", "tasks": tasks })) })
}

fn text(object: &Value) -> Value {
    json!({ "text": object.to_string() })
}

fn message() -> Value {
    json!({ "type": "msg", "detail": "say that the marks are there", "notify": true })
}

/// Ten tasks in two plans: command lines, skills, a new plan, a task with a batch of calls, and a message. `flaky` counts its
/// calls in the store, and fails.
fn script() -> Replies {
    let ok = || text(&json!({ "status": "ok" }));
    let first = [
        exec(&mark("one")),
        skill(json!({ "mode": "flaky", "amount": 100 })),
        exec(&mark("two")),
        exec("false"),
        message(),
    ];
    let act = json!({ "type": "act", "detail": "set the marks four and five", "review": true, "expect": "both" });
    let slow = skill(json!({ "mode": "slow", "amount": 1 }));
    let second = [exec(&mark("three")), slow, act, exec(&mark("six")), exec(&mark("seven")), message()];
    let call = |line: String| json!({ "name": "exec", "args": { "command": line } });
    vec![
        ("router", routing("high")),
        ("planner", plan(&first)),
        ("reviewer", ok()),
        ("reviewer", ok()),
        ("reviewer", text(&json!({ "status": "replan", "reason": "the list goes on elsewhere" }))),
        ("planner", plan(&second)),
        ("reviewer", ok()),
        ("reviewer", ok()),
        ("actor", json!({ "text": "Both now.", "calls": [call(mark("four")), call(mark("five"))] })),
        ("actor", json!({ "text": "Four and five are there." })),
        ("reviewer", ok()),
        ("reviewer", ok()),
        ("reviewer", ok()),
        ("worker", json!({ "text": "All seven marks are there." })),
    ]
}

fn routing(effort: &str) -> Value {
    text(&json!({ "effort": effort, "categories": [], "tool_need": 1.0, "goal": "seven marks", "durable": false }))
}

/// A server with these replies, and a home that asks it.
pub(crate) fn serve(home: &Home, replies: &[(&'static str, Value)], more: &str) -> ModelServer {
    let replies = replies.iter().map(|(role, reply)| {
        let mut reply = reply.clone();
        reply["role"] = json!(role);
        reply
    });
    let script: Script = serde_json::from_value(json!({ "reply": replies.collect::<Vec<_>>() })).expect("a script");
    let server = ModelServer::start(script);
    home.config(&format!(
        "model = \"test:m\"\n[providers.test]\nkind = \"openai\"\nbase_url = \"{}\"\n{more}",
        server.base_url()
    ));
    server
}

pub(crate) fn store(home: &Home) -> Connection {
    let conn = Connection::open(home.path().join("store.db")).expect("the store can be opened");
    conn.busy_timeout(Duration::from_secs(10)).expect("it is a number");
    conn
}

/// The fields of an event that must not change: kind and time. Its text changes when secrets are removed.
type Logged = (u32, String, i64);

fn events(conn: &Connection, run: i64) -> Vec<Logged> {
    let mut query = conn.prepare("SELECT seq, kind, at_ms FROM events WHERE run = ? ORDER BY seq").unwrap();
    let rows = query.query_map([run], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

/// The result of a run as its user and the next run see it.
#[derive(Debug, PartialEq)]
struct Ended {
    status: String,
    ending: Value,
    messages: Vec<(String, String)>,
    /// Label and status of every task, except interrupted ones and those added to check on them.
    tasks: Vec<(String, String)>,
    /// Name and content of the files in `/work`.
    files: BTreeMap<String, String>,
    /// Number of calls that the counting skill recorded.
    counted: Option<String>,
}

fn ended(home: &Home) -> (Ended, Vec<Logged>) {
    let conn = store(home);
    let row = |sql: &str| conn.query_row::<String, _, _>(sql, (), |row| row.get(0)).optional().unwrap();
    let outcome = row("SELECT outcome FROM runs WHERE num = 1").expect("the run has ended");
    let outcome: Value = serde_json::from_str(&outcome).unwrap();
    let pairs = |sql: &str| -> Vec<(String, String)> {
        let mut query = conn.prepare(sql).unwrap();
        let rows = query.query_map((), |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    };
    let files = std::fs::read_dir(home.work("default")).unwrap().flatten();
    let files = files.filter(|file| file.path().is_file());
    let files = files.map(|f| (f.file_name().into_string().unwrap(), std::fs::read_to_string(f.path()).unwrap()));
    let counted = "SELECT CAST(value AS TEXT) FROM kv WHERE skill LIKE 'hostile%' AND key = CAST('failed' AS BLOB)";
    let ended = Ended {
        status: row("SELECT status FROM runs WHERE num = 1").unwrap(),
        ending: outcome["ending"].clone(),
        messages: pairs("SELECT role, text FROM messages WHERE run = (SELECT id FROM runs WHERE num = 1) ORDER BY id"),
        tasks: pairs("SELECT label, status FROM tasks WHERE run = 1 ORDER BY id"),
        files: files.collect(),
        counted: row(counted),
    };
    assert_eq!(row("PRAGMA integrity_check").as_deref(), Some("ok"));
    // Every recorded model call is billed once.
    let calls =
        "SELECT count(*) || ' of ' || (SELECT count(*) FROM usage WHERE run = 1 AND role != 'titler') FROM events
        WHERE run = 1 AND (kind IN ('routed', 'planned', 'briefed', 'acted', 'reviewed')
            OR kind = 'executed' AND body ->> '$.report.task.type' = 'msg')";
    let (made, paid) = row(calls).unwrap().split_once(" of ").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    assert_eq!(made, paid, "model calls and lines of usage");
    (ended, events(&conn, 1))
}

/// The point at which a process dies.
#[derive(Debug, Clone, Copy)]
enum Death {
    /// While the event of this number is committed.
    Event(u32),
    /// While the outcome is committed, after the last event.
    Outcome,
}

impl Death {
    fn trigger(self) -> String {
        const ENDLESS: &str =
            "SELECT count(*) FROM (WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n)";
        match self {
            Self::Event(seq) => format!(
                "CREATE TRIGGER death AFTER INSERT ON events WHEN NEW.run = 1 AND NEW.seq = {seq} BEGIN {ENDLESS}; END"
            ),
            Self::Outcome => {
                format!("CREATE TRIGGER death AFTER UPDATE OF status ON runs WHEN NEW.num = 1 BEGIN {ENDLESS}; END")
            }
        }
    }
}

/// A process that is killed when the value is dropped.
pub(crate) struct Running(pub Child);

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("kiso starts"))
    }

    pub(crate) fn kill(mut self) {
        self.0.kill().expect("it can be killed");
        self.0.wait().expect("it was started here");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits for a condition that the process must bring about before it ends.
#[track_caller]
pub(crate) fn wait_on(child: &mut Child, what: &str, mut so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !so() {
        assert!(began.elapsed() < GUARD, "{what}: waited for in vain");
        let ended = child.try_wait().expect("it was started here");
        assert!(ended.is_none(), "{what}: kiso ended before, {ended:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Runs until the trigger, kills the process and drops the trigger.
fn die(home: &Home, args: &[&str], death: Death, last: u32) {
    let conn = store(home);
    conn.execute_batch(&death.trigger()).unwrap();
    conn.busy_timeout(Duration::ZERO).unwrap();
    let before = match death {
        Death::Event(seq) => seq - 1,
        Death::Outcome => last,
    };
    // Resuming a run is counted before anything else of it is written.
    let taken_up = || {
        let sql = "SELECT resumed, resumed_at_seq FROM runs WHERE num = 1";
        conn.query_row(sql, (), |row| Ok((row.get::<_, u32>(0)?, row.get::<_, i64>(1)?))).optional().unwrap()
    };
    let earlier = taken_up();
    let mut running = Running::start(home.command(args));
    // Checks in a row, 5 ms apart, with so much work meanwhile that it is not another transaction: one that waits for its disk
    // uses no processor time.
    let pid = running.0.id();
    let (mut locked, mut since) = (0, 0);
    wait_on(&mut running.0, &format!("{death:?}"), || {
        let seq: Option<u32> =
            conn.query_row("SELECT max(seq) FROM events WHERE run = 1", (), |row| row.get(0)).unwrap();
        let busy = match conn.execute_batch("BEGIN IMMEDIATE") {
            Ok(()) => conn.execute_batch("ROLLBACK").map(|()| false).unwrap(),
            Err(error) => error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy),
        };
        if locked == 0 {
            since = ticks(pid);
        }
        locked = if seq == Some(before) && taken_up() != earlier && busy { locked + 1 } else { 0 };
        locked >= 20 && ticks(pid) >= since + 5
    });
    running.kill();
    conn.busy_timeout(Duration::from_secs(10)).unwrap();
    conn.execute_batch("DROP TRIGGER death").unwrap();
}

/// Processor time of a process in hundredths of a second.
fn ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let behind_name = stat.rsplit(')').next().unwrap_or_default();
    behind_name.split_whitespace().skip(11).take(2).filter_map(|time| time.parse::<u64>().ok()).sum()
}

/// The server's replies for the process after the one that died.
fn rest(conn: &Connection) -> Replies {
    let mut replies = script();
    let mut query = conn.prepare("SELECT kind, body FROM events WHERE run = 1 ORDER BY seq").unwrap();
    let rows = query.query_map((), |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))).unwrap();
    let rows: Vec<_> = rows.collect::<Result<_, _>>().unwrap();
    let mut task = Value::Null;
    let mut tasks = Vec::new();
    for (kind, body) in &rows {
        let body: Value = serde_json::from_str(body).unwrap_or_default();
        let role = match kind.as_str() {
            "routed" => "router",
            "planned" => {
                tasks = body["plan"]["tasks"].as_array().unwrap().clone();
                tasks.reverse();
                "planner"
            }
            "briefed" => "reasoner",
            "acted" => "actor",
            "reviewed" => "reviewer",
            "started" => {
                task = tasks.pop().unwrap();
                continue;
            }
            "executed" if body["report"]["task"]["type"] == "msg" => "worker",
            _ => continue,
        };
        let used = replies.iter().position(|(of, _)| *of == role).unwrap();
        replies.remove(used);
    }
    let kind = rows.last().map(|(kind, _)| kind.as_str());
    // An interrupted task is rolled back and done again. Only a task whose effect survives, the counting one, is reviewed.
    if kind == Some("started") && task["args"]["mode"] == "flaky" {
        let inject = [exec("echo looked")];
        let verdict = json!({ "status": "needs_fix", "reason": "nobody saw its end", "inject": inject });
        replies.insert(0, ("reviewer", json!({ "text": verdict.to_string(), "expect_contains": "interrupted" })));
    }
    replies
}

/// A home with the skill that the run calls. The skill is compiled once for all homes of this process.
fn home() -> Home {
    static FIRST: OnceLock<Home> = OnceLock::new();
    let first = FIRST.get_or_init(|| {
        let home = Home::new();
        home.add("hostile");
        home
    });
    let home = Home::new();
    let copied = Command::new("cp").arg("-a").arg(first.path()).arg(home.path()).status().expect("cp starts");
    assert!(copied.success());
    home
}

/// A run that is not killed.
fn undisturbed() -> (Ended, Vec<Logged>) {
    let home = home();
    let mut replies = script();
    replies.push(("titler", json!({ "text": "Seven marks" })));
    let server = serve(&home, &replies, "");
    home.kiso(&["run", MESSAGE]).ok().prints(&["All seven marks are there."]);
    server.finish();
    let (ended, log) = ended(&home);
    assert_eq!(ended.tasks.len(), 11, "{ended:#?}");
    assert_eq!(ended.counted.as_deref(), Some("1"));
    assert_eq!(ended.files["effects"], MARKS.join("\n") + "\n");
    (ended, log)
}

/// Kills at every event. `restart` then resumes the run; `more` are the additional replies it needs.
fn at_every_event(more: Replies, restart: impl Fn(&Home) -> Ran) {
    let (whole, log) = undisturbed();
    let last = log.last().unwrap().0;
    let deaths = (1..=last).map(Death::Event).chain([Death::Outcome]);
    for death in deaths {
        let home = home();
        let server = serve(&home, &script(), "");
        die(&home, &["run", MESSAGE], death, last);
        drop(server);
        let conn = store(&home);
        let seen = events(&conn, 1);
        let mut replies = rest(&conn);
        drop(conn);
        replies.extend(more.clone());
        let server = serve(&home, &replies, "");
        let ran = restart(&home);
        assert_eq!(ran.code, 0, "{death:?}: {ran:?}\n{:#?}", server.problems());
        assert_eq!(server.problems(), Vec::<String>::new(), "{death:?}: {ran:?}");

        let (mut now, after) = ended(&home);
        assert_eq!(&after[..seen.len()], &seen[..], "{death:?}: events that were seen are still there");
        let numbers: Vec<u32> = after.iter().map(|(seq, ..)| *seq).collect();
        assert_eq!(numbers, (0..after.len() as u32).collect::<Vec<_>>(), "{death:?}: there is no gap");
        // The interrupted task is recorded as such, and the reviewer's additional tasks follow it in the table.
        let cut = matches!(seen.last(), Some((_, kind, _)) if kind == "started")
            && now.tasks.iter().any(|(_, status)| status == "interrupted");
        if cut {
            let interrupted: Vec<_> = now.tasks.iter().filter(|(_, status)| status == "interrupted").collect();
            assert_eq!(interrupted.len(), 1, "{death:?}: {now:#?}");
            assert_eq!(interrupted[0].0, "skill hostile", "{death:?}: a command line is never cut off: {now:#?}");
            let fixes = now.tasks.iter().filter(|(label, _)| label.contains("echo looked"));
            assert_eq!(fixes.count(), 1, "{death:?}: {now:#?}");
            now.tasks.retain(|(label, _)| !label.contains("echo looked"));
            for (task, whole) in now.tasks.iter_mut().zip(&whole.tasks) {
                if task.1 == "interrupted" {
                    task.1.clone_from(&whole.1);
                }
            }
        }
        assert_eq!(now, whole, "{death:?}");
    }
}

#[test]
fn killed_at_any_event_and_resumed_by_hand() {
    at_every_event(vec![("titler", json!({ "text": "Seven marks" }))], |home| home.kiso(&RESUME));
}

#[test]
fn killed_at_any_event_and_resumed_by_the_next_run() {
    let more = vec![("worker", json!({ "text": "You are welcome." })), ("titler", json!({ "text": "Seven marks" }))];
    at_every_event(more, |home| {
        let ran = home.kiso(&["run", "thanks"]);
        ran.says(&["was interrupted; resuming it first"]).prints(&["You are welcome."]);
        assert!(!ran.stdout.contains("seven marks"), "the reply of another message: {ran:?}");
        ran
    });
}

/// The run is cancelled, and its process dies before it notices.
#[test]
fn killed_when_it_was_to_be_stopped_it_starts_nothing_more() {
    let home = home();
    let server = serve(&home, &script(), "");
    // The plan is there, and its first task is about to start.
    die(&home, &["run", MESSAGE], Death::Event(5), 0);
    drop(server);
    store(&home).execute("UPDATE runs SET cancel_requested = 1", ()).unwrap();
    let server = serve(&home, &[("titler", json!({ "text": "Seven marks" }))], "");
    let ran = home.kiso(&["run", "--resume", "last"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert_eq!(server.problems(), Vec::<String>::new(), "{ran:?}");
    let kinds: Vec<_> = events(&store(&home), 1).into_iter().map(|(_, kind, _)| kind).collect();
    assert_eq!(kinds, ["spec", "admitted", "retrieved", "routed", "planned", "cancelled", "finished"], "{ran:?}");
}

/// A process may also die while it resumes a run.
#[test]
fn killed_again_and_again() {
    let (whole, log) = undisturbed();
    let last = log.last().unwrap().0;
    let home = home();
    let server = serve(&home, &script(), "");
    die(&home, &["run", MESSAGE], Death::Event(1), last);
    drop(server);
    // Events outside a running task; the other tests cover interrupted tasks.
    let calm = |seq: &u32| !["started", "executed", "calls_started", "called"].contains(&log[*seq as usize].1.as_str());
    let calm: Vec<u32> = (2..=last).filter(calm).collect();
    // More often than a run without progress would be resumed; this one made progress each time.
    let deaths = [1, 2, 3, 4].map(|nth| calm[(calm.len() - 1) * nth / 4]);
    for seq in &deaths {
        let replies = rest(&store(&home));
        let server = serve(&home, &replies, "");
        die(&home, &RESUME, Death::Event(*seq), last);
        drop(server);
    }
    let mut replies = rest(&store(&home));
    replies.push(("titler", json!({ "text": "Seven marks" })));
    let server = serve(&home, &replies, "");
    home.kiso(&RESUME).ok();
    server.finish();
    let (now, after) = ended(&home);
    assert_eq!(now, whole);
    assert_eq!(after.len(), log.len());
    let resumed: isize = store(&home).query_row("SELECT resumed FROM runs", (), |row| row.get(0)).unwrap();
    assert_eq!(resumed, 1, "each completed step resets the count");
}

/// A run that brought its process down twice is not started a third time: it waits for a person, and its session continues
/// without it.
#[test]
fn a_run_that_was_cut_off_twice_waits_for_a_person() {
    for cancels in [true, false] {
        let home = Home::new();
        let server = serve(&home, &[], "");
        for args in [["run", MESSAGE], ["run", "good day"]] {
            die(&home, &args, Death::Event(1), 0);
        }
        server.finish();
        let status = || home.kiso(&["--json", "trace"]).ok().json_lines().last().unwrap()["status"].clone();
        let replies = [
            ("router", routing("low")),
            ("worker", json!({ "text": "Good day." })),
            ("titler", json!({ "text": "A greeting" })),
        ];
        let server = serve(&home, &replies, "[routing]\nfast_path = false\n");
        let ran = home.kiso(&["run", "good day"]);
        ran.ok().prints(&["Good day."]).says(&["kiso was cut off twice while it worked on this message"]);
        server.finish();
        let run: String = store(&home).query_row("SELECT id FROM runs WHERE num = 1", (), |row| row.get(0)).unwrap();
        ran.says(&[&format!("kiso run --resume {run}"), &format!("kiso cancel {run}")]);
        assert_eq!(status(), "held");
        let said = "SELECT count(*) FROM messages WHERE role = 'assistant' AND text LIKE '%was cut off twice%'";
        assert_eq!(store(&home).query_row(said, (), |row| row.get::<_, u32>(0)).unwrap(), 1, "it is said once");
        if cancels {
            home.kiso(&["cancel", &run]).ok();
            assert_eq!(status(), "cancelled");
            continue;
        }
        let replies = [("router", routing("low")), ("worker", json!({ "text": "All seven marks are there." }))];
        let server = serve(&home, &replies, "[routing]\nfast_path = false\n");
        home.kiso(&["run", "--resume", &run]).ok().prints(&["All seven marks are there."]);
        server.finish();
        assert_eq!(status(), "done");
    }
}
