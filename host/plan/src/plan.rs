//! The plan: what is to be done, task by task, and what it is checked against.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What runs a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TaskKind {
    /// A shell command line in `detail`.
    Exec,
    /// An installed skill with `args`.
    Skill,
    /// A text that the worker role writes.
    Msg,
    /// A step whose calls are not known yet; the action loop finds them.
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
    /// What to do. A skill task that says nothing here is given `skill NAME`.
    pub detail: String,
    /// Success criteria, in meaning and not by the letter; present where `review` is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<String>,
    /// The role whose model to use instead of the task's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
    /// Checked against the skill's schema, with the defaults filled in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Value>,
    /// Whether the output goes to the user.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub notify: bool,
    /// Whether the reviewer looks at the output.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub review: bool,
    /// The JSON Schema of an object that a `msg` is to be, for the tasks behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// Calls of an `act` that change something outside, as its planner wants them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<NamedEffect>,
    /// The planner's own brief of an `act`: what to know and to heed beside the request and the outputs of earlier tasks. With it, no
    /// reasoner is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub brief: Option<String>,
}

/// A tool's name as providers take it: `feed.read` becomes `feed__read`.
pub fn wire_name(tool: &str) -> String {
    tool.replace('.', "__")
}

/// A call that a plan has named ahead: the action loop may make it once, whatever it has read by then.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedEffect {
    pub tool: String,
    /// Those arguments that are agreed on, which may be bound to the outputs of tasks. What stands nowhere here is the loop's.
    pub args: Value,
}

impl Task {
    /// A task that says nothing but what to do.
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

    /// A short name for a line in a list, such as `skill chart` or `msg`.
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

/// Most characters of a command line that a label shows.
const MAX_LABEL: usize = 60;

/// What the planner wants done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The objective of the whole run; the reviewer judges tasks in its light.
    pub goal: String,
    pub tasks: Vec<Task>,
    /// Why the goal cannot be met, in the planner's own words. The run then ends as failed after its messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked: Option<String>,
}

impl Plan {
    /// What is wrong with the plan as a whole, apart from what each task says.
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

/// What is wrong with a plan that ends without a word.
pub const LAST_IS_MSG: &str = "the last task must be a msg with notify: true";

/// With whose rights something is done; decides what a plan may use.
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

/// One thing that is wrong with a plan or a verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// Such as `tasks[2].args.max_results`; empty for the answer as a whole.
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

/// The task that a value of an argument is bound to, counted from 1, and the part of its output.
pub fn binding(value: &Value) -> Option<(usize, Option<&str>)> {
    let map = value.as_object()?;
    let from = map.get("from")?.as_u64().and_then(|from| usize::try_from(from).ok())?;
    match (map.len(), map.get("pointer")) {
        (1, None) => Some((from, None)),
        (2, Some(Value::String(pointer))) => Some((from, Some(pointer))),
        _ => None,
    }
}

/// What a plan is checked against: the skills that this caller may use.
pub trait Catalog {
    /// The args with the skill's defaults filled in, or everything that is wrong with them. Paths are relative to
    /// the args (`max_results`); an unknown skill is one violation with the path `skill` that names the near names.
    fn check(&self, skill: &str, args: &Value) -> Result<Value, Vec<Violation>>;

    /// What is wrong with some of the arguments of a tool, whatever the others are.
    fn check_some(&self, tool: &str, args: &Value) -> Result<(), Vec<Violation>>;

    /// Why nothing can be checked against a JSON Schema.
    fn check_schema(&self, schema: &Value) -> Result<(), String>;
}
