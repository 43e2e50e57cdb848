//! Calls of tools: each as a line of a run's board, or with its full arguments and result.

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
    /// A call of a tool: its arguments and its result
    GET "/runs/{run}/calls/{seq}/{place}" Chat => show, 404 "The run or the call does not exist";
}

/// Maximum number of calls that the board lists for a task.
pub(super) const MAX_CALLS: usize = 200;

/// Maximum number of sites that are listed for a call.
const MAX_SITES: usize = 20;

/// Maximum length in characters of a call's label.
const MAX_LABEL: usize = 400;

/// Maximum length in characters of the reason for a failure on the board.
const MAX_REASON: usize = 240;

/// Maximum length in characters of each text of a single call. The trace has the whole text.
const MAX_TEXT: usize = 60_000;

/// A call of a tool, as a line of the board.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ToolCall")]
pub(super) struct ToolCallShown {
    /// Number of the event that requested the call.
    seq: u32,
    /// Position among the calls of that event, counted from 0.
    place: usize,
    tool: String,
    /// The command line or the arguments; a long text is shortened.
    label: String,
    status: CallStatus,
    exit_code: Option<i32>,
    /// The reason for a failure, in one line.
    error: Option<String>,
    /// Files that the call created and that are attached to the reply.
    files: Vec<FileNote>,
    /// Files that the call created, changed or deleted; at most 50.
    changed: Vec<ChangedFile>,
    more_changed: u64,
    /// Whether the call read text that does not come from the user.
    outside: bool,
    /// Sites that the call reached without a grant that names them; at most 20.
    reached: Vec<ReachedSite>,
    started_ms: Option<i64>,
    ended_ms: Option<i64>,
    /// Duration of the call.
    millis: Option<u64>,
}

/// A site that a call reached, and why that was allowed.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ReachedSite {
    /// Host name, with the port if it is not the default of the scheme.
    host: String,
    /// Such as "your message names this address" or "a rule allows it".
    because: String,
}

/// Returns the sites that a call reached without a grant that names them.
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
    /// The call ran to its end. A command line may have any exit code.
    Done,
    /// The call's result was truncated.
    Partial,
    Failed,
    /// A rule, a limit or a person refused the call.
    Blocked,
    /// The run ended before the call did.
    Interrupted,
}

/// A call of a tool with its full arguments and result.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ToolCallBody {
    tool: String,
    /// The command line; only for `exec`.
    command: Option<String>,
    /// The arguments of any other tool; text if they are not valid JSON.
    args: Option<Value>,
    /// The output; for a command line, its standard output. Null until the call ends.
    output: Option<String>,
    /// Standard error of a command line.
    stderr: Option<String>,
    /// The hint that the model got with a failure.
    hint: Option<String>,
    /// Whether a text is truncated here, or was truncated for the model. The trace has the recorded text.
    cut: bool,
    /// Number of the event with the result, as in the trace.
    result_seq: Option<u32>,
}

impl ToolCallShown {
    /// Creates the line of a call; `task` is the state of the call's task.
    pub(super) fn new(call: &CallHistory, task: TaskState) -> Self {
        let result = call.result.as_ref();
        let status = match result {
            None if task != TaskState::Running => CallStatus::Interrupted,
            None if call.started_ms.is_some() => CallStatus::Running,
            None => CallStatus::Waiting,
            Some(result) => CallStatus::from_result(result),
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
    fn from_result(result: &ToolResult) -> Self {
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

/// Returns the first characters of a text, with an ellipsis if there are more.
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

/// Reads a call and its result. The result is in the first `called` event after the call.
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

/// Returns standard output and standard error of a command line. A model reads both as one text that begins with the exit code.
/// For any other tool, returns its text.
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
