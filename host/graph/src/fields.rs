//! Reads the fields of a JSON object that a model wrote. Collects all errors instead of stopping at the first one, so that a
//! model needs one retry and not five.

use serde_json::{Map, Value};

use kiso_base::role::{Lengths, Role};
use kiso_plan::plan::{Catalog, NamedEffect, Task, TaskKind, Violation};

/// Maximum characters of a goal or an expectation: one or two sentences. Longer ones would take too much of every later prompt.
pub(super) const MAX_SENTENCE: usize = Lengths::READ.sentence;

/// Maximum characters of a detail, which may contain a whole instruction or a script.
const MAX_DETAIL: usize = Lengths::READ.detail;

const TASK_FIELDS: [&str; 11] =
    ["type", "detail", "expect", "model", "skill", "args", "notify", "review", "schema", "effects", "brief"];

/// Maximum calls that an act task names in advance.
const MAX_EFFECTS: usize = Lengths::READ.effects;

/// Maximum bytes of each such call. It is part of a prompt.
const MAX_EFFECT: usize = 2_000;

/// Maximum characters of the name of a role or a skill.
const MAX_NAME: usize = Lengths::READ.name;

/// Maximum bytes of the schema of a msg task. It is part of a prompt.
const MAX_SCHEMA: usize = 4_000;

pub(super) struct Fields<'a> {
    map: &'a Map<String, Value>,
    /// With a dot at its end; empty for the root.
    prefix: String,
    violations: &'a mut Vec<Violation>,
}

impl<'a> Fields<'a> {
    pub(super) fn new(map: &'a Map<String, Value>, prefix: String, violations: &'a mut Vec<Violation>) -> Self {
        Self { map, prefix, violations }
    }

    pub(super) fn wrong(&mut self, key: &str, message: impl Into<String>) {
        self.violations.push(Violation::new(format!("{}{key}", self.prefix), message));
    }

    /// Returns the field; JSON's null counts as absent.
    pub(super) fn get(&self, key: &str) -> Option<&'a Value> {
        self.map.get(key).filter(|value| !value.is_null())
    }

    pub(super) fn only(&mut self, allowed: &[&str]) {
        for key in self.map.keys().filter(|key| !allowed.contains(&key.as_str())) {
            self.wrong(key, format!("unknown field; the fields are {}", allowed.join(", ")));
        }
    }

    /// Returns a text of at most `max` characters; blank text counts as absent.
    pub(super) fn text(&mut self, key: &str, max: usize) -> Option<String> {
        let text = match self.get(key)? {
            Value::String(text) => text.trim(),
            other => {
                self.wrong(key, format!("must be a string, not {}", kind_of(other)));
                return None;
            }
        };
        let length = text.chars().count();
        if length > max {
            self.wrong(key, format!("has {length} characters, at most {max} are allowed"));
        }
        (!text.is_empty()).then(|| text.to_owned())
    }

    pub(super) fn flag(&mut self, key: &str) -> Option<bool> {
        match self.get(key)? {
            Value::Bool(flag) => Some(*flag),
            other => {
                self.wrong(key, format!("must be true or false, not {}", kind_of(other)));
                None
            }
        }
    }

    /// Returns a list of at most `max` texts of at most `length` characters each. Blank ones are left out, and a single text
    /// counts as a list of one.
    pub(super) fn texts(&mut self, key: &str, max: usize, length: usize) -> Vec<String> {
        let items = match self.get(key) {
            None => return Vec::new(),
            Some(Value::Array(items)) => items.as_slice(),
            Some(one @ Value::String(_)) => std::slice::from_ref(one),
            Some(other) => {
                self.wrong(key, format!("must be a list of strings, not {}", kind_of(other)));
                return Vec::new();
            }
        };
        if items.len() > max {
            self.wrong(key, format!("has {} entries, at most {max} are allowed", items.len()));
            return Vec::new();
        }
        let mut texts = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let path = format!("{key}[{index}]");
            match item.as_str().map(str::trim) {
                None => self.wrong(&path, format!("must be a string, not {}", kind_of(item))),
                Some(text) if text.chars().nth(length).is_some() => {
                    self.wrong(&path, format!("has {} characters, at most {length} are allowed", text.chars().count()));
                }
                Some("") => {}
                Some(text) => texts.push(text.to_owned()),
            }
        }
        texts
    }

    /// Returns the fields of an object in this one.
    pub(super) fn inside(&mut self, key: &str) -> Option<Fields<'_>> {
        match self.get(key)? {
            Value::Object(map) => Some(Fields::new(map, format!("{}{key}.", self.prefix), self.violations)),
            other => {
                self.wrong(key, format!("must be an object, not {}", kind_of(other)));
                None
            }
        }
    }

    /// Whether an error of this field was recorded.
    pub(super) fn complained(&self, key: &str) -> bool {
        let path = format!("{}{key}", self.prefix);
        self.violations.iter().any(|violation| violation.path == path)
    }

    pub(super) fn required(&mut self, key: &str, max: usize, why: &str) -> String {
        match self.text(key, max) {
            Some(text) => text,
            None => {
                if !self.complained(key) {
                    self.wrong(key, why);
                }
                String::new()
            }
        }
    }

    /// Returns one of a few words in the form of a schema; accepts any case, and spaces, `-` or `_` between its parts.
    pub(super) fn word(&mut self, key: &str, why: &str) -> String {
        self.required(key, 100, why).to_ascii_lowercase().replace([' ', '-'], "_")
    }

    /// Returns a list of tasks. `max` is the maximum number of tasks, `limit` the name of the setting.
    pub(super) fn tasks(&mut self, key: &str, max: usize, catalog: &dyn Catalog) -> Vec<Task> {
        let items = match self.get(key) {
            None => return Vec::new(),
            Some(Value::Array(items)) => items,
            Some(other) => {
                self.wrong(key, format!("must be a list, not {}", kind_of(other)));
                return Vec::new();
            }
        };
        if items.len() > max {
            self.wrong(key, format!("has {} tasks, at most {max} are allowed here (max_tasks)", items.len()));
            return Vec::new();
        }
        let mut tasks = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let path = format!("{}{key}[{index}]", self.prefix);
            match item {
                Value::Object(map) => {
                    let fields = Fields::new(map, format!("{path}."), self.violations);
                    tasks.extend(fields.task(catalog));
                }
                other => {
                    self.violations.push(Violation::new(path, format!("must be an object, not {}", kind_of(other))))
                }
            }
        }
        tasks
    }

    fn task(mut self, catalog: &dyn Catalog) -> Option<Task> {
        self.only(&TASK_FIELDS);
        let kind = self.kind()?;
        let skill = if kind == TaskKind::Skill {
            let name = self.required("skill", MAX_NAME, "a skill task names its skill");
            (!name.is_empty()).then_some(name)
        } else {
            for key in ["skill", "args"] {
                if self.get(key).is_some() {
                    self.wrong(key, format!("only skill tasks have this, and this is of type {}", kind.name()));
                }
            }
            None
        };
        let detail = match &skill {
            Some(name) => self.text("detail", MAX_DETAIL).unwrap_or_else(|| format!("skill {name}")),
            None if kind == TaskKind::Skill => String::new(),
            None => self.required("detail", MAX_DETAIL, "missing; it says what to do"),
        };
        let args = skill.as_deref().and_then(|name| self.args(name, catalog));
        let review = self.flag("review").unwrap_or(false);
        let expect = self.text("expect", MAX_SENTENCE);
        if review && expect.is_none() && !self.complained("expect") {
            self.wrong("expect", "missing; a task with review: true says what is expected of it");
        }
        if kind == TaskKind::Act && expect.is_none() && !self.complained("expect") {
            self.wrong("expect", "missing; an act task says what it is to lead to");
        }
        let model = self.text("model", MAX_NAME);
        if model.is_some() && matches!(kind, TaskKind::Exec | TaskKind::Skill) {
            self.wrong("model", format!("only msg and act tasks ask a model, and this is of type {}", kind.name()));
        }
        if let Some(name) = model.as_deref().filter(|name| Role::named(name).is_none()) {
            self.wrong("model", format!("there is no role {name:?}; the roles are {}", Role::names()));
        }
        let notify = self.flag("notify").unwrap_or(false);
        let (schema, effects) = (self.schema(kind, catalog), self.effects(kind, catalog));
        let brief = self.text("brief", MAX_DETAIL);
        if brief.is_some() && kind != TaskKind::Act {
            self.wrong("brief", format!("only act tasks have this, and this is of type {}", kind.name()));
        }
        Some(Task { kind, detail, expect, model, skill, args, notify, review, schema, effects, brief })
    }

    fn schema(&mut self, kind: TaskKind, catalog: &dyn Catalog) -> Option<Value> {
        let schema = self.get("schema")?;
        if kind != TaskKind::Msg {
            self.wrong("schema", format!("only msg tasks have this, and this is of type {}", kind.name()));
        } else if schema.get("type").and_then(Value::as_str) != Some("object") {
            self.wrong("schema", "must be a JSON Schema whose type is object");
        } else if schema.to_string().len() > MAX_SCHEMA {
            self.wrong("schema", format!("is longer than {MAX_SCHEMA} bytes"));
        } else if let Err(why) = catalog.check_schema(schema) {
            self.wrong("schema", format!("is no JSON Schema: {why}"));
        } else {
            return Some(schema.clone());
        }
        None
    }

    fn effects(&mut self, kind: TaskKind, catalog: &dyn Catalog) -> Vec<NamedEffect> {
        let Some(given) = self.get("effects") else { return Vec::new() };
        if kind != TaskKind::Act {
            self.wrong("effects", format!("only act tasks have this, and this is of type {}", kind.name()));
            return Vec::new();
        }
        let Some(given) = given.as_array().filter(|given| given.len() <= MAX_EFFECTS) else {
            self.wrong("effects", format!("must be a list of at most {MAX_EFFECTS} objects with tool and args"));
            return Vec::new();
        };
        let mut effects = Vec::new();
        for (index, item) in given.iter().enumerate() {
            let key = format!("effects[{index}]");
            let read = serde_json::from_value(item.clone());
            let Some(effect) = read.ok().filter(|effect: &NamedEffect| effect.args.is_object()) else {
                self.wrong(&key, "must be an object with tool, a name, and args, an object");
                continue;
            };
            if effect.args.to_string().len() > MAX_EFFECT {
                self.wrong(&key, format!("has args of more than {MAX_EFFECT} bytes"));
                continue;
            }
            let wrong = catalog.check_some(&effect.tool, &effect.args).err().unwrap_or_default();
            for Violation { path, message } in wrong {
                self.wrong(&if path.is_empty() { key.clone() } else { format!("{key}.{path}") }, message);
            }
            effects.push(effect);
        }
        effects
    }

    fn kind(&mut self) -> Option<TaskKind> {
        let kind = match self.word("type", "missing; the types are exec, skill, msg, act").as_str() {
            "exec" => TaskKind::Exec,
            "skill" => TaskKind::Skill,
            "msg" => TaskKind::Msg,
            "act" => TaskKind::Act,
            "" => return None,
            other => {
                self.wrong("type", format!("there is no type {other:?}; the types are exec, skill, msg, act"));
                return None;
            }
        };
        Some(kind)
    }

    fn args(&mut self, skill: &str, catalog: &dyn Catalog) -> Option<Value> {
        let given = match self.get("args") {
            None => Value::Object(Map::new()),
            Some(value @ Value::Object(_)) => value.clone(),
            Some(other) => {
                self.wrong("args", format!("must be an object, not {}", kind_of(other)));
                return None;
            }
        };
        match catalog.check(skill, &given) {
            Ok(args) => Some(args),
            Err(violations) => {
                // An unknown skill is reported as a single violation `skill`; so is an error of an argument with that name.
                let unknown = violations.len() == 1 && given.get("skill").is_none();
                for Violation { path, message } in violations {
                    match path.as_str() {
                        "skill" if unknown => self.wrong("skill", message),
                        "" => self.wrong("args", message),
                        path if path.starts_with('[') => self.wrong(&format!("args{path}"), message),
                        path => self.wrong(&format!("args.{path}"), message),
                    }
                }
                None
            }
        }
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
