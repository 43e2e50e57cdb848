//! Whether a JSON Schema meets OpenAI's rules for strict schemas. Only then may `strict` be true, which makes the provider
//! enforce the schema exactly; otherwise it refuses the request.

use serde_json::Value;

/// Keywords that a strict schema may contain, besides those that are checked further.
const KNOWN: [&str; 7] = ["type", "description", "enum", "const", "title", "$ref", "$schema"];

/// Whether every object is closed, every property required, and every keyword known to be supported.
pub(super) fn fits(schema: &Value) -> bool {
    schema["type"] == "object" && part_fits(schema)
}

fn part_fits(schema: &Value) -> bool {
    let Some(fields) = schema.as_object() else { return false };
    let each = |value: &Value| match value {
        Value::Object(parts) => parts.values().all(part_fits),
        Value::Array(parts) => parts.iter().all(part_fits),
        _ => false,
    };
    let known = fields.iter().all(|(keyword, value)| match keyword.as_str() {
        "properties" | "$defs" | "anyOf" => each(value),
        "items" => part_fits(value),
        "additionalProperties" | "required" => true,
        keyword => KNOWN.contains(&keyword),
    });
    let object = schema["type"] == "object" || fields.contains_key("properties");
    known && (!object || is_closed(schema))
}

fn is_closed(schema: &Value) -> bool {
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let properties = schema["properties"].as_object();
    schema["additionalProperties"] == Value::Bool(false)
        && properties.is_some_and(|properties| properties.keys().all(|name| required.contains(&name.as_str())))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_closed_schemas_are_strict() {
        let closed = |properties: Value, required: Value| json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false });
        let inner = closed(json!({ "b": { "enum": ["x", null] } }), json!(["b"]));
        let text = json!({ "type": "string", "description": "d" });
        for (schema, strict) in [
            (closed(json!({ "a": text }), json!(["a"])), true),
            (closed(json!({ "a": { "type": "array", "items": inner } }), json!(["a"])), true),
            (closed(json!({ "a": { "anyOf": [text, { "type": "null" }] } }), json!(["a"])), true),
            (closed(json!({}), json!([])), true),
            (closed(json!({ "a": text }), json!([])), false),
            (closed(json!({ "a": { "type": "string", "maxLength": 3 } }), json!(["a"])), false),
            (closed(json!({ "a": { "type": "object" } }), json!(["a"])), false),
            (json!({ "type": "object", "properties": { "a": text }, "required": ["a"] }), false),
            (json!({ "type": "array", "items": text }), false),
            (json!(true), false),
        ] {
            assert_eq!(fits(&schema), strict, "{schema}");
        }
    }
}
