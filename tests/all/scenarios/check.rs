//! Checks after a turn or a scenario. Each describes the deviation it finds.

use super::{Request, Scenario, Turn};
use crate::harness::{Home, Ran, root};
use crate::model_server::{Reply, Seen};
use rusqlite::types::ValueRef;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

impl Scenario {
    /// Forbidden texts that could never occur: no answer, source or prompt contains them. Searching for them proves nothing.
    pub(super) fn impossible(&self) -> Vec<String> {
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

/// Whether the host's sources or a role's prompt contain a text.
fn host_says(text: &str) -> bool {
    static SOURCES: OnceLock<String> = OnceLock::new();
    fn collect(dir: &Path, into: &mut String) {
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

pub(super) fn printed(turn: &Turn, ran: &Ran, wrong: &mut Vec<String>) {
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

/// Roles that act on the user's message, judge the result, or write the reply.
const TOLD: [&str; 5] = ["planner", "reasoner", "actor", "reviewer", "worker"];

/// Checks that each request of those roles contains the user's message unchanged.
pub(super) fn check_message(say: &str, requests: &[Seen], wrong: &mut Vec<String>) {
    let lacking = requests.iter().filter(|seen| TOLD.contains(&seen.role()) && !seen.prompt().contains(say.trim()));
    wrong.extend(lacking.map(|seen| format!("the {} is not told {say:?}:\n{}", seen.role(), seen.prompt())));
}

pub(super) fn traced(home: &Home, turn: &Turn, wrong: &mut Vec<String>) {
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

/// Asserts that `found` contains all of `wanted` in order.
fn in_order(what: &str, wanted: &[Value], found: &[Value], wrong: &mut Vec<String>) {
    let mut rest = found.iter();
    for value in wanted {
        if !rest.any(|found| fits(value, found)) {
            wrong.push(format!("there is not, in its place, {what} with {value}"));
            return;
        }
    }
}

/// Whether `found` contains at least the fields of `wanted`.
pub(super) fn fits(wanted: &Value, found: &Value) -> bool {
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

/// Deviations of a request from the expected one.
pub(super) fn asked(wanted: &Request, seen: &Seen) -> Vec<String> {
    let mut wrong = Vec::new();
    let name = |tool: &Value| tool["function"]["name"].as_str().or(tool["name"].as_str()).unwrap_or("?").to_owned();
    // Tools that are listed but must not be called do not count, in either format.
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
    // The part after the role's own prompt.
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
            // The last section with a heading counts: a conversation only adds new sections.
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

/// The sections of a prompt by heading. Below each heading is the mark of its fence, except for the host's own text.
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

pub(super) fn select(store: &rusqlite::Connection, query: &str) -> Vec<Value> {
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

/// The files below `dir` that contain these bytes.
pub(super) fn holding(dir: &Path, bytes: &[u8]) -> Vec<PathBuf> {
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
