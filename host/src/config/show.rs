//! The configuration that is in force, as TOML and as JSON.

use super::key::group;
use super::{Config, KEYS, SECTIONS, WebhookUrl, roles};
use serde_json::{Value, json};
use std::fmt::Write;

impl Config {
    /// Every key with the value that is in force, and every table that the file has: a `config.toml` that means the same.
    /// What differs from the default says so, and a variable of the environment whether it `is_set`.
    pub fn effective(&self, is_set: impl Fn(&str) -> bool) -> String {
        let mut out = String::new();
        for section in SECTIONS {
            if !section.name.is_empty() {
                let _ = write!(out, "\n[{}]\n", section.name);
            }
            for key in KEYS.iter().filter(|key| key.section == section.name) {
                let (value, default) = (toml_value(&self.value(key)), key.default_value());
                let note = if value == default { String::new() } else { format!(" # default: {default}") };
                let _ = writeln!(out, "{} = {value}{note}", key.name);
            }
        }
        for mount in &self.mounts {
            let (path, role) =
                (text(&mount.path.display().to_string()), if mount.admin_only { "admin" } else { "user" });
            let _ = write!(
                out,
                "\n[exec.mounts.{}]\npath = {path}\nwrite = {}\nrole = {role:?}\n",
                text(&mount.at),
                mount.write
            );
        }
        for provider in &self.providers {
            let (kind, url) = (provider.kind.name(), text(&provider.base_url));
            let _ = write!(out, "\n[providers.{}]\nkind = {kind:?}\nbase_url = {url}\n", provider.name);
            if let Some(variable) = &provider.key_env {
                let note = if is_set(variable) { "set" } else { "not set" };
                let _ = writeln!(out, "key_env = {variable:?} # {note}");
            }
            let _ = writeln!(out, "max_response_mib = {}", provider.max_response_mib);
        }
        for settings in &self.model_settings {
            let _ = write!(out, "\n[model_settings.{}]\n", text(&settings.model));
            let numbers =
                [("context_budget", settings.context_budget), ("max_output_tokens", settings.max_output_tokens)];
            for (key, number) in numbers.into_iter().filter_map(|(key, number)| Some((key, number?))) {
                let _ = writeln!(out, "{key} = {}", group(number));
            }
            let prices = [("input_price", settings.input_price), ("output_price", settings.output_price)];
            for (key, price) in prices.into_iter().filter_map(|(key, price)| Some((key, price?))) {
                let _ = writeln!(out, "{key} = {}", dollars(price));
            }
            let _ = writeln!(out, "json_schema = {:?}", settings.json_schema.name());
        }
        for pill in &self.pills {
            let categories: Vec<_> = pill.categories.iter().map(|category| text(category)).collect();
            let _ = write!(
                out,
                "\n[pills.{}]\ntemplate = {}\ncategories = [{}]\neffort = {:?}\n",
                pill.name,
                text(&pill.template),
                categories.join(", "),
                pill.effort.name()
            );
            if !pill.description.is_empty() {
                let _ = writeln!(out, "description = {}", text(&pill.description));
            }
        }
        if !self.commands.is_empty() {
            out.push_str("\n[commands]\n");
        }
        for command in &self.commands {
            let _ = writeln!(out, "{} = {}", command.name, text(&command.description));
        }
        for webhook in &self.webhooks {
            let _ = write!(out, "\n[webhooks.{}]\n", webhook.name);
            let note = |variable: &str| if is_set(variable) { "set" } else { "not set" };
            let _ = match &webhook.url {
                WebhookUrl::Here(url) => writeln!(out, "url = {}", text(url)),
                WebhookUrl::Env(variable) => writeln!(out, "url_env = {variable:?} # {}", note(variable)),
            };
            if let Some(variable) = &webhook.secret_env {
                let _ = writeln!(out, "secret_env = {variable:?} # {}", note(variable));
            }
            let list = |items: &[String]| items.iter().map(|item| text(item)).collect::<Vec<_>>().join(", ");
            let _ = write!(
                out,
                "sessions = [{}]\nevents = [{}]\nallow_private = {}\ntimeout_s = {}\nmax_attempts = {}\nmax_age_h = {}\n\
                 retry_base_ms = {}\nretry_max_s = {}\n",
                list(&webhook.sessions),
                list(&webhook.events),
                webhook.allow_private,
                webhook.timeout_s,
                webhook.max_attempts,
                webhook.max_age_h,
                webhook.retry_base_ms,
                webhook.retry_max_s,
            );
        }
        out
    }

    /// The same as one JSON object. `is_set` says whether an environment variable has a value; the value itself never
    /// gets here.
    pub fn to_json(&self, is_set: impl Fn(&str) -> bool) -> Value {
        let mut object = serde_json::Map::new();
        for key in KEYS {
            let value = self.value(key);
            let place = match key.section {
                "" => &mut object,
                section => {
                    object.entry(section).or_insert_with(|| json!({})).as_object_mut().expect("it was just made")
                }
            };
            place.insert(key.name.to_owned(), value);
        }
        let in_force: serde_json::Map<_, _> = roles()
            .map(|role| {
                let name =
                    |string: &str| self.named(string).map_or_else(|_| string.to_owned(), |named| named.to_string());
                let model = name(self.model_of(role));
                let fallbacks: Vec<_> = self.fallbacks_of(role).iter().map(|string| name(string)).collect();
                (role.to_owned(), json!({ "model": model, "fallbacks": fallbacks }))
            })
            .collect();
        object.insert("roles".to_owned(), in_force.into());
        let mounts = self.mounts.iter().map(|mount| {
            let role = if mount.admin_only { "admin" } else { "user" };
            json!({ "at": mount.at, "path": mount.path, "write": mount.write, "role": role })
        });
        object.insert("mounts".to_owned(), mounts.collect());
        let providers = self.providers.iter().map(|provider| {
            json!({
                "name": provider.name, "kind": provider.kind.name(), "base_url": provider.base_url,
                "key_env": provider.key_env, "key_is_set": provider.key_env.as_deref().map(&is_set),
                "max_response_mib": provider.max_response_mib,
            })
        });
        object.insert("providers".to_owned(), providers.collect());
        let settings = self.model_settings.iter().map(|settings| {
            json!({
                "model": settings.model, "context_budget": settings.context_budget,
                "input_price_micros": settings.input_price, "output_price_micros": settings.output_price,
                "json_schema": settings.json_schema.name(), "max_output_tokens": settings.max_output_tokens,
            })
        });
        object.insert("model_settings".to_owned(), settings.collect());
        let pills = self.pills.iter().map(|pill| {
            json!({
                "name": pill.name, "template": pill.template, "categories": pill.categories,
                "effort": pill.effort.name(), "description": pill.description,
            })
        });
        object.insert("pills".to_owned(), pills.collect());
        let commands = self.commands.iter();
        let commands = commands.map(|command| json!({ "name": command.name, "description": command.description }));
        object.insert("commands".to_owned(), commands.collect());
        let webhooks = self.webhooks.iter().map(|webhook| {
            let (url, url_env) = match &webhook.url {
                WebhookUrl::Here(url) => (Some(url), None),
                WebhookUrl::Env(variable) => (None, Some(variable)),
            };
            json!({
                "name": webhook.name, "url": url, "url_env": url_env,
                "url_is_set": url_env.map(|variable| is_set(variable)),
                "secret_env": webhook.secret_env, "secret_is_set": webhook.secret_env.as_deref().map(&is_set),
                "sessions": webhook.sessions, "events": webhook.events, "allow_private": webhook.allow_private,
                "timeout_s": webhook.timeout_s, "max_attempts": webhook.max_attempts, "max_age_h": webhook.max_age_h,
                "retry_base_ms": webhook.retry_base_ms, "retry_max_s": webhook.retry_max_s,
            })
        });
        object.insert("webhooks".to_owned(), webhooks.collect());
        object.into()
    }
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
