//! Runs `tests/scenarios/*.toml`: messages of a user, answers of models, and the expected results. Each scenario runs the binary
//! against a `ModelServer` over HTTP.
//!
//! ```toml
//! shows = "One sentence: the rule that this scenario shows"
//! formats = ["openai", "anthropic"]      # default: openai
//! skills = ["echo"]                      # guests that are installed
//! config = '[limits]…'                   # added after the provider and its timeouts
//! daemon = true                          # messages and commands go to a daemon instead of `kiso run`
//!
//! [[turn]]                               # one command; turns run in order
//! say = "hello"                          # `kiso run` in the session; or `args = ["trace"]` for any other command
//! exit = 0
//! stdout = ["text that is printed"]
//! edges = ["input admitted retrieval"]   # every move of the run, in order
//! kinds = ["admitted"]                   # every event of the run, in order
//! events = [{ kind = "routed" }]         # some of the run's events, in order, with at least these fields
//! limits = []                            # every limit that was reached
//!
//! [[reply]]                              # an answer of a model; see `model_server.rs`. Every reply must be used,
//! role = "router"                        # and every request needs one, so their numbers are equal
//!
//! [[request]]                            # a request to a model, in addition to its reply's expectations
//! role = "actor"
//! nth = 1
//! tools = ["exec"]
//!
//! [[store]]                              # a query of the database afterwards
//! query = "SELECT text FROM facts"
//! rows = [["a fact"]]
//!
//! [[delivery]]                           # a request to the daemon's webhook; deliveries have no order
//! event = "notify"
//! text = "Starting."
//! ```
//!
//! In expected values, a text that begins with `…` matches any text that contains the rest. Each first run requests a title;
//! scenarios without a reply for the titler get a default one.

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

/// Parallel scenarios: each is a process that mostly waits for this one.
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
    /// Files for `--file` by name.
    #[serde(default)]
    files: BTreeMap<String, String>,
    /// Files of the home by path.
    #[serde(default)]
    home: BTreeMap<String, String>,
    #[serde(default)]
    daemon: bool,
    /// All deliveries to the daemon's webhook, with at least these fields.
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
    /// Texts that must be in no file of the home afterwards, encrypted or not.
    #[serde(default)]
    nowhere: Vec<String>,
    /// Expected files in the workspace and their content.
    #[serde(default)]
    work: BTreeMap<String, String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Turn {
    say: Option<String>,
    /// A text and how often it is appended to `say`.
    repeat: Option<(String, usize)>,
    /// The text that acting, writing and judging roles receive instead of `say`, if a pill, a secret or the gatekeeper changes
    /// it.
    told: Option<String>,
    args: Vec<String>,
    files: Vec<String>,
    env: BTreeMap<String, String>,
    json: bool,
    /// SQL to run on the database first, if no command can make the change.
    sql: String,
    /// An answer waits until all of `stdout` is printed.
    prints_first: bool,
    /// A command to run while an answer waits.
    meanwhile: Vec<String>,
    exit: i32,
    stdout: Vec<String>,
    stdout_absent: Vec<String>,
    stderr: Vec<String>,
    stderr_absent: Vec<String>,
    /// Objects on standard output, in order, possibly with others between them.
    lines: Vec<Value>,
    /// Objects that standard output must not contain. Streamed text comes in pieces; use `streamed` for its whole.
    lines_absent: Vec<Value>,
    /// Texts of standard output with their number of occurrences.
    stdout_times: BTreeMap<String, usize>,
    /// All text that a role streamed, joined.
    streamed: BTreeMap<String, String>,
    edges: Option<Vec<String>>,
    kinds: Option<Vec<String>>,
    events: Vec<Value>,
    limits: Option<Vec<String>>,
    /// Status of the run.
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
    /// All headings of the prompt, in order: the pieces that the role received.
    headings: Option<Vec<String>>,
    /// Texts that must be under a heading, and texts that must not.
    #[serde(default)]
    under: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    under_absent: BTreeMap<String, Vec<String>>,
    /// Texts of the prompt with their number of occurrences.
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
    /// The edges that its turns must take.
    pub(crate) fn edges(&self) -> impl Iterator<Item = &str> {
        self.turn.iter().filter_map(|turn| turn.edges.as_ref()).flatten().map(String::as_str)
    }

    /// The limits that its turns must reach.
    pub(crate) fn limits(&self) -> impl Iterator<Item = &str> {
        self.turn.iter().filter_map(|turn| turn.limits.as_ref()).flatten().map(String::as_str)
    }
}

/// Every scenario by its file's name, without extension.
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
