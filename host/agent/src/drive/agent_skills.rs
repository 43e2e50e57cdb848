//! Agent Skills in a run: which of them a message or a task names, their text for models, and the tools that they exclude.

use super::run_context::RunContext;
use crate::tool::{EXEC, allows};
use kiso_graph::mention;
use kiso_graph::run::Run;
use kiso_plan::code::ErrorCode;
use kiso_plan::label::Label;
use kiso_plan::plan::{Task, TaskKind};
use kiso_plan::prompt::{AgentSkillCard, Instructions, strip_outside_text};
use kiso_plan::report::{TaskError, TaskReport};
use kiso_sandbox::skill::{AgentSkill, wire_name};
use std::sync::Arc;

/// Maximum number of files that are listed with a text; the others can be found in its folder.
const MAX_FILES: usize = 40;

/// Maximum length in characters of a description for the router, which only chooses among tools.
const BRIEF: usize = 200;

impl RunContext<'_> {
    /// Returns the cards of the installed Agent Skills; `None` if there are none.
    pub(super) fn agent_skill_cards(&self) -> Option<Vec<AgentSkillCard>> {
        let told = self.drive.tools.skills().told_agent_skills();
        let card = |skill: &Arc<AgentSkill>| AgentSkillCard {
            name: skill.name.to_string(),
            description: skill.description.clone(),
        };
        (!told.is_empty()).then(|| told.iter().map(card).collect())
    }

    /// The same for the router, with short descriptions.
    pub(super) fn brief_agent_skill_cards(&self) -> Option<Vec<AgentSkillCard>> {
        let brief = |card: AgentSkillCard| AgentSkillCard {
            description: card.description.chars().take(BRIEF).collect(),
            ..card
        };
        self.agent_skill_cards().map(|cards| cards.into_iter().map(brief).collect())
    }

    /// Returns the Agent Skills that the message or the active task names. Text from outside in a message names none.
    pub(super) fn agent_skills_in_use(&self, run: &Run) -> Vec<Arc<AgentSkill>> {
        self.agent_skills_named(&[
            strip_outside_text(run.message()),
            run.task().map_or("", |task| task.detail.as_str()),
        ])
    }

    /// Returns the Agent Skills that these texts name.
    fn agent_skills_named(&self, texts: &[&str]) -> Vec<Arc<AgentSkill>> {
        if !texts.iter().any(|text| text.contains('@')) {
            return Vec::new();
        }
        let installed: Vec<_> = self.drive.tools.skills().agent_skills().into_iter().flatten().collect();
        let known: Vec<String> = installed.iter().map(|skill| skill.name.to_string()).collect();
        let mut names: Vec<String> = texts.iter().flat_map(|text| mention::agent_skills(text, &known)).collect();
        names.dedup();
        let named = |skill: &Arc<AgentSkill>| names.iter().any(|name| name == skill.name.as_str());
        installed.into_iter().filter(named).collect()
    }

    /// Returns the label of the instructions that a message names.
    pub(super) fn instructions_of_message(&self, message: &str) -> Label {
        self.label_of_instructions(&[strip_outside_text(message)])
    }

    /// The same for each task of a plan whose model gets instructions; empty if there are none.
    pub(super) fn instructions_of_tasks(&self, tasks: &[Task]) -> Vec<Label> {
        let of_task = |task: &Task| match task.kind {
            TaskKind::Msg | TaskKind::Act => self.label_of_instructions(&[&task.detail]),
            TaskKind::Exec | TaskKind::Skill => Label::default(),
        };
        let labels: Vec<_> = tasks.iter().map(of_task).collect();
        if labels.iter().all(Label::is_default) { Vec::new() } else { labels }
    }

    fn label_of_instructions(&self, texts: &[&str]) -> Label {
        let skills = self.drive.tools.skills();
        let labels: Vec<_> =
            self.agent_skills_named(texts).iter().map(|skill| skills.agent_skill_label(skill.name.as_str())).collect();
        Label::join_all(&labels)
    }

    /// Returns the instructions in use, but only those that the run's label already covers: a skill that came into use since is
    /// left out.
    pub(super) fn instructions(&self, run: &Run) -> Option<Vec<Instructions>> {
        let skills = self.drive.tools.skills();
        let instructions = |skill: Arc<AgentSkill>| match skills.instructions(&skill) {
            Ok(text) => {
                let beside = skill.files.iter().map(|file| file.path.clone()).filter(|path| path != "SKILL.md");
                let files = beside.take(MAX_FILES).collect();
                Some(Instructions { name: skill.name.to_string(), place: skill.place(), files, text })
            }
            Err(error) => {
                tracing::warn!(skill = %skill.name, "an Agent Skill cannot be read: {}", error.message);
                None
            }
        };
        let expected = |skill: &Arc<AgentSkill>| run.expects(&skills.agent_skill_label(skill.name.as_str()));
        let in_use = self.agent_skills_in_use(run).into_iter().filter(expected);
        let all: Vec<_> = in_use.filter_map(instructions).collect();
        (!all.is_empty()).then_some(all)
    }

    /// Returns the failed report of a task whose tool the Agent Skills in use do not allow.
    pub(super) fn narrowed(&self, run: &Run, task: &Task) -> Option<TaskReport> {
        let in_use = self.agent_skills_in_use(run);
        let (tool, category) = match task.kind {
            TaskKind::Exec => (EXEC.to_owned(), String::new()),
            TaskKind::Skill => {
                let name = task.skill.as_deref().unwrap_or_default();
                let by_name = self.drive.tools.by_name();
                let category = by_name.into_iter().find(|(known, _)| known == name).map(|(_, category)| category);
                (wire_name(name), category.unwrap_or_default())
            }
            TaskKind::Msg | TaskKind::Act => return None,
        };
        if allows(&in_use, &tool, &category) {
            return None;
        }
        let names: Vec<&str> = in_use.iter().map(|skill| skill.name.as_str()).collect();
        let message = format!(
            "`{tool}` is not among the `allowed-tools` of {}, which the message or the task names; do it with the tools that are, or \
             without naming the skill",
            names.join(", ")
        );
        let error = TaskError { code: ErrorCode::NotAllowed, policy: true, ..TaskError::of_host(message) };
        Some(TaskReport::failed(task.clone(), error))
    }
}
