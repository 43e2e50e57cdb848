//! Answers of models (plans, verdicts and briefs), complete and streamed.

use crate::Target;
use crate::dice::Dice;
use kiso_graph::{Chatter, execution_brief, plan, verdict};
use kiso_plan::plan::{Catalog, Violation};
use serde_json::{Map, Value, json};

pub(crate) struct Plans;

/// A catalog with one skill.
struct OneSkill;

impl Catalog for OneSkill {
    fn check(&self, skill: &str, args: &Value) -> Result<Value, Vec<Violation>> {
        match skill {
            "data" => Ok(args.clone()),
            _ => Err(vec![Violation::new("skill", "there is no such skill")]),
        }
    }

    fn check_some(&self, tool: &str, args: &Value) -> Result<(), Vec<Violation>> {
        self.check(tool, args).map(drop)
    }

    fn check_schema(&self, schema: &Value) -> Result<(), String> {
        schema.get("properties").map(drop).ok_or_else(|| "it has no properties".to_owned())
    }
}

const MAX_TASKS: usize = 20;

/// Maximum length of an answer that is compared; such an answer is far from being cut off.
const COMPARED: usize = 32 << 10;

impl Target for Plans {
    fn name(&self) -> &'static str {
        "plans"
    }

    fn ordinary(&self) -> u64 {
        5_000
    }

    /// The first byte selects the role that answers.
    fn make(&mut self, dice: &mut Dice) -> Vec<u8> {
        let who = dice.below(3) as u8;
        let mut object = match who {
            0 => a_plan(dice),
            1 => a_verdict(dice),
            _ => a_brief(dice),
        };
        if dice.once_in(3) {
            spoil(dice, &mut object, 0);
        }
        let mut text = if dice.once_in(2) { format!("{object:#}") } else { object.to_string() };
        text = match dice.below(6) {
            0 => format!("I will do it.\n<FINAL_PRD>{text}</FINAL_PRD>\nThat is all."),
            1 => format!("<final_prd>\n```json\n{text}\n```\n</final_prd>"),
            2 => format!("```\n{text}\n```"),
            3 => format!("{}<FINAL_PRD>{text}", dice.text()),
            4 => format!("{} {text} {}", dice.text(), dice.text()),
            _ => text,
        };
        let mut bytes = text.into_bytes();
        for _ in 0..[0, 0, 0, 1, 4][dice.below(5)] {
            dice.mutate(&mut bytes);
        }
        bytes.insert(0, who);
        bytes
    }

    fn run(&mut self, inputs: &[Vec<u8>]) -> Result<u64, String> {
        let mut past = 0;
        for input in inputs {
            let text = String::from_utf8_lossy(&input[1..]);
            past += u64::from(match input[0] {
                0 => plan::parse(&text, &OneSkill, MAX_TASKS).is_ok(),
                1 => verdict::parse(&text, &OneSkill, MAX_TASKS, true).is_ok(),
                _ => execution_brief::parse(&text).is_ok(),
            });
            // A user sees the same text however the answer is split into pieces.
            let mut chatter = Chatter::default();
            let mut streamed = String::new();
            let mut rest = &*text;
            while !rest.is_empty() {
                let length = rest.char_indices().nth(1 + input.len() % 7).map_or(rest.len(), |(at, _)| at);
                streamed += &chatter.push(&rest[..length]);
                rest = &rest[length..];
            }
            streamed += &chatter.finish();
            let whole = Chatter::extract(&text);
            // A finished answer drops the closing mark of a fence without a plan; a streamed one may have shown it.
            let streamed = streamed.trim().trim_end_matches("```").trim_end();
            if text.len() < COMPARED && streamed != whole {
                return Err(format!("in pieces {streamed:?}, whole {whole:?}"));
            }
        }
        Ok(past)
    }
}

fn a_task(dice: &mut Dice, last: bool) -> Value {
    if last {
        return json!({ "type": "msg", "detail": "tell", "notify": true });
    }
    let mut task = match dice.below(4) {
        0 => json!({ "type": "exec", "detail": dice.one_of(&["ls", "cat a | sort", "echo 'x", "{\"a\": 1}"]) }),
        1 => json!({ "type": "skill", "skill": "data", "args": { "file": "a.csv", "limit": dice.below(9) } }),
        2 => json!({ "type": "msg", "detail": "say it" }),
        _ => json!({ "type": "act", "detail": "look", "expect": "a number" }),
    };
    if dice.once_in(4) {
        (task["review"], task["expect"]) = (true.into(), "a list".into());
    }
    task
}

fn a_plan(dice: &mut Dice) -> Value {
    let count = dice.below(6);
    let mut tasks: Vec<Value> = (0..count).map(|_| a_task(dice, false)).collect();
    tasks.push(a_task(dice, true));
    let mut plan = json!({ "goal": "to know", "tasks": tasks });
    if dice.once_in(6) {
        plan["secrets"] = json!({ "token": "tok-1234567890" });
    }
    plan
}

fn a_verdict(dice: &mut Dice) -> Value {
    match dice.below(3) {
        0 => json!({ "status": "ok", "goal_met": dice.once_in(2), "learn": "it rains" }),
        1 => json!({ "status": "needs_fix", "reason": "no", "inject": [a_task(dice, false)] }),
        _ => json!({ "status": "replan", "reason": "another way" }),
    }
}

fn a_brief(dice: &mut Dice) -> Value {
    let items: Vec<String> = (0..dice.below(3)).map(|n| format!("fact {n}")).collect();
    json!({ "goal": "to know", "required": items, "delta": "all", "success": ["known"], "context": {}, "action": "look" })
}

/// Changes one value somewhere inside.
fn spoil(dice: &mut Dice, value: &mut Value, depth: usize) {
    match value {
        Value::Object(fields) if !fields.is_empty() && depth < 6 && !dice.once_in(4) => {
            let key = fields.keys().nth(dice.below(fields.len())).cloned().unwrap_or_default();
            match dice.below(8) {
                0 => drop(fields.remove(&key)),
                1 => drop(fields.insert(dice.text(), strange(dice))),
                _ => spoil(dice, &mut fields[&key], depth + 1),
            }
        }
        Value::Array(items) if !items.is_empty() && depth < 6 => {
            let at = dice.below(items.len());
            match dice.below(4) {
                0 => items.push(items[at].clone()),
                _ => spoil(dice, &mut items[at], depth + 1),
            }
        }
        other => *other = strange(dice),
    }
}

fn strange(dice: &mut Dice) -> Value {
    match dice.below(8) {
        0 => Value::Null,
        1 => dice.once_in(2).into(),
        2 => (dice.next() as i64).into(),
        3 => json!(f64::from_bits(dice.next())),
        4 => Value::Array(vec![Value::Null; dice.below(200)]),
        5 => Value::Object(Map::from_iter((0..dice.below(5)).map(|n| (n.to_string(), n.into())))),
        6 => (0..dice.below(120)).fold(json!(1), |inner, _| json!([inner])),
        _ => dice.text().into(),
    }
}
