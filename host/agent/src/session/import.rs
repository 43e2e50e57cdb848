//! Restores a session from an export (docs/json.md), completely or not at all.
//!
//! The file is read and checked to its end before anything is stored, and it is stored in one transaction. Data that is not in an
//! export is not restored: events and prompts, the scratchpad, files, facts and memory, secrets.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, BufRead, Read};

use serde::Deserialize;
use serde_json::Value;

use super::branches::Branches;
use crate::drive::SEALED_RUN;
use kiso_base::home::SessionName;
use kiso_base::role::Role;
use kiso_plan::limits::Usage;
use kiso_plan::plan::TaskKind;
use kiso_sandbox::effect::member::{MACHINE_LABEL, is_machine_label};
use kiso_store::secret::vault::{Vault, is_sealed};
use kiso_store::store::{
    MessageRole, ModelChoice, OldBranch, OldMessage, OldRun, Placement, RunId, RunStatus, Store, StoreError, Summary,
    TaskRow, TaskState, Tx, UsageLine, is_time,
};

/// Maximum size of a file in bytes: it is held in memory, and stored in one transaction that a running daemon must wait for.
pub const MAX_FILE: u64 = 64 << 20;

/// Maximum size of a line in bytes, and maximum number of lines.
const MAX_LINE: u64 = 8 << 20;
const MAX_LINES: u64 = 200_000;

/// Maximum depth of the JSON of tasks and outcomes: it must stay readable when it is embedded in other JSON later.
const MAX_DEPTH: usize = 48;

/// Maximum length in characters of a title, a label, or the name of a model or role.
const MAX_NAME: usize = 500;

/// The restored session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionImport {
    pub session: SessionName,
    pub messages: u64,
    pub runs: u64,
}

/// Why nothing was restored.
#[derive(Debug, thiserror::Error)]
pub enum SessionImportError {
    #[error("line {line}: {why}")]
    Line { line: u64, why: String },
    /// A limit of this machine, not a fault of the file.
    #[error("{0}")]
    TooLarge(String),
    #[error("a session named {0} already exists")]
    Taken(SessionName),
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum Line {
    Session {
        session: String,
        title: Option<String>,
        #[serde(default = "listed")]
        placement: Placement,
        #[serde(default)]
        runs_on: Option<String>,
        model: Option<String>,
        #[serde(default)]
        role_models: BTreeMap<String, String>,
        summary: Option<String>,
        #[serde(default)]
        summary_to: Option<i64>,
        #[serde(default)]
        segments: Vec<Segment>,
        #[serde(default)]
        branch: i64,
    },
    Message {
        id: i64,
        role: String,
        at_ms: i64,
        run: Option<RunId>,
        tags: Vec<String>,
        text: String,
        #[serde(default)]
        sealed: bool,
        #[serde(default)]
        branch: i64,
    },
    Branch {
        id: i64,
        parent: i64,
        first: i64,
    },
    Run {
        run: RunId,
        #[serde(rename = "session")]
        _session: String,
        status: String,
        started_ms: i64,
        ended_ms: Option<i64>,
        #[serde(rename = "message")]
        _message: String,
        outcome: Option<Value>,
    },
    Task {
        run: RunId,
        id: u32,
        position: u32,
        kind: TaskKind,
        label: String,
        task: Value,
        status: String,
        output: Option<String>,
        error: Option<String>,
        started_ms: Option<i64>,
        ended_ms: Option<i64>,
    },
    Usage {
        run: RunId,
        at_ms: i64,
        role: String,
        model: String,
        input_tokens: u64,
        output_tokens: u64,
        #[serde(default)]
        cached_tokens: u64,
        cost_micros: u64,
    },
    End {
        messages: u64,
        runs: u64,
    },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Segment {
    after: i64,
    at_ms: i64,
    #[serde(default)]
    branch: i64,
}

/// Returns the placement of a session in an older export.
fn listed() -> Placement {
    Placement::Listed
}

/// A complete and valid file.
#[derive(Debug, Default)]
struct Contents {
    session: Option<SessionName>,
    title: Option<String>,
    placement: Option<Placement>,
    runs_on: Option<String>,
    models: ModelChoice,
    /// Its text, and the last message that it covers.
    summary: Option<(String, i64)>,
    segments: Vec<Segment>,
    /// Each with its number in the file; numbers increase.
    messages: Vec<(i64, OldMessage)>,
    branches: Branches,
    runs: Vec<OldRun>,
    tasks: HashMap<RunId, Vec<TaskRow>>,
    usage: Vec<(RunId, UsageLine)>,
    /// Counts in the `end` object: messages and runs.
    end: Option<(u64, u64)>,
}

/// Restores a session under its own or another name. `clean` removes secrets from texts; sealed texts are sealed again.
pub fn import(
    store: &Store,
    vault: &Vault,
    file: impl BufRead,
    name: Option<SessionName>,
    clean: &dyn Fn(&str) -> String,
) -> Result<SessionImport, SessionImportError> {
    let contents = Contents::read(file, vault, clean)?;
    let Some(session) = name.or_else(|| contents.session.clone()) else {
        return Err(SessionImportError::Line { line: 1, why: "there is no session in it".to_owned() });
    };
    let imported = SessionImport {
        session: session.clone(),
        messages: contents.messages.len() as u64,
        runs: contents.runs.len() as u64,
    };
    let taken = session.clone();
    let kept = store.write_blocking(move |tx| match tx.has_session(&session)? {
        true => Ok(false),
        false => contents.keep(tx, &session).map(|()| true),
    });
    if kept? { Ok(imported) } else { Err(SessionImportError::Taken(taken)) }
}

impl Contents {
    fn read(file: impl BufRead, vault: &Vault, clean: &dyn Fn(&str) -> String) -> Result<Contents, SessionImportError> {
        let mut file = file.take(MAX_FILE + 1);
        let (mut contents, mut number) = (Contents::default(), 0);
        loop {
            let mut line = Vec::new();
            let read = file.by_ref().take(MAX_LINE + 1).read_until(b'\n', &mut line)? as u64;
            if read == 0 {
                break;
            }
            number += 1;
            let wrong = |why: String| SessionImportError::Line { line: number, why };
            if file.limit() == 0 {
                return Err(SessionImportError::TooLarge(format!("it has more than {} MiB", MAX_FILE >> 20)));
            }
            if read > MAX_LINE {
                return Err(wrong(format!("it is longer than {} MiB", MAX_LINE >> 20)));
            }
            if number > MAX_LINES {
                return Err(SessionImportError::TooLarge(format!("it has more than {MAX_LINES} lines")));
            }
            if line.trim_ascii().is_empty() {
                continue;
            }
            let line: Line = serde_json::from_slice(&line).map_err(|error| wrong(describe(&error)))?;
            contents.take(line, vault, clean).map_err(wrong)?;
        }
        let wrong = |why: &str| SessionImportError::Line { line: number.max(1), why: why.to_owned() };
        match contents.end {
            None => return Err(wrong("it is not whole: the last line, of type \"end\", is missing")),
            Some(counts) if counts != (contents.messages.len() as u64, contents.runs.len() as u64) => {
                return Err(wrong("it is not whole: there are not as many messages and runs as its last line says"));
            }
            Some(_) => {}
        }
        contents.check().map_err(|why| wrong(&why))?;
        Ok(contents)
    }

    fn take(&mut self, line: Line, vault: &Vault, clean: &dyn Fn(&str) -> String) -> Result<(), String> {
        if self.end.is_some() {
            return Err("there is more behind the line of type \"end\"".to_owned());
        }
        if self.session.is_none() != matches!(line, Line::Session { .. }) {
            return Err("the first line, and no other, is of type \"session\"".to_owned());
        }
        match line {
            Line::Session {
                session,
                title,
                placement,
                runs_on,
                model,
                role_models,
                summary,
                summary_to,
                segments,
                branch,
            } => {
                self.session = Some(SessionName::parse(&session).map_err(|error| error.to_string())?);
                self.title = title.map(|title| name(&clean(&title), "title")).transpose()?;
                self.placement = Some(placement);
                if !runs_on.as_deref().is_none_or(is_machine_label) {
                    return Err(format!("`runs_on` must be null or a label of machines: {MACHINE_LABEL}"));
                }
                self.runs_on = runs_on;
                self.models.all = model.map(|model| name(&model, "model")).transpose()?;
                for (role, model) in role_models {
                    if Role::named(&role).is_none() {
                        return Err(format!("role_models has {role:?}, and the roles are {}", Role::names()));
                    }
                    self.models.roles.insert(role, name(&model, "role_models")?);
                }
                // An older export does not state which messages the summary covers; a new one is made when there are enough
                // messages.
                self.summary = summary.map(|text| clean(&text)).zip(summary_to);
                for segment in segments {
                    time(segment.at_ms, "segments")?;
                    self.segments.push(segment);
                }
                self.branches.in_use = branch;
            }
            Line::Message { id, role, at_ms, run, tags, text, sealed, branch } => {
                if self.messages.last().is_some_and(|(last, _)| *last >= id) || id < 0 {
                    return Err(format!("message {id} does not come after the one before it"));
                }
                let role = match role.as_str() {
                    "user" => MessageRole::User,
                    "assistant" => MessageRole::Assistant,
                    _ => return Err(format!("role is {role:?}, and may be \"user\" or \"assistant\"")),
                };
                let text = kept(&text, sealed, vault, clean)?;
                let tags = tags.iter().map(|tag| name(tag, "tags")).collect::<Result<_, _>>()?;
                self.messages.push((id, OldMessage { role, text, at_ms: time(at_ms, "at_ms")?, run, tags }));
                if branch != 0 {
                    self.branches.of_messages.insert(id, branch);
                }
            }
            Line::Branch { id, parent, first } => {
                self.branches.add(OldBranch { id, parent, first }, &self.messages)?;
            }
            Line::Run { run, status, started_ms, ended_ms, outcome, .. } => {
                let started_ms = time(started_ms, "started_ms")?;
                let ended = ended_ms.map(|ended| time(ended, "ended_ms")).transpose()?;
                let status = match status.as_str() {
                    "done" => RunStatus::Done,
                    "failed" => RunStatus::Failed,
                    // An active run cannot continue, because the file does not contain its progress.
                    "cancelled" | "running" | "held" => RunStatus::Cancelled,
                    _ => {
                        return Err(format!(
                            "status is {status:?}, and may be done, failed, cancelled, running or held"
                        ));
                    }
                };
                if self.runs.iter().any(|known| known.id == run) {
                    return Err(format!("the run {run} is there twice"));
                }
                let outcome = outcome.filter(|outcome| !outcome.is_null());
                let outcome = outcome.map(|outcome| document(outcome, "outcome", clean)).transpose()?;
                let ended_ms = ended.unwrap_or(started_ms).max(started_ms);
                self.runs.push(OldRun { id: run, status, started_ms, ended_ms, outcome });
            }
            Line::Task { run, id, position, kind, label, task, status, output, error, started_ms, ended_ms } => {
                let of_run = self.known(&run)?;
                let ended = of_run.ended_ms;
                let state = match TaskState::named(&status) {
                    Some(TaskState::Running) => TaskState::Interrupted,
                    Some(TaskState::Planned) => TaskState::Dropped,
                    Some(state) => state,
                    None => return Err(format!("status is {status:?}, and is none of a task")),
                };
                let times = [started_ms, ended_ms].into_iter().flatten();
                times.map(|at| time(at, "started_ms or ended_ms")).collect::<Result<Vec<_>, _>>()?;
                let tasks = self.tasks.entry(run.clone()).or_default();
                if tasks.iter().any(|known| known.id == id) {
                    return Err(format!("the task {id} of run {run} is there twice"));
                }
                tasks.push(TaskRow {
                    id,
                    position,
                    kind,
                    label: name(&clean(&label), "label")?,
                    task: document(task, "task", clean)?,
                    status: state,
                    output: output.map(|text| clean(&text)),
                    error: error.map(|text| clean(&text)),
                    started_ms,
                    ended_ms: Some(ended_ms.unwrap_or(ended)),
                });
            }
            Line::Usage { run, at_ms, role, model, input_tokens, output_tokens, cached_tokens, cost_micros } => {
                self.known(&run)?;
                let usage = Usage { input_tokens, output_tokens, cached_tokens, cost_micros };
                let (role, model) = (name(&role, "role")?, name(&model, "model")?);
                self.usage.push((run, UsageLine { at_ms: time(at_ms, "at_ms")?, role, model, usage }));
            }
            Line::End { messages, runs } => self.end = Some((messages, runs)),
        }
        Ok(())
    }

    fn known(&self, run: &RunId) -> Result<&OldRun, String> {
        // The lines of a run follow it.
        let found = self.runs.iter().rev().find(|known| known.id == *run);
        found.ok_or_else(|| format!("there is no line of run {run} before this one"))
    }

    /// Checks that require the whole file.
    fn check(&self) -> Result<(), String> {
        let breaks = self.segments.iter().map(|segment| segment.branch);
        self.branches.check(breaks)?;
        let runs: HashSet<&RunId> = self.runs.iter().map(|run| &run.id).collect();
        let of_messages: HashSet<&RunId> = self.begun().keys().copied().collect();
        // A subagent's report here belongs to a run of the subagent's session, which is not in the file.
        for (id, message) in self.messages.iter().filter(|(_, message)| message.role == MessageRole::User) {
            if let Some(run) = message.run.as_ref().filter(|run| !runs.contains(run)) {
                return Err(format!("message {id} is of run {run}, which has no line"));
            }
        }
        match self.runs.iter().find(|run| !of_messages.contains(&run.id)) {
            Some(run) => Err(format!("no message of the user is of run {}", run.id)),
            None => Ok(()),
        }
    }

    /// Returns the message with which each run started.
    fn begun(&self) -> HashMap<&RunId, i64> {
        let mut begun = HashMap::new();
        for (id, message) in self.messages.iter().filter(|(_, message)| message.role == MessageRole::User) {
            if let Some(run) = &message.run {
                begun.entry(run).or_insert(*id);
            }
        }
        begun
    }

    fn keep(&self, tx: &Tx<'_>, session: &SessionName) -> Result<(), StoreError> {
        let times = || self.messages.iter().map(|(_, message)| message.at_ms);
        let (created, active) = (times().min().unwrap_or_default(), times().max().unwrap_or_default());
        let placement = self.placement.unwrap_or_else(listed);
        tx.import_session(session, self.title.as_deref(), &self.models, placement, (created, active))?;
        tx.set_runs_on(session, self.runs_on.as_deref())?;
        let mut ids = HashMap::new();
        for run in &self.runs {
            ids.insert(&run.id, tx.free_run_id(&run.id, run.started_ms)?);
        }
        let mut numbers = Vec::with_capacity(self.messages.len());
        for (old, message) in &self.messages {
            let run = message.run.as_ref().and_then(|run| ids.get(run).cloned());
            numbers.push((*old, tx.import_message(session, &OldMessage { run, ..message.clone() })?));
        }
        // Returns the last message in this store up to that number.
        let place = |old: i64| match numbers.partition_point(|(id, _)| *id <= old) {
            0 => 0,
            after => numbers[after - 1].1,
        };
        let begun = self.begun();
        for run in &self.runs {
            let id = ids[&run.id].clone();
            tx.import_run(session, &OldRun { id: id.clone(), ..run.clone() }, place(begun[&run.id]))?;
            tx.put_tasks(&id, self.tasks.get(&run.id).map_or(&[], Vec::as_slice))?;
        }
        for (run, line) in &self.usage {
            tx.import_usage(session, &ids[run], line)?;
        }
        for Segment { after, at_ms, .. } in &self.segments {
            tx.import_segment(session, place(*after), *at_ms)?;
        }
        let breaks = self.segments.iter().map(|segment| (place(segment.after), segment.branch));
        self.branches.keep(tx, session, &place, breaks)?;
        if let Some((text, to)) = &self.summary {
            let summary = Summary { text: text.clone(), to: place(*to), sources: Vec::new() };
            if summary.to > 0 {
                tx.set_summary(session, tx.segment_start(session)?, &summary)?;
            }
        }
        Ok(())
    }
}

/// Returns a text for storage: sealed if it was sealed, otherwise without secrets.
fn kept(text: &str, sealed: bool, vault: &Vault, clean: &dyn Fn(&str) -> String) -> Result<String, String> {
    if is_sealed(text) {
        return Err("its text is sealed with a key, which an export never is".to_owned());
    }
    if !sealed {
        return Ok(clean(text));
    }
    vault.seal_text(SEALED_RUN, text).map_err(|error| error.to_string())
}

/// Checks a text of one line, for use in lists.
fn name(text: &str, what: &str) -> Result<String, String> {
    match text.chars().nth(MAX_NAME).is_some() || text.contains(['\n', '\0']) {
        true => Err(format!("{what} has more than {MAX_NAME} characters or more than one line")),
        false => Ok(text.to_owned()),
    }
}

fn time(at_ms: i64, what: &str) -> Result<i64, String> {
    if is_time(at_ms) {
        Ok(at_ms)
    } else {
        Err(format!("{what} is {at_ms}, which is no time in milliseconds since 1970"))
    }
}

fn document(value: Value, what: &str, clean: &dyn Fn(&str) -> String) -> Result<String, String> {
    if depth(&value) > MAX_DEPTH {
        return Err(format!("{what} is deeper than {MAX_DEPTH} levels"));
    }
    Ok(cleaned(value, clean).to_string())
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}

fn cleaned(value: Value, clean: &dyn Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(clean(&text)),
        Value::Array(items) => items.into_iter().map(|item| cleaned(item, clean)).collect(),
        Value::Object(members) => members.into_iter().map(|(key, value)| (key, cleaned(value, clean))).collect(),
        other => other,
    }
}

/// Returns the error without its position, because the line is reported separately.
fn describe(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(end) => format!("{} (column {})", &text[..end], error.column()),
        None => text,
    }
}
