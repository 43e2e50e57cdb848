//! What a plan may name: the tools of installed skills. The planner sees them as cards, the graph checks plans against
//! them, and the driver runs tasks through them.

pub mod files;

use crate::graph::plan::{Catalog, Task, TaskKind, Violation};
use crate::graph::report::{TaskError, TaskReport, TaskStatus};
use crate::llm::prompt::SkillCard;
use crate::skill::{Blame, Caller, Ended, Installed, SkillError, Skills};
use serde_json::Value;

/// Why an exec task cannot run.
const NO_SHELL: &str = "exec tasks need the shell, which this version of kiso does not have yet; use skills";

/// The tools of a home.
#[derive(Debug, Clone)]
pub struct Tools {
    skills: Skills,
}

impl Tools {
    pub fn new(skills: Skills) -> Self {
        Self { skills }
    }

    /// One card for each tool that can be called. A damaged skill has none.
    pub fn cards(&self) -> Vec<SkillCard> {
        let skills = self.skills.list().into_iter().flatten();
        skills.flat_map(|skill| cards(&skill)).collect()
    }

    /// Runs a skill task to its end. Whatever happens is a report.
    pub async fn run(&self, task: &Task, caller: Caller<'_>) -> TaskReport {
        if task.kind != TaskKind::Skill {
            let error = SkillError::new(task.kind.name(), Blame::Host, "unavailable", NO_SHELL);
            return TaskReport::failed(task.clone(), task_error(&error));
        }
        let name = task.skill.as_deref().unwrap_or_default();
        let args = task.args.clone().unwrap_or(Value::Null);
        let ended = self.skills.call(name, &args, caller).await;
        let mut report = report(task, ended);
        report.skill_digest = self.skills.find_tool(name).ok().map(|(skill, _)| self.skills.digest(&skill));
        report
    }
}

impl Catalog for Tools {
    fn check(&self, skill: &str, args: &Value) -> Result<Value, Vec<Violation>> {
        self.skills.check(skill, args)
    }

    fn exec(&self) -> Result<(), String> {
        Err(NO_SHELL.to_owned())
    }
}

fn cards(skill: &Installed) -> Vec<SkillCard> {
    let manifest = &skill.manifest;
    let card = |tool: &crate::skill::Tool| SkillCard {
        name: tool.name.clone(),
        summary: match skill.tools.len() {
            1 => manifest.summary.clone(),
            _ => format!("{} ({})", tool.inner, manifest.summary),
        },
        category: manifest.category.clone(),
        examples: manifest.examples.clone(),
        args: tool.args.schema().clone(),
    };
    skill.tools.iter().map(card).collect()
}

fn report(task: &Task, ended: Ended) -> TaskReport {
    let mut report = match ended.result {
        Ok(answer) => {
            let mut report = TaskReport::new(task.clone(), TaskStatus::Done, answer.text);
            report.data = answer.data;
            report.files = answer.files;
            report
        }
        Err(error) => TaskReport::failed(task.clone(), task_error(&error)),
    };
    report.log = ended.log;
    report.millis = ended.used.millis;
    report.used = Some(ended.used);
    report
}

fn task_error(error: &SkillError) -> TaskError {
    TaskError {
        code: error.code.clone(),
        message: error.to_string(),
        limit: error.limit.as_ref().map(|hit| hit.limit.name().to_owned()),
        retryable: error.retryable,
        policy: error.blame == Blame::Policy || error.code == "denied",
    }
}
