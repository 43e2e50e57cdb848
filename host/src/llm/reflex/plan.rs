//! The planner: a message becomes steps, and steps become a plan.

use serde_json::Value;

use crate::graph::plan::{Plan, Task, TaskKind};
use crate::graph::report::answers_with_1;
use crate::llm::prompt::{Pieces, SkillCard};

use super::chain::{Step, steps};
use super::explicit::{self, Spelt};
use super::scene::Scene;
use super::vocabulary::Vocabulary;
use super::{attachment, effort, expect, honest, noted, retry, text};

/// The planner's answer to these pieces.
pub(super) fn plan(pieces: &Pieces) -> Plan {
    effort::begin();
    let message = pieces.new_message.as_deref().or(pieces.original_message.as_deref()).unwrap_or_default().trim();
    let (message, attached) = attachment::split(message, pieces.environment.as_deref().unwrap_or_default());
    if let Some(correction) = &pieces.correction {
        return honest::refused(message, correction);
    }
    if let Some(failure) = &pieces.failure {
        return retry::plan(pieces, message, failure);
    }
    match message.is_empty() && !attached.is_empty() {
        // Whoever sends a file without a word wants to see what is in it.
        true => first(pieces, &shown(pieces, &attached), attached),
        false => first(pieces, message, attached),
    }
}

/// What a message that is nothing but files asks for.
fn shown(pieces: &Pieces, attached: &[String]) -> String {
    let is_table = |path: &String| pieces.environment.iter().flatten().any(|f| f.path == *path && f.columns.is_some());
    let sentence = |path: &String| format!("{} \"{path}\"", if is_table(path) { "describe" } else { "show" });
    attached.iter().map(sentence).collect::<Vec<_>>().join("\n")
}

fn first(pieces: &Pieces, message: &str, attached: Vec<String>) -> Plan {
    let skills = pieces.skills.as_deref().unwrap_or_default();
    let vocabularies: Vec<Vocabulary> = skills.iter().map(Vocabulary::new).collect();
    let scene = Scene { attached, ..Scene::new(message, &vocabularies, pieces.environment.as_deref()) };
    if let Some(spelt) = explicit::read(message, skills) {
        return match spelt {
            Ok(spelt) => spelt_out(message, spelt, skills),
            Err(why) => honest::blocked(message, &why, &scene),
        };
    }
    let (words, commands) = explicit::trailing_commands(message);
    let commands = commands.into_iter().map(|command| spelt_task(command, skills));
    if words.is_empty() && commands.len() > 0 {
        return close(message, commands.collect(), &[]);
    }
    if honest::is_greeting(message) {
        return honest::introduction(message, &scene);
    }
    if let Some(reply) = noted::reply(message) {
        return close_with(message, reply);
    }
    let scene = Scene { text: words, ..scene };
    let before = pieces.messages.as_deref().unwrap_or_default();
    if let Some(lines) = text::read(&scene, before) {
        let lines = lines.into_iter().map(|line| spelt_task(Spelt::Command(line), skills));
        return close(message, lines.chain(commands).collect(), &[]);
    }
    match steps(&scene, before) {
        Ok(steps) => {
            let notes: Vec<String> = steps.iter().flat_map(|s| s.notes.clone()).collect();
            close(message, steps.iter().map(|step| task(step, skills)).chain(commands).collect(), &notes)
        }
        Err(_) if noted::is_statement(message) => close_with(message, noted::KEPT.to_owned()),
        Err(why) => honest::blocked(message, &why, &scene),
    }
}

fn task(step: &Step, skills: &[SkillCard]) -> Task {
    let card = &skills[step.skill];
    Task {
        kind: TaskKind::Skill,
        detail: step.detail.clone(),
        expect: Some(expect::of_call(card, &step.args, step.produces.as_deref())),
        model: None,
        skill: Some(card.name.clone()),
        args: Some(Value::Object(step.args.clone())),
        notify: false,
        review: true,
    }
}

fn spelt_out(message: &str, spelt: Vec<Spelt>, skills: &[SkillCard]) -> Plan {
    close(message, spelt.into_iter().map(|step| spelt_task(step, skills)).collect(), &[])
}

fn spelt_task(step: Spelt, skills: &[SkillCard]) -> Task {
    match step {
        Spelt::Command(command) => {
            // A command that asks something has no other expectation: its 1 means no.
            let asks = command.split(['|', ';', '&', '\n']).any(answers_with_1);
            Task {
                kind: TaskKind::Exec,
                expect: (!asks).then(|| "exit code 0".to_owned()),
                detail: command,
                model: None,
                skill: None,
                args: None,
                notify: false,
                review: !asks,
            }
        }
        Spelt::Call { skill, args, text } => {
            let index = skills.iter().position(|c| c.name == skill).unwrap_or_default();
            let step = Step { skill: index, args, detail: text, produces: None, groups: 0, notes: Vec::new() };
            task(&step, skills)
        }
    }
}

/// What the closing task tells the worker to do.
pub(super) const REPORT: &str = "Tell the user what came out, with the results and the files that were made.";

/// Begins a line of a closing task that the user must be told.
pub(super) const NOTE: &str = "Note: ";

/// A plan that ends with a report to the user.
pub(super) fn close(goal: &str, mut tasks: Vec<Task>, notes: &[String]) -> Plan {
    let mut detail = REPORT.to_owned();
    for note in notes {
        detail.push_str(&format!("\n{NOTE}{note}."));
    }
    tasks.push(msg(detail));
    Plan { goal: shortened(goal), tasks, blocked: None }
}

/// A plan that does nothing but reply with this text.
fn close_with(goal: &str, reply: String) -> Plan {
    Plan { goal: shortened(goal), tasks: vec![msg(format!("{}{reply}", honest::VERBATIM))], blocked: None }
}

/// A message to the user.
pub(super) fn msg(detail: String) -> Task {
    Task {
        kind: TaskKind::Msg,
        detail,
        expect: None,
        model: None,
        skill: None,
        args: None,
        notify: true,
        review: false,
    }
}

/// A goal is one line; a long message is cut.
pub(super) fn shortened(text: &str) -> String {
    const MOST: usize = 300;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None if line.is_empty() => "an empty message".to_owned(),
        None => line,
    }
}
