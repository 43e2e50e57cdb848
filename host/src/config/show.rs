//! The configuration that is in force, as TOML and as JSON.

use super::fields::is_name;
use super::key::group;
use super::{Config, KEYS, Key, Kind, NAMED, SECTIONS};
use crate::role::Role;
use serde_json::{Value, json};
use std::fmt::Write;

impl Config {
    /// Every value in force, by the names of tables and keys.
    pub(super) fn values(&self) -> Value {
        serde_json::to_value(self).expect("all keys are strings")
    }

    /// Every key with the value that is in force, and every table that the file has: a `config.toml` that means the same.
    /// What differs from the default says so, and a variable of the environment whether it `is_set`.
    pub fn effective(&self, is_set: impl Fn(&str) -> bool) -> String {
        let (mut out, values) = (String::new(), self.values());
        for section in SECTIONS {
            if !section.name.is_empty() {
                let _ = write!(out, "\n[{}]\n", section.name);
            }
            for key in KEYS.iter().filter(|key| key.section == section.name) {
                let (value, default) = (toml_value(key.value_in(&values)), key.default_value());
                let note = if value == default { String::new() } else { format!(" # default: {default}") };
                let _ = writeln!(out, "{} = {value}{note}", key.name);
            }
        }
        for table in NAMED {
            let rows = values[table.field()].as_array().map_or(&[][..], Vec::as_slice);
            if table.is_of_lines() && !rows.is_empty() {
                let _ = write!(out, "\n{}\n", table.heading);
            }
            for row in rows {
                let id = row[table.id].as_str().unwrap_or_default();
                if table.is_of_lines() {
                    let _ = writeln!(out, "{id} = {}", toml_value(&row["description"]));
                    continue;
                }
                let id = if is_name(id) { id.to_owned() } else { text(id) };
                let _ = write!(out, "\n[{}.{id}]\n", table.name);
                for key in table.keys {
                    let value = match (key.kind, &row[key.name]) {
                        (_, Value::Null) => continue,
                        (_, Value::String(none)) if none.is_empty() => continue,
                        (Kind::Dollars(..), price) => dollars(price.as_u64().unwrap_or_default()),
                        (_, value) => toml_value(value),
                    };
                    let note = variable(key, row).map_or("", |name| if is_set(name) { " # set" } else { " # not set" });
                    let _ = writeln!(out, "{} = {value}{note}", key.name);
                }
            }
        }
        out
    }

    /// The same as one JSON object. `is_set` says whether an environment variable has a value; the value itself never
    /// gets here.
    pub fn to_json(&self, is_set: impl Fn(&str) -> bool) -> Value {
        let mut values = self.values();
        let in_force: serde_json::Map<_, _> = Role::ALL
            .map(Role::name)
            .into_iter()
            .map(|role| {
                let name =
                    |string: &str| self.named(string).map_or_else(|_| string.to_owned(), |named| named.to_string());
                let model = name(self.model_of(role));
                let fallbacks: Vec<_> = self.fallbacks_of(role).iter().map(|string| name(string)).collect();
                (role.to_owned(), json!({ "model": model, "fallbacks": fallbacks }))
            })
            .collect();
        values["roles"] = in_force.into();
        for table in NAMED.iter().filter(|table| !table.is_of_lines()) {
            for row in values[table.field()].as_array_mut().into_iter().flatten() {
                for key in table.keys {
                    let set = variable(key, row).map(&is_set);
                    let Some(fields) = row.as_object_mut() else { continue };
                    let value = fields.remove(key.name).unwrap_or_default();
                    let name = key.name.to_owned();
                    match key.kind {
                        Kind::Dollars(..) => fields.insert(name + "_micros", value),
                        Kind::Variable => {
                            fields.insert(name.replace("_env", "_is_set"), set.into());
                            fields.insert(name, value)
                        }
                        _ => fields.insert(name, value),
                    };
                }
            }
        }
        values
    }
}

/// The variable of the environment that a key of a row names, if it names one.
fn variable<'a>(key: &Key, row: &'a Value) -> Option<&'a str> {
    row[key.name].as_str().filter(|_| matches!(key.kind, Kind::Variable))
}

fn text(text: &str) -> String {
    toml::Value::from(text).to_string()
}

fn toml_value(value: &Value) -> String {
    match value {
        Value::Number(number) => number.as_u64().map_or_else(|| number.to_string(), group),
        Value::String(string) => text(string),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(toml_value).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(fields) => {
            let fields: Vec<_> = fields.iter().map(|(name, value)| format!("{name} = {}", toml_value(value))).collect();
            if fields.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", fields.join(", ")) }
        }
        Value::Null => "\"\"".to_owned(),
        other => other.to_string(),
    }
}

/// 250000 millionths as "0.25".
fn dollars(micros: u64) -> String {
    let digits = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    let short = digits.trim_end_matches('0');
    if short.ends_with('.') { format!("{short}0") } else { short.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: &str = r#"
model = "gpt"
[models]
worker = "local:w\u00fc"
[fallbacks]
all = ["reflex"]
[limits]
max_tasks = 7
[routing]
fast_path = false
[exec.mounts]
"/books" = "/srv/b\"ooks"
[providers.openai]
kind = "openai"
base_url = "https://api.openai.com/v1"
key_env = "OPENAI_API_KEY"
[providers.local]
kind = "anthropic"
base_url = "http://localhost/v1"
max_response_mib = 3
[model_settings.gpt]
context_budget = 200_000
input_price = 0.0375
output_price = 2
[pills.a]
template = "one\n{input} \"two\""
categories = ["web"]
effort = "low"
description = "d"
[webhooks.a]
url = "https://example.org/?a=b"
sessions = ["x-*"]
retry_max_s = 50_000
[webhooks.b]
url_env = "HOOK_URL"
secret_env = "HOOK_KEY"
events = ["run"]
allow_private = true
"#;

    #[test]
    fn what_is_shown_means_the_same() {
        for text in ["", FULL] {
            let config = Config::parse(text.as_bytes()).unwrap();
            let shown = config.effective(|_| true);
            assert_eq!(Config::parse(shown.as_bytes()).unwrap(), config, "{shown}");
        }
        let shown = Config::parse(FULL.as_bytes()).unwrap().effective(|_| false);
        assert!(shown.contains("max_tasks = 7 # default: 50\n"), "{shown}");
        assert!(shown.contains("key_env = \"OPENAI_API_KEY\" # not set\n"), "{shown}");
        assert!(shown.contains("max_tokens_per_run = 500_000\n"), "{shown}");
        assert!(shown.contains("input_price = 0.0375\noutput_price = 2.0\n"), "{shown}");
    }

    #[test]
    fn json_names_the_variable_of_a_key_and_whether_it_is_set() {
        let config = Config::parse(FULL.as_bytes()).unwrap();
        let json = config.to_json(|variable| variable == "OPENAI_API_KEY");
        assert_eq!(json["providers"][0]["key_env"], "OPENAI_API_KEY");
        assert_eq!(
            (&json["providers"][0]["key_is_set"], &json["providers"][1]["key_is_set"]),
            (&json!(true), &json!(null))
        );
        assert_eq!(config.to_json(|_| false)["providers"][0]["key_is_set"], json!(false));
        assert_eq!(json["roles"]["planner"], json!({ "model": "openai:gpt", "fallbacks": ["reflex"] }));
        assert_eq!((&json["limits"]["max_tasks"], &json["routing"]["fast_path"]), (&json!(7), &json!(false)));
        assert_eq!(json["models"]["planner"], Value::Null);
    }
}
