//! The arguments of a skill in a prompt: the information that a planner needs, in far fewer words than their JSON Schema. Other
//! rules, such as maximum lengths, are checked, and a violation is reported with its path.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// Formats whose name is self-explanatory.
const PLAIN: [&str; 3] = ["file", "column", "url"];

/// Returns the text of `schema`: a line for each argument if `all` of it is shown; otherwise a single line, with explanations
/// where an argument's name is not enough. A schema of another structure is shown unchanged.
pub(super) fn signature(schema: &Value, all: bool) -> String {
    let Some(args) = schema["properties"].as_object() else { return format!("  args: {schema}") };
    if args.is_empty() {
        return String::new();
    }
    let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
    let mut out = String::new();
    let (mut heads, mut explained) = (Vec::new(), Vec::new());
    for (name, arg) in args {
        let mark = if required.iter().any(|of| of == name) { "" } else { "?" };
        let head = format!("{name}{mark}{}", kind(arg));
        let about = arg["description"].as_str().unwrap_or_default();
        if all {
            let about = if about.is_empty() { String::new() } else { format!("; {about}") };
            let _ = write!(out, "\n  {head}{about}");
        } else {
            if is_unusual(arg) && !about.is_empty() {
                explained.push(format!("\n  {name}: {about}"));
            }
            heads.push(head);
        }
    }
    match all {
        true => out.split_off(1.min(out.len())),
        false => format!("  {}{}", heads.join(", "), explained.concat()),
    }
}

/// Returns a type in short notation: ": line|bar = line", ": [column]", ": int 1..500".
fn kind(arg: &Value) -> String {
    let mut text = match of_type(arg) {
        Some(kind) if kind == "text" => String::new(),
        Some(kind) => format!(": {kind}"),
        None => return format!(": {arg}"),
    };
    match (arg["minimum"].as_f64(), arg["maximum"].as_f64()) {
        (Some(least), Some(most)) => _ = write!(text, " {least}..{most}"),
        (Some(least), None) => _ = write!(text, " {least}.."),
        (None, Some(most)) => _ = write!(text, " ..{most}"),
        (None, None) => {}
    }
    if let Some(default) = arg.get("default").filter(|default| **default != Value::Bool(false)) {
        let _ = match default.as_str() {
            Some(default) => write!(text, " = {default}"),
            None => write!(text, " = {default}"),
        };
    }
    text
}

/// Returns the name of a type; `None` if only the schema can express it.
fn of_type(arg: &Value) -> Option<String> {
    let map: &Map<_, _> = arg.as_object()?;
    if let Some(cases) = map.get("enum") {
        let words = cases.as_array()?.iter().map(|case| case.as_str().map_or_else(|| case.to_string(), str::to_owned));
        return Some(words.collect::<Vec<_>>().join("|"));
    }
    let name = match map.get("type")?.as_str()? {
        "string" => map.get("format").and_then(Value::as_str).unwrap_or("text").to_owned(),
        "integer" => "int".to_owned(),
        "number" => "number".to_owned(),
        "boolean" => "bool".to_owned(),
        "array" => format!("[{}]", of_type(map.get("items")?)?),
        _ => return None,
    };
    Some(name)
}

/// Returns whether a text has a special format that its name does not express.
fn is_unusual(arg: &Value) -> bool {
    let item = if arg["items"].is_object() { &arg["items"] } else { arg };
    item["format"].as_str().is_some_and(|format| !PLAIN.contains(&format))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_schema_becomes_what_a_person_would_write() {
        let schema = json!({
            "type": "object",
            "properties": {
                "file": { "type": "string", "format": "file", "description": "the table to read" },
                "kind": { "type": "string", "enum": ["line", "bar"], "default": "line" },
                "where": { "type": "array", "items": { "type": "string", "format": "condition" }, "description": "temp > 20" },
                "title": { "type": "string", "maxLength": 200 },
                "bins": { "type": "integer", "minimum": 1, "maximum": 500 },
                "ratio": { "type": "number", "minimum": 0.5 },
                "deep": { "type": "object", "properties": { "a": { "type": "string" } } },
                "describe": { "type": "boolean", "default": false },
            },
            "required": ["file"],
        });
        assert_eq!(
            signature(&schema, false),
            "  file: file, kind?: line|bar = line, where?: [condition], title?, bins?: int 1..500, ratio?: number 0.5.., \
             deep?: {\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"}}}, describe?: bool\n  where: temp > 20"
        );
        let all = signature(&schema, true);
        assert_eq!(all.lines().count(), 8, "{all}");
        assert!(all.starts_with("  file: file; the table to read\n  kind?: line|bar = line\n"), "{all}");
        // A schema from another tool.
        assert_eq!(signature(&json!(true), true), "  args: true");
        assert_eq!(signature(&json!({ "properties": {} }), true), "");
    }
}
