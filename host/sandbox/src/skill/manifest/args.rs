//! `[kiso.skill.args]` as a JSON Schema (draft 2020-12).

use serde::Deserialize;
use serde_json::{Map, Value, json};
use toml::Spanned;

/// Arguments by name. A list, because people see them in the order of the file.
#[derive(Debug, Clone, Default)]
pub struct Args(Vec<(Spanned<String>, Arg)>);

impl<'de> Deserialize<'de> for Args {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> serde::de::Visitor<'de> for Entries {
            type Value = Args;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a table of arguments")
            }
            fn visit_map<M: serde::de::MapAccess<'de>>(self, mut map: M) -> Result<Args, M::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Args(entries))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

/// One argument: each key of the manifest becomes the keyword of JSON Schema that enforces it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arg {
    #[serde(rename = "type")]
    kind: Spanned<String>,
    #[serde(default)]
    required: bool,
    default: Option<Spanned<toml::Value>>,
    description: Option<String>,
    min_length: Option<u64>,
    max_length: Option<u64>,
    pattern: Option<Spanned<String>>,
    #[serde(rename = "enum")]
    one_of: Option<Vec<toml::Value>>,
    format: Option<Spanned<String>>,
    minimum: Option<toml::Value>,
    maximum: Option<toml::Value>,
    items: Option<Box<Arg>>,
    min_items: Option<u64>,
    max_items: Option<u64>,
}

/// The meanings of an argument beyond its type. The host checks `file`: a path inside `/work`. The others tell the reflex model
/// and the page how to fill it in.
const FORMATS: [&str; 7] = ["file", "column", "url", "condition", "aggregate", "group", "order"];

/// Arguments, at most: every planner's prompt contains each of them.
const MAX_ARGS: usize = 64;

/// Bytes of an argument's description, which prompts contain, too.
const MAX_DESCRIPTION: usize = 1_000;

/// Compiles a schema. Strangers write the patterns: their engine takes linear time, and compiled patterns take little memory.
pub fn validator(schema: &Value) -> Result<jsonschema::Validator, jsonschema::ValidationError<'static>> {
    let patterns = jsonschema::PatternOptions::regex().size_limit(64 << 10);
    jsonschema::draft202012::options().with_pattern_options(patterns).build(schema)
}

/// Steps of backtracking: enough for an e-mail address, and some milliseconds.
const MAX_BACKTRACKS: usize = 100_000;

/// Compiles a schema of a stranger whose patterns may contain lookaheads or backreferences, as in ECMAScript. The engine takes
/// linear time for the patterns that [`validator`] can read, and is stopped after a limit for others.
pub(in crate::skill) fn foreign_validator(
    schema: &Value,
) -> Result<jsonschema::Validator, jsonschema::ValidationError<'static>> {
    let patterns = jsonschema::PatternOptions::fancy_regex().backtrack_limit(MAX_BACKTRACKS).size_limit(512 << 10);
    jsonschema::draft202012::options().with_pattern_options(patterns).build(schema)
}

/// Removes patterns that neither engine can read from a schema, and adds them to the list.
pub(in crate::skill) fn without_unreadable_patterns(schema: &mut Value, left_out: &mut Vec<String>) {
    let is_readable = |pattern: &str| foreign_validator(&json!({ "pattern": pattern })).is_ok();
    let Value::Object(schema) = schema else { return };
    if let Some(pattern) = schema.get("pattern").and_then(Value::as_str).filter(|pattern| !is_readable(pattern)) {
        left_out.push(pattern.to_owned());
        schema.remove("pattern");
    }
    if let Some(Value::Object(of_names)) = schema.get_mut("patternProperties") {
        let (known, unknown): (Map<_, _>, Map<_, _>) =
            std::mem::take(of_names).into_iter().partition(|(pattern, _)| is_readable(pattern));
        *of_names = known;
        if !unknown.is_empty() {
            // Without the unreadable patterns, these keywords would also apply to the names that those allow.
            schema.remove("additionalProperties");
            schema.remove("unevaluatedProperties");
        }
        left_out.extend(unknown.into_iter().map(|(pattern, _)| pattern));
    }
    for (keyword, value) in schema.iter_mut() {
        match (keyword.as_str(), value) {
            // These contain values, not schemas.
            ("default" | "enum" | "const" | "examples", _) => {}
            (
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas",
                Value::Object(named),
            ) => {
                named.values_mut().for_each(|schema| without_unreadable_patterns(schema, left_out));
            }
            (_, Value::Array(several)) => {
                several.iter_mut().for_each(|schema| without_unreadable_patterns(schema, left_out));
            }
            (_, one) => without_unreadable_patterns(one, left_out),
        }
    }
}

/// An invalid argument, at a byte of the manifest.
#[derive(Debug)]
pub struct ArgError {
    pub offset: usize,
    pub message: String,
}

/// Whether to try the rules of arguments when they are read. Compiling them takes long for a process that runs one command, and
/// the tests have tried those that are part of kiso.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rules {
    Compiled,
    Known,
}

/// The schema of a call's arguments. Undeclared arguments are refused.
pub fn args_schema(args: &Args, rules: Rules) -> Result<Value, ArgError> {
    if args.0.len() > MAX_ARGS {
        let message = format!("a skill takes at most {MAX_ARGS} arguments");
        return Err(ArgError { offset: args.0[MAX_ARGS].0.span().start, message });
    }
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for (name, arg) in &args.0 {
        let offset = name.span().start;
        let fits = name.get_ref().chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        if name.get_ref().is_empty() || name.get_ref().len() > 64 || !fits {
            let message =
                format!("`{}` is not a name for an argument: 1 to 64 letters, digits, _ and -", name.get_ref());
            return Err(ArgError { offset, message });
        }
        if arg.required && arg.default.is_some() {
            let message = format!("`{}` is required and has a default: only one of the two can hold", name.get_ref());
            return Err(ArgError { offset, message });
        }
        let (schema, validator) = schema(name.get_ref(), arg, rules)?;
        if let Some((default, validator)) = arg.default.as_ref().zip(validator) {
            let value = json_of(default.get_ref());
            if let Err(error) = validator.validate(&value) {
                let message = format!("the default of `{}` is not allowed by its own rules: {error}", name.get_ref());
                return Err(ArgError { offset: default.span().start, message });
            }
        }
        if arg.required {
            required.push(json!(name.get_ref()));
        }
        properties.insert(name.get_ref().clone(), schema);
    }
    Ok(json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    }))
}

fn schema(name: &str, arg: &Arg, rules: Rules) -> Result<(Value, Option<jsonschema::Validator>), ArgError> {
    let offset = arg.kind.span().start;
    if let Some(bytes) = arg.description.as_ref().map(String::len).filter(|bytes| *bytes > MAX_DESCRIPTION) {
        let message = format!("the description of `{name}` has {bytes} bytes; at most {MAX_DESCRIPTION} are allowed");
        return Err(ArgError { offset, message });
    }
    let kind = match arg.kind.get_ref().as_str() {
        "string" => "string",
        "int" => "integer",
        "number" => "number",
        "bool" => "boolean",
        "list" => "array",
        "object" => "object",
        other => {
            let message =
                format!("`{other}` is not a type of an argument; there are string, int, number, bool, list and object");
            return Err(ArgError { offset, message });
        }
    };
    let mut out = Map::from_iter([("type".to_owned(), json!(kind))]);
    // A keyword that does not fit the type would never refuse anything, so it is an error.
    let mut put = |keyword: &str, key: &str, on: &[&str], value: Option<Value>| -> Result<(), ArgError> {
        let Some(value) = value else { return Ok(()) };
        if !on.contains(&kind) {
            let message = format!("`{key}` says nothing about `{name}`, which is of type {}", arg.kind.get_ref());
            return Err(ArgError { offset, message });
        }
        out.insert(keyword.to_owned(), value);
        Ok(())
    };
    let numbers = ["integer", "number"];
    put("description", "description", &[kind], arg.description.as_ref().map(|d| json!(d)))?;
    put("default", "default", &[kind], arg.default.as_ref().map(|d| json_of(d.get_ref())))?;
    put("minLength", "min_length", &["string"], arg.min_length.map(|n| json!(n)))?;
    put("maxLength", "max_length", &["string"], arg.max_length.map(|n| json!(n)))?;
    put("pattern", "pattern", &["string"], arg.pattern.as_ref().map(|p| json!(p.get_ref())))?;
    put("enum", "enum", &[kind], arg.one_of.as_ref().map(|v| v.iter().map(json_of).collect()))?;
    put("format", "format", &["string", "array"], arg.format.as_ref().map(|f| json!(f.get_ref())))?;
    put("minimum", "minimum", &numbers, arg.minimum.as_ref().map(json_of))?;
    put("maximum", "maximum", &numbers, arg.maximum.as_ref().map(json_of))?;
    put("minItems", "min_items", &["array"], arg.min_items.map(|n| json!(n)))?;
    put("maxItems", "max_items", &["array"], arg.max_items.map(|n| json!(n)))?;
    let items = arg.items.as_ref().map(|items| schema(name, items, rules)).transpose()?.map(|(items, _)| items);
    put("items", "items", &["array"], items)?;
    if let Some(format) = &arg.format
        && !FORMATS.contains(&format.get_ref().as_str())
    {
        let message = format!("`{}` is not a format; there are {}", format.get_ref(), FORMATS.join(", "));
        return Err(ArgError { offset: format.span().start, message });
    }
    let schema = Value::Object(out);
    if rules == Rules::Known {
        return Ok((schema, None));
    }
    match validator(&schema) {
        Ok(validator) => Ok((schema, Some(validator))),
        Err(error) => {
            let offset = arg.pattern.as_ref().map_or(offset, |p| p.span().start);
            Err(ArgError { offset, message: format!("the rules of `{name}` cannot be checked: {error}") })
        }
    }
}

fn json_of(value: &toml::Value) -> Value {
    match value {
        toml::Value::String(s) => json!(s),
        toml::Value::Integer(i) => json!(i),
        toml::Value::Float(f) => json!(f),
        toml::Value::Boolean(b) => json!(b),
        toml::Value::Datetime(d) => json!(d.to_string()),
        toml::Value::Array(a) => a.iter().map(json_of).collect(),
        toml::Value::Table(t) => Value::Object(t.iter().map(|(k, v)| (k.clone(), json_of(v))).collect()),
    }
}
