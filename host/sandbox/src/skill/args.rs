//! Arguments of a call: checked against the tool's schema before anything is instantiated.

use jsonschema::error::ValidationErrorKind;
use jsonschema::{ValidationError, Validator};
use kiso_plan::plan::{Violation, binding};
use kiso_store::scratchpad::parse_ref;
use serde_json::{Map, Value};
use std::path::{Component, Path};
use std::sync::OnceLock;

/// Largest arguments of a call, as JSON text.
pub(super) const MAX_ARGS_BYTES: usize = 1 << 20;

/// Violations that are reported at once; a list of a million wrong items would hide the first.
const MAX_VIOLATIONS: usize = 20;

/// The schema of one tool, ready to check.
#[derive(Debug)]
pub struct ArgsSchema {
    schema: Value,
    validator: OnceLock<Result<Validator, String>>,
    /// Patterns in a dialect that cannot be read. Values are not checked against them.
    unchecked: Vec<String>,
}

impl ArgsSchema {
    /// Compiles a schema that somebody else has written. Patterns in a dialect that cannot be read are not checked;
    /// [`ArgsSchema::unchecked`] lists them.
    pub fn new(schema: Value) -> Result<Self, String> {
        let compile =
            |schema: &Value| super::manifest::validator(schema).or_else(|_| super::manifest::foreign_validator(schema));
        let (validator, unchecked) = match compile(&schema) {
            Ok(validator) => (validator, Vec::new()),
            Err(error) => {
                let (mut known, mut unchecked) = (schema.clone(), Vec::new());
                super::manifest::without_unreadable_patterns(&mut known, &mut unchecked);
                if unchecked.is_empty() {
                    return Err(error.to_string());
                }
                (compile(&known).map_err(|error| error.to_string())?, unchecked)
            }
        };
        Ok(Self { schema, validator: OnceLock::from(Ok(validator)), unchecked })
    }

    /// The patterns that values are not checked against.
    pub fn unchecked(&self) -> &[String] {
        &self.unchecked
    }

    /// Takes a schema that is known to compile: one of kiso's own tools, or of a manifest whose arguments were all compiled. It
    /// is compiled again when it is first needed: a process has dozens of schemas and calls one or two.
    pub fn checked(schema: Value) -> Self {
        Self { schema, validator: OnceLock::new(), unchecked: Vec::new() }
    }

    fn validator(&self) -> Result<&Validator, &str> {
        let compile = || super::manifest::validator(&self.schema).map_err(|error| error.to_string());
        self.validator.get_or_init(compile).as_ref().map_err(String::as_str)
    }

    pub fn schema(&self) -> &Value {
        &self.schema
    }

    /// The default of an argument, if it has one.
    pub fn default_of(&self, name: &str) -> Option<&Value> {
        self.schema.pointer(&format!("/properties/{name}/default"))
    }

    /// The arguments with defaults filled in, or every violation with its path.
    pub fn check(&self, args: &Value) -> Result<Value, Vec<Violation>> {
        self.verify(args, |_| false)
    }

    /// [`ArgsSchema::check`] for arguments of a plan. `ref:KEY` stands for a text that is not known yet, so this only checks
    /// whether a text is allowed there.
    pub fn check_planned(&self, args: &Value) -> Result<Value, Vec<Violation>> {
        self.verify(args, is_not_known_yet)
    }

    /// [`ArgsSchema::check_planned`] for arguments to which others will be added.
    pub fn check_some(&self, args: &Value) -> Result<(), Vec<Violation>> {
        self.verify(args, |error| {
            let missing = matches!(error.kind(), ValidationErrorKind::Required { .. });
            missing && error.instance_path().as_str().is_empty() || is_not_known_yet(error)
        })
        .map(drop)
    }

    fn verify(&self, args: &Value, excused: impl Fn(&ValidationError<'_>) -> bool) -> Result<Value, Vec<Violation>> {
        let violation = |path: &str, message: String| Violation { path: path.to_owned(), message };
        let mut args = match args {
            Value::Null => Value::Object(Map::new()),
            Value::Object(_) => args.clone(),
            _ => return Err(vec![violation("", "arguments must be an object".to_owned())]),
        };
        self.fill_in(&mut args);
        if args.to_string().len() > MAX_ARGS_BYTES {
            return Err(vec![violation("", format!("arguments are larger than {} KiB", MAX_ARGS_BYTES >> 10))]);
        }
        let validator =
            self.validator().map_err(|error| vec![violation("", format!("nothing can be checked: {error}"))])?;
        let mut violations = Vec::new();
        for error in validator.iter_errors(&args).filter(|error| !excused(error)).take(MAX_VIOLATIONS) {
            let path = dotted(error.instance_path().as_str());
            match error.kind() {
                ValidationErrorKind::Required { property } => {
                    let name = property.as_str().unwrap_or_default();
                    violations.push(violation(&join(&path, name), format!("is required{}", self.describe(name))));
                }
                ValidationErrorKind::AdditionalProperties { unexpected } => {
                    for name in unexpected {
                        violations
                            .push(violation(&join(&path, name), format!("is not an argument{}", self.near(name))));
                    }
                }
                _ => violations.push(violation(&path, error_message(&error))),
            }
        }
        violations.extend(self.outside_paths(&args));
        if violations.is_empty() { Ok(args) } else { Err(violations) }
    }

    fn properties(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.schema.get("properties").and_then(Value::as_object).into_iter().flatten()
    }

    fn fill_in(&self, args: &mut Value) {
        let Some(args) = args.as_object_mut() else { return };
        for (name, property) in self.properties() {
            if let Some(default) = property.get("default")
                && !args.contains_key(name)
            {
                args.insert(name.clone(), default.clone());
            }
        }
    }

    /// Refuses paths that lead out of the workspace. The sandbox would refuse them too, but here the message can name the
    /// argument.
    fn outside_paths(&self, args: &Value) -> Vec<Violation> {
        let mut violations = Vec::new();
        for (name, property) in self.properties() {
            if property.get("format").and_then(Value::as_str) != Some("file") {
                continue;
            }
            let path = args.get(name).and_then(Value::as_str).unwrap_or_default();
            let relative = Path::new(path).strip_prefix("/work").unwrap_or(Path::new(path));
            if relative.components().any(|c| !matches!(c, Component::Normal(_) | Component::CurDir)) {
                let message = format!("{path:?} is not a path inside /work");
                violations.push(Violation { path: name.clone(), message });
            }
        }
        violations
    }

    fn describe(&self, name: &str) -> String {
        let property = self.properties().find(|(n, _)| *n == name).map(|(_, p)| p);
        let description = property.and_then(|p| p.get("description")).and_then(Value::as_str);
        description.map(|d| format!(" ({d})")).unwrap_or_default()
    }

    /// Returns "; did you mean `x`?" or the list of all names.
    fn near(&self, name: &str) -> String {
        let names: Vec<&str> = self.properties().map(|(n, _)| n.as_str()).collect();
        match near_names(name, names.iter().copied()).first() {
            Some(near) => format!("; did you mean `{near}`?"),
            None if names.is_empty() => "; it takes none".to_owned(),
            None => format!("; there are {}", names.join(", ")),
        }
    }
}

/// `/items/0/name` as `items[0].name`.
fn dotted(pointer: &str) -> String {
    let mut path = String::new();
    for part in pointer.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        if part.bytes().all(|b| b.is_ascii_digit()) && !part.is_empty() {
            path.push_str(&format!("[{part}]"));
        } else {
            path = join(&path, &part);
        }
    }
    path
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// The message of an error. A value of a megabyte is not quoted: it helps nobody, and the message names the rule only after the
/// value.
fn error_message(error: &ValidationError<'_>) -> String {
    const MAX: usize = 300;
    let message = error.to_string();
    if message.len() <= MAX {
        return message;
    }
    let message = error.masked_with("this value").to_string();
    if message.len() <= MAX { message } else { format!("{}…", crate::engine::limits::cut(&message, MAX)) }
}

/// The names that differ by one or two typing errors, nearest first.
pub fn near_names<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    // A typing error is short.
    let name = crate::engine::limits::cut(name, 64);
    let mut near: Vec<(usize, &str)> = names
        .map(|n| (strsim::osa_distance(name, n), n))
        .filter(|(d, n)| *d <= 2.min(n.len() / 2) || (name.len() >= 3 && n.starts_with(name)))
        .collect();
    near.sort();
    near.into_iter().map(|(_, n)| n).collect()
}

/// Converts `key=value` words of a command line to arguments. Each value is parsed as the schema's type for it, or as JSON if it
/// is JSON.
pub fn from_words(schema: &Value, words: &[(String, String)]) -> Value {
    let mut args = Map::new();
    for (key, text) in words {
        let kind = schema.pointer(&format!("/properties/{key}/type")).and_then(Value::as_str);
        let json = || serde_json::from_str::<Value>(text).ok();
        let value = match kind {
            Some("string") => Value::String(text.clone()),
            // A list of strings may be given as words with commas; anything in brackets is JSON.
            Some("array") if !text.trim_start().starts_with('[') => {
                let item = schema.pointer(&format!("/properties/{key}/items/type")).and_then(Value::as_str);
                let parts = text.split(',').map(str::trim).filter(|p| !p.is_empty());
                parts
                    .map(|p| match item {
                        Some("string") | None => Value::String(p.to_owned()),
                        _ => serde_json::from_str(p).unwrap_or_else(|_| Value::String(p.to_owned())),
                    })
                    .collect()
            }
            _ => json().unwrap_or_else(|| Value::String(text.clone())),
        };
        args.insert(key.clone(), value);
    }
    Value::Object(args)
}

/// Whether the failing value is a placeholder in a plan: a ref, or a value that is bound to a task.
fn is_not_known_yet(error: &ValidationError<'_>) -> bool {
    let is_ref = error.instance().as_str().is_some_and(|text| parse_ref(text).is_some());
    binding(error.instance()).is_some() || is_ref && !matches!(error.kind(), ValidationErrorKind::Type { .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> ArgsSchema {
        ArgsSchema::new(json!({
            "type": "object",
            "properties": {
                "query": { "type": "string", "maxLength": 5, "description": "search query" },
                "max_results": { "type": "integer", "minimum": 1, "maximum": 20, "default": 5 },
                "tags": { "type": "array", "items": { "type": "string" } },
                "file": { "type": "string", "format": "file" },
            },
            "required": ["query"],
            "additionalProperties": false,
        }))
        .unwrap()
    }

    #[test]
    fn defaults_are_filled_in() {
        let args = schema().check(&json!({ "query": "rust" })).unwrap();
        assert_eq!(args, json!({ "query": "rust", "max_results": 5 }));
    }

    #[test]
    fn a_ref_in_a_plan_may_stand_where_a_text_may() {
        let schema = schema();
        let args = json!({ "query": "ref:input-1", "tags": ["ref:tool-2"] });
        assert_eq!(schema.check(&args).unwrap_err().len(), 1, "resolved, it would be too long");
        let planned = schema.check_planned(&args).unwrap();
        assert_eq!(planned, json!({ "query": "ref:input-1", "tags": ["ref:tool-2"], "max_results": 5 }));
        let violations = schema.check_planned(&json!({ "query": "ref:a b", "max_results": "ref:a" })).unwrap_err();
        let mut told: Vec<String> = violations.iter().map(ToString::to_string).collect();
        told.sort();
        assert_eq!(
            told,
            ["max_results: \"ref:a\" is not of type \"integer\"", "query: \"ref:a b\" is longer than 5 characters"]
        );
    }

    #[test]
    fn every_violation_is_told_with_its_path() {
        let violations = schema()
            .check(&json!({ "max_results": 0, "tags": ["a", 7], "file": "../../store.db", "querry": 1 }))
            .unwrap_err();
        let mut told: Vec<String> = violations.iter().map(ToString::to_string).collect();
        told.sort();
        assert_eq!(
            told,
            [
                "file: \"../../store.db\" is not a path inside /work",
                "max_results: 0 is less than the minimum of 1",
                "querry: is not an argument; did you mean `query`?",
                "query: is required (search query)",
                "tags[1]: 7 is not of type \"string\"",
            ]
        );
    }

    /// The first pattern is zod's for e-mail addresses; the others are valid in ECMAScript, too.
    #[test]
    fn patterns_of_other_dialects_are_checked_or_named() {
        const EMAIL: &str =
            r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$";
        let of = |pattern: &str| {
            let schema = json!({ "type": "object", "properties": { "v": { "type": "string", "pattern": pattern } } });
            ArgsSchema::new(schema).unwrap()
        };
        for (pattern, fits, fails) in [
            (EMAIL, "ada@example.com", "a..b@example.com"),
            (r"^(?=.*\d)(?=.*[a-z])[\w\-]{3,}$", "a-1", "abc"),
            (r"^(?!.*(?:foo|bar)).+$", "baz", "xfoo"),
            (r"^(a|b)\1$", "aa", "ab"),
            (r"^[\w\-.]+\/[a-z]$", "a-b/c", "a b/c"),
            (r"(?<=\$)\d+", "$5", "5"),
            (r"^\p{Lu}\p{L}*$", "Ägypten", "ägypten"),
        ] {
            let schema = of(pattern);
            assert!(schema.unchecked().is_empty(), "{pattern}");
            assert!(schema.check(&json!({ "v": fits })).is_ok(), "{pattern}: {fits}");
            assert_eq!(schema.check(&json!({ "v": fails })).unwrap_err()[0].path, "v", "{pattern}: {fails}");
        }
        let schema = of(r"^(?<n>a)(?(n)b|c)[z-a]$");
        assert_eq!(schema.unchecked(), [r"^(?<n>a)(?(n)b|c)[z-a]$"]);
        assert!(schema.check(&json!({ "v": "anything" })).is_ok());
        assert_eq!(schema.check(&json!({ "v": 7 })).unwrap_err().len(), 1, "its type is checked");
        let nested = json!({ "type": "object", "additionalProperties": false, "patternProperties": { "[z-a]": { "type": "integer" } },
            "properties": { "pattern": { "type": "string" }, "list": { "items": { "anyOf": [{ "pattern": "[y-a]" }] } } },
            "default": { "pattern": "[x-a]" } });
        let schema = ArgsSchema::new(nested).unwrap();
        assert_eq!(schema.unchecked().len(), 2, "{:?}", schema.unchecked());
        assert!(schema.check(&json!({ "pattern": "a", "list": ["b"], "zz": 1 })).is_ok());
        assert!(ArgsSchema::new(json!({ "type": 7 })).is_err());
    }

    /// A pattern with exponential time is stopped, and the value is refused.
    #[test]
    fn a_pattern_that_does_not_end_is_stopped() {
        let schema =
            json!({ "type": "object", "properties": { "v": { "type": "string", "pattern": r"^(?!x)(a+)+\1$" } } });
        let checked = ArgsSchema::new(schema).unwrap().check(&json!({ "v": format!("{}!", "a".repeat(200)) }));
        assert_eq!(checked.unwrap_err()[0].path, "v");
    }

    #[test]
    fn a_long_value_does_not_hide_the_rule() {
        let violations = schema().check(&json!({ "query": "x".repeat(1_000) })).unwrap_err();
        assert_eq!(violations[0].to_string(), "query: this value is longer than 5 characters");
    }

    #[test]
    fn words_are_read_as_the_schema_says() {
        let words = [("query", "12"), ("max_results", "7"), ("tags", "a, b"), ("other", "{\"x\":1}")];
        let words = words.map(|(k, v)| (k.to_owned(), v.to_owned()));
        let args = from_words(schema().schema(), &words);
        assert_eq!(args, json!({ "query": "12", "max_results": 7, "tags": ["a", "b"], "other": { "x": 1 } }));
    }
}
