//! Building blocks of the schemas of JSON answers. Lengths of texts and lists are parameters: as much as is read of an answer, or
//! less for a small model, which might not end by itself.

use serde_json::{Map, Value, json};

/// Maximum lengths of an answer: characters of its texts, entries of its lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lengths {
    /// A sentence or two.
    pub sentence: usize,
    /// A command line, a script, a message, or the goal of an act.
    pub detail: usize,
    /// The action of a brief.
    pub action: usize,
    /// Lists of a brief.
    pub items: usize,
    /// An entry of such a list.
    pub item: usize,
    /// The name of a role or a skill.
    pub name: usize,
    /// Tasks of a plan, without its reply.
    pub tasks: usize,
    /// Tasks that a reviewer adds.
    pub injected: usize,
    /// Calls that an act names in advance.
    pub effects: usize,
    /// Credentials in a message.
    pub secrets: usize,
    /// One of them.
    pub secret: usize,
}

impl Lengths {
    /// The most that is read of an answer.
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

    /// For a model with a small context, or with little room for an answer.
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

    /// Returns the lengths for a run whose plans have at most `max_tasks` tasks: the [short](Lengths::SHORT) ones, or the most
    /// that is [read](Lengths::READ). The reply of a plan becomes the last of its tasks.
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

/// Maximum characters of the name of a credential or a tool.
pub const MAX_WORD: usize = 64;

/// llama.cpp makes a rule for each possible character of a text, and refuses a schema with more rules than this. The reader of
/// the answer enforces longer limits.
pub const TOO_MANY_RULES: usize = 2_000;

/// An object with only these properties; those in `required` are required.
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

/// Makes a list schema require an entry.
pub(super) fn at_least_one(mut list: Value) -> Value {
    list["minItems"] = json!(1);
    list
}

/// A list of credentials with their names.
pub(super) fn secrets(lengths: &Lengths) -> Value {
    list(object([("name", text(MAX_WORD)), ("value", text(lengths.secret))], []), lengths.secrets)
}

/// A task of a plan, or an injected one: a schema for each type, so that each task has the fields that it needs.
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

/// A list of calls that a plan names in advance.
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
