//! The technical execution brief in the form that the reasoner writes: everything that the action node needs for one step without
//! seeing the conversation.
//!
//! A task that is ready to run gets its brief from [`derive()`], without a model call.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use strum::IntoStaticStr;

use super::extract;
use super::fields::{Fields, MAX_SENTENCE};
use super::plan::{Secrets, Unusable};
use kiso_base::role::{Lengths, MAX_WORD};
use kiso_plan::clip::clip;
use kiso_plan::plan::{NamedEffect, Task, TaskKind, wire_name};
use kiso_plan::report::{TaskReport, TaskStatus};

/// Maximum entries of a list: a brief is one step, and a longer list would be a plan.
const MAX_ITEMS: usize = Lengths::READ.items;

/// Maximum characters of an entry.
const MAX_ITEM: usize = Lengths::READ.item;

/// Maximum characters of a planner's own brief.
const MAX_BRIEF: usize = 16_000;

/// Maximum characters of the action, which may contain a command line or the arguments of a call.
const MAX_ACTION: usize = Lengths::READ.action;

/// Maximum letters of a credential's name, as in a plan's `secrets`.
const MAX_CREDENTIAL: usize = MAX_WORD;

/// The last line of a brief: whether the actor's text is the reply.
const REPLY: &str = "Your text at the end is the reply to the user";
const NO_REPLY: &str = "Your text at the end is not the reply: it goes to the steps that follow.";

/// The brief of one step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutionBrief {
    /// The objective of the whole plan.
    pub goal: String,
    /// Required properties of the result.
    #[serde(default)]
    pub required: Vec<String>,
    /// The difference between the current state and the required one.
    pub delta: String,
    /// How to verify that the step succeeded.
    pub success: Vec<String>,
    pub context: Readiness,
    /// The action to do now.
    pub action: String,
    /// The plan's last message, which follows the step: the actor's text becomes that message. Empty if the user's own message
    /// says everything about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<String>,
    /// Whether it is a brief for the actor, as a task of a plan.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_step: bool,
}

/// The known context of the step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Readiness {
    /// Facts that were found so far.
    pub discovery: Vec<String>,
    /// Names of the available credentials; never values.
    pub credentials: Vec<String>,
    /// Files and refs that can be used.
    pub artifacts: Vec<String>,
    /// Known blockers.
    pub blockers: Vec<String>,
    pub recheck: Recheck,
}

/// Whether the action node verifies the context itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Recheck {
    /// The context is reliable.
    #[default]
    None,
    /// Before acting, because something may have changed or already taken effect.
    Before,
    /// After acting, to verify the result.
    After,
}

impl Recheck {
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns the instruction to the actor; empty if there is none.
    fn instruction(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Before => "before you act, as it may have changed or taken effect",
            Self::After => "after you acted: look at the result again",
        }
    }
}

/// Parses a reasoner's answer. Errors have paths such as `context.recheck`.
///
/// The lists of `context` are required and may be empty, so that findings, credentials, artifacts and blockers are always passed
/// on. `required` and `context.recheck` are optional; all other fields are required.
pub fn parse(text: &str) -> Result<ExecutionBrief, Unusable> {
    let map = match extract::object(text, "action") {
        Ok(map) => map,
        Err(violation) => return Err(Unusable::new(text, String::new(), &Secrets::default(), vec![violation])),
    };
    let mut violations = Vec::new();
    let mut fields = Fields::new(&map, String::new(), &mut violations);
    fields.only(&["goal", "required", "delta", "success", "context", "action"]);
    let goal = fields.required("goal", MAX_SENTENCE, "missing; it repeats what the whole plan is to achieve");
    let required = fields.texts("required", MAX_ITEMS, MAX_ITEM);
    let delta = fields.required("delta", MAX_SENTENCE, "missing; it says what is still to be done");
    let success = fields.texts("success", MAX_ITEMS, MAX_ITEM);
    if success.is_empty() && !fields.complained("success") {
        fields.wrong("success", "missing; it lists how success will be seen");
    }
    let action = fields.required("action", MAX_ACTION, "missing; it is the one thing to do now");
    if fields.get("context").is_none() {
        fields.wrong("context", "missing; it has discovery, credentials, artifacts, blockers and recheck");
    }
    let context = fields.inside("context").map(readiness).unwrap_or_default();
    if violations.is_empty() {
        Ok(ExecutionBrief { goal, required, delta, success, context, action, reply: None, is_step: false })
    } else {
        Err(Unusable::new(text, String::new(), &written_out(&map), violations))
    }
}

fn readiness(mut fields: Fields<'_>) -> Readiness {
    fields.only(&["discovery", "credentials", "artifacts", "blockers", "recheck"]);
    for list in ["discovery", "credentials", "artifacts", "blockers"] {
        if fields.get(list).is_none() {
            fields.wrong(list, "missing; it is [] if there is nothing to say");
        }
    }
    let discovery = fields.texts("discovery", MAX_ITEMS, MAX_ITEM);
    let credentials = fields.texts("credentials", MAX_ITEMS, MAX_ITEM);
    if !credentials.iter().all(|name| is_name(name)) {
        // The error does not repeat the entry: it may be the credential itself.
        fields.wrong("credentials", "lists names of letters, digits and underscores, never values");
    }
    let artifacts = fields.texts("artifacts", MAX_ITEMS, MAX_ITEM);
    let blockers = fields.texts("blockers", MAX_ITEMS, MAX_ITEM);
    let recheck = match fields.text("recheck", 100).as_deref() {
        None | Some("none") => Recheck::None,
        Some("before") => Recheck::Before,
        Some("after") => Recheck::After,
        Some(other) => {
            fields.wrong("recheck", format!("{other:?} is not a policy; it is none, before or after"));
            Recheck::None
        }
    };
    Readiness { discovery, credentials, artifacts, blockers, recheck }
}

fn is_name(name: &str) -> bool {
    name.len() <= MAX_CREDENTIAL && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
}

/// Returns credentials whose values are in the answer instead of their names, so that they can be removed from the stored answer.
fn written_out(map: &Map<String, Value>) -> Secrets {
    let given = map.get("context").and_then(|context| context.get("credentials"));
    let mut values = Map::new();
    collect(given, &mut values);
    Secrets::read(Some(&Value::Object(values)), &mut Vec::new())
}

fn collect(value: Option<&Value>, values: &mut Map<String, Value>) {
    match value {
        Some(Value::String(text)) if !is_name(text) => {
            values.insert(format!("credential_{}", values.len()), json!(text));
        }
        Some(Value::Array(items)) => items.iter().for_each(|item| collect(Some(item), values)),
        // Names and values, as in a plan's `secrets`: there, any string may be a value.
        Some(Value::Object(items)) => {
            for item in items.values().filter(|item| item.is_string()) {
                values.insert(format!("credential_{}", values.len()), item.clone());
            }
        }
        _ => {}
    }
}

/// Returns the brief of a task that needs no reasoner. It contains only what the actor does not get elsewhere: the actor also
/// sees the user's message and the outputs of earlier tasks. `feedback` contains the critic's objections.
pub fn derive(
    goal: &str,
    task: &Task,
    last: Option<&TaskReport>,
    credentials: &[String],
    feedback: &[String],
) -> ExecutionBrief {
    let goal = clip(goal, MAX_SENTENCE);
    let context = Readiness {
        discovery: items(task.brief.clone()),
        credentials: credentials.iter().filter(|name| is_name(name)).take(MAX_ITEMS).cloned().collect(),
        artifacts: Vec::new(),
        blockers: items(feedback.iter().cloned()),
        recheck: recheck(task, last),
    };
    let success = items(task.expect.clone());
    let action = clip(&action(task), MAX_ACTION);
    ExecutionBrief {
        goal,
        required: Vec::new(),
        delta: String::new(),
        success,
        context,
        action,
        reply: None,
        is_step: false,
    }
}

/// Returns the brief of a message without a plan: the goal is in the message, and the context in the conversation.
pub fn direct(credentials: &[String]) -> ExecutionBrief {
    let task = Task::new(TaskKind::Act, String::new());
    derive("", &task, None, credentials, &[])
}

fn items(texts: impl IntoIterator<Item = String>) -> Vec<String> {
    texts.into_iter().take(MAX_ITEMS).map(|text| clip(text.trim(), MAX_BRIEF)).collect()
}

fn recheck(task: &Task, last: Option<&TaskReport>) -> Recheck {
    match last {
        // It may have taken effect.
        Some(report) if report.status == TaskStatus::Interrupted => Recheck::Before,
        _ if task.review => Recheck::After,
        _ => Recheck::None,
    }
}

fn action(task: &Task) -> String {
    match task.kind {
        TaskKind::Exec => format!("Run this command line:\n{}", task.detail),
        TaskKind::Skill => {
            let args = task.args.as_ref().map_or_else(|| "{}".to_owned(), Value::to_string);
            format!("Call the skill {} with {args}", task.skill.as_deref().unwrap_or_default())
        }
        TaskKind::Msg => format!("Write this message:\n{}", task.detail),
        TaskKind::Act => task.detail.clone(),
    }
}

impl ExecutionBrief {
    /// Lists the calls that the plan allows, in addition to the action. A plan limits their length.
    pub fn agree(&mut self, effects: &[NamedEffect]) {
        for NamedEffect { tool, args } in effects {
            let _ = write!(self.action, "\nAgreed, once and with these arguments: {} {args}", wire_name(tool));
        }
    }

    /// Formats the brief for a prompt and for the graph lane, without empty parts. The same brief always gives the same text.
    pub fn text(&self) -> String {
        let Readiness { discovery, credentials, artifacts, blockers, recheck } = &self.context;
        let mut text = String::new();
        line(&mut text, "Goal", &self.goal);
        list(&mut text, "Required", &self.required);
        line(&mut text, "Delta", &self.delta);
        list(&mut text, "Success", &self.success);
        list(&mut text, "Known", discovery);
        list(&mut text, "Credentials", credentials);
        list(&mut text, "Artifacts", artifacts);
        list(&mut text, "Blockers", blockers);
        line(&mut text, "Re-check", recheck.instruction());
        line(&mut text, "Action", self.action.trim());
        match self.reply.as_deref() {
            Some("") => text.push_str(REPLY),
            Some(reply) => line(&mut text, REPLY, reply),
            None if self.is_step => text.push_str(NO_REPLY),
            None => {}
        }
        text.truncate(text.trim_end().len());
        text
    }
}

/// Writes a line with its title; nothing if it is empty.
fn line(text: &mut String, title: &str, content: &str) {
    if !content.is_empty() {
        let _ = writeln!(text, "{title}: {content}");
    }
}

/// Writes a list with its title; nothing if it is empty.
fn list(text: &mut String, title: &str, items: &[String]) {
    if items.is_empty() {
        return;
    }
    let _ = writeln!(text, "{title}:");
    for item in items {
        // An item with several lines stays one item.
        let _ = writeln!(text, "- {}", item.replace('\n', "\n  "));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn good() -> Value {
        json!({
            "goal": "publish the report", "required": ["one page"], "delta": "the chart is missing",
            "success": ["chart.png exists"],
            "context": {"discovery": ["data.csv has 3 columns"], "credentials": ["api_key"],
                "artifacts": ["data.csv"], "blockers": [], "recheck": "after"},
            "action": "draw the chart",
        })
    }

    fn complaints(answer: &Value) -> Vec<String> {
        match parse(&answer.to_string()) {
            Ok(_) => Vec::new(),
            Err(unusable) => unusable.violations.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn a_whole_brief() {
        let teb = parse(&format!("Thinking…\n```json\n{}\n```", good())).unwrap();
        assert_eq!((teb.action.as_str(), teb.context.recheck), ("draw the chart", Recheck::After));
        let expected = "Goal: publish the report\nRequired:\n- one page\nDelta: the chart is missing\nSuccess:\n\
                        - chart.png exists\nKnown:\n- data.csv has 3 columns\nCredentials:\n- api_key\n\
                        Artifacts:\n- data.csv\nRe-check: after you acted: look at the result again\nAction: draw the chart";
        assert_eq!(teb.text(), expected);
        let stored = serde_json::to_string(&teb).unwrap();
        assert_eq!(serde_json::from_str::<ExecutionBrief>(&stored).unwrap(), teb);
    }

    #[test]
    fn what_may_be_left_out() {
        let context = json!({"discovery": [], "credentials": [], "artifacts": [], "blockers": []});
        let answer = json!({"goal": "g", "delta": "d", "success": "it is there", "context": context, "action": "a"});
        let teb = parse(&answer.to_string()).unwrap();
        assert_eq!((teb.success, teb.context), (vec!["it is there".to_owned()], Readiness::default()));
    }

    /// Rule: "TEB prompt requires execution-ready context transfer (discovery/credentials/artifacts/blockers)".
    #[test]
    fn a_brief_without_a_part_of_its_context_is_none() {
        for part in ["discovery", "credentials", "artifacts", "blockers"] {
            let mut answer = good();
            answer["context"].as_object_mut().unwrap().remove(part);
            assert_eq!(complaints(&answer), [format!("context.{part}: missing; it is [] if there is nothing to say")]);
        }
    }

    #[test]
    fn every_violation_is_named_with_its_path() {
        let answer = json!({
            "required": 1, "success": [], "mood": "good", "action": ["one", "two"],
            "context": {"discovery": [1, "x".repeat(700)], "credentials": {"token": "v"}, "recheck": "maybe",
                "artifacts": vec!["x"; 13], "next": 1},
        });
        let complaints = complaints(&answer);
        for expected in [
            "mood: unknown field",
            "goal: missing",
            "required: must be a list of strings, not a number",
            "delta: missing",
            "success: missing",
            "action: must be a string, not a list",
            "context.next: unknown field",
            "context.discovery[0]: must be a string, not a number",
            "context.discovery[1]: has 700 characters, at most 600",
            "context.credentials: must be a list of strings",
            "context.blockers: missing",
            "context.artifacts: has 13 entries, at most 12",
            "context.recheck: \"maybe\" is not a policy",
        ] {
            assert!(complaints.iter().any(|c| c.starts_with(expected)), "{expected} is not in {complaints:#?}");
        }
        assert_eq!(complaints.len(), 13, "{complaints:#?}");
        let mut without = good();
        without["context"] = Value::Null;
        assert!(
            super::parse(&without.to_string()).unwrap_err().violations[0].to_string().starts_with("context: missing")
        );
    }

    #[test]
    fn credentials_are_names_and_values_are_not_kept() {
        for given in [json!(["my token is s3cr3t!value"]), json!({"token": "s3cr3t"}), json!(["a", ["s3cr3t!value"]])] {
            let mut answer = good();
            answer["context"]["credentials"] = given;
            let unusable = parse(&answer.to_string()).unwrap_err();
            assert!(unusable.violations[0].path.starts_with("context.credentials"), "{unusable:?}");
            assert!(!format!("{unusable:?}").contains("s3cr3t"), "{unusable:?}");
        }
    }

    /// It contains only what is not elsewhere: the actor sees the outputs and files of earlier tasks themselves.
    #[test]
    fn a_ready_task_needs_no_model() {
        let done = TaskReport::new(Task::new(TaskKind::Exec, "ls"), TaskStatus::Done, "\n a.csv\nb.csv");
        let mut chart = Task::new(TaskKind::Skill, "skill chart");
        (chart.skill, chart.args) = (Some("chart".to_owned()), Some(json!({"file": "a"})));
        (chart.expect, chart.review) = (Some("a chart".to_owned()), true);
        let names = ["api_key".to_owned(), "not a name!".to_owned()];
        let teb = derive("g", &chart, Some(&done), &names, &["the axis is wrong".to_owned()]);
        let expected = "Goal: g\nSuccess:\n- a chart\nCredentials:\n- api_key\nBlockers:\n- the axis is wrong\n\
                        Re-check: after you acted: look at the result again\nAction: Call the skill chart with {\"file\":\"a\"}";
        assert_eq!(teb.text(), expected);

        let cut = TaskReport::new(Task::new(TaskKind::Exec, "x"), TaskStatus::Interrupted, "");
        assert_eq!(derive("g", &chart, Some(&cut), &[], &[]).context.recheck, Recheck::Before);
        let act = Task { brief: Some("rows are days".to_owned()), ..Task::new(TaskKind::Act, "add it up") };
        assert_eq!(derive("g", &act, None, &[], &[]).text(), "Goal: g\nKnown:\n- rows are days\nAction: add it up");
        assert_eq!(direct(&[]).text(), "");
    }

    proptest! {
        #[test]
        fn any_answer_is_read(text in "[{}\\[\\]\":,a-zä0-9. \n]{0,80}") {
            let _ = parse(&text);
            let _ = parse(&format!("{{\"action\": \"a\", \"context\": {{{text}"));
        }

        /// A brief contains the whole text of the planned task.
        #[test]
        fn a_derived_brief_is_whole(detail in "[a-z0-9 ]{1,60}", repeat in 1usize..250) {
            let detail = format!("do {}", detail.repeat(repeat));
            let task = Task { brief: Some(detail.clone()), ..Task::new(TaskKind::Act, &detail) };
            let teb = derive("g", &task, None, &[], &[]);
            prop_assert_eq!(teb.text().matches(detail.trim()).count(), 2);
        }
    }
}
