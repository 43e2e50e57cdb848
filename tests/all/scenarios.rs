//! Runs `tests/scenarios/*.toml`: what a user says, what models answer, and what must come of it. Each runs the binary
//! against a `ModelServer` over HTTP.
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

mod check;
mod play;

use self::play::play;
use crate::harness::root;
use crate::model_server::Reply;
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Scenarios at once: each is a process that mostly waits for this one.
const AT_ONCE: usize = 3;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scenario {
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
    /// What the roles that act, write or judge are told of `say`, where that is not all of it: a pill, a secret or the gatekeeper
    /// has changed it.
    told: Option<String>,
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
    pub(crate) fn edges(&self) -> impl Iterator<Item = &str> {
        self.turn.iter().filter_map(|turn| turn.edges.as_ref()).flatten().map(String::as_str)
    }

    /// The limits that its turns must reach.
    pub(crate) fn limits(&self) -> impl Iterator<Item = &str> {
        self.turn.iter().filter_map(|turn| turn.limits.as_ref()).flatten().map(String::as_str)
    }
}

/// Every scenario by its file's name, without the ending.
pub(crate) fn scenarios() -> Vec<(String, Scenario)> {
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
