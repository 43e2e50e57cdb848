//! The state of a run: its plans, the state of every task, and its current activity.

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::calls::{MAX_CALLS, ReachedSite, ToolCallShown, reached};
use crate::App;
use crate::auth::Who;
use crate::document::routes;
use crate::wire::{JsonResult, Path, shown};
use kiso_agent::drive::SEALED_RUN;
use kiso_agent::session::live::Busy;
use kiso_graph::run::{History, TaskHistory};
use kiso_graph::step::{Event, ModelReasoning};
use kiso_plan::clip::clip;
use kiso_plan::plan::{Task, TaskKind};
use kiso_plan::report::{ChangedFile, FileNote};
use kiso_store::secret::Vault;
use kiso_store::secret::vault::is_sealed;
use kiso_store::store::{RunId, RunLine, RunStatus, Scope, StoreError, TaskRow, TaskState, Totals, View};

routes! {
    /// A run with its tasks, its outcome and its usage
    GET "/runs/{run}" Chat => show, 404 "The run does not exist";
}

/// Maximum length in characters of a task's description and of its standard error. The trace has the whole text.
const MAX_TEXT: usize = 16_000;

/// The state of a run.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "RunShown")]
pub(super) struct Board {
    run: RunLine,
    /// Goal of the last plan; null before the first plan, and until a model has checked the run for secrets.
    goal: Option<String>,
    /// Number of plans so far.
    plans: u32,
    /// The run's current activity; null after its end.
    thought: Option<Busy>,
    outcome: Option<Map<String, Value>>,
    usage: Usage,
    tasks: Vec<Entry>,
    /// Reasoning of models before their answers, in order, with event numbers.
    reasoning: Vec<Reasoned>,
}

/// Reasoning of a model before its answer.
#[derive(Debug, Serialize, JsonSchema)]
struct Reasoned {
    seq: u32,
    #[serde(flatten)]
    thought: ModelReasoning,
}

/// Model calls, tokens and cost of a run, without the built-in rules.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "RunUsage")]
struct Usage {
    calls: u64,
    input_tokens: u64,
    output_tokens: u64,
    /// Input tokens that the provider served from its cache.
    cached_tokens: u64,
    /// Millionths of a US dollar; null if unknown.
    cost_micros: Option<u64>,
}

/// A task.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Task")]
struct Entry {
    /// Unique in the run; tasks are numbered in the order of planning.
    id: u32,
    /// Number of its plan, counted from 1; 0 for a task without a plan.
    plan: u32,
    kind: TaskKind,
    /// A short name, such as `skill chart`.
    label: String,
    /// The work of the task: a command line, the arguments of a skill, or text; null until a model has checked it for secrets.
    detail: Option<String>,
    status: TaskState,
    verdict: Option<Verdict>,
    /// 1 for the first attempt; a retry has the number of the failed attempt plus one.
    attempt: u32,
    exit_code: Option<i32>,
    output: Option<String>,
    stderr: Option<String>,
    /// The reason why the task failed.
    error: Option<String>,
    files: Vec<FileNote>,
    /// Files that the task created, changed or deleted; at most 50.
    changed: Vec<ChangedFile>,
    more_changed: u64,
    /// Whether the task read text that does not come from the user.
    outside: bool,
    /// Sites that the task reached without a grant that names them; at most 20.
    reached: Vec<ReachedSite>,
    /// Calls of tools by the action loop, in the order of the requests; the last 200.
    calls: Vec<ToolCallShown>,
    /// Number of earlier calls that are not listed.
    earlier_calls: usize,
    started_ms: Option<i64>,
    ended_ms: Option<i64>,
}

/// The reviewer's verdict on a task.
#[derive(Debug, Serialize, JsonSchema)]
struct Verdict {
    status: kiso_plan::verdict::Status,
    reason: Option<String>,
}

/// Data of a run, read in one transaction so that its parts are consistent.
struct Read {
    run: RunLine,
    status: RunStatus,
    outcome: Option<String>,
    rows: Vec<TaskRow>,
    usage: Totals,
    history: History,
    /// Whether a part of the log is sealed because no model has checked it for secrets yet.
    sealed: bool,
    reasoning: Vec<Reasoned>,
}

/// Kinds of events with reasoning that do not belong to a task.
const REASONED: [&str; 5] = ["conversed", "assessed", "briefed", "unplanned", "compressed"];

/// Maximum length in characters of a run's reasoning in one response.
const MAX_REASONING: usize = 200_000;

pub(super) async fn show(_: Who, State(app): State<App>, Path(id): Path<RunId>) -> JsonResult<Board> {
    let vault = app.0.drive.vault.clone();
    let of = id.clone();
    let read = app.0.drive.store.read(move |view| read(view, &vault, &of)).await?;
    let Read { run, status, outcome, rows, usage, history, sealed, reasoning } = read;
    let thought = app.0.hub.busy(&id).filter(|_| status == RunStatus::Running);
    let Totals { calls, usage } = usage;
    Ok(Json(Board {
        run,
        goal: Some(history.goal.clone()).filter(|goal| !sealed && !goal.is_empty()),
        plans: history.plans,
        thought,
        outcome: outcome.and_then(|outcome| serde_json::from_str(&outcome).ok()),
        usage: Usage {
            calls,
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cached_tokens: usage.cached_tokens,
            cost_micros: app.0.drive.newest_config().known_cost(usage),
        },
        tasks: rows.into_iter().map(|row| entry(row, &history, sealed)).collect(),
        reasoning,
    }))
}

fn read(view: &View<'_>, vault: &Vault, id: &RunId) -> Result<Read, StoreError> {
    let line = view.run_line(id)?.ok_or_else(|| StoreError::NoRun { text: id.to_string() })?;
    let outcome = view.run(id)?.and_then(|run| run.outcome);
    let (mut history, mut sealed) = (History::default(), false);
    let (mut reasoning, mut left) = (Vec::new(), MAX_REASONING);
    let kinds: Vec<&str> = History::KINDS.into_iter().chain(REASONED).collect();
    for stored in view.events_of_kinds(id, &kinds)? {
        sealed |= is_sealed(&stored.body);
        // Events that this key cannot decrypt, or that an older version wrote, are left out.
        let body = vault.open_text(SEALED_RUN, &stored.body);
        if let Some(event) = body.ok().and_then(|body| serde_json::from_str::<Event>(&body).ok()) {
            history.add(stored.seq, stored.at_ms, &event);
            for thought in event.reasoning {
                let text = clip(&thought.text, left);
                left = left.saturating_sub(text.len());
                reasoning.push(Reasoned { seq: stored.seq, thought: ModelReasoning { text, ..thought } });
            }
        }
    }
    let usage = view.model_usage(Scope::Run(id))?;
    let (status, mut rows) = (line.status, view.tasks_of(id)?);
    rows.sort_by_cached_key(|row| history.place(row.id));
    for row in &mut rows {
        row.task = vault.open_json(SEALED_RUN, &row.task).unwrap_or_default().to_string();
    }
    Ok(Read { run: shown(line), status, outcome, rows, usage, history, sealed, reasoning })
}

fn entry(row: TaskRow, history: &History, sealed: bool) -> Entry {
    let TaskRow { id, kind, label, task, status, output, error, started_ms, ended_ms, .. } = row;
    let TaskHistory {
        plan,
        attempt,
        verdict,
        exit_code,
        stderr,
        files,
        changed,
        more_changed,
        outside,
        sinks,
        calls,
        ..
    } = history.task(id).cloned().unwrap_or_default();
    let earlier_calls = calls.len().saturating_sub(MAX_CALLS);
    let calls = calls[earlier_calls..].iter().map(|call| ToolCallShown::new(call, status)).collect();
    let task: Option<Task> = serde_json::from_str(&task).ok();
    // The task of the medium route contains the user's message.
    let detail = task.filter(|_| !(sealed && plan == 0)).map(|task| clip(&detail(kind, &task), MAX_TEXT));
    Entry {
        id,
        plan,
        kind,
        label,
        detail,
        status,
        verdict: verdict.map(|(status, reason)| Verdict { status, reason }),
        attempt: attempt.max(1),
        exit_code,
        output,
        stderr: Some(clip(&stderr, MAX_TEXT)).filter(|text| !text.is_empty()),
        error,
        files,
        changed,
        more_changed,
        outside,
        reached: reached(&sinks),
        calls,
        earlier_calls,
        started_ms,
        ended_ms,
    }
}

/// Returns the text of a task's work. A planner gives a skill arguments and seldom adds text.
fn detail(kind: TaskKind, task: &Task) -> String {
    match (&task.args, kind) {
        (Some(args), TaskKind::Skill) => args.to_string(),
        _ => task.detail.clone(),
    }
}
