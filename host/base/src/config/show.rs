//! The effective configuration, as TOML and as JSON.

use super::fields::is_name;
use super::key::group;
use super::{Config, KEYS, Key, Kind, ModelName, NAMED, SECTIONS};
use crate::role::Role;
use serde_json::{Value, json};
use std::fmt::Write;

impl Config {
    /// Returns every effective value, by the names of tables and keys.
    #[expect(clippy::expect_used, reason = "all keys are strings")]
    pub(super) fn values(&self) -> Value {
        serde_json::to_value(self).expect("all keys are strings")
    }

    /// Returns every key with its effective value, and every table of the file: an equivalent `config.toml`. Values that differ
    /// from the default are marked, and so are environment variables for which `is_set` is true.
    pub fn effective(&self, is_set: impl Fn(&str) -> bool) -> String {
        let (mut out, values) = (String::new(), self.values());
        for section in SECTIONS {
            if !section.name.is_empty() {
                let _ = write!(out, "\n[{}]\n", section.name);
            }
            for key in KEYS.iter().filter(|key| key.section == section.name) {
                let (value, default) = match (key.kind, key.value_in(&values)) {
                    (Kind::Scaled(..), Value::Null) => {
                        let value = group(self.scaled(key).unwrap_or_default());
                        let _ = writeln!(out, "# {} = {value} # by the context of the actor's model", key.name);
                        continue;
                    }
                    (_, value) => (toml_value(value), key.default_value()),
                };
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
                let _ = match table.is_list() {
                    true => write!(out, "\n{}\n", table.heading),
                    false if is_name(id) => write!(out, "\n[{}.{id}]\n", table.name),
                    false => write!(out, "\n[{}.{}]\n", table.name, text(id)),
                };
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
        let used = Role::ALL.into_iter().flat_map(|role| self.chain_of(role));
        let mut told: Vec<String> = Vec::new();
        for model in used.filter(ModelName::is_remote) {
            let (context, answer) = (group(self.context_of(model)), group(self.max_output_of(model)));
            let line = format!("# {model}: {context} tokens of prompt and answer, {answer} of an answer");
            if !told.contains(&line) {
                told.push(line);
            }
        }
        if !told.is_empty() {
            let _ = write!(out, "\n# What models are given\n{}\n", told.join("\n"));
        }
        out
    }

    /// Returns the value of a key that is derived from the context size of the actor's model.
    fn scaled(&self, key: &Key) -> Option<u64> {
        let context = self.context_of_role(Role::Actor);
        match key.name {
            "max_tool_call_rounds" => Some(self.rounds_at(context)),
            "tool_output_limit_tokens" => Some(self.result_tokens_at(context)),
            "sliding_window" => Some(self.window_at(context)),
            _ => None,
        }
    }

    /// Returns the same as one JSON object. `is_set` says whether an environment variable has a value; the value itself is never
    /// read.
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
                let mut told = json!({ "model": model, "fallbacks": fallbacks });
                if let Ok(first) = self.named(self.model_of(role))
                    && first.is_remote()
                {
                    told["context_budget"] = self.context_of(first).into();
                    told["max_output_tokens"] = self.max_output_of(first).into();
                }
                (role.to_owned(), told)
            })
            .collect();
        values["roles"] = in_force.into();
        for key in KEYS.iter().filter(|key| matches!(key.kind, Kind::Scaled(..))) {
            values[key.section][key.name] = self.scaled(key).into();
        }
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

/// Returns the environment variable that a key of a row names, if any.
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

/// Formats 250000 millionths as "0.25".
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
    fn what_follows_from_the_context_is_shown() {
        let large = Config::parse(FULL.as_bytes()).unwrap();
        let shown = large.effective(|_| false);
        for line in [
            "\n# max_tool_call_rounds = 50 # by the context of the actor's model\n",
            "\n# tool_output_limit_tokens = 8000 # by the context of the actor's model\n",
            "\n# openai:gpt: 200_000 tokens of prompt and answer, 16_000 of an answer\n",
            "\n# local:w\u{fc}: 16_000 tokens of prompt and answer, 4000 of an answer\n",
        ] {
            assert!(shown.contains(line), "{line}{shown}");
        }
        let json = large.to_json(|_| false);
        let limits = (&json["limits"]["max_tool_call_rounds"], &json["limits"]["tool_output_limit_tokens"]);
        assert_eq!(limits, (&json!(50), &json!(8_000)));
        let actor = &json["roles"]["actor"];
        assert_eq!((&actor["context_budget"], &actor["max_output_tokens"]), (&json!(200_000), &json!(16_000)));
        let set = Config::parse(FULL.replace("max_tasks = 7", "max_tool_call_rounds = 7").as_bytes()).unwrap();
        let shown = set.effective(|_| false);
        assert!(shown.contains("\nmax_tool_call_rounds = 7 # default: 10 to 50, by the context"), "{shown}");
        assert_eq!(set.to_json(|_| false)["limits"]["max_tool_call_rounds"], json!(7));
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
        let planner = &json["roles"]["planner"];
        assert_eq!((&planner["model"], &planner["fallbacks"]), (&json!("openai:gpt"), &json!(["reflex"])));
        assert_eq!((&json["limits"]["max_tasks"], &json["routing"]["fast_path"]), (&json!(7), &json!(false)));
        assert_eq!(json["models"]["planner"], Value::Null);
    }
}
