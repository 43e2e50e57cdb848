//! The calls of the action loop: each as a line of a run's board, and one of them whole.

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::App;
use crate::auth::Who;
use crate::document::routes;
use crate::error::ApiError;
use crate::wire::{JsonResult, Path};
use kiso_agent::drive::SEALED_RUN;
use kiso_agent::tool::EXEC;
use kiso_graph::run::{CallHistory, History};
use kiso_graph::step::{Event, STDERR, ToolResult};
use kiso_plan::clip::clip;
use kiso_plan::report::{ChangedFile, FileNote};
use kiso_plan::sink::{SinkDecision, SinkVerdict};
use kiso_store::secret::Vault;
use kiso_store::store::{RunId, StoreError, TaskState, View};

routes! {
    /// A call of a tool: its arguments and what it gave
    GET "/runs/{run}/calls/{seq}/{place}" Chat => show, 404 "The run or the call does not exist";
}

/// Calls of a task that its board lists.
pub(super) const MAX_CALLS: usize = 200;

/// Sites of a call that are listed.
const MAX_SITES: usize = 20;

/// Characters of a call's line.
const MAX_LABEL: usize = 400;

/// Characters of the reason why a call failed, in its line.
const MAX_REASON: usize = 240;

/// Characters of each text of a call that is shown whole. The trace has all of it.
const MAX_TEXT: usize = 60_000;

/// A call of a tool, in a line.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ToolCall")]
pub(super) struct ToolCallShown {
    /// The number of the event that asked for it.
    seq: u32,
    /// Its place among the calls of that event, from 0.
    place: usize,
    tool: String,
    /// The command line, or the arguments; cut where it is long.
    label: String,
    status: CallStatus,
    exit_code: Option<i32>,
    /// Why it did not succeed, in one line.
    error: Option<String>,
    /// Files that it made and that come with the reply.
    files: Vec<FileNote>,
    /// Files that it created, changed or deleted; at most 50.
    changed: Vec<ChangedFile>,
    more_changed: u64,
    /// Whether it read text of another person or of anybody.
    outside: bool,
    /// Sites that it reached and no grant names; at most 20.
    reached: Vec<ReachedSite>,
    started_ms: Option<i64>,
    ended_ms: Option<i64>,
    /// How long it took.
    millis: Option<u64>,
}

/// A site that a call reached, and why it was allowed to.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ReachedSite {
    /// With its port, where that is not the scheme's own.
    host: String,
    /// Such as "your message names this address" or "a rule allows it".
    because: String,
}

/// The sites that a call reached and no grant names.
pub(super) fn reached(sinks: &[SinkDecision]) -> Vec<ReachedSite> {
    let allowed = sinks.iter().filter(|line| line.verdict == SinkVerdict::Allowed && !line.because.is_empty());
    let sites = allowed.filter_map(|line| {
        let host = line.destination.strip_prefix("host:")?.to_owned();
        Some(ReachedSite { host, because: line.because.clone() })
    });
    sites.take(MAX_SITES).collect()
}

/// The status of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum CallStatus {
    Waiting,
    Running,
    /// It ran to its end. The exit code of a command line may be its answer.
    Done,
    /// Its result was cut.
    Partial,
    Failed,
    /// A rule, a limit or a person did not allow it.
    Blocked,
    /// The run ended before it did.
    Interrupted,
}

/// A call of a tool, whole.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ToolCallBody {
    tool: String,
    /// Of a command line, the text of it.
    command: Option<String>,
    /// The arguments of any other tool; text where they are not JSON.
    args: Option<Value>,
    /// Its output: of a command line, standard output. Null before its end.
    output: Option<String>,
    /// Of a command line, what it wrote to standard error.
    stderr: Option<String>,
    /// The hint that the model got with a failure.
    hint: Option<String>,
    /// Whether a text is cut here, or was cut for the model. The trace has what was recorded.
    cut: bool,
    /// The number of the event with the result; the trace shows it.
    result_seq: Option<u32>,
}

impl ToolCallShown {
    /// A call of a task that stands so.
    pub(super) fn new(call: &CallHistory, task: TaskState) -> Self {
        let result = call.result.as_ref();
        let status = match result {
            None if task != TaskState::Running => CallStatus::Interrupted,
            None if call.started_ms.is_some() => CallStatus::Running,
            None => CallStatus::Waiting,
            Some(result) => CallStatus::of(result),
        };
        let reason = result.filter(|_| matches!(status, CallStatus::Failed | CallStatus::Blocked));
        Self {
            seq: call.seq,
            place: call.place,
            tool: head(&call.call.name, MAX_LABEL),
            label: head(&label(call), MAX_LABEL),
            status,
            exit_code: result.and_then(|result| result.exit_code),
            error: reason.map(|result| head(result.text.lines().next().unwrap_or_default(), MAX_REASON)),
            files: result.map(|result| result.files.clone()).unwrap_or_default(),
            changed: result.map(|result| result.changed.clone()).unwrap_or_default(),
            more_changed: result.map_or(0, |result| result.more_changed),
            outside: result.is_some_and(|result| result.outside),
            reached: result.map(|result| reached(&result.sinks)).unwrap_or_default(),
            started_ms: call.started_ms,
            ended_ms: call.ended_ms,
            millis: result.map(|result| result.millis),
        }
    }
}

impl CallStatus {
    fn of(result: &ToolResult) -> Self {
        use kiso_graph::reflection::Status;
        match result.status {
            Status::Ok => Self::Done,
            Status::Partial => Self::Partial,
            Status::Error => Self::Failed,
            Status::Blocked => Self::Blocked,
        }
    }
}

/// The command line of a call of `exec`.
fn command(call: &CallHistory) -> Option<String> {
    let args: Value = serde_json::from_str(&call.call.args).ok()?;
    Some(args.get("command").filter(|_| call.call.name == EXEC)?.as_str()?.to_owned())
}

/// The first characters of a text, with a mark if there are more.
fn head(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// The label of a call's line: the command line, or the arguments as `name: value`.
fn label(call: &CallHistory) -> String {
    if let Some(command) = command(call) {
        return command;
    }
    let Ok(Value::Object(args)) = serde_json::from_str(&call.call.args) else { return call.call.args.clone() };
    let value = |value: &Value| match value {
        Value::String(text) => head(text, MAX_LABEL),
        other => head(&other.to_string(), MAX_LABEL),
    };
    let parts: Vec<_> = args.iter().map(|(name, one)| format!("{name}: {}", value(one))).collect();
    parts.join(", ")
}

pub(super) async fn show(
    _: Who,
    State(app): State<App>,
    Path((id, seq, place)): Path<(RunId, i64, i64)>,
) -> JsonResult<ToolCallBody> {
    let vault = app.0.drive.vault.clone();
    let missing = format!("the run {id} has no call {seq}/{place}");
    let (Ok(seq), Ok(place)) = (u32::try_from(seq), usize::try_from(place)) else {
        return Err(ApiError::not_found(missing));
    };
    let found = app.0.drive.store.read(move |view| read(view, &vault, &id, seq, place)).await?;
    Ok(Json(found.ok_or_else(|| ApiError::not_found(missing))?))
}

/// Reads a call and its result, which is in the first `called` event behind it.
fn read(
    view: &View<'_>,
    vault: &Vault,
    id: &RunId,
    seq: u32,
    place: usize,
) -> Result<Option<ToolCallBody>, StoreError> {
    let mut history = History::default();
    let mut result_seq = None;
    for stored in view.events_of_kinds(id, &History::KINDS)? {
        let body = vault.open_text(SEALED_RUN, &stored.body);
        if let Some(event) = body.ok().and_then(|body| serde_json::from_str::<Event>(&body).ok()) {
            history.add(stored.seq, stored.at_ms, &event);
        }
        if stored.seq > seq && stored.kind == "called" {
            result_seq = Some(stored.seq);
            break;
        }
    }
    Ok(history.call(seq, place).map(|call| ToolCallBody::new(call, result_seq)))
}

impl ToolCallBody {
    fn new(call: &CallHistory, result_seq: Option<u32>) -> Self {
        let command = command(call);
        let args = || serde_json::from_str(&call.call.args).unwrap_or_else(|_| Value::from(call.call.args.clone()));
        let args = command.is_none().then(args);
        let text = call.result.as_ref().map(parts);
        let (output, stderr) = text.map_or((None, None), |(output, stderr)| (Some(output), stderr));
        let is_long = |text: &Option<String>| text.as_ref().is_some_and(|text| text.chars().nth(MAX_TEXT).is_some());
        let long_args = args.as_ref().is_some_and(|args| args.to_string().len() > MAX_TEXT);
        let archived = call.result.as_ref().is_some_and(|result| result.archived.is_some());
        let cut = archived || long_args || [&command, &output, &stderr].into_iter().any(is_long);
        let short = |text: Option<String>| text.map(|text| clip(&text, MAX_TEXT));
        Self {
            tool: call.call.name.clone(),
            command: short(command),
            args: args.map(|args| if long_args { Value::from(clip(&args.to_string(), MAX_TEXT)) } else { args }),
            output: short(output),
            stderr: short(stderr),
            hint: call.result.as_ref().and_then(|result| result.hint.clone()),
            cut,
            result_seq: call.result.as_ref().and(result_seq),
        }
    }
}

/// Standard output and standard error of a command line, which a model reads as one text with the exit code before it; of any other
/// tool, its text.
fn parts(result: &ToolResult) -> (String, Option<String>) {
    let Some(code) = result.exit_code else { return (result.text.clone(), None) };
    let text = result.text.strip_prefix(&format!("exit code: {code}\n")).unwrap_or(&result.text);
    match text.split_once(&format!("\n{STDERR}\n")) {
        Some((output, stderr)) => (output.to_owned(), Some(stderr.to_owned())),
        None => (text.to_owned(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiso_graph::reflection::Status;
    use kiso_plan::call::ToolCall;

    fn call(name: &str, args: &str, result: Option<ToolResult>) -> CallHistory {
        let call = ToolCall::new("1", name, args);
        CallHistory { seq: 7, place: 0, call, started_ms: Some(5), ended_ms: None, result }
    }

    #[test]
    fn a_line_has_the_command_or_the_arguments() {
        let exec = call(EXEC, r#"{"command": "ls -l"}"#, None);
        assert_eq!((label(&exec), command(&exec)), ("ls -l".to_owned(), Some("ls -l".to_owned())));
        let other = call("read", r#"{"path": "a.txt", "lines": [1, 2]}"#, None);
        assert_eq!(label(&other), "path: a.txt, lines: [1,2]");
        assert_eq!(label(&call("read", "{broken", None)), "{broken");
        let shown = |task| ToolCallShown::new(&exec, task).status;
        assert_eq!(
            (shown(TaskState::Running), shown(TaskState::Failed)),
            (CallStatus::Running, CallStatus::Interrupted)
        );
    }

    #[test]
    fn output_and_error_output_are_told_apart() {
        let blank = ToolResult::blank(&ToolCall::new("1", EXEC, "{}"));
        let text = "exit code: 2\nout\n\n[standard error]\nno such file".to_owned();
        let result = ToolResult { status: Status::Ok, exit_code: Some(2), text, ..blank.clone() };
        assert_eq!(parts(&result), ("out\n".to_owned(), Some("no such file".to_owned())));
        let text = "exit code: 2\nnot a command".to_owned();
        assert_eq!(parts(&ToolResult { text: text.clone(), ..blank }), (text, None));
        let long = ToolResult { exit_code: Some(0), text: "x".repeat(MAX_TEXT + 1), ..result };
        let body = ToolCallBody::new(&call(EXEC, r#"{"command": "yes"}"#, Some(long)), Some(9));
        assert!(body.cut && body.output.is_some_and(|text| text.chars().count() < MAX_TEXT + 60));
        assert_eq!((body.command.as_deref(), body.result_seq), (Some("yes"), Some(9)));
    }
}
