//! JSON Schemas for providers: reduced to keywords that all of them know, and to lengths for which there is room.

use kiso_base::role::TOO_MANY_RULES;
use serde_json::{Map, Value, json};

/// Keywords that are kept, besides those that are handled separately. Explanations are left out, because the prompt contains
/// them.
const KEPT: [&str; 10] =
    ["type", "enum", "const", "required", "minItems", "maxItems", "minLength", "maxLength", "minimum", "maximum"];

/// Keywords that define the form itself. Other unknown keywords are left out, because the answer is validated with the full
/// schema.
const ELSEWHERE: [&str; 5] = ["$ref", "$dynamicRef", "allOf", "if", "patternProperties"];

/// Keywords for lengths: llama.cpp makes a rule for each character or entry, and refuses a schema with [`TOO_MANY_RULES`].
const LENGTHS: [&str; 4] = ["minItems", "maxItems", "minLength", "maxLength"];

/// The default and maximum length of a text in characters.
const MOST: u64 = 1_200;

/// The default number of entries of a list.
const ENTRIES: u64 = 12;

/// A maximum that legitimate numbers do not reach.
const GENEROUS: i64 = 1_000;

/// The minimum lengths of a text and of a list, however little room there is.
const LEAST: (u64, u64) = (40, 1);

/// Characters per token, at least, in the output of small models.
const CHARACTERS: u64 = 2;

/// Returns `schema` reduced to what servers make grammars of. Every valid value stays valid, except for properties that the
/// schema does not name. `None` if its form is defined in a way that servers do not support. Lengths that are too large for them
/// are left out.
pub fn portable(schema: &Value) -> Option<Value> {
    let mut kept = Map::new();
    for (keyword, value) in schema.as_object()? {
        let value = match keyword.as_str() {
            "properties" => {
                let parts = value.as_object()?.iter().map(|(name, part)| Some((name.clone(), portable(part)?)));
                Value::Object(parts.collect::<Option<_>>()?)
            }
            "anyOf" | "oneOf" => value.as_array()?.iter().map(portable).collect::<Option<_>>()?,
            "items" => portable(value)?,
            keyword if LENGTHS.contains(&keyword) && value.as_u64().is_none_or(|n| n >= TOO_MANY_RULES as u64) => {
                continue;
            }
            keyword if KEPT.contains(&keyword) => value.clone(),
            keyword if ELSEWHERE.contains(&keyword) => return None,
            _ => continue,
        };
        kept.insert(keyword.clone(), value);
    }
    if kept.contains_key("properties") {
        kept.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    Some(Value::Object(kept))
}

/// Returns the schema of a tool's arguments in the form that models see: without lengths, formats and defaults. The host checks
/// and fills these in when the tool is called, and they would take too much of each prompt.
pub fn shown(schema: &Value) -> Value {
    let Some(fields) = schema.as_object() else { return schema.clone() };
    let is_described = fields.contains_key("description");
    let kept = fields.iter().filter_map(|(keyword, value)| {
        let value = match (keyword.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                Value::Object(properties.iter().map(|(name, of)| (name.clone(), shown(of))).collect())
            }
            ("items", items) => shown(items),
            ("anyOf" | "oneOf" | "allOf", Value::Array(forms)) => forms.iter().map(shown).collect(),
            ("minLength" | "maxLength" | "minItems" | "maxItems" | "uniqueItems" | "default", _) => return None,
            ("additionalProperties", Value::Bool(false)) => return None,
            ("pattern" | "format", _) if is_described => return None,
            ("required", Value::Array(names)) if names.is_empty() => return None,
            ("minimum", least) if least.as_i64().is_some_and(|least| (0..=1).contains(&least)) => return None,
            ("maximum", most) if most.as_i64().is_some_and(|most| most >= GENEROUS) => return None,
            _ => value.clone(),
        };
        Some((keyword.clone(), value))
    });
    Value::Object(kept.collect())
}

/// Returns `schema` with a maximum length for every text and list, so that the longest answer fits into `tokens`. So an answer
/// ends before its limit, whatever the model is. An object with unspecified contents cannot be limited.
pub fn bounded(schema: &Value, tokens: u32) -> Value {
    let room = u64::from(tokens) * CHARACTERS;
    let mut percent = 100;
    while longest(schema, percent) > room && percent > 5 {
        percent = percent * 4 / 5;
    }
    shortened(schema, percent)
}

fn shortened(schema: &Value, percent: u64) -> Value {
    let Some(fields) = schema.as_object() else { return schema.clone() };
    let each = |value: &Value| match value {
        Value::Object(parts) => {
            Value::Object(parts.iter().map(|(name, part)| (name.clone(), shortened(part, percent))).collect())
        }
        Value::Array(parts) => parts.iter().map(|part| shortened(part, percent)).collect(),
        other => other.clone(),
    };
    let mut short: Map<String, Value> = Map::new();
    for (keyword, value) in fields {
        let value = match keyword.as_str() {
            "properties" | "anyOf" | "oneOf" => each(value),
            "items" => shortened(value, percent),
            _ => value.clone(),
        };
        short.insert(keyword.clone(), value);
    }
    if let Some((keyword, most)) = length(fields, percent) {
        short.insert(keyword.to_owned(), json!(most));
    }
    Value::Object(short)
}

/// Returns the keyword that limits a text or a list, and its maximum length at this percentage.
fn length(fields: &Map<String, Value>, percent: u64) -> Option<(&'static str, u64)> {
    let (most, least, otherwise, floor) = match fields.get("type").and_then(Value::as_str)? {
        "string" if fields.contains_key("enum") || fields.contains_key("const") => return None,
        "string" => ("maxLength", "minLength", MOST, LEAST.0),
        "array" => ("maxItems", "minItems", ENTRIES, LEAST.1),
        _ => return None,
    };
    let said = fields.get(most).and_then(Value::as_u64).unwrap_or(otherwise).min(otherwise);
    let floor = fields.get(least).and_then(Value::as_u64).unwrap_or(0).max(floor.min(said));
    Some((most, (said * percent / 100).max(floor)))
}

/// Returns the characters of the longest answer at this percentage, as far as the schema limits it.
fn longest(schema: &Value, percent: u64) -> u64 {
    let longest_of = |parts: &Value| parts.as_array().into_iter().flatten().map(|part| longest(part, percent)).max();
    let written =
        |parts: &Value| parts.as_array().into_iter().flatten().map(|part| part.to_string().len() as u64).max();
    if let Some(most) = longest_of(&schema["anyOf"]).or_else(|| longest_of(&schema["oneOf"])) {
        return most;
    }
    if let Some(most) = written(&schema["enum"]) {
        return most;
    }
    let bound = schema.as_object().and_then(|fields| length(fields, percent)).map_or(0, |(_, most)| most);
    match schema["type"].as_str() {
        Some("string") => bound + 2,
        Some("array") => bound * (longest(&schema["items"], percent) + 2) + 2,
        Some("object") => {
            let parts = schema["properties"].as_object().into_iter().flatten();
            parts.map(|(name, part)| name.len() as u64 + 6 + longest(part, percent)).sum::<u64>() + 2
        }
        _ => 20,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_is_shown_without_what_is_checked_anyway() {
        let text = json!({ "type": "string", "minLength": 1, "maxLength": 9, "pattern": "^a", "format": "file", "description": "a file" });
        let number = json!({ "type": "integer", "minimum": 0, "maximum": 100, "default": 5 });
        let list = json!({ "type": "array", "items": { "type": "string", "maxLength": 9 }, "maxItems": 2 });
        let schema = json!({
            "type": "object",
            "properties": { "format": text, "default": number, "kinds": list, "code": { "type": "string", "pattern": "^b" } },
            "required": ["format"],
            "additionalProperties": false,
        });
        let shown = json!({
            "type": "object",
            "properties": {
                "format": { "type": "string", "description": "a file" },
                "default": { "type": "integer", "maximum": 100 },
                "kinds": { "type": "array", "items": { "type": "string" } },
                "code": { "type": "string", "pattern": "^b" },
            },
            "required": ["format"],
        });
        assert_eq!(super::shown(&schema), shown);
    }

    #[test]
    fn what_servers_cannot_make_a_grammar_of_is_not_sent() {
        let text = json!({ "type": "string", "description": "d", "maxLength": 9 });
        let known = json!({ "type": "object", "title": "t", "properties": { "description": text }, "required": ["description"] });
        let kept = json!({ "type": "string", "maxLength": 9 });
        let expected = json!({
            "type": "object", "properties": { "description": kept }, "required": ["description"], "additionalProperties": false,
        });
        assert_eq!(portable(&known), Some(expected));
        assert_eq!(
            portable(&json!({ "type": "array", "items": { "anyOf": [kept] } })).unwrap()["items"]["anyOf"][0],
            kept
        );
        assert_eq!(portable(&json!({ "type": "string", "pattern": "^a$" })), Some(json!({ "type": "string" })));
        for unknown in [json!({ "allOf": [{ "type": "string" }] }), json!({ "$ref": "#/x" }), json!(true)] {
            assert_eq!(portable(&unknown), None);
            assert_eq!(portable(&json!({ "type": "object", "properties": { "a": unknown } })), None);
        }
    }

    #[test]
    fn the_longest_answer_has_room() {
        let task =
            json!({ "type": "object", "properties": { "type": { "enum": ["exec"] }, "detail": { "type": "string" } } });
        let tasks = json!({ "type": "array", "items": { "anyOf": [task, { "type": "string", "maxLength": 90 }] }, "maxItems": 10 });
        let schema = json!({ "type": "object", "properties": { "tasks": tasks, "done": { "type": "boolean" } } });
        let mut before = u64::MAX;
        for tokens in [8_000, 4_000, 1_000, 500, 200] {
            let bounded = bounded(&schema, tokens);
            let most = longest(&bounded, 100);
            assert!(most <= u64::from(tokens) * CHARACTERS && most <= before, "{tokens}: {bounded}");
            before = most;
        }
        let wide = bounded(&schema, 100_000);
        assert_eq!(wide["properties"]["tasks"]["maxItems"], 10);
        assert_eq!(wide["properties"]["tasks"]["items"]["anyOf"][0]["properties"]["detail"]["maxLength"], MOST);
        assert_eq!(wide["properties"]["tasks"]["items"]["anyOf"][1]["maxLength"], 90);
        let narrow = bounded(&json!({ "type": "array", "items": { "type": "string", "minLength": 60 } }), 1);
        assert_eq!((&narrow["maxItems"], &narrow["items"]["maxLength"]), (&json!(1), &json!(60)));
    }
}
