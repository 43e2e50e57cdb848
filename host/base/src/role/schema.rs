//! The forms that answers in JSON have, from a few words. How long their texts and lists may get is a parameter of each form: what is
//! read of an answer, or less for a small model, which would not end by itself.

use serde_json::{Map, Value, json};

/// How long an answer may get: characters of its texts, entries of its lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lengths {
    /// A sentence or two.
    pub sentence: usize,
    /// A command line, a script, a message, or what an act is to reach.
    pub detail: usize,
    /// The action of a brief.
    pub action: usize,
    /// Lists of a brief.
    pub items: usize,
    /// One of their entries.
    pub item: usize,
    /// The name of a role or a skill.
    pub name: usize,
    /// Tasks of a plan, its reply besides.
    pub tasks: usize,
    /// Tasks that a reviewer adds.
    pub injected: usize,
    /// Calls that an act names ahead.
    pub effects: usize,
    /// Credentials of a message.
    pub secrets: usize,
    /// One of them.
    pub secret: usize,
}

impl Lengths {
    /// What is read of an answer, and no more.
    pub const READ: Self = Self {
        sentence: 2_000,
        detail: 16_000,
        action: 16_000,
        items: 12,
        item: 600,
        name: 200,
        tasks: 49,
        injected: 50,
        effects: 8,
        secrets: 32,
        secret: 16 << 10,
    };

    /// For a model with a small window, or with little room for an answer.
    pub const SHORT: Self = Self {
        sentence: 300,
        detail: 1_200,
        action: 1_200,
        items: 6,
        item: 240,
        name: 64,
        tasks: 8,
        injected: 4,
        effects: 4,
        secrets: 4,
        secret: 300,
    };

    /// Those of a run whose plans have at most `max_tasks` tasks, the [short](Lengths::SHORT) ones or what is [read](Lengths::READ).
    /// The reply of a plan becomes the last of its tasks.
    pub fn of_run(max_tasks: usize, short: bool) -> Self {
        let (tasks, injected) = (max_tasks.saturating_sub(1), max_tasks);
        match short {
            true => Self {
                tasks: Self::SHORT.tasks.min(tasks),
                injected: Self::SHORT.injected.min(injected),
                ..Self::SHORT
            },
            false => Self { tasks, injected, ..Self::READ },
        }
    }
}

/// Characters of the name of a credential or a tool.
pub const MAX_WORD: usize = 64;

/// llama.cpp makes a rule for each character that a text may have, and refuses a schema with so many. A longer limit is left to the
/// reader of the answer.
pub const TOO_MANY_RULES: usize = 2_000;

/// An object with these properties and no others, of which those in `required` must be there.
pub(super) fn object<const N: usize, const M: usize>(
    required: [(&str, Value); N],
    optional: [(&str, Value); M],
) -> Value {
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

pub(super) fn text(most: usize) -> Value {
    if most < TOO_MANY_RULES { json!({ "type": "string", "maxLength": most }) } else { json!({ "type": "string" }) }
}

pub(super) fn flag() -> Value {
    json!({ "type": "boolean" })
}

pub(super) fn one_of(words: &[&str]) -> Value {
    json!({ "type": "string", "enum": words })
}

pub(super) fn list(items: Value, most: usize) -> Value {
    json!({ "type": "array", "items": items, "maxItems": most })
}

/// The same list, not empty.
pub(super) fn at_least_one(mut list: Value) -> Value {
    list["minItems"] = json!(1);
    list
}

/// Credentials, each with its name.
pub(super) fn secrets(lengths: &Lengths) -> Value {
    list(object([("name", text(MAX_WORD)), ("value", text(lengths.secret))], []), lengths.secrets)
}

/// A task of a plan, or one that is injected: a form for each type, so that none lacks what it needs.
pub(super) fn task(lengths: &Lengths) -> Value {
    let kind = |name: &str| ("type", one_of(&[name]));
    let (sentence, detail, name) = (|| text(lengths.sentence), || text(lengths.detail), || text(lengths.name));
    let checked = || [("expect", sentence()), ("review", flag()), ("notify", flag())];
    let exec = object([kind("exec"), ("detail", detail())], checked());
    let act = object(
        [kind("act"), ("detail", detail()), ("expect", sentence())],
        [("brief", detail()), ("model", name()), ("review", flag()), ("notify", flag()), ("effects", effects(lengths))],
    );
    let message = object(
        [kind("msg"), ("detail", detail())],
        [
            ("model", name()),
            ("expect", sentence()),
            ("review", flag()),
            ("notify", flag()),
            ("schema", json!({ "type": "object" })),
        ],
    );
    json!({ "anyOf": [skill_task(name(), json!({ "type": "object" }), lengths), exec, act, message] })
}

/// Calls that a plan names ahead.
fn effects(lengths: &Lengths) -> Value {
    list(object([("tool", text(MAX_WORD)), ("args", json!({ "type": "object" }))], []), lengths.effects)
}

/// A task with this skill and these arguments.
pub fn skill_task(skill: Value, args: Value, lengths: &Lengths) -> Value {
    object(
        [("type", one_of(&["skill"])), ("skill", skill), ("args", args)],
        [("expect", text(lengths.sentence)), ("review", flag()), ("notify", flag())],
    )
}
