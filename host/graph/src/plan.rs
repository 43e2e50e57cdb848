//! Parses the plan in a planner's answer.

use kiso_plan::plan::{Catalog, LAST_IS_MSG, Plan, Task, TaskKind, Violation};
use serde_json::{Map, Value};

use super::extract::{self, Chatter, MAX_ANSWER};
use super::fields::{Fields, MAX_SENTENCE};
use super::redact;
pub use super::redact::{Secrets, alias_of};

/// A valid answer of a planner.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedPlan {
    pub plan: Plan,
    /// Credentials from the message, for the secret store. The plan does not contain them.
    pub secrets: Secrets,
    /// The planner's text besides its plan.
    pub chatter: String,
}

/// An invalid answer of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Unusable {
    /// The model's text besides its JSON.
    pub chatter: String,
    /// The answer without secrets, shortened, as it is sent back and logged.
    pub broken: String,
    /// All errors in it; never empty.
    pub violations: Vec<Violation>,
    /// Credentials in the answer: they are kept, because the next answer may not repeat them.
    pub secrets: Secrets,
}

/// Maximum characters of an invalid answer that are sent back: enough to correct it, without filling the next prompt.
const MAX_BROKEN: usize = 16_000;

/// Maximum errors that are sent back at once.
const MAX_VIOLATIONS: usize = 20;

impl Unusable {
    pub(super) fn new(text: &str, chatter: String, secrets: &Secrets, mut violations: Vec<Violation>) -> Self {
        if violations.len() > MAX_VIOLATIONS {
            let more = violations.len() - MAX_VIOLATIONS;
            violations.truncate(MAX_VIOLATIONS);
            violations.push(Violation::new("", format!("and {more} more like these")));
        }
        for Violation { path, message } in &mut violations {
            // The schema's errors quote the invalid value.
            (*path, *message) = (secrets.strike(path), secrets.strike(message));
        }
        let broken = without_secrets(text, secrets);
        Self { chatter: secrets.strike(&chatter), broken, violations, secrets: secrets.clone() }
    }
}

/// Returns a model's answer in a form that can be sent back and logged: shortened, and without the secrets in it.
pub fn without_secrets(answer: &str, secrets: &Secrets) -> String {
    // Shortened last: a part of a secret at a cut would not be found.
    let strike = |text: &str| secrets.strike(&redact::strike_fields(text));
    let mut kept = strike(&answer[..answer.floor_char_boundary(MAX_ANSWER)]);
    kept.truncate(kept.floor_char_boundary(MAX_BROKEN));
    kept
}

/// Parses a planner's answer and validates everything that can be known before execution.
///
/// A plan has a goal, at least one task, and a `msg` with `notify: true` at its end. A `blocked` plan contains only messages,
/// because its work would be useless. Secrets are removed; a plan that contains the value of one elsewhere is refused, because
/// plans are logged.
pub fn parse(text: &str, catalog: &dyn Catalog, max_tasks: usize) -> Result<ParsedPlan, Unusable> {
    let chatter = Chatter::extract(text);
    let map = match extract::object(text, "tasks") {
        Ok(map) => map,
        Err(violation) => {
            return Err(Unusable::new(text, chatter, &Secrets::default(), vec![violation]));
        }
    };
    let mut violations = Vec::new();
    let secrets = Secrets::read(map.get("secrets"), &mut violations);
    let mut fields = Fields::new(&map, String::new(), &mut violations);
    fields.only(&["say", "goal", "tasks", "reply", "blocked", "secrets"]);
    let goal = fields.required("goal", MAX_SENTENCE, "missing; it says what the whole plan is to achieve");
    let blocked = fields.text("blocked", MAX_SENTENCE);
    let mut tasks = fields.tasks("tasks", max_tasks, catalog);
    if let Some(reply) = fields.text("reply", MAX_SENTENCE)
        && !tasks.last().is_some_and(|last| last.kind == TaskKind::Msg && last.notify)
    {
        tasks.push(Task { notify: true, ..Task::new(TaskKind::Msg, reply) });
    }
    let plan = Plan { goal, tasks, blocked };
    // An unreadable task is missing from the list, so the list cannot be checked.
    if violations.is_empty() {
        violations.extend(plan.shape(max_tasks));
        violations.extend(super::bind::violations(&plan));
        violations.extend(leaks(&plan, &secrets));
    } else {
        // Except for this check: all errors are reported at once.
        violations.extend(silent_end(&map));
    }
    if violations.is_empty() {
        Ok(ParsedPlan { plan, chatter: secrets.strike(&chatter), secrets })
    } else {
        Err(Unusable::new(text, chatter, &secrets, violations))
    }
}

/// Whether a plan with other errors ends without a message, if its last task can be read.
fn silent_end(plan: &Map<String, Value>) -> Option<Violation> {
    let tasks = plan.get("tasks")?.as_array()?;
    let last = tasks.last()?;
    let kind = last.get("type")?.as_str()?;
    if plan.get("reply").is_some_and(Value::is_string) {
        return None;
    }
    let silent = kind != TaskKind::Msg.name() || last.get("notify").is_none_or(|notify| *notify == Value::Bool(false));
    silent.then(|| Violation::new(format!("tasks[{}]", tasks.len() - 1), LAST_IS_MSG))
}

/// Finds places where the plan contains the value of a secret.
fn leaks(plan: &Plan, secrets: &Secrets) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut look = |path: String, text: &str| {
        if let Some(name) = secrets.within(text) {
            let message = format!("repeats the value of the secret {name}; leave it in secrets only");
            violations.push(Violation::new(path, message));
        }
    };
    look("goal".to_owned(), &plan.goal);
    look("blocked".to_owned(), plan.blocked.as_deref().unwrap_or_default());
    for (index, task) in plan.tasks.iter().enumerate() {
        look(format!("tasks[{index}].detail"), &task.detail);
        look(format!("tasks[{index}].expect"), task.expect.as_deref().unwrap_or_default());
        look(format!("tasks[{index}].brief"), task.brief.as_deref().unwrap_or_default());
        for text in task.args.iter().flat_map(strings) {
            look(format!("tasks[{index}].args"), text);
        }
        for text in task.effects.iter().map(|effect| &effect.args).flat_map(strings) {
            look(format!("tasks[{index}].effects"), text);
        }
        for text in task.schema.iter().flat_map(strings) {
            look(format!("tasks[{index}].schema"), text);
        }
    }
    violations
}

/// Returns every string and key in a JSON value.
fn strings(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().flat_map(strings).collect(),
        Value::Object(map) => {
            map.iter().flat_map(|(key, value)| std::iter::once(key.as_str()).chain(strings(value))).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use serde_json::json;

    /// Knows the skill `chart` with a required `file` and a `width` that defaults to 1000.
    pub(crate) struct OneSkill;

    impl Catalog for OneSkill {
        fn check(&self, skill: &str, args: &Value) -> Result<Value, Vec<Violation>> {
            if skill != "chart" {
                return Err(vec![Violation::new("skill", format!("there is no skill {skill:?}; near: chart"))]);
            }
            let mut args = args.clone();
            let mut violations = Vec::new();
            if args.get("file").is_none() {
                violations.push(Violation::new("file", "is required"));
            }
            if args.get("width").and_then(Value::as_i64).is_some_and(|width| width < 320) {
                violations.push(Violation::new("width", "0 is less than the minimum of 320"));
            }
            args.as_object_mut().map(|map| map.entry("width").or_insert(json!(1000)));
            if violations.is_empty() { Ok(args) } else { Err(violations) }
        }

        fn check_some(&self, tool: &str, _args: &Value) -> Result<(), Vec<Violation>> {
            if tool == "chart" {
                Ok(())
            } else {
                Err(vec![Violation::new("tool", format!("there is no tool {tool:?}"))])
            }
        }

        fn check_schema(&self, schema: &Value) -> Result<(), String> {
            if schema["properties"].is_object() { Ok(()) } else { Err("it has no properties".to_owned()) }
        }
    }

    fn good() -> Value {
        json!({"goal": "draw", "tasks": [
            {"type": "skill", "skill": "chart", "args": {"file": "a.csv"}, "expect": "a chart", "review": true},
            {"type": "msg", "detail": "say so", "notify": true},
        ]})
    }

    fn complaints(plan: &Value) -> Vec<String> {
        match parse(&plan.to_string(), &OneSkill, 50) {
            Ok(_) => Vec::new(),
            Err(unusable) => unusable.violations.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn a_good_plan_gets_its_defaults() {
        let text = format!("On it.\n<FINAL_PRD>{}</FINAL_PRD>", good());
        let parsed = parse(&text, &OneSkill, 50).unwrap();
        assert_eq!(parsed.chatter, "On it.");
        assert_eq!(parsed.plan.tasks[0].detail, "skill chart");
        assert_eq!(parsed.plan.tasks[0].args, Some(json!({"file": "a.csv", "width": 1000})));
        assert!(parsed.plan.tasks[1].notify && !parsed.plan.tasks[1].review);
        assert!(parsed.secrets.is_empty());
    }

    #[test]
    fn null_is_absence() {
        let mut plan = good();
        plan["blocked"] = Value::Null;
        plan["tasks"][1]["expect"] = Value::Null;
        plan["tasks"][1]["args"] = Value::Null;
        assert_eq!(complaints(&plan), [""; 0]);
    }

    #[test]
    fn every_violation_is_named_with_its_path() {
        let plan = json!({"goal": " ", "why": 1, "tasks": [
            {"type": "skill", "skill": "chart", "args": {"width": 0}, "review": true},
            {"type": "skill", "skill": "chrt"},
            {"type": "skill"},
            {"type": "exec"},
            {"type": "act", "detail": "look"},
            {"type": "dance"},
            {"detail": "x"},
            {"type": "msg", "detail": 3, "notify": "yes", "colour": "red", "model": "oracle", "skill": "chart"},
            "msg",
            {"type": "msg", "detail": "x", "expect": 1, "review": true, "model": "titler"},
            {"type": "exec", "detail": "ls", "model": "worker"},
        ]});
        let complaints = complaints(&plan);
        for expected in [
            "why: unknown field",
            "goal: missing",
            "tasks[0].args.file: is required",
            "tasks[0].args.width: 0 is less than the minimum of 320",
            "tasks[0].expect: missing",
            "tasks[1].skill: there is no skill \"chrt\"; near: chart",
            "tasks[2].skill: a skill task names its skill",
            "tasks[3].detail: missing",
            "tasks[4].expect: missing; an act task says what it is to lead to",
            "tasks[5].type: there is no type \"dance\"",
            "tasks[6].type: missing",
            "tasks[7].colour: unknown field",
            "tasks[7].detail: must be a string, not a number",
            "tasks[7].notify: must be true or false, not a string",
            "tasks[7].model: there is no role \"oracle\"",
            "tasks[7].skill: only skill tasks have this",
            "tasks[8]: must be an object",
            "tasks[9].expect: must be a string",
            "tasks[10].model: only msg and act tasks ask a model, and this is of type exec",
            "tasks[10]: the last task must be a msg with notify: true",
        ] {
            assert!(complaints.iter().any(|c| c.starts_with(expected)), "{expected} is not in {complaints:#?}");
        }
        assert_eq!(complaints.len(), 20, "{complaints:#?}");
    }

    #[test]
    fn what_is_agreed_on_ahead_is_checked() {
        let act = |effects: Value| json!({"type": "act", "detail": "d", "expect": "e", "effects": effects});
        let msg = |schema: Value| json!({"type": "msg", "detail": "d", "schema": schema});
        let chart = |args: Value| json!({"tool": "chart", "args": args});
        let tasks = json!([
            msg(json!({"type": "object", "properties": {}})),
            act(json!([chart(json!({"file": {"from": 1, "pointer": "/x"}}))])),
            msg(json!({"type": "string"})),
            msg(json!({"type": "object"})),
            msg(json!({"type": "object", "properties": {}, "description": "x".repeat(4_000)})),
            {"type": "exec", "detail": "d", "schema": {"type": "object"}, "effects": []},
            act(json!("chart")),
            act(json!(vec![chart(json!({})); 9])),
            act(json!([chart(json!(1)), {"tool": "chart"}, {"tool": "chrt", "args": {}}, chart(json!({"a": "x".repeat(2_000)}))])),
        ]);
        let complaints = self::complaints(&json!({"goal": "g", "tasks": tasks, "reply": "r"}));
        let expected = [
            "tasks[2].schema: must be a JSON Schema whose type is object",
            "tasks[3].schema: is no JSON Schema: it has no properties",
            "tasks[4].schema: is longer than 4000 bytes",
            "tasks[5].schema: only msg tasks have this",
            "tasks[5].effects: only act tasks have this",
            "tasks[6].effects: must be a list of at most 8 objects",
            "tasks[7].effects: must be a list of at most 8 objects",
            "tasks[8].effects[0]: must be an object with tool",
            "tasks[8].effects[1]: must be an object with tool",
            "tasks[8].effects[2].tool: there is no tool",
            "tasks[8].effects[3]: has args of more than 2000 bytes",
        ];
        assert_eq!(complaints.len(), expected.len(), "{complaints:#?}");
        for (complaint, expected) in complaints.iter().zip(expected) {
            assert!(complaint.starts_with(expected), "{complaint} is not {expected}");
        }
        let late = json!({"goal": "g", "tasks": [act(json!([chart(json!({"file": {"from": 1}}))]))], "reply": "r"});
        let message = self::complaints(&late);
        assert!(message[0].starts_with("tasks[0].effects[0].args.file: is bound to task 1"), "{message:?}");
    }

    #[test]
    fn an_argument_called_skill_keeps_its_path() {
        let plan = json!({"goal": "g", "tasks": [{"type": "skill", "skill": "chrt", "args": {"skill": 1}}]});
        assert!(complaints(&plan)[0].starts_with("tasks[0].args.skill"));
    }

    #[test]
    fn the_last_task_tells_the_user() {
        let mut plan = good();
        plan["tasks"][1]["notify"] = json!(false);
        assert_eq!(complaints(&plan), ["tasks[1]: the last task must be a msg with notify: true"]);
        plan["tasks"] = json!([]);
        assert!(complaints(&plan)[0].starts_with("tasks: there must be at least one task"));
        assert!(complaints(&json!({"goal": "g", "tasks": "x"}))[0].starts_with("tasks: must be a list"));
        assert!(complaints(&json!({"goal": "g"}))[0].starts_with("tasks: there must"));
    }

    #[test]
    fn sizes_have_limits() {
        let mut plan = good();
        plan["goal"] = json!("x".repeat(MAX_SENTENCE + 1));
        plan["tasks"][1]["detail"] = json!("x".repeat(16_001));
        assert_eq!(complaints(&plan).len(), 2);
        let mut plan = good();
        plan["tasks"] = json!(vec![plan["tasks"][1].clone(); 51]);
        assert_eq!(complaints(&plan), ["tasks: has 51 tasks, at most 50 are allowed here (max_tasks)"]);
        plan["tasks"] = json!(vec![json!({}); 40]);
        let all = complaints(&plan);
        assert_eq!((all.len(), all[20].as_str()), (21, "and 20 more like these"));
    }

    /// As returned by a server that enforces a schema.
    #[test]
    fn a_plan_of_json_alone_has_fields_for_what_is_said() {
        let mut plan = json!({"say": "On it.", "goal": "draw", "tasks": [], "reply": "say so"});
        let parsed = parse(&plan.to_string(), &OneSkill, 50).unwrap();
        assert_eq!(parsed.chatter, "On it.");
        assert_eq!(parsed.plan.tasks, [Task { notify: true, ..Task::new(TaskKind::Msg, "say so") }]);
        plan["tasks"] = json!([{"type": "exec", "detail": "ls"}]);
        assert_eq!(parse(&plan.to_string(), &OneSkill, 50).unwrap().plan.tasks.len(), 2);
        plan["tasks"][0] = json!({"type": "msg", "detail": "done", "notify": true});
        assert_eq!(parse(&plan.to_string(), &OneSkill, 50).unwrap().plan.tasks[0].detail, "done");
        plan["reply"] = Value::Null;
        plan["tasks"][0]["notify"] = json!(false);
        assert_eq!(complaints(&plan), ["tasks[0]: the last task must be a msg with notify: true"]);
    }

    #[test]
    fn a_blocked_plan_only_talks() {
        let mut plan = good();
        plan["blocked"] = json!("there is no such file");
        assert_eq!(complaints(&plan), ["tasks: a blocked plan has msg tasks only"]);
        plan["tasks"].as_array_mut().unwrap().remove(0);
        assert_eq!(complaints(&plan), [""; 0]);
    }

    #[test]
    fn secrets_come_apart_from_the_plan() {
        let mut plan = good();
        plan["secrets"] = json!({"github_token": "ghp_abc123"});
        let parsed = parse(&plan.to_string(), &OneSkill, 50).unwrap();
        assert_eq!(parsed.secrets.names(), ["github_token"]);
        assert!(!format!("{parsed:?}").contains("ghp_abc123"));
        assert!(!serde_json::to_string(&parsed.plan).unwrap().contains("ghp_abc123"));
        plan["tasks"][0]["args"]["title"] = json!("with ghp_abc123");
        let text = format!("Your token is ghp_abc123.\n{plan}");
        let unusable = parse(&text, &OneSkill, 50).unwrap_err();
        assert!(!format!("{unusable:?}").contains("ghp_abc123"), "{unusable:?}");
        assert!(unusable.violations[0].to_string().contains("tasks[0].args: repeats the value of the secret"));
    }

    #[test]
    fn an_answer_without_json_is_refused_with_the_place() {
        let unusable = parse("<FINAL_PRD>{\"goal\": \"g\",", &OneSkill, 50).unwrap_err();
        assert!(unusable.violations[0].message.contains("line 1 column"), "{unusable:?}");
        assert!(parse("I cannot.", &OneSkill, 50).unwrap_err().chatter.contains("I cannot."));
    }
}
