//! Definitions of tools from servers, and their text for models.

use serde_json::{Map, Value, json};

/// Maximum size in bytes of a tool's definition as JSON. It is part of prompts.
pub(super) const MAX_DEFINITION: usize = 32 << 10;

/// Maximum length in characters of a description for models.
const MAX_TOLD: usize = 1_000;

/// The members that identify a tool's definition. A change of one of them makes it another tool.
const PARTS: [&str; 5] = ["title", "description", "inputSchema", "outputSchema", "annotations"];

/// A server's definition of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDefinition {
    pub name: String,
    parts: Map<String, Value>,
}

impl ToolDefinition {
    /// Parses an entry of `tools/list`; `None` if it has no name.
    pub fn read(entry: &Value) -> Option<ToolDefinition> {
        let name = entry.get("name")?.as_str().filter(|name| (1..=256).contains(&name.len()))?;
        let parts = PARTS.iter().filter_map(|part| Some(((*part).to_owned(), entry.get(*part)?.clone())));
        Some(ToolDefinition { name: name.to_owned(), parts: parts.collect() })
    }

    /// Parses a stored definition.
    pub fn parse(name: &str, text: &str) -> Option<ToolDefinition> {
        let Value::Object(parts) = serde_json::from_str(text).ok()? else { return None };
        Some(ToolDefinition { name: name.to_owned(), parts })
    }

    /// Returns the JSON for storage.
    pub fn text(&self) -> String {
        Value::from(self.parts.clone()).to_string()
    }

    /// Returns the definition for people, on several lines.
    pub fn pretty(&self) -> String {
        serde_json::to_string_pretty(&sorted(&Value::from(self.parts.clone()))).unwrap_or_default()
    }

    /// Returns the schema of its arguments. A missing schema accepts any object; keywords without a value are left out.
    pub fn schema(&self) -> Value {
        match self.parts.get("inputSchema") {
            Some(Value::Object(schema)) => schema
                .iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
            _ => json!({ "type": "object" }),
        }
    }

    /// Returns its description in one line, as for models.
    pub fn summary(&self) -> String {
        let said = ["description", "title"].iter().find_map(|part| self.parts.get(*part)?.as_str());
        let line = said.unwrap_or_default().split(|c: char| c.is_whitespace() || c.is_control());
        let line: Vec<&str> = line.filter(|word| !word.is_empty()).collect();
        line.join(" ").chars().take(MAX_TOLD).collect()
    }
}

/// Sorts the keys of objects, so that two definitions can be compared line by line.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().map(|(key, value)| (key.clone(), sorted(value))).collect();
            entries.sort_by(|(a, _), (b, _)| a.cmp(b));
            entries.into_iter().collect::<Map<_, _>>().into()
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_keys_is_no_change_and_a_word_is_one() {
        let read = |text: &str| ToolDefinition::read(&serde_json::from_str(text).unwrap());
        let one = read(r#"{"name":"a","description":"x","inputSchema":{"type":"object","title":"t"},"_meta":{"n":1}}"#)
            .unwrap();
        let same =
            read(r#"{"inputSchema":{"title":"t","type":"object"},"name":"a","description":"x","_meta":{"n":2}}"#)
                .unwrap();
        let other = read(r#"{"name":"a","description":"x ","inputSchema":{"type":"object","title":"t"}}"#).unwrap();
        assert_eq!(one, same);
        assert_ne!(one, other);
        assert_eq!(ToolDefinition::parse("a", &one.text()).unwrap(), one);
        assert_eq!(read(r#"{"name":"","inputSchema":{}}"#), None);
        assert_eq!(read(r#"{"inputSchema":{}}"#), None);
        let any = json!({ "type": "object" });
        for text in [r#"{"name":"a"}"#, r#"{"name":"a","inputSchema":null}"#, r#"{"name":"a","inputSchema":"object"}"#]
        {
            assert_eq!(read(text).unwrap().schema(), any, "{text}");
        }
        let sparse = read(r#"{"name":"a","inputSchema":{"type":"object","properties":null,"required":null}}"#).unwrap();
        assert_eq!(sparse.schema(), any);
    }
}
