//! The forms of answers for models with contexts of every size: an answer that fits the form can be parsed, and a large model may
//! answer as long as the parser allows.

use super::open;
use crate::node;
use kiso_base::role::{Lengths, Role};
use kiso_graph::{execution_brief, plan, verdict};
use kiso_llm::{Answer, Request};
use kiso_plan::limits::Limits;
use kiso_plan::plan::{Catalog, Violation};
use kiso_plan::prompt::{Pieces, SkillCard};
use kiso_sandbox::skill::ArgsSchema;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Roles whose answers are checked against a form.
const ROLES: [Role; 3] = [Role::Planner, Role::Reasoner, Role::Reviewer];

/// A catalog that accepts every call.
struct Anything;

impl Catalog for Anything {
    fn check(&self, _: &str, args: &Value) -> Result<Value, Vec<Violation>> {
        Ok(args.clone())
    }

    fn check_some(&self, _: &str, _: &Value) -> Result<(), Vec<Violation>> {
        Ok(())
    }

    fn check_schema(&self, _: &Value) -> Result<(), String> {
        Ok(())
    }
}

/// Returns the request as it is sent to a model with these settings, with its forms.
fn sent(role: Role, settings: &str, max_tasks: usize) -> Request {
    let models = open(&format!("model = \"gpt\"\n[model_settings.gpt]\n{settings}\n")).unwrap();
    let settings = models.settings(role);
    let card = SkillCard {
        name: "chart".to_owned(),
        summary: String::new(),
        category: String::new(),
        examples: Vec::new(),
        secrets: Vec::new(),
        chosen: true,
        args: json!({ "type": "object", "properties": { "file": { "type": "string" } }, "required": ["file"] }),
    };
    let pieces = Pieces { skills: Some(vec![Arc::new(card)]), ..Pieces::default() };
    let max_tokens = settings.answer(role, role.declaration().max_tokens);
    let form = role.declaration().schema.unwrap()(&Lengths::SHORT);
    let answer = Answer::Json(form.into());
    let request = Request { pieces, answer, max_tokens, ..Request::new(role, String::new(), String::new()) };
    let request = node::formed(request, max_tasks, settings.is_short(max_tokens));
    if request.short { node::bounded(request) } else { request }
}

/// Returns the schemas that may be sent to a server.
fn schemas(request: &Request) -> Vec<&Value> {
    let Answer::Json(schema) = &request.answer else { panic!("{:?}", request.answer) };
    std::iter::once(schema).chain(&request.grammar).map(Arc::as_ref).collect()
}

/// Returns the violations in an answer, as the parser reports them.
fn complaints(role: Role, answer: &Value, max_tasks: usize) -> Vec<String> {
    let text = answer.to_string();
    let unusable = match role {
        Role::Planner => plan::parse(&text, &Anything, max_tasks).err(),
        Role::Reviewer => verdict::parse(&text, &Anything, max_tasks, true).err(),
        _ => execution_brief::parse(&text).err(),
    };
    unusable.into_iter().flat_map(|unusable| unusable.violations).map(|violation| violation.to_string()).collect()
}

/// A reproducible sequence of numbers.
struct Dice {
    state: u64,
    /// Remaining characters for an answer.
    room: usize,
}

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) as usize % most.max(1)
    }

    fn flips(&mut self) -> bool {
        self.below(2) == 0
    }

    /// Returns the minimum, the maximum, or a value in between, limited by the remaining space.
    fn length(&mut self, least: usize, most: usize) -> usize {
        let wanted = match self.below(3) {
            0 => least,
            1 => most,
            _ => least + self.below(most - least + 1),
        };
        let length = wanted.min(self.room).max(least);
        self.room = self.room.saturating_sub(length);
        length
    }
}

/// Returns a random answer that matches the schema. `name` is the field's name.
fn fitting(schema: &Value, name: &str, dice: &mut Dice) -> Value {
    if let Some(forms) = schema["anyOf"].as_array() {
        return fitting(&forms[dice.below(forms.len())], name, dice);
    }
    if let Some(words) = schema["enum"].as_array() {
        return words[dice.below(words.len())].clone();
    }
    let bound = |keyword: &str| schema[keyword].as_u64().map(|bound| bound as usize);
    match schema["type"].as_str().unwrap() {
        "boolean" => dice.flips().into(),
        "array" => {
            let most = bound("maxItems").unwrap();
            let length = dice.length(bound("minItems").unwrap_or(0), most);
            let part = if name == "credentials" { "name" } else { "" };
            (0..length).map(|_| fitting(&schema["items"], part, dice)).collect()
        }
        "object" => object(schema, dice),
        _ => {
            // If the schema has no maximum length, the parser has one.
            let read = match name {
                "detail" => Lengths::READ.detail,
                "action" => Lengths::READ.action,
                "value" => Lengths::READ.secret,
                _ => Lengths::READ.sentence,
            };
            let length = dice.length(1, bound("maxLength").unwrap_or(read));
            match name {
                "model" => "worker".into(),
                "name" => format!("{}", 100_000 + dice.below(899_999)).into(),
                "value" => "Z".repeat(length).into(),
                _ => "x".repeat(length).into(),
            }
        }
    }
}

fn object(schema: &Value, dice: &mut Dice) -> Value {
    let none = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&none);
    let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
    let mut object = Map::new();
    for (name, form) in properties {
        // A blocked plan has no tasks.
        if name != "blocked" && (required.contains(&json!(name)) || dice.flips()) {
            object.insert(name.clone(), fitting(form, name, dice));
        }
    }
    // Rules that a schema cannot express.
    if object.get("review") == Some(&json!(true)) && !object.contains_key("expect") {
        object.insert("expect".to_owned(), "x".into());
    }
    if let Some(Value::Array(given)) = object.get_mut("secrets") {
        let mut names = std::collections::HashSet::new();
        given.retain(|secret| {
            let [name, value] = ["name", "value"].map(|part| secret[part].as_str().unwrap_or_default().trim());
            !name.is_empty() && !value.is_empty() && names.insert(name.to_owned())
        });
    }
    if object.contains_key("schema") {
        object.insert("schema".to_owned(), json!({ "type": "object" }));
    }
    if properties.contains_key("inject") {
        match object["status"].as_str() {
            Some("needs_fix") => {
                let given = object.entry("inject").or_insert(json!([]));
                if given.as_array().is_some_and(Vec::is_empty) {
                    *given = json!([{ "type": "exec", "detail": "x" }]);
                }
            }
            Some("look") => drop(object.insert("file".to_owned(), "x".into())),
            _ => drop(object.remove("inject")),
        }
        object.entry("reason").or_insert("x".into());
    }
    object.into()
}

/// Settings of models, from the smallest to the largest.
fn settings() -> impl Strategy<Value = String> {
    let context = prop_oneof![1_000_u64..32_000, 32_000_u64..400_000, Just(16_000), Just(32_000), Just(128_000)];
    (context, proptest::option::of(16_u64..40_000)).prop_map(|(context, output)| {
        let output = output.map(|output| format!("\nmax_output_tokens = {output}")).unwrap_or_default();
        format!("context_budget = {context}{output}")
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn an_answer_that_fits_the_form_it_was_asked_for_is_read(
        settings in settings(), max_tasks in prop_oneof![1_usize..60, Just(50)], seed: u64,
    ) {
        for role in ROLES {
            let request = sent(role, &settings, max_tasks);
            for schema in schemas(&request) {
                let mut dice = Dice { state: seed, room: request.max_tokens as usize * 4 };
                let answer = fitting(schema, "", &mut dice);
                ArgsSchema::new(schema.clone()).unwrap().check(&answer).unwrap_or_else(|wrong| panic!("{wrong:?}\n{schema}"));
                let complaints = complaints(role, &answer, max_tasks);
                prop_assert!(complaints.is_empty(), "{settings}, {role}: {complaints:?}\n{schema}\n{answer:.2000}");
            }
        }
    }
}

/// Returns answers with the maximum length of each part that the parser accepts.
fn longest(role: Role) -> Vec<Value> {
    let Lengths { sentence, detail, action, items, item, tasks, injected, .. } = Lengths::of_run(50, false);
    let text = |length: usize| "x".repeat(length);
    let exec = |length: usize| json!({ "type": "exec", "detail": text(length) });
    match role {
        Role::Planner => {
            let plan = |tasks: Value, goal: usize| json!({ "goal": text(goal), "reply": text(goal), "tasks": tasks });
            let act = json!({ "type": "act", "detail": text(detail), "expect": text(sentence) });
            vec![plan(json!(vec![exec(1); tasks]), 1), plan(json!([exec(detail), act]), sentence)]
        }
        Role::Reviewer => vec![
            json!({ "status": "needs_fix", "inject": vec![exec(1); injected] }),
            json!({ "status": "needs_fix", "inject": [exec(detail)] }),
            json!({ "status": "replan", "reason": text(sentence), "learn": text(sentence) }),
        ],
        _ => {
            let lines = vec![text(item); items];
            let context = json!({ "discovery": lines, "credentials": [], "artifacts": lines, "blockers": lines });
            vec![json!({ "goal": text(sentence), "required": lines, "delta": text(sentence), "success": lines,
                "context": context, "action": text(action) })]
        }
    }
}

#[test]
fn a_large_model_may_answer_as_long_as_is_read() {
    let max_tasks = Limits::default().max_tasks;
    for role in ROLES {
        for answer in longest(role) {
            assert_eq!(complaints(role, &answer, max_tasks), [""; 0], "{role}");
            for settings in ["32_000", "48_000", "64_000", "128_000", "1_000_000", "128_000\nmax_output_tokens = 4_096"]
            {
                let request = sent(role, &format!("context_budget = {settings}"), max_tasks);
                for schema in schemas(&request) {
                    let checked = ArgsSchema::new(schema.clone()).unwrap().check(&answer);
                    assert!(checked.is_ok(), "{role} at {settings}: {checked:?}\n{schema}");
                }
            }
        }
    }
}

/// An answer that fits a larger model could not end in time with a small one.
#[test]
fn the_answer_of_a_small_model_ends_before_its_limit() {
    for settings in
        ["context_budget = 4_000", "context_budget = 16_000", "context_budget = 64_000\nmax_output_tokens = 1_000"]
    {
        for role in ROLES {
            let request = sent(role, settings, 50);
            assert!(request.short, "{settings}");
            for answer in longest(role) {
                for schema in schemas(&request) {
                    assert!(ArgsSchema::new(schema.clone()).unwrap().check(&answer).is_err(), "{role} at {settings}");
                }
            }
        }
    }
}
