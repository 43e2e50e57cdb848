//! The technical execution brief as the reasoner writes it: everything that action needs to take one
//! step without having seen the conversation.
//!
//! A task that is ready as it stands gets its brief from [`derive()`], without a model call.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use strum::IntoStaticStr;

use super::brief::clip;
use super::extract;
use super::fields::{Fields, MAX_SENTENCE};
use super::plan::{NamedEffect, Secrets, Task, TaskKind, Unusable, wire_name};
use super::report::{TaskReport, TaskStatus};

/// Entries of one list: a brief is one step, and a longer list is the plan again.
const MAX_ITEMS: usize = 12;

/// Characters of one entry.
const MAX_ITEM: usize = 600;

/// Characters of the action, which may carry a command line or the arguments of a call.
const MAX_ACTION: usize = 8_000;

/// Letters of a credential's name, as in a plan's `secrets`.
const MAX_CREDENTIAL: usize = 64;

/// The brief of one step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutionBrief {
    /// The objective of the whole plan.
    pub goal: String,
    /// Properties that the result must have.
    pub required: Vec<String>,
    /// What is missing between what there is and what is wanted.
    pub delta: String,
    /// How it will be seen that the step succeeded.
    pub success: Vec<String>,
    pub context: Readiness,
    /// The one thing to do now.
    pub action: String,
}

/// What is known about being ready to act.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Readiness {
    /// What was found out so far.
    pub discovery: Vec<String>,
    /// Names of the credentials that are there; never values.
    pub credentials: Vec<String>,
    /// Files and refs that can be used.
    pub artifacts: Vec<String>,
    /// What stands in the way.
    pub blockers: Vec<String>,
    pub recheck: Recheck,
}

/// Whether action verifies the context itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Recheck {
    /// It can be relied on.
    #[default]
    None,
    /// Before acting, because something may have changed or taken effect already.
    Before,
    /// After acting, because the result is to be verified.
    After,
}

impl Recheck {
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Reads a reasoner's answer. What is wrong with it is named by path, such as `context.recheck`.
///
/// The lists of `context` must be there and may be empty, so that what was found, what credentials there are, what was made and
/// what stands in the way is always handed on; `required` and `context.recheck` may be left out; all else must be there.
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
        Ok(ExecutionBrief { goal, required, delta, success, context, action })
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
        // Without the entry: it may be the credential itself.
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

/// Credentials that stand in the answer in place of their names, so that they are struck from what is kept of it.
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
        // Names and values, as in a plan's `secrets`: there, anything may be a value.
        Some(Value::Object(items)) => {
            for item in items.values().filter(|item| item.is_string()) {
                values.insert(format!("credential_{}", values.len()), item.clone());
            }
        }
        _ => {}
    }
}

/// The brief of a task that is ready as it stands. `evidence` is what the tasks before it left, oldest first;
/// `credentials` are the names of the session's secrets.
pub fn derive(goal: &str, task: &Task, evidence: &[TaskReport], credentials: &[String]) -> ExecutionBrief {
    let mut success = vec![seen_by(task).to_owned()];
    success.extend(task.expect.clone());
    ExecutionBrief {
        goal: clip(goal, MAX_SENTENCE),
        required: items(task.expect.iter().cloned()),
        delta: clip(&format!("Not done yet: {}", task.detail), MAX_SENTENCE),
        success: items(success),
        context: Readiness {
            discovery: items(latest(evidence).filter(|report| report.trouble().is_none()).map(found)),
            credentials: credentials.iter().filter(|name| is_name(name)).take(MAX_ITEMS).cloned().collect(),
            artifacts: artifacts(evidence),
            blockers: items(latest(evidence).filter_map(|report| {
                let trouble = report.trouble()?;
                Some(format!("{}: {trouble}", report.task.label()))
            })),
            recheck: recheck(task, evidence),
        },
        action: clip(&action(task), MAX_ACTION),
    }
}

/// The latest reports, oldest first.
fn latest(evidence: &[TaskReport]) -> impl Iterator<Item = &TaskReport> {
    evidence[evidence.len().saturating_sub(MAX_ITEMS)..].iter()
}

fn items(texts: impl IntoIterator<Item = String>) -> Vec<String> {
    texts.into_iter().take(MAX_ITEMS).map(|text| clip(text.trim(), MAX_ITEM)).collect()
}

fn seen_by(task: &Task) -> &'static str {
    match task.kind {
        TaskKind::Exec => "the command line ends with exit code 0",
        TaskKind::Skill => "the skill ends without an error",
        TaskKind::Msg => "the message is written",
        TaskKind::Act => "what was asked for has been done, and the result says so",
    }
}

fn found(report: &TaskReport) -> String {
    let line = report.text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("no output");
    format!("{}: {line}", report.task.label())
}

/// Paths of the files that were made, the latest last, each once.
fn artifacts(evidence: &[TaskReport]) -> Vec<String> {
    let mut paths: Vec<&str> = Vec::new();
    for file in evidence.iter().rev().flat_map(|report| report.files.iter().rev()) {
        if !paths.contains(&file.path.as_str()) {
            paths.push(&file.path);
        }
        if paths.len() >= MAX_ITEMS {
            break;
        }
    }
    items(paths.into_iter().rev().map(str::to_owned))
}

fn recheck(task: &Task, evidence: &[TaskReport]) -> Recheck {
    match evidence.last() {
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
    /// Adds what is known already to what was found out, as far as there is room.
    pub fn know(&mut self, lines: impl IntoIterator<Item = String>) {
        let found = std::mem::take(&mut self.context.discovery);
        self.context.discovery = items(lines.into_iter().chain(found));
    }

    /// Says which calls were agreed on, beyond the action itself. They are no longer than a plan lets them be.
    pub fn agree(&mut self, effects: &[NamedEffect]) {
        for NamedEffect { tool, args } in effects {
            let _ = write!(self.action, "\nAgreed, once and with these arguments: {} {args}", wire_name(tool));
        }
    }

    /// The brief for a prompt and for the graph lane; the same brief is always the same text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let _ = writeln!(text, "Goal: {}", self.goal);
        list(&mut text, "Required", &self.required);
        let _ = writeln!(text, "Delta: {}", self.delta);
        list(&mut text, "Success", &self.success);
        let Readiness { discovery, credentials, artifacts, blockers, recheck } = &self.context;
        list(&mut text, "Discovery", discovery);
        list(&mut text, "Credentials", credentials);
        list(&mut text, "Artifacts", artifacts);
        list(&mut text, "Blockers", blockers);
        let _ = writeln!(text, "Re-check: {}", recheck.name());
        let _ = write!(text, "Action: {}", self.action);
        text
    }
}

/// A list with its title; nothing for an empty one.
fn list(text: &mut String, title: &str, items: &[String]) {
    if items.is_empty() {
        return;
    }
    let _ = writeln!(text, "{title}:");
    for item in items {
        // An item of several lines stays one item.
        let _ = writeln!(text, "- {}", item.replace('\n', "\n  "));
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::FileNote;
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
                        - chart.png exists\nDiscovery:\n- data.csv has 3 columns\nCredentials:\n- api_key\n\
                        Artifacts:\n- data.csv\nRe-check: after\nAction: draw the chart";
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

    fn task(kind: TaskKind, detail: &str) -> Task {
        let detail = detail.to_owned();
        Task::new(kind, detail)
    }

    fn file(path: &str) -> FileNote {
        let (path, media_type) = (path.to_owned(), "text/csv".to_owned());
        FileNote { path, media_type, bytes: 1, title: None, link: None }
    }

    #[test]
    fn a_ready_task_needs_no_model() {
        let mut done = TaskReport::new(task(TaskKind::Exec, "ls"), TaskStatus::Done, "\n a.csv\nb.csv");
        done.files = ["a", "b", "a"].map(file).into();
        let mut failed = TaskReport::new(task(TaskKind::Exec, "cat c"), TaskStatus::Failed, "");
        failed.exit_code = Some(1);
        let mut chart = task(TaskKind::Skill, "skill chart");
        (chart.skill, chart.args) = (Some("chart".to_owned()), Some(json!({"file": "a"})));
        (chart.expect, chart.review) = (Some("a chart".to_owned()), true);
        let names = ["api_key".to_owned(), "not a name!".to_owned()];
        let teb = derive("g", &chart, &[done, failed], &names);
        assert_eq!(teb.action, "Call the skill chart with {\"file\":\"a\"}");
        assert_eq!(teb.required, ["a chart"]);
        assert_eq!(teb.success, ["the skill ends without an error", "a chart"]);
        let expected = Readiness {
            discovery: vec!["$ ls: a.csv".to_owned()],
            credentials: vec!["api_key".to_owned()],
            artifacts: vec!["b".to_owned(), "a".to_owned()],
            blockers: vec!["$ cat c: it ended with exit code 1".to_owned()],
            recheck: Recheck::After,
        };
        assert_eq!(teb.context, expected);

        let cut = TaskReport::new(task(TaskKind::Exec, "x"), TaskStatus::Interrupted, "");
        assert_eq!(derive("g", &chart, &[cut], &[]).context.recheck, Recheck::Before);
    }

    proptest! {
        #[test]
        fn any_answer_is_read(text in "[{}\\[\\]\":,a-zä0-9. \n]{0,80}") {
            let _ = parse(&text);
            let _ = parse(&format!("{{\"action\": \"a\", \"context\": {{{text}"));
        }

        /// Whatever the tasks before it left, a derived brief is about as short as a written one.
        #[test]
        fn a_derived_brief_is_bounded(detail in "\\PC{1,60}", repeat in 1usize..400, reports in 0usize..40) {
            let detail = format!("do {}", detail.repeat(repeat));
            let one = TaskReport::new(task(TaskKind::Exec, &detail), TaskStatus::Done, detail.clone());
            let teb = derive("g", &task(TaskKind::Act, &detail), &vec![one; reports], &[]);
            prop_assert!(teb.context.discovery.len() <= MAX_ITEMS);
            prop_assert!(teb.text().chars().count() < MAX_ACTION + MAX_SENTENCE + MAX_ITEMS * (MAX_ITEM + 100) + 1_000);
        }
    }
}
