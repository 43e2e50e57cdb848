//! Providers that an administrator connected while kiso runs, in addition to those of `config.toml`. The file takes precedence:
//! its providers hide connected ones of the same name, and a model that it names stays the default.

use super::fields::{NAME_RULE, is_name};
use super::provider::{self, Provider, ProviderKind};
use super::{Config, ModelSettings, PRESETS};
use crate::config::AbilityUse;

/// The model of a file that does not set one.
const UNCHOSEN: &str = "reflex";

/// Connected providers and the models that were chosen from them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConnectedModels {
    /// Each has [`Provider::connected`] set.
    pub providers: Vec<Provider>,
    /// In the order in which they were added.
    pub models: Vec<ConnectedModel>,
}

/// A model that was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectedModel {
    /// `provider:model`.
    pub name: String,
    /// Tokens of prompt and answer together; if `None`, `context.budget_tokens`.
    pub context_budget: Option<u64>,
    /// Whether it is the model for every role without its own.
    pub is_default: bool,
}

/// Validates a provider that an administrator entered, by the rules of `config.toml`. The error does not repeat the address,
/// which may contain a password.
pub fn connected_provider(name: &str, kind: ProviderKind, base_url: &str, has_key: bool) -> Result<Provider, String> {
    if !is_name(name) {
        return Err(format!("the name of a provider has {NAME_RULE}"));
    }
    if provider::TAKEN.contains(&name) {
        return Err(format!("the name {name} is taken; choose another name"));
    }
    if base_url.len() > provider::MAX_URL {
        return Err(format!("`base_url` has more than {} characters", provider::MAX_URL));
    }
    let base_url = provider::checked_url(base_url.trim()).map_err(|why| format!("`base_url` {why}"))?;
    let key_env = has_key.then(|| key_name(name));
    let max_response_mib = provider::MAX_RESPONSE_MIB;
    Ok(Provider { name: name.to_owned(), kind, base_url, key_env, max_response_mib, connected: true })
}

/// The name of a connected provider's key. The dashes distinguish it from every variable that `config.toml` can name.
fn key_name(provider: &str) -> String {
    format!("key-of-{provider}")
}

impl Config {
    /// Returns this configuration with `connected` in place of what was connected before.
    pub fn with_connected(mut self, connected: &ConnectedModels) -> Config {
        let is_connected = |config: &Config, model: &str| {
            let name = model.split_once(':').map_or("", |(provider, _)| provider);
            config.providers.iter().any(|provider| provider.connected && provider.name == name)
        };
        // A file can only name providers that it declares, so these names came from here.
        if is_connected(&self, &self.model) {
            UNCHOSEN.clone_into(&mut self.model);
        }
        let settings = std::mem::take(&mut self.model_settings);
        self.model_settings = settings.into_iter().filter(|known| !is_connected(&self, &known.model)).collect();
        self.providers.retain(|provider| !provider.connected);
        for provider in &connected.providers {
            if !self.providers.iter().any(|known| known.name == provider.name) {
                self.providers.push(provider.clone());
            }
        }
        for model in connected.models.iter().filter(|model| is_connected(&self, &model.name)).collect::<Vec<_>>() {
            self.model_settings.push(settings_of(model));
            if model.is_default && self.model == UNCHOSEN {
                self.model.clone_from(&model.name);
            }
        }
        self
    }
}

/// Returns the settings of a chosen model: those of its preset, if any, with the context size that its provider reports.
fn settings_of(model: &ConnectedModel) -> ModelSettings {
    let preset = PRESETS.iter().find(|preset| preset.model == model.name);
    let preset = preset.and_then(|preset| Config::parse(preset.text().as_bytes()).ok());
    let known = preset.and_then(|preset| preset.model_settings.into_iter().find(|known| known.model == model.name));
    let unknown = ModelSettings {
        model: model.name.clone(),
        context_budget: None,
        input_price: None,
        cached_input_price: None,
        output_price: None,
        json_schema: AbilityUse::Probe,
        tool_calls: AbilityUse::Probe,
        vision: AbilityUse::Probe,
        audio: AbilityUse::No,
        max_output_tokens: None,
    };
    let known = known.unwrap_or(unknown);
    ModelSettings { context_budget: model.context_budget.or(known.context_budget), ..known }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connected(name: &str, model: &str) -> ConnectedModels {
        let provider = connected_provider(name, ProviderKind::OpenAi, "http://localhost:1/v1/", true).unwrap();
        let model = ConnectedModel { name: format!("{name}:{model}"), context_budget: Some(32_000), is_default: true };
        ConnectedModels { providers: vec![provider], models: vec![model] }
    }

    #[test]
    fn a_connected_model_is_used_where_the_file_names_none() {
        let config = Config::parse(b"[models]\nrouter = \"reflex\"\n").unwrap();
        let both = config.clone().with_connected(&connected("mine", "a"));
        assert_eq!(
            (both.model.as_str(), both.model_of("router"), both.model_of("worker")),
            ("mine:a", "reflex", "mine:a")
        );
        assert_eq!(both.context_of(both.named("mine:a").unwrap()), 32_000);
        assert_eq!(both.providers[0].base_url, "http://localhost:1/v1");
        // Replacing and removing leaves nothing behind.
        let other = both.with_connected(&connected("other", "b"));
        assert_eq!((other.model.as_str(), other.providers.len(), other.model_settings.len()), ("other:b", 1, 1));
        assert_eq!(other.with_connected(&ConnectedModels::default()), config);
    }

    #[test]
    fn the_file_takes_precedence() {
        let file = "model = \"mine:x\"\n[providers.mine]\nkind = \"openai\"\nbase_url = \"http://localhost:2\"\n";
        let config = Config::parse(file.as_bytes()).unwrap();
        assert_eq!(config.clone().with_connected(&connected("mine", "a")), config);
        let beside = config.with_connected(&connected("other", "a"));
        assert_eq!((beside.model.as_str(), beside.providers.len()), ("mine:x", 2));
        assert!(beside.model_strings().contains(&"other:a"));
    }

    #[test]
    fn what_is_entered_follows_the_rules_of_the_file() {
        for (name, url, why) in [
            ("a b", "http://x", "the name of a provider has"),
            ("reflex", "http://x", "the name reflex is taken"),
            ("a", "ftp://x", "must begin with https:// or http://"),
            ("a", "https://u:geheim@x", "must hold no user or password"),
            ("a", "https://x/?key=geheim", "must hold no key"),
        ] {
            let error = connected_provider(name, ProviderKind::OpenAi, url, false).unwrap_err();
            assert!(error.contains(why) && !error.contains("geheim"), "{error}");
        }
        // No table of the file can name the key of a connected provider, and so send it to another host.
        assert!(provider::variable(&key_name("mine")).is_err());
    }
}
