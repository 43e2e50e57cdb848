//! Honest plans: what reflex replies if it cannot plan something, with suggestions of what it can do.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use kiso_plan::plan::Plan;
use kiso_plan::prompt::ColumnKind;
use kiso_plan::report::Correction;

use crate::chain::steps;
use crate::closing::{msg, quoted_path, shortened};
use crate::column::{date_column, only};
use crate::effort;
use crate::scene::{Scene, Source, is_computed};
use crate::schema::{Use, choices};
use crate::template::{Item, parse};
use crate::vocabulary::Vocabulary;
use crate::word::words;

/// Begins a task detail whose rest is the reply itself.
pub(crate) const VERBATIM: &str = "Tell the user, word for word:\n\n";

const WHO: &str = "I am reflex, the rule-based model that is built into kiso. I am not a language model.";
const HOW: &str = "Requests in free language need a language model (`kiso config preset` shows how to set one).";

/// Creates a plan that only says why nothing can be done.
pub(crate) fn blocked(message: &str, why: &str, scene: &Scene) -> Plan {
    let text = format!("{WHO} I cannot plan this: {why}.\n\n{}\n\n{HOW}", offers(scene));
    Plan { goal: shortened(message), tasks: vec![msg(format!("{VERBATIM}{text}"))], blocked: Some(why.to_owned()) }
}

/// Creates a plan that names an Agent Skill whose text may explain the task; following it needs a language model.
pub(crate) fn fitting(message: &str, name: &str) -> Plan {
    let why = "an Agent Skill says how it may be done, and following a text takes a language model".to_owned();
    let text = format!("{WHO} The Agent Skill {name} may be about this: `@{name}` shows what it says.\n\n{HOW}");
    Plan { goal: shortened(message), tasks: vec![msg(format!("{VERBATIM}{text}"))], blocked: Some(why) }
}

/// Creates a plan after a refusal: the same plan would be refused again.
pub(crate) fn refused(message: &str, correction: &Correction) -> Plan {
    let why = format!("the plan that the rules give was refused ({})", correction.violations.join("; "));
    let text = format!("{WHO} I cannot plan this: {why}, and the same rules would give the same plan again.\n\n{HOW}");
    Plan { goal: shortened(message), tasks: vec![msg(format!("{VERBATIM}{text}"))], blocked: Some(why) }
}

/// Whether a message only says hello or asks what kiso can do.
pub(crate) fn is_greeting(message: &str) -> bool {
    // A greeting is short.
    if message.len() > 200 {
        return false;
    }
    let said = words(message);
    let text = said.iter().map(|w| w.norm.as_str()).collect::<Vec<_>>().join(" ");
    let first = said.first().map_or("", |w| w.norm.as_str());
    (said.len() <= 3 && matches!(first, "hello" | "hi" | "hey" | "help" | "thanks"))
        || text == "thank you"
        || matches!(text.as_str(), "what can you do" | "who are you" | "what are you")
}

/// Creates a plan that says what reflex is and what it can do here.
pub(crate) fn introduction(message: &str, scene: &Scene) -> Plan {
    let text = format!("{WHO}\n\n{}\n\n{HOW}", offers(scene));
    Plan { goal: shortened(message), tasks: vec![msg(format!("{VERBATIM}{text}"))], blocked: None }
}

fn offers(scene: &Scene) -> String {
    // Suggestions are made even if the message has used up all steps.
    effort::begin();
    let mut lines = vec!["What I can do here, for example:".to_owned()];
    lines.extend(offered(scene).into_iter().map(|message| format!("- {message}")));
    if scene.skills.is_empty() {
        lines.push("\nNo skill is installed (`kiso skill list`).".to_owned());
    } else {
        if scene.tables().next().is_none() {
            let attach =
                "With a table I can do more: attach one in the page, or with `kiso run --file FILE.csv MESSAGE`.";
            lines.push(format!("\n{attach}"));
        }
        lines.push("\n`SKILL key=value …` calls an installed skill; `kiso skill list` names them.".to_owned());
    }
    lines.join("\n")
}

/// Returns messages that can be sent unchanged.
pub(crate) fn offered(scene: &Scene) -> Vec<String> {
    const MOST: usize = 5;
    let mut out = suggestions(scene, MOST);
    if let Some(text) = scene.files.iter().find(|file| file.is_text()) {
        out.push(format!("show the first 5 lines of {}", quoted_path(&text.path)));
        out.push(format!("how many words are in {}?", quoted_path(&text.path)));
    }
    out.push("$ ls -l".to_owned());
    out
}

/// Returns sentences made from the skills' examples and the existing files; only those that the rules can plan. First the most
/// informative one of every skill, then the next one of every skill.
pub(crate) fn suggestions(scene: &Scene, most: usize) -> Vec<String> {
    // Examples that need a network, or an unknown address, may not work here.
    sentences(scene, most, &|sentence| !sentence.contains("://"))
}

fn sentences(scene: &Scene, most: usize, wanted: &dyn Fn(&str) -> bool) -> Vec<String> {
    let mut of_each: Vec<_> = scene
        .skills
        .iter()
        .filter(|skill| skill.card.category != "web")
        .map(|skill| {
            let mut examples: Vec<&String> = skill.card.examples.iter().collect();
            examples.sort_by_key(|example| Reverse(example.matches('{').count()));
            let made = examples.into_iter().filter_map(|e| made(skill, e, scene)).filter(|s| wanted(s));
            // One sentence of every shape: others would only differ in their arguments.
            let mut shapes: BTreeSet<Vec<String>> = BTreeSet::new();
            made.filter(move |sentence| {
                // Planning a sentence copies the whole scene.
                if !effort::spend(scene.weight()) {
                    return false;
                }
                let trial = Scene { text: sentence, ..scene.clone() };
                let Ok(planned) = steps(&trial, &[]) else { return false };
                let look = [Use::Choice, Use::Title];
                let looks = |name: &String| skill.args.iter().any(|a| a.name == name && look.contains(&a.used));
                let args = planned.iter().flat_map(|step| step.args.keys()).filter(|name| !looks(name));
                shapes.insert(args.cloned().collect())
            })
        })
        .collect();
    let mut out: Vec<String> = Vec::new();
    while out.len() < most {
        let round: Vec<String> = of_each.iter_mut().filter_map(Iterator::next).collect();
        if round.is_empty() {
            break;
        }
        out.extend(round);
    }
    out.truncate(most);
    out
}

/// Fills the slots of an example from the scene; `None` if a slot cannot be filled.
fn made(skill: &Vocabulary, example: &str, scene: &Scene) -> Option<String> {
    // Files from the user come before computed ones.
    let computed = |f: &&Source| f.columns.iter().flat_map(|c| c.iter()).any(|c| is_computed(&c.name));
    let (derived, given): (Vec<&Source>, Vec<&Source>) = scene.tables().partition(computed);
    let table = given.first().or(derived.first()).copied();
    let mut files = given.iter().chain(&derived).copied().chain(scene.files.iter().filter(|f| f.columns.is_none()));
    let columns = table.and_then(|t| t.columns.as_deref()).unwrap_or_default();
    let number = columns.iter().find(|c| c.kind == ColumnKind::Number).map(|c| c.name.as_str());
    let along = || date_column(columns).or(only(columns, ColumnKind::Text));
    let mut out = example.to_owned();
    for item in parse(example) {
        let (slot, text) = match item {
            Item::Literal { .. } => continue,
            Item::Fixed(arg, value) => (format!("{{{arg}={value}}}"), String::new()),
            Item::Slot(name) => {
                let arg = skill.args.iter().find(|a| a.name == name)?;
                let text = match arg.used {
                    Use::File => files.next().map(|f: &Source| f.path.clone())?,
                    Use::Column => along()?.to_owned(),
                    Use::Columns => number?.to_owned(),
                    Use::Aggregate => format!("mean {}", number?),
                    Use::Group => match date_column(columns) {
                        Some(_) => "month".to_owned(),
                        None => only(columns, ColumnKind::Text)?.to_owned(),
                    },
                    Use::Condition => format!("{} > 10", number?),
                    Use::Order => format!("{} descending", number?),
                    Use::Limit => "5".to_owned(),
                    Use::Url => "https://example.org/".to_owned(),
                    Use::Choice => choices(arg.schema).next()?.to_owned(),
                    _ => return None,
                };
                (format!("{{{name}}}"), text)
            }
        };
        out = out.replacen(&slot, &text, 1);
    }
    Some(out.split_whitespace().collect::<Vec<_>>().join(" "))
}
