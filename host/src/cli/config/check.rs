//! `kiso config check`.

use crate::cli::show::printable;
use crate::cli::{Exit, Failure, Shared, is_set};
use kiso_base::config::{Config, ConfigError, ModelName, WebhookUrl};
use kiso_base::home::Home;
use kiso_base::role::Role;
use serde_json::json;
use std::path::Path;

#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {}

impl CheckArgs {
    pub(crate) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let home = Home::open(&Home::locate(shared.home.as_deref())?)?;
        let config = match Config::load(&home) {
            Ok(config) => config,
            Err(ConfigError::Invalid { path, problems }) if shared.json => {
                for problem in problems {
                    let (line, column) = (problem.line, problem.column);
                    outln!(
                        "{}",
                        json!({
                            "type": "problem", "file": path.display().to_string(),
                            "line": line, "column": column, "message": problem.message,
                        })
                    );
                }
                return Ok(Exit::Config);
            }
            Err(error) => return Err(error.into()),
        };
        let (path, notes) = (home.config_path().display().to_string(), notes(&config));
        if shared.json {
            outln!("{}", json!({ "type": "checked", "file": path, "notes": notes }));
        } else {
            outln!("{} is valid", printable(&path));
            for note in &notes {
                outln!("note: {}", printable(note));
            }
        }
        Ok(Exit::Done)
    }
}

/// Returns problems that are not mistakes in the file, but would affect a run on this machine now.
fn notes(config: &Config) -> Vec<String> {
    let mut notes = Vec::new();
    for provider in &config.providers {
        let name = &provider.name;
        let Some(variable) = &provider.key_env else { continue };
        if !is_set(variable) {
            notes.push(format!("{variable}, the variable with the key of [providers.{name}], is not set here"));
        }
        if sends_openly(&provider.base_url) {
            notes.push(format!("[providers.{name}] sends its key unencrypted to another machine; use https://"));
        }
    }
    for webhook in &config.webhooks {
        let url_env = match &webhook.url {
            WebhookUrl::Env(variable) => Some(variable),
            WebhookUrl::Here(_) => None,
        };
        for variable in url_env.into_iter().chain(&webhook.secret_env).filter(|variable| !is_set(variable)) {
            notes.push(format!("{variable}, a variable of [webhooks.{}], is not set here", webhook.name));
        }
    }
    for hook in &config.hooks {
        for variable in hook.secret_env.iter().filter(|variable| !is_set(variable)) {
            notes.push(format!("{variable}, the variable with the secret of [hooks.{}], is not set here", hook.name));
        }
    }
    let strings = Role::ALL.map(Role::name).into_iter().flat_map(|role| {
        std::iter::once(config.model_of(role)).chain(config.fallbacks_of(role).iter().map(String::as_str))
    });
    let mut seen = Vec::new();
    for string in strings {
        if let Ok(ModelName::Scripted(file)) = config.named(string)
            && !seen.contains(&file)
        {
            seen.push(file);
            if !Path::new(file).is_file() {
                notes.push(format!("the script {file} does not exist"));
            }
        }
    }
    notes
}

/// Returns whether data sent there can be read on its way.
fn sends_openly(base_url: &str) -> bool {
    let Some(rest) = base_url.strip_prefix("http://") else { return false };
    let host = rest.split('/').next().unwrap_or_default();
    let host = match host.strip_prefix('[') {
        Some(six) => six.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let loopback = host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    !(loopback || host.eq_ignore_ascii_case("localhost"))
}

#[cfg(test)]
mod tests {
    use super::sends_openly;

    #[test]
    fn only_plain_http_to_other_machines_is_open() {
        for (url, open) in [
            ("https://api.openai.com/v1", false),
            ("http://localhost:11434/v1", false),
            ("http://127.0.0.1/v1", false),
            ("http://[::1]:8080/v1", false),
            ("http://10.0.0.7:8000/v1", true),
            ("http://localhost.example.com/v1", true),
        ] {
            assert_eq!(sends_openly(url), open, "{url}");
        }
    }
}
