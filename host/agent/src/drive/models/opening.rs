//! Opens the models of `config.toml`, each once.

use super::{ConfiguredModel, ModelError, ModelsApart, TokenBudget, size};
use kiso_base::config::{self, AbilityUse, Config, ModelName, Provider, ProviderKind};
use kiso_base::role::Role;
use kiso_llm::anthropic::Anthropic;
use kiso_llm::breaker::Breaker;
use kiso_llm::chain::{ChainContext, Link, Remote};
use kiso_llm::embed::{self, Embedder};
use kiso_llm::endpoint::{Endpoint, Support, Timeouts};
use kiso_llm::openai::OpenAi;
use kiso_llm::price::Price;
use kiso_llm::reflex::Reflex;
use kiso_llm::scripted::ScriptedModel;
use kiso_llm::transcribe::{self, Transcriber};
use kiso_llm::unready::UnreadyModel;
use kiso_llm::{LlmError, Model};
use kiso_store::secret::SecretValue;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Models that are being opened.
pub(super) struct ModelOpening<'a> {
    config: &'a Config,
    env: &'a dyn Fn(&str) -> Option<String>,
    pub(super) opened: Vec<ConfiguredModel>,
    pub(super) keys: Vec<(String, SecretValue)>,
    pub(super) apart: ModelsApart,
    /// Models of other kinds whose keys are missing.
    pub(super) unready: Vec<ModelError>,
}

impl<'a> ModelOpening<'a> {
    pub(super) fn new(config: &'a Config, env: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self { config, env, opened: Vec::new(), keys: Vec::new(), apart: ModelsApart::default(), unready: Vec::new() }
    }

    /// Adds models that were opened before.
    pub(super) fn with(mut self, opened: Vec<ConfiguredModel>, keys: Vec<(String, SecretValue)>) -> Self {
        (self.opened, self.keys) = (opened, keys);
        self
    }

    /// The same for a model that can be called.
    pub(super) fn open_ready(&mut self, role: Role, string: &str) -> Result<usize, ModelError> {
        let at = self.open(role, string)?;
        match &self.opened[at].unready {
            Some(error) => Err(error.clone()),
            None => Ok(at),
        }
    }

    /// Adds the keys of all connected providers, used or not, so that they are redacted.
    pub(super) fn take_connected_keys(&mut self) {
        let config = self.config;
        for provider in config.providers.iter().filter(|provider| provider.connected) {
            // A missing key is an error only if a model needs it.
            let _ = self.key(provider);
        }
    }

    /// Opens a model unless it is open already; returns its position in the list. A model with a missing key reports that when it
    /// is called.
    pub(super) fn open(&mut self, role: Role, string: &str) -> Result<usize, ModelError> {
        let wrong = |why: String| wrong(role.name(), string, why);
        let named = self.config.named(string).map_err(wrong)?;
        let name = named.to_string();
        if let Some(at) = self.opened.iter().position(|opened| opened.name == name) {
            return Ok(at);
        }
        let said = self.config.settings_of(named);
        let settings = settings(self.config, named);
        let mut unready = None;
        let (model, remote): (Arc<dyn Model>, _) = match named {
            ModelName::Reflex => (Arc::new(Reflex), None),
            ModelName::Scripted(file) => {
                (Arc::new(ScriptedModel::load(Path::new(file)).map_err(|error| wrong(error.to_string()))?), None)
            }
            ModelName::Of(provider, model) => {
                let model: Arc<dyn Model> = match self.endpoint(provider, model, said) {
                    Ok(endpoint) => connect(provider.kind, endpoint).map_err(wrong)?,
                    Err(why) => {
                        unready = Some(wrong(why.clone()));
                        Arc::new(UnreadyModel::new(name.clone(), why))
                    }
                };
                (model, Some(Remote { breaker: Arc::new(self.breaker()), price: price(said) }))
            }
        };
        let built_in = remote.is_none();
        let takes_schemas = said.is_none_or(|said| said.json_schema != AbilityUse::No);
        let link = Link { model: model.clone(), remote, max_output_tokens: settings.max_output_tokens };
        self.opened.push(ConfiguredModel {
            name,
            model,
            built_in,
            roles: Vec::new(),
            fallback_of: Vec::new(),
            takes_schemas,
            link,
            settings,
            unready,
        });
        Ok(self.opened.len() - 1)
    }

    /// Opens the models for embeddings and transcription, if they are configured.
    pub(super) fn apart(mut self, shared: &ChainContext) -> Result<Self, ModelError> {
        let (memory, audio) = (&self.config.memory, &self.config.audio);
        if let Some(string) = memory.embedding_model.as_deref() {
            let total = Duration::from_secs(memory.embedding_timeout_s);
            let endpoint = self.endpoint_apart(embed::ROLE, string, "embeddings")?;
            let dimensions = Some(memory.embedding_dimensions).filter(|dimensions| *dimensions > 0);
            let price = price(self.config.named(string).ok().and_then(|named| self.config.settings_of(named)));
            let (slots, time) = (shared.slots.clone(), shared.time.clone());
            if let Some(mut endpoint) = endpoint {
                // The answer arrives as a whole.
                endpoint.patience.total = total;
                endpoint.patience.first_token = total;
                let embedder = Embedder::new(endpoint, dimensions, (self.breaker(), price), slots, time);
                self.apart.embedder =
                    Some(Arc::new(embedder.map_err(|error| wrong(embed::ROLE, string, error.to_string()))?));
            }
        }
        if let Some(string) = audio.transcription_model.as_deref()
            && let Some(mut endpoint) = self.endpoint_apart(transcribe::ROLE, string, "transcriptions")?
        {
            // An hour of speech is processed before the first word of the answer.
            endpoint.patience.first_token = endpoint.patience.total;
            let (slots, time) = (shared.slots.clone(), shared.time.clone());
            let transcriber = Transcriber::new(endpoint, self.breaker(), slots, time);
            let transcriber = transcriber.map_err(|error| wrong(transcribe::ROLE, string, error.to_string()))?;
            self.apart.transcriber = Some(Arc::new(transcriber));
        }
        Ok(self)
    }

    /// Returns the endpoint of a model that does not generate answers; `None` if its key is missing.
    fn endpoint_apart(
        &mut self,
        role: &'static str,
        string: &str,
        gives: &str,
    ) -> Result<Option<Endpoint>, ModelError> {
        let named = self.config.named(string).map_err(|why| wrong(role, string, why))?;
        let ModelName::Of(provider, model) = named else {
            return Err(wrong(role, string, format!("it has no {gives}")));
        };
        let said = self.config.settings_of(named);
        let endpoint = self.endpoint(provider, model, said).map_err(|why| self.unready.push(wrong(role, string, why)));
        Ok(endpoint.ok())
    }

    fn breaker(&self) -> Breaker {
        let llm = &self.config.llm;
        let failures = u32::try_from(llm.breaker_failures).unwrap_or(u32::MAX);
        Breaker::new(failures, Duration::from_secs(llm.breaker_pause_s))
    }

    /// Returns the endpoint of a model; fails if its key is missing.
    pub(super) fn endpoint(
        &mut self,
        provider: &Provider,
        model: &str,
        said: Option<&config::ModelSettings>,
    ) -> Result<Endpoint, String> {
        let llm = &self.config.llm;
        let patience = Timeouts {
            connect: Duration::from_secs(llm.connect_timeout_s),
            first_token: Duration::from_secs(llm.first_token_timeout_s),
            next_token: Duration::from_secs(llm.next_token_timeout_s),
            total: Duration::from_secs(llm.total_timeout_s),
        };
        Ok(Endpoint {
            provider: provider.name.clone(),
            model: model.to_owned(),
            base_url: provider.base_url.clone(),
            key: self.key(provider)?,
            patience,
            schema: support(said.map(|said| said.json_schema)),
            tools: support(said.map(|said| said.tool_calls)),
            vision: support(said.map(|said| said.vision)),
            audio: said.is_some_and(|said| said.audio == AbilityUse::Yes),
            max_response: size(provider.max_response_mib << 20),
        })
    }

    /// Returns the provider's key from the environment.
    fn key(&mut self, provider: &Provider) -> Result<Option<SecretValue>, String> {
        let Some(variable) = &provider.key_env else { return Ok(None) };
        if let Some((_, key)) = self.keys.iter().find(|(known, _)| known == variable) {
            return Ok(Some(key.clone()));
        }
        let (provider, connected) = (&provider.name, provider.connected);
        let value = (self.env)(variable).map(SecretValue::new);
        // Keys that are read from a file often end with a line break.
        let key = value.map(|value| SecretValue::new(value.expose().trim().to_owned()));
        let Some(key) = key.filter(|key| !key.expose().is_empty()) else {
            if connected {
                return Err(format!("the key of the provider {provider} cannot be opened; enter it again in the page"));
            }
            return Err(format!("{variable}, the variable with the key of [providers.{provider}], is not set"));
        };
        if !key.expose().bytes().all(|b| b.is_ascii_graphic()) {
            return Err(format!("{variable}, the variable with the key of [providers.{provider}], holds no key"));
        }
        self.keys.push((variable.clone(), key.clone()));
        Ok(Some(key))
    }
}

fn wrong(role: &'static str, string: &str, why: String) -> ModelError {
    ModelError { role, name: string.to_owned(), why }
}

fn support(said: Option<AbilityUse>) -> Support {
    match said.unwrap_or_default() {
        AbilityUse::Probe => Support::Probe,
        AbilityUse::Yes => Support::Yes,
        AbilityUse::No => Support::No,
    }
}

fn price(said: Option<&config::ModelSettings>) -> Price {
    let price = |of: fn(&config::ModelSettings) -> Option<u64>| said.and_then(of).unwrap_or(0);
    let cached = said.and_then(|said| said.cached_input_price);
    Price { input: price(|said| said.input_price), cached, output: price(|said| said.output_price) }
}

/// Returns the model's limits from the configuration, or computed from its context.
fn settings(config: &Config, model: ModelName<'_>) -> TokenBudget {
    let (said, context) = (config.settings_of(model), config.context_of(model));
    TokenBudget {
        budget_is_set: said.and_then(|said| said.context_budget).is_some(),
        output_is_set: said.and_then(|said| said.max_output_tokens).is_some(),
        context,
        context_budget: size(context),
        max_output_tokens: u32::try_from(config.max_output_of(model)).unwrap_or(u32::MAX),
    }
}

/// The only place that maps a kind of provider to its implementation.
fn connect(kind: ProviderKind, endpoint: Endpoint) -> Result<Arc<dyn Model>, String> {
    let model: Result<Arc<dyn Model>, LlmError> = match kind {
        ProviderKind::OpenAi => OpenAi::new(endpoint).map(|model| Arc::new(model) as _),
        ProviderKind::Anthropic => Anthropic::new(endpoint).map(|model| Arc::new(model) as _),
    };
    model.map_err(|error| error.to_string())
}
