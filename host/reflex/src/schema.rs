//! Arguments: their schemas, and parsing their values from text.

use serde_json::{Value, json};

use kiso_plan::prompt::SkillCard;

use crate::spelling::near_names;

/// The purpose of an argument, according to its schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// `format = "file"`.
    File,
    /// `format = "column"`.
    Column,
    /// A list of columns.
    Columns,
    /// `format = "url"`.
    Url,
    /// A list of `format = "aggregate"`: `mean(rain)`.
    Aggregate,
    /// A list of `format = "group"`: `city`, `month(date)`.
    Group,
    /// A list of `format = "condition"`: `rain > 10`.
    Condition,
    /// A list of `format = "order"`: `rain desc`.
    Order,
    /// An integer named `limit` beside one of those lists.
    Limit,
    /// A string named `save`: the file for the result.
    Save,
    /// A string named `title`.
    Title,
    /// A string with `enum`.
    Choice,
    Integer,
    Number,
    Switch,
    Text,
    /// A list or an object that cannot be filled from plain words.
    Other,
}

/// One argument of a skill.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arg<'a> {
    pub name: &'a str,
    pub schema: &'a Value,
    pub required: bool,
    pub used: Use,
}

/// The arguments of a skill, in the order of its schema.
pub(crate) fn args(card: &SkillCard) -> Vec<Arg<'_>> {
    let required = card.args["required"].as_array();
    let Some(properties) = card.args["properties"].as_object() else {
        return Vec::new();
    };
    let mut out: Vec<Arg> = properties
        .iter()
        .map(|(name, schema)| Arg {
            name,
            schema,
            required: required.is_some_and(|all| all.iter().any(|r| r == name.as_str())),
            used: used(name, schema),
        })
        .collect();
    if !out.iter().any(|arg| matches!(arg.used, Use::Aggregate | Use::Condition | Use::Order)) {
        for arg in &mut out {
            if arg.used == Use::Limit {
                arg.used = Use::Integer;
            }
        }
    }
    out
}

fn used(name: &str, schema: &Value) -> Use {
    let format = schema["format"].as_str().or(schema["items"]["format"].as_str());
    match (schema["type"].as_str().unwrap_or("string"), format) {
        ("string", Some("file")) => Use::File,
        ("string", Some("column")) => Use::Column,
        ("string", Some("url" | "uri")) => Use::Url,
        ("array", Some("column")) => Use::Columns,
        ("array", Some("aggregate")) => Use::Aggregate,
        ("array", Some("group")) => Use::Group,
        ("array", Some("condition")) => Use::Condition,
        ("array", Some("order")) => Use::Order,
        ("string", _) if schema["enum"].is_array() => Use::Choice,
        ("string", _) if name == "save" => Use::Save,
        ("string", _) if name == "title" => Use::Title,
        ("string", _) => Use::Text,
        ("integer", _) if name == "limit" => Use::Limit,
        ("integer", _) => Use::Integer,
        ("number", _) => Use::Number,
        ("boolean", _) => Use::Switch,
        _ => Use::Other,
    }
}

/// Returns the first argument with this purpose.
pub(crate) fn first<'a, 'b>(args: &'b [Arg<'a>], used: Use) -> Option<&'b Arg<'a>> {
    args.iter().find(|arg| arg.used == used)
}

/// Returns the words that an `enum` allows.
pub(crate) fn choices(schema: &Value) -> impl Iterator<Item = &str> {
    schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// Parses `text` as a value of this schema, or returns an error without a final dot.
pub(crate) fn value(schema: &Value, text: &str) -> Result<Value, String> {
    match schema["type"].as_str().unwrap_or("string") {
        "integer" => {
            let n: i64 = text.parse().map_err(|_| format!("`{text}` is not a whole number"))?;
            bounded(schema, n as f64)?;
            Ok(json!(n))
        }
        "number" => {
            let n: f64 = text.parse().map_err(|_| format!("`{text}` is not a number"))?;
            bounded(schema, n)?;
            Ok(json!(n))
        }
        "boolean" => match text.to_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => Ok(json!(true)),
            "false" | "no" | "off" | "0" => Ok(json!(false)),
            _ => Err(format!("`{text}` is neither true nor false")),
        },
        "array" => {
            if text.trim_start().starts_with('[') {
                return serde_json::from_str(text).map_err(|e| format!("`{text}` is not a JSON list: {e}"));
            }
            let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
            items.map(|item| value(&schema["items"], item)).collect()
        }
        "object" => serde_json::from_str::<Value>(text)
            .ok()
            .filter(Value::is_object)
            .ok_or_else(|| format!("`{text}` is not a JSON object")),
        _ => {
            let allowed: Vec<&str> = choices(schema).collect();
            if allowed.is_empty() || allowed.contains(&text) {
                return Ok(json!(text));
            }
            match allowed.iter().find(|choice| choice.eq_ignore_ascii_case(text)) {
                Some(choice) => Ok(json!(choice)),
                None => Err(format!("`{text}` is none of {}", allowed.join(", "))),
            }
        }
    }
}

fn bounded(schema: &Value, n: f64) -> Result<(), String> {
    if let Some(least) = schema["minimum"].as_f64().filter(|least| n < *least) {
        return Err(format!("{n} is less than the minimum of {least}"));
    }
    if let Some(most) = schema["maximum"].as_f64().filter(|most| n > *most) {
        return Err(format!("{n} is more than the maximum of {most}"));
    }
    Ok(())
}

/// Returns "data has no argument `fil`; near: `file`; it takes a, b".
pub(crate) fn unknown_arg(card: &SkillCard, name: &str) -> String {
    let names: Vec<&str> = args(card).iter().map(|arg| arg.name).collect();
    let near = match near_names(name, names.iter().copied()).first() {
        Some(near) => format!("near: `{near}`; "),
        None => String::new(),
    };
    format!("{} has no argument `{name}`; {near}it takes {}", card.name, names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values() {
        let int = json!({"type": "integer", "minimum": 1, "maximum": 20});
        assert_eq!(value(&int, "5"), Ok(json!(5)));
        assert_eq!(value(&int, "0"), Err("0 is less than the minimum of 1".to_owned()));
        assert_eq!(value(&int, "x"), Err("`x` is not a whole number".to_owned()));
        let list = json!({"type": "array", "items": {"type": "string"}});
        assert_eq!(value(&list, "a, b"), Ok(json!(["a", "b"])));
        assert_eq!(value(&list, "[\"a,b\"]"), Ok(json!(["a,b"])));
        let choice = json!({"type": "string", "enum": ["line", "bar"]});
        assert_eq!(value(&choice, "Bar"), Ok(json!("bar")));
        assert_eq!(value(&choice, "pie"), Err("`pie` is none of line, bar".to_owned()));
        assert_eq!(value(&json!({"type": "boolean"}), "yes"), Ok(json!(true)));
    }
}
