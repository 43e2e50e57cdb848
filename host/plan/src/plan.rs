//! Plans: tasks in order, and their validation.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How a task is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TaskKind {
    /// A shell command line in `detail`.
    Exec,
    /// An installed skill with `args`.
    Skill,
    /// A text that the worker role writes.
    Msg,
    /// A step whose calls are not yet known; the action loop chooses them.
    Act,
}

impl TaskKind {
    /// The word in the plan's `type` field.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exec => "exec",
            Self::Skill => "skill",
            Self::Msg => "msg",
            Self::Act => "act",
        }
    }
}

/// One task of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    #[serde(rename = "type")]
    pub kind: TaskKind,
    /// The work of the task. For a skill task without one, it is `skill NAME`.
    pub detail: String,
    /// Success criteria, judged by their meaning; present if `review` is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<String>,
    /// The role whose model to use instead of the task's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
    /// Validated against the skill's schema, with defaults filled in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Value>,
    /// Whether the output goes to the user.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub notify: bool,
    /// Whether the reviewer judges the output.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub review: bool,
    /// The JSON Schema of the object that a `msg` writes for later tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// Calls of an `act` that change something outside, as its planner requests them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<NamedEffect>,
    /// The planner's own brief of an `act`: facts and rules in addition to the request and the outputs of earlier tasks. With it,
    /// the reasoner is not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub brief: Option<String>,
}

/// Returns a tool's name in the form that providers accept: `feed.read` becomes `feed__read`.
pub fn wire_name(tool: &str) -> String {
    tool.replace('.', "__")
}

/// A call that a plan names in advance: the action loop may make it once, whatever it has read by then.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedEffect {
    pub tool: String,
    /// The arguments that are fixed; they may be bound to the outputs of tasks. The loop chooses all other arguments.
    pub args: Value,
}

impl Task {
    /// A task with only a kind and a detail.
    pub fn new(kind: TaskKind, detail: impl Into<String>) -> Self {
        Self {
            kind,
            detail: detail.into(),
            expect: None,
            model: None,
            skill: None,
            args: None,
            notify: false,
            review: false,
            schema: None,
            effects: Vec::new(),
            brief: None,
        }
    }

    /// Returns a short name for a list, such as `skill chart` or `msg`.
    pub fn label(&self) -> String {
        match (self.kind, &self.skill) {
            (TaskKind::Skill, Some(skill)) => format!("skill {skill}"),
            (TaskKind::Exec, _) => {
                let line = self.detail.lines().next().unwrap_or_default().trim();
                let cut = line.char_indices().nth(MAX_LABEL).map_or(line.len(), |(at, _)| at);
                let more = if cut < self.detail.trim().len() { "…" } else { "" };
                format!("$ {}{more}", &line[..cut])
            }
            (kind, _) => kind.name().to_owned(),
        }
    }
}

/// Maximum characters of a command line in a label.
const MAX_LABEL: usize = 60;

/// The planner's tasks for a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The objective of the whole run; the reviewer uses it to judge tasks.
    pub goal: String,
    pub tasks: Vec<Task>,
    /// Why the goal cannot be met, in the planner's own words. The run then fails after its messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked: Option<String>,
}

impl Plan {
    /// Returns the errors of the plan as a whole, without those of its tasks.
    pub fn shape(&self, max_tasks: usize) -> Vec<Violation> {
        let mut violations = Vec::new();
        let Some((last, before)) = self.tasks.split_last() else {
            return vec![Violation::new("tasks", "there must be at least one task, a msg with notify: true")];
        };
        if self.tasks.len() > max_tasks {
            let message = format!("has {} tasks, at most {max_tasks} are allowed (max_tasks)", self.tasks.len());
            violations.push(Violation::new("tasks", message));
        }
        if last.kind != TaskKind::Msg || !last.notify {
            let path = format!("tasks[{}]", before.len());
            violations.push(Violation::new(path, LAST_IS_MSG));
        }
        if self.blocked.is_some() && self.tasks.iter().any(|task| task.kind != TaskKind::Msg) {
            violations.push(Violation::new("tasks", "a blocked plan has msg tasks only"));
        }
        violations
    }
}

/// The error of a plan that does not end with a message.
pub const LAST_IS_MSG: &str = "the last task must be a msg with notify: true";

/// The role of the caller, which decides what a plan may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CallerScope {
    Admin,
    User,
}

impl CallerScope {
    pub fn name(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::User => "user",
        }
    }
}

/// One error in a plan or a verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// Such as `tasks[2].args.max_results`; empty for an error of the whole answer.
    pub path: String,
    pub message: String,
}

impl Violation {
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => f.write_str(&self.message),
            path => write!(f, "{path}: {}", self.message),
        }
    }
}

/// Returns the task that an argument's value is bound to, counted from 1, and the part of its output.
pub fn binding(value: &Value) -> Option<(usize, Option<&str>)> {
    let map = value.as_object()?;
    let from = map.get("from")?.as_u64().and_then(|from| usize::try_from(from).ok())?;
    match (map.len(), map.get("pointer")) {
        (1, None) => Some((from, None)),
        (2, Some(Value::String(pointer))) => Some((from, Some(pointer))),
        _ => None,
    }
}

/// Validates plans: knows the skills that this caller may use.
pub trait Catalog {
    /// Returns the args with the skill's defaults filled in, or all errors in them. Paths are relative to the args
    /// (`max_results`). An unknown skill is one violation with the path `skill` that lists similar names.
    fn check(&self, skill: &str, args: &Value) -> Result<Value, Vec<Violation>>;

    /// Validates some of the arguments of a tool, without requiring the others.
    fn check_some(&self, tool: &str, args: &Value) -> Result<(), Vec<Violation>>;

    /// Returns an error if the JSON Schema is unusable.
    fn check_schema(&self, schema: &Value) -> Result<(), String>;
}
