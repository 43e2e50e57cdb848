//! Runs `tests/scenarios/*.toml`: what a user says, what models answer, and what must come of it. Each runs the binary
//! against a [`ModelServer`] over HTTP.
//!
//! ```toml
//! shows = "One sentence: the rule that this scenario shows"
//! formats = ["openai", "anthropic"]      # openai alone without it
//! skills = ["echo"]                      # guests that are installed
//! config = '[limits]…'                   # behind the provider and its time-outs
//! daemon = true                          # a daemon is told what is said, commands too, and no `kiso run`
//!
//! [[turn]]                               # one command after the other
//! say = "hello"                          # `kiso run` in the session; or `args = ["trace"]` for any other command
//! exit = 0
//! stdout = ["text that is printed"]
//! edges = ["input admitted retrieval"]   # every move of the run, in order
//! kinds = ["admitted"]                   # every event of the run, in order
//! events = [{ kind = "routed" }]         # some of its events, in order, with at least these fields
//! limits = []                            # every limit that was reached
//!
//! [[reply]]                              # what the models answer; see `model_server.rs`. Every reply must be asked for
//! role = "router"                        # and every request must have one, so their number is that of the requests
//!
//! [[request]]                            # what a model was asked, beside what its reply expects
//! role = "actor"
//! nth = 1
//! tools = ["exec"]
//!
//! [[store]]                              # what is left in the database
//! query = "SELECT text FROM facts"
//! rows = [["a fact"]]
//!
//! [[delivery]]                           # what the webhook of the daemon was sent; deliveries have no order
//! event = "notify"
//! text = "Starting."
//! ```
//!
//! In expected values, a text that begins with `…` stands for any text that contains the rest of it. Titles are asked
//! for after each first run; where a scenario says nothing about it, the titler is answered as well.

use crate::harness::{Home, Ran, root};
use crate::model_server::{ModelServer, Reply, Script, Seen};
use crate::served::Served;
use crate::webhooks::Inbox;
use rusqlite::types::ValueRef;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::PathBuf;
use std::process::{ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

/// Scenarios at once: each is a process that mostly waits for this one.
const AT_ONCE: usize = 3;

/// A guard against what is never sent.
const PATIENCE: Duration = Duration::from_secs(60);

/// The session of every turn.
const SESSION: &str = "main";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    shows: String,
    #[serde(default = "openai")]
    formats: Vec<String>,
    #[serde(default)]
    skills: Vec<String>,
    #[serde(default)]
    config: String,
    /// Files that turns give with `--file`, by name.
    #[serde(default)]
    files: BTreeMap<String, String>,
    /// Files of the home, by their path in it.
    #[serde(default)]
    home: BTreeMap<String, String>,
    #[serde(default)]
    daemon: bool,
    /// All that the webhook of the daemon was sent, with at least these fields.
    #[serde(default)]
    delivery: Vec<Value>,
    /// Fields that the server refuses.
    #[serde(default)]
    refuses: Vec<String>,
    turn: Vec<Turn>,
    #[serde(default)]
    reply: Vec<Reply>,
    #[serde(default)]
    request: Vec<Request>,
    #[serde(default)]
    store: Vec<Query>,
    /// Texts that stand in no byte of the home, sealed or not, once all is done.
    #[serde(default)]
    nowhere: Vec<String>,
    /// Files in the workspace afterwards, with what they contain.
    #[serde(default)]
    work: BTreeMap<String, String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Turn {
    say: Option<String>,
    /// Said behind `say`, this often.
    repeat: Option<(String, usize)>,
    args: Vec<String>,
    files: Vec<String>,
    env: BTreeMap<String, String>,
    json: bool,
    /// Put into the database before, for what has no command yet.
    sql: String,
    /// An answer waits until all of `stdout` is printed.
    prints_first: bool,
    /// A command that is run while an answer waits.
    meanwhile: Vec<String>,
    exit: i32,
    stdout: Vec<String>,
    stdout_absent: Vec<String>,
    stderr: Vec<String>,
    stderr_absent: Vec<String>,
    /// Objects on standard output, in order, others between them.
    lines: Vec<Value>,
    /// No object on standard output has all of these. What is streamed comes in pieces: `streamed` looks at it as a whole.
    lines_absent: Vec<Value>,
    /// Texts of standard output, with how often each stands in it.
    stdout_times: BTreeMap<String, usize>,
    /// All that a role streamed, with its pieces put together.
    streamed: BTreeMap<String, String>,
    edges: Option<Vec<String>>,
    kinds: Option<Vec<String>>,
    events: Vec<Value>,
    limits: Option<Vec<String>>,
    /// Of the run.
    status: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    role: String,
    nth: usize,
    /// All tools, in any order.
    tools: Option<BTreeSet<String>>,
    #[serde(default)]
    tools_contain: Vec<String>,
    #[serde(default)]
    tools_absent: Vec<String>,
    /// Texts of the prompt, in this order.
    #[serde(default)]
    in_order: Vec<String>,
    /// All headings of the prompt, in order: which pieces the role was given.
    headings: Option<Vec<String>>,
    /// Texts that stand under a heading, and texts that do not.
    #[serde(default)]
    under: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    under_absent: BTreeMap<String, Vec<String>>,
    /// Texts of the prompt, with how often each stands in it.
    #[serde(default)]
    times: BTreeMap<String, usize>,
    #[serde(default)]
    body: Value,
    #[serde(default)]
    body_absent: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Query {
    query: String,
    rows: Vec<Vec<Value>>,
}

fn openai() -> Vec<String> {
    vec!["openai".to_owned()]
}

#[test]
fn every_scenario_goes_as_it_says() {
    let wanted = std::env::var("SCENARIO").unwrap_or_default();
    let all: Vec<_> = scenarios().into_iter().filter(|(name, _)| name.contains(&wanted)).collect();
    assert!(!all.is_empty(), "no scenario has {wanted:?} in its name");
    let one_by_one: Vec<_> = all.iter().flat_map(|(name, of)| of.formats.iter().map(move |f| (name, f, of))).collect();
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some((name, format, scenario)) = one_by_one.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let wrong = play(scenario, format);
                    if !wrong.is_empty() {
                        let (shows, wrong) = (&scenario.shows, wrong.join("\n"));
                        let text = format!("tests/scenarios/{name}.toml ({format}): {shows}\n{wrong}");
                        failed.lock().expect("no thread panics with it").push(text);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().expect("no thread panicked with it");
    assert!(failed.is_empty(), "{} failed (SCENARIO=NAME runs one)\n\n{}", failed.len(), failed.join("\n\n"));
}

impl Scenario {
    /// The moves that its turns must make.
    pub fn edges(&self) -> impl Iterator<Item = &str> {
        self.turn.iter().filter_map(|turn| turn.edges.as_ref()).flatten().map(String::as_str)
    }

    /// The limits that its turns must reach.
    pub fn limits(&self) -> impl Iterator<Item = &str> {
        self.turn.iter().filter_map(|turn| turn.limits.as_ref()).flatten().map(String::as_str)
    }
}

impl Scenario {
    /// Texts that are forbidden and could not come if everything were wrong: nobody says them in this scenario, and neither
    /// the host nor a prompt has them. To look for such a text shows nothing.
    fn impossible(&self) -> Vec<String> {
        let mut said: Vec<String> = self.reply.iter().flat_map(Reply::texts).collect();
        said.extend(self.files.values().chain(self.home.values()).chain(self.work.values()).cloned());
        said.push(self.config.clone());
        for turn in &self.turn {
            said.extend(turn.say.iter().chain(&turn.args).chain(turn.env.values()).cloned());
            said.extend(turn.stdout.iter().chain(&turn.stderr).cloned());
            said.push(turn.sql.clone());
            said.extend(turn.lines.iter().chain(&turn.events).map(Value::to_string));
        }
        let known = |text: &str| said.iter().any(|said| said.contains(text)) || host_says(text);
        let mut wrong = Vec::new();
        for turn in &self.turn {
            let texts = turn.stdout_absent.iter().chain(&turn.stderr_absent);
            wrong.extend(texts.filter(|text| !known(text)).map(|text| format!("{text:?} could never appear")));
            let tokens = turn.lines_absent.iter().filter(|line| line["type"] == "token" && line["text"].is_string());
            wrong
                .extend(tokens.map(|line| format!("{line} may come in two pieces: `streamed` says what comes in all")));
        }
        wrong
    }
}

/// Whether a text stands in the sources of the host or in a role's prompt.
fn host_says(text: &str) -> bool {
    static SOURCES: OnceLock<String> = OnceLock::new();
    fn collect(dir: &std::path::Path, into: &mut String) {
        for path in std::fs::read_dir(dir).expect("it is there").flatten().map(|entry| entry.path()) {
            match path.extension().and_then(|ending| ending.to_str()) {
                Some("rs" | "md") => *into += &std::fs::read_to_string(&path).expect("a source is text"),
                _ if path.is_dir() => collect(&path, into),
                _ => {}
            }
        }
    }
    let sources = SOURCES.get_or_init(|| {
        let mut all = String::new();
        for dir in ["host", "roles"] {
            collect(&root().join(dir), &mut all);
        }
        all
    });
    sources.contains(text)
}

/// Every scenario by its file's name, without the ending.
pub fn scenarios() -> Vec<(String, Scenario)> {
    let dir = root().join("tests/scenarios");
    let entries = std::fs::read_dir(&dir).expect("the scenarios are there");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("it can be read").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).expect("a scenario is text");
        let scenario = toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        (path.file_stem().expect("it has a name").to_string_lossy().into_owned(), scenario)
    };
    paths.into_iter().map(read).collect()
}

/// Plays a scenario and returns what went otherwise.
fn play(scenario: &Scenario, format: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let home = Home::new();
    let mut reply = scenario.reply.clone();
    let titled = reply.iter().any(|reply| reply.role.as_deref() == Some("titler"));
    if !titled {
        reply.push(Reply { role: Some("titler".to_owned()), text: "A title".to_owned(), ..Reply::default() });
    }
    let count = reply.len();
    let server = ModelServer::start(Script { refuses: scenario.refuses.clone(), reply, ..Script::default() });
    let inbox = (!scenario.delivery.is_empty()).then(Inbox::open);
    let hook = inbox.as_ref().map(|inbox| {
        format!("[webhooks.inbox]\nurl = \"http://{}/\"\nallow_private = true\ntimeout_s = 300\n", inbox.address)
    });
    let hook = hook.unwrap_or_default();
    home.config(&format!(
        "model = \"lab:m\"\n[providers.lab]\nkind = {format:?}\nbase_url = {:?}\n[llm]\nmax_attempts = 1\n\
         connect_timeout_s = 5\nfirst_token_timeout_s = 60\nnext_token_timeout_s = 60\n{}\n{hook}",
        server.base_url(),
        scenario.config
    ));
    for (name, text) in &scenario.home {
        let path = home.path().join(name);
        std::fs::create_dir_all(path.parent().expect("it is in the home")).expect("the home can be written");
        std::fs::write(path, text).expect("the home can be written");
    }
    for skill in &scenario.skills {
        home.add(skill);
    }
    let daemon = scenario.daemon.then(|| Served::start(&home));
    for (number, turn) in (1..).zip(&scenario.turn) {
        let mut found = Vec::new();
        match (&daemon, &turn.say) {
            (Some(daemon), Some(say)) => tell(&home, daemon, turn, say, &mut found),
            _ => take(&home, scenario, turn, &server, &mut found),
        }
        wrong.extend(found.into_iter().map(|text| format!("- turn {number}: {text}")));
    }
    if let Some(inbox) = inbox {
        delivered(scenario, &inbox, &mut wrong);
    }
    if let Some(daemon) = daemon
        && daemon.terminate() != 0
    {
        wrong.push("- the daemon does not end as it should".to_owned());
    }
    let ours = format!("reply {count} (titler) was never asked for");
    wrong.extend(server.problems().into_iter().filter(|text| titled || *text != ours).map(|text| format!("- {text}")));
    let seen = server.requests();
    for request in &scenario.request {
        let of = format!("request {} of the {}", request.nth, request.role);
        match seen.iter().filter(|seen| seen.role() == request.role).nth(request.nth - 1) {
            Some(seen) => wrong.extend(asked(request, seen).into_iter().map(|text| format!("- {of}: {text}"))),
            None => wrong.push(format!("- there is no {of}")),
        }
    }
    if !scenario.store.is_empty() {
        let store = rusqlite::Connection::open(home.path().join("store.db")).expect("there is a store");
        for Query { query, rows } in &scenario.store {
            let found = select(&store, query);
            let same =
                found.len() == rows.len() && rows.iter().zip(&found).all(|(row, found)| fits(&json!(row), found));
            if !same {
                wrong.push(format!("- {query}\n    expected {}\n    found    {}", json!(rows), json!(found)));
            }
        }
    }
    for text in &scenario.nowhere {
        for path in holding(&home.path(), text.as_bytes()) {
            wrong.push(format!("- {text:?} stands in {}", path.display()));
        }
    }
    for (name, text) in &scenario.work {
        match std::fs::read_to_string(home.work(SESSION).join(name)) {
            Ok(found) if found.contains(text) => {}
            Ok(found) => wrong.push(format!("- {name} has {found:?}, which is without {text:?}")),
            Err(error) => wrong.push(format!("- {name}: {error}")),
        }
    }
    wrong.extend(scenario.impossible().into_iter().map(|text| format!("- {text}")));
    wrong
}

/// Says something to a daemon: a command, which it answers at once, or a message.
fn tell(home: &Home, daemon: &Served, turn: &Turn, say: &str, wrong: &mut Vec<String>) {
    let alone = turn.args.is_empty() && turn.files.is_empty() && turn.env.is_empty() && turn.meanwhile.is_empty();
    if !alone || turn.json || turn.prints_first || turn.repeat.is_some() {
        wrong.push("to a daemon, only `say` can be said".to_owned());
    }
    let body = json!({ "session": SESSION, "text": say }).to_string();
    let told = daemon.request("POST", "/msg", Some(&body));
    let command = told.status == 200;
    let answer = match told.expect(if command { 200 } else { 202 }) {
        told if command => told["answer"].as_str().expect("it answers").to_owned(),
        told => daemon.reply(told["message"].as_i64().expect("it has an id")),
    };
    let output = Output { status: ExitStatus::default(), stdout: answer.into_bytes(), stderr: Vec::new() };
    printed(turn, &Ran::new(&[say], output), wrong);
    if !command {
        traced(home, turn, wrong);
    }
}

/// Looks at what a webhook was sent, and answers it.
fn delivered(scenario: &Scenario, inbox: &Inbox, wrong: &mut Vec<String>) {
    let mut found = Vec::new();
    while found.len() < scenario.delivery.len()
        && let Ok(request) = inbox.requests.recv_timeout(PATIENCE)
    {
        found.push(request.json());
        request.answer("204 No Content", "");
    }
    for wanted in &scenario.delivery {
        match found.iter().position(|found| fits(wanted, found)) {
            Some(at) => drop(found.swap_remove(at)),
            None => wrong.push(format!("- the webhook was not sent {wanted}")),
        }
    }
    wrong.extend(found.iter().map(|more| format!("- the webhook was sent {more}")));
}

fn take(home: &Home, scenario: &Scenario, turn: &Turn, server: &ModelServer, wrong: &mut Vec<String>) {
    if !turn.sql.is_empty() {
        let store = rusqlite::Connection::open(home.path().join("store.db")).expect("there is a store");
        store.execute_batch(&turn.sql).unwrap_or_else(|error| panic!("{}: {error}", turn.sql));
    }
    let mut args: Vec<String> = turn.args.clone();
    if let Some(say) = &turn.say {
        let more = turn.repeat.as_ref().map(|(text, times)| text.repeat(*times)).unwrap_or_default();
        args.extend(["run".to_owned(), "--session".to_owned(), SESSION.to_owned(), format!("{say}{more}")]);
        for name in &turn.files {
            let path = home.file(name, &scenario.files[name]);
            args.extend(["--file".to_owned(), path.to_str().expect("a plain path").to_owned()]);
        }
    }
    if turn.json {
        args.insert(0, "--json".to_owned());
    }
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut command = home.command(&args);
    command.envs(&turn.env);
    let output = if turn.prints_first || !turn.meanwhile.is_empty() {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("kiso starts");
        let mut printed = Vec::new();
        let mut out = child.stdout.take().expect("it is piped");
        let mut piece = [0; 4096];
        if !turn.meanwhile.is_empty() {
            while server.held() == 0 && child.try_wait().is_ok_and(|ended| ended.is_none()) {
                std::thread::park_timeout(Duration::from_millis(1));
            }
            let args: Vec<&str> = turn.meanwhile.iter().map(String::as_str).collect();
            home.kiso(&args).ok();
        }
        let lacks = |printed: &[u8]| turn.stdout.iter().any(|text| !String::from_utf8_lossy(printed).contains(text));
        while turn.prints_first && lacks(&printed) {
            match out.read(&mut piece).expect("a pipe can be read") {
                0 => break,
                n => printed.extend_from_slice(&piece[..n]),
            }
        }
        if turn.prints_first {
            server.release();
        }
        out.read_to_end(&mut printed).expect("a pipe can be read");
        let mut output = child.wait_with_output().expect("it ends");
        output.stdout = printed;
        output
    } else {
        command.output().expect("kiso starts")
    };
    let ran = Ran::new(&args, output);
    printed(turn, &ran, wrong);
    if turn.say.is_some() || turn.args.first().is_some_and(|command| command == "run") {
        traced(home, turn, wrong);
    }
}

fn printed(turn: &Turn, ran: &Ran, wrong: &mut Vec<String>) {
    let before = wrong.len();
    if ran.code != turn.exit {
        wrong.push(format!("exit code {} instead of {}", ran.code, turn.exit));
    }
    let texts = [
        ("standard output", &ran.stdout, &turn.stdout, &turn.stdout_absent),
        ("standard error", &ran.stderr, &turn.stderr, &turn.stderr_absent),
    ];
    for (name, text, wanted, unwanted) in texts {
        wrong.extend(wanted.iter().filter(|part| !text.contains(*part)).map(|part| format!("{name} lacks {part:?}")));
        wrong.extend(unwanted.iter().filter(|part| text.contains(*part)).map(|part| format!("{name} has {part:?}")));
    }
    for (text, times) in &turn.stdout_times {
        let found = ran.stdout.matches(text.as_str()).count();
        if found != *times {
            wrong.push(format!("standard output has {text:?} {found} times and not {times}"));
        }
    }
    if turn.json {
        let lines: Vec<Value> = ran.stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        in_order("an object", &turn.lines, &lines, wrong);
        for (role, wanted) in &turn.streamed {
            let pieces = lines.iter().filter(|line| line["type"] == "token" && line["role"] == json!(role));
            let all: String = pieces.filter_map(|piece| piece["text"].as_str()).collect();
            if all.trim() != wanted {
                wrong.push(format!("the {role} streamed {all:?}, not {wanted:?}"));
            }
        }
        for unwanted in &turn.lines_absent {
            wrong.extend(
                lines.iter().find(|line| fits(unwanted, line)).map(|line| format!("there is the object {line}")),
            );
        }
    }
    if wrong.len() > before {
        wrong.push(format!("stdout: {}\n  stderr: {}", ran.stdout.trim_end(), ran.stderr.trim_end()));
    }
}

fn traced(home: &Home, turn: &Turn, wrong: &mut Vec<String>) {
    let before = wrong.len();
    let ran = home.kiso(&["--json", "trace", "last"]);
    let lines: Vec<Value> = ran.stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let Some((run, events)) = lines.split_first() else {
        return wrong.push(format!("there is no trace: {}", ran.stderr));
    };
    let bodies: Vec<Value> = events.iter().map(|event| event["body"].clone()).collect();
    let list =
        |key: &'static str| bodies.iter().flat_map(move |body| body[key].as_array().cloned().unwrap_or_default());
    let word = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    let edges: Vec<_> = list("moves").map(|m| [&m["from"], &m["why"], &m["to"]].map(word).join(" ")).collect();
    let kinds: Vec<_> = events.iter().map(|event| word(&event["kind"])).filter(|kind| kind != "spec").collect();
    let limits: Vec<_> = list("limits").map(|limit| word(&limit["limit"])).collect();
    for (name, wanted, found) in
        [("edges", &turn.edges, edges), ("kinds", &turn.kinds, kinds), ("limits", &turn.limits, limits)]
    {
        if wanted.as_ref().is_some_and(|wanted| *wanted != found) {
            wrong.push(format!("{name}\n{}", side_by_side(wanted.as_deref().unwrap_or_default(), &found)));
        }
    }
    if turn.status.as_ref().is_some_and(|status| run["status"] != json!(status)) {
        wrong.push(format!("the run is {}", run["status"]));
    }
    in_order("an event", &turn.events, &bodies, wrong);
    if wrong.len() > before {
        let shown: Vec<String> = bodies.iter().skip(1).map(|body| format!("    {body}")).collect();
        wrong.push(format!("the events\n{}", shown.join("\n")));
    }
}

/// Asserts that `found` has every one of `wanted`, one behind the other.
fn in_order(what: &str, wanted: &[Value], found: &[Value], wrong: &mut Vec<String>) {
    let mut rest = found.iter();
    for value in wanted {
        if !rest.any(|found| fits(value, found)) {
            wrong.push(format!("there is not, in its place, {what} with {value}"));
            return;
        }
    }
}

/// Whether `found` has at least what `wanted` has.
fn fits(wanted: &Value, found: &Value) -> bool {
    match (wanted, found) {
        (Value::Object(wanted), Value::Object(found)) => {
            wanted.iter().all(|(key, value)| found.get(key).is_some_and(|found| fits(value, found)))
        }
        (Value::Array(wanted), Value::Array(found)) => {
            wanted.len() == found.len() && wanted.iter().zip(found).all(|(wanted, found)| fits(wanted, found))
        }
        (Value::String(wanted), Value::String(found)) => match wanted.strip_prefix('…') {
            Some(part) => found.contains(part),
            None => wanted == found,
        },
        (Value::Number(wanted), Value::Number(found)) => wanted.as_f64() == found.as_f64(),
        _ => wanted == found,
    }
}

fn side_by_side(wanted: &[String], found: &[String]) -> String {
    let line = |n: usize| {
        let at = |list: &[String]| list.get(n).cloned().unwrap_or_default();
        let (wanted, found) = (at(wanted), at(found));
        format!("    {} {wanted:36} | {found}", if wanted == found { " " } else { "!" })
    };
    (0..wanted.len().max(found.len())).map(line).collect::<Vec<_>>().join("\n")
}

/// What was asked otherwise than it should be.
fn asked(wanted: &Request, seen: &Seen) -> Vec<String> {
    let mut wrong = Vec::new();
    let name = |tool: &Value| tool["function"]["name"].as_str().or(tool["name"].as_str()).unwrap_or("?").to_owned();
    // Those that are shown and may not be called are none, in either format.
    let choice = &seen.body["tool_choice"];
    let offered = seen.body["tools"].as_array().filter(|_| *choice != "none" && choice["type"] != "none");
    let tools: BTreeSet<String> = offered.into_iter().flatten().map(name).collect();
    if wanted.tools.as_ref().is_some_and(|wanted| *wanted != tools) {
        wrong.push(format!("its tools are {tools:?}"));
    }
    wrong.extend(
        wanted.tools_contain.iter().filter(|tool| !tools.contains(*tool)).map(|t| format!("lacks the tool {t}")),
    );
    wrong.extend(wanted.tools_absent.iter().filter(|tool| tools.contains(*tool)).map(|t| format!("has the tool {t}")));
    let prompt = seen.prompt();
    // What follows the role's own prompt.
    let shown = prompt.find("Everything between a line").map_or(prompt.as_str(), |at| &prompt[at..]);
    let mut rest = prompt.as_str();
    for text in &wanted.in_order {
        match rest.split_once(text.as_str()) {
            Some((_, after)) => rest = after,
            None => wrong.push(format!("{text:?} is not in its place in\n{shown}")),
        }
    }
    let sections = sections(&prompt);
    let headings: Vec<_> = sections.iter().map(|(heading, _)| heading.clone()).collect();
    if let Some(wanted) = wanted.headings.as_ref().filter(|wanted| **wanted != headings) {
        wrong.push(format!("its headings\n{}", side_by_side(wanted, &headings)));
    }
    for (expected, texts) in [(true, &wanted.under), (false, &wanted.under_absent)] {
        for (heading, texts) in texts {
            // What was told last counts: a conversation goes on with what is new.
            let Some((_, section)) = sections.iter().rfind(|(found, _)| found == heading) else {
                wrong.push(format!("has no heading {heading:?} in\n{shown}"));
                continue;
            };
            let verb = if expected { "lacks" } else { "has" };
            let other = texts.iter().filter(|text| section.contains(*text) != expected);
            wrong.extend(other.map(|text| format!("what stands under {heading:?} {verb} {text:?}:\n{section}")));
        }
    }
    for (text, times) in &wanted.times {
        let found = prompt.matches(text.as_str()).count();
        if found != *times {
            wrong.push(format!("{text:?} stands {found} times and not {times} in\n{shown}"));
        }
    }
    if !wanted.body.is_null() && !fits(&wanted.body, &seen.body) {
        wrong.push(format!("its body lacks {}: {}", wanted.body, seen.body));
    }
    wrong.extend(wanted.body_absent.iter().filter(|key| seen.body.get(key).is_some()).map(|key| format!("has {key}")));
    wrong
}

/// The pieces of a prompt by their headings. Below each heading stands the mark that fences it, but for the host's own word.
fn sections(prompt: &str) -> Vec<(String, String)> {
    let shown = prompt.find("Everything between a line").map_or("", |at| &prompt[at..]);
    let mut sections: Vec<(String, String)> = Vec::new();
    let mut lines = shown.lines().peekable();
    while let Some(line) = lines.next() {
        let fenced = lines.peek().is_some_and(|next| next.starts_with("<<<"));
        match line.strip_prefix("## ").filter(|heading| fenced || *heading == "Role of the caller") {
            Some(heading) => {
                let heading = heading.strip_suffix(", continued").unwrap_or(heading);
                sections.push((heading.to_owned(), String::new()));
            }
            None => {
                if let Some((_, text)) = sections.last_mut() {
                    text.push_str(line);
                    text.push('\n');
                }
            }
        }
    }
    sections
}

fn select(store: &rusqlite::Connection, query: &str) -> Vec<Value> {
    let mut statement = store.prepare(query).unwrap_or_else(|error| panic!("{query}: {error}"));
    let columns = statement.column_count();
    let rows = statement.query_map([], |row| {
        let cell = |n| {
            Ok(match row.get_ref(n)? {
                ValueRef::Null => Value::Null,
                ValueRef::Integer(number) => json!(number),
                ValueRef::Real(number) => json!(number),
                ValueRef::Text(bytes) | ValueRef::Blob(bytes) => json!(String::from_utf8_lossy(bytes)),
            })
        };
        (0..columns).map(cell).collect::<Result<Vec<_>, _>>().map(Value::Array)
    });
    rows.expect("the query can be made").collect::<Result<_, _>>().expect("its rows can be read")
}

/// The files below `dir` that have these bytes.
fn holding(dir: &std::path::Path, bytes: &[u8]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).expect("a home can be listed").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(holding(&path, bytes));
        } else if std::fs::read(&path).is_ok_and(|text| text.windows(bytes.len()).any(|window| window == bytes)) {
            found.push(path);
        }
    }
    found
}
