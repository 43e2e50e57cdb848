//! The planner: turns a message into steps, and steps into a plan.

use serde_json::Value;
use std::sync::Arc;

use kiso_plan::plan::{Plan, Task, TaskKind};
use kiso_plan::prompt::{Pieces, SkillCard, strip_outside_text};
use kiso_plan::report::answers_with_1;

use crate::chain::{ChainStep, steps};
use crate::closing::{close, msg, shortened};
use crate::everyday::FileQuestion;
use crate::explicit::{self, ExplicitStep};
use crate::scene::Scene;
use crate::vocabulary::Vocabulary;
use crate::{agent_skill, effort, everyday, expect, honest, noted, retry, text};
use kiso_plan::attached;

/// Returns the planner's answer to these pieces.
pub fn plan(pieces: &Pieces) -> Plan {
    effort::begin();
    let message = pieces.new_message.as_deref().or(pieces.original_message.as_deref()).unwrap_or_default();
    // A text from outside cannot request anything, whatever its lines look like.
    let message = strip_outside_text(message).trim();
    let (message, attached) = attached::split(message, pieces.environment.as_deref().unwrap_or_default());
    if let Some(correction) = &pieces.correction {
        return honest::refused(message, correction);
    }
    if let Some(failure) = &pieces.failure {
        return retry::plan(pieces, message, failure);
    }
    match message.is_empty() && !attached.is_empty() {
        // A user who sends a file without text wants to see its contents.
        true => first(pieces, &shown(pieces, &attached), attached),
        false => first(pieces, message, attached),
    }
}

/// Returns the request of a message that only contains files.
fn shown(pieces: &Pieces, attached: &[String]) -> String {
    let is_table = |path: &String| pieces.environment.iter().flatten().any(|f| f.path == *path && f.columns.is_some());
    let sentence = |path: &String| format!("{} \"{path}\"", if is_table(path) { "describe" } else { "show" });
    attached.iter().map(sentence).collect::<Vec<_>>().join("\n")
}

fn first(pieces: &Pieces, message: &str, attached: Vec<String>) -> Plan {
    let skills = pieces.skills.as_deref().unwrap_or_default();
    let named = agent_skill::read(message, pieces.instructions.as_deref().unwrap_or_default());
    let misread = match named {
        Some(Ok(command)) => return close(message, vec![spelt_task(ExplicitStep::Command(command), skills)], &[]),
        Some(Err(why)) => Some(why),
        None => match explicit::read(message, skills) {
            Some(Ok(spelt)) => return spelt_out(message, spelt, skills),
            misread => misread.and_then(Result::err),
        },
    };
    // Only now: parsing the skills' examples takes longer than all of the above.
    let vocabularies: Vec<Vocabulary> = skills.iter().map(|card| Vocabulary::new(card)).collect();
    let scene = Scene { attached, ..Scene::new(message, &vocabularies, pieces.environment.as_deref()) };
    if let Some(why) = misread {
        return honest::blocked(message, &why, &scene);
    }
    let (spoken, last) = match explicit::ending(message, skills) {
        Some((_, Err(why))) => return honest::blocked(message, &why, &scene),
        Some((before, Ok(steps))) => (before, steps),
        None => (message, Vec::new()),
    };
    let (words, commands) = explicit::trailing_commands(spoken);
    let commands: Vec<Task> = commands.into_iter().chain(last).map(|step| spelt_task(step, skills)).collect();
    if words.is_empty() && !commands.is_empty() {
        return close(message, commands, &[]);
    }
    if honest::is_greeting(message) {
        return honest::introduction(message, &scene);
    }
    if let Some(reply) = noted::reply(spoken) {
        return match commands.is_empty() {
            true => close_with(message, reply),
            false => close(message, commands, &[reply.trim_end_matches('.').to_owned()]),
        };
    }
    let scene = Scene { text: words, ..scene };
    let sentence = match everyday::read(&scene).filter(|_| commands.is_empty()) {
        Some(FileQuestion::Command(line)) => {
            return close(message, vec![spelt_task(ExplicitStep::Command(line.to_owned()), skills)], &[]);
        }
        Some(FileQuestion::Unclear(why)) => return honest::blocked(message, &why, &scene),
        Some(FileQuestion::Sentence(sentence)) => Some(sentence),
        None => None,
    };
    let scene = Scene { text: sentence.as_deref().unwrap_or(words), ..scene };
    let before = pieces.messages.as_deref().unwrap_or_default();
    if let Some(lines) = text::read(&scene, before) {
        let lines = lines.into_iter().map(|line| spelt_task(ExplicitStep::Command(line), skills));
        return close(message, lines.chain(commands).collect(), &[]);
    }
    match steps(&scene, before) {
        Ok(steps) => {
            let notes: Vec<String> = steps.iter().flat_map(|s| s.notes.clone()).collect();
            close(message, steps.iter().map(|step| task(step, skills)).chain(commands).collect(), &notes)
        }
        Err(_) if commands.is_empty() && noted::is_statement(message) => close_with(message, noted::KEPT.to_owned()),
        Err(why) => match agent_skill::fitting(message, pieces.agent_skills.as_deref().unwrap_or_default()) {
            Some(name) => honest::fitting(message, name),
            None => honest::blocked(message, &why, &scene),
        },
    }
}

fn task(step: &ChainStep, skills: &[Arc<SkillCard>]) -> Task {
    let card = &skills[step.skill];
    Task {
        expect: Some(expect::of_call(card, &step.args, step.produces.as_deref())),
        skill: Some(card.name.clone()),
        args: Some(Value::Object(step.args.clone())),
        review: true,
        ..Task::new(TaskKind::Skill, step.detail.clone())
    }
}

fn spelt_out(message: &str, spelt: Vec<ExplicitStep>, skills: &[Arc<SkillCard>]) -> Plan {
    close(message, spelt.into_iter().map(|step| spelt_task(step, skills)).collect(), &[])
}

fn spelt_task(step: ExplicitStep, skills: &[Arc<SkillCard>]) -> Task {
    match step {
        ExplicitStep::Command(command) => {
            // A command that asks a question has no other expectation: its exit code 1 means no.
            let asks = command.split(['|', ';', '&', '\n']).any(answers_with_1);
            let expect = (!asks).then(|| "exit code 0".to_owned());
            Task { expect, review: !asks, ..Task::new(TaskKind::Exec, command) }
        }
        ExplicitStep::Call { skill, args, text } => {
            let index = skills.iter().position(|c| c.name == skill).unwrap_or_default();
            let step = ChainStep { skill: index, args, detail: text, produces: None, groups: 0, notes: Vec::new() };
            task(&step, skills)
        }
    }
}

/// Creates a plan that only replies with this text.
fn close_with(goal: &str, reply: String) -> Plan {
    Plan { goal: shortened(goal), tasks: vec![msg(format!("{}{reply}", honest::VERBATIM))], blocked: None }
}
