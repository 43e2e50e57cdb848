//! The forms that answers in JSON have, from a few words. What a text or list may have at most is for models that would not end by
//! themselves: a server that makes a grammar of the schema then ends it for them.

use serde_json::{Map, Value, json};

/// Characters of a sentence or two.
pub const SENTENCE: u64 = 300;

/// Characters of a command line, or of what an act is to reach.
pub const COMMAND: u64 = 1_200;

/// An object with these properties and no others, of which those in `required` must be there.
pub fn object<const N: usize, const M: usize>(required: [(&str, Value); N], optional: [(&str, Value); M]) -> Value {
    let names: Vec<_> = required.iter().map(|(name, _)| *name).collect();
    let needed = json!(names);
    let properties = required.into_iter().chain(optional).map(|(name, value)| (name.to_owned(), value));
    json!({
        "type": "object",
        "properties": properties.collect::<Map<_, _>>(),
        "required": needed,
        "additionalProperties": false,
    })
}

pub fn text(most: u64) -> Value {
    json!({ "type": "string", "maxLength": most })
}

pub fn flag() -> Value {
    json!({ "type": "boolean" })
}

pub fn one_of(words: &[&str]) -> Value {
    json!({ "type": "string", "enum": words })
}

pub fn list(items: Value, most: u64) -> Value {
    json!({ "type": "array", "items": items, "maxItems": most })
}

/// The same list, not empty.
pub fn at_least_one(mut list: Value) -> Value {
    list["minItems"] = json!(1);
    list
}

/// Credentials, each with its name.
pub fn secrets() -> Value {
    list(object([("name", text(64)), ("value", text(SENTENCE))], []), 4)
}

/// A task of a plan, or one that is injected: a form for each type, so that none lacks what it needs.
pub fn task() -> Value {
    let kind = |name: &str| ("type", one_of(&[name]));
    let checked = || [("expect", text(SENTENCE)), ("review", flag()), ("notify", flag())];
    let exec = object([kind("exec"), ("detail", text(COMMAND))], checked());
    let act = object(
        [kind("act"), ("detail", text(COMMAND)), ("expect", text(SENTENCE))],
        [("brief", text(COMMAND)), ("model", text(64)), ("review", flag()), ("notify", flag()), ("effects", effects())],
    );
    let message = object(
        [kind("msg"), ("detail", text(COMMAND))],
        [
            ("model", text(64)),
            ("expect", text(SENTENCE)),
            ("review", flag()),
            ("notify", flag()),
            ("schema", json!({ "type": "object" })),
        ],
    );
    json!({ "anyOf": [skill_task(text(64), json!({ "type": "object" })), exec, act, message] })
}

/// Calls that a plan names ahead.
fn effects() -> Value {
    list(object([("tool", text(64)), ("args", json!({ "type": "object" }))], []), 4)
}

/// A task with this skill and these arguments.
pub fn skill_task(skill: Value, args: Value) -> Value {
    object(
        [("type", one_of(&["skill"])), ("skill", skill), ("args", args)],
        [("expect", text(SENTENCE)), ("review", flag()), ("notify", flag())],
    )
}
