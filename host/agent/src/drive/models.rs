//! Models of the roles, and their setup: endpoints with keys, fallbacks, slots, prices.

mod opening;

use self::opening::ModelOpening;
use kiso_base::config::{Config, DEFAULT_MAX_OUTPUT, LARGE_CONTEXT, Provider};
use kiso_base::home::Home;
use kiso_base::role::{Duty, Role};
use kiso_llm::Model;
use kiso_llm::chain::{Chain, ChainContext, Link, Retries};
use kiso_llm::embed::Embedder;
use kiso_llm::endpoint::Endpoint;
use kiso_llm::estimate::Estimator;
use kiso_llm::reflex;
use kiso_llm::slots::Slots;
use kiso_llm::time::RealTime;
use kiso_llm::transcribe::Transcriber;
use kiso_plan::limits::{LimitReached, Usage};
use kiso_store::secret::SecretValue;
use kiso_store::store::ModelChoice;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// Minimum size of an answer in tokens for which a prompt is sent: enough for a title.
const LEAST_ANSWER: usize = 64;

/// Size of an answer in tokens below which its form is limited: what roles with short answers ask for.
const SHORT_ANSWER: u32 = 2_048;

/// Part of a context that a message may take, as a divisor.
const MESSAGE_PART: usize = 3;

/// The models of all roles. Clones are cheap and share slots, breakers and knowledge about tokens.
#[derive(Clone)]
pub struct Models(Arc<Inner>);

struct Inner {
    roles: HashMap<Role, (Arc<dyn Model>, TokenBudget)>,
    opened: Vec<ConfiguredModel>,
    shared: ChainContext,
    keys: Vec<(String, SecretValue)>,
    env: Environment,
    apart: ModelsApart,
    unready: Vec<ModelError>,
}

/// Models that do not generate answers.
#[derive(Clone, Default)]
struct ModelsApart {
    embedder: Option<Arc<Embedder>>,
    transcriber: Option<Arc<Transcriber>>,
}

/// Returns the value of an environment variable.
type Environment = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Limits of a role's prompts and answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenBudget {
    /// Tokens of prompt and answer together, as estimated by kiso.
    pub context_budget: usize,
    /// The same as counted by the provider, which is the value in the configuration.
    pub context: u64,
    /// Maximum size of an answer in tokens.
    pub max_output_tokens: u32,
    /// Whether the configuration sets this size. An answer may then be that long, whatever its role asks for.
    pub output_is_set: bool,
    /// Whether the configuration sets a context for this model, and not only the general one.
    pub budget_is_set: bool,
}

impl TokenBudget {
    /// Returns the maximum size of an answer in tokens, if its role asks for `wanted`. The administrator's setting takes
    /// precedence: a role knows the length of its answers, but not how long the model thinks before them. A model with a larger
    /// context gets more for each answer to a message.
    pub fn answer(&self, role: Role, wanted: u32) -> u32 {
        if self.output_is_set {
            return self.max_output_tokens;
        }
        let (most, usual) = (u64::from(self.max_output_tokens), DEFAULT_MAX_OUTPUT);
        let more = role.declaration().duty == Duty::Message && most > usual;
        let wanted = if more { u64::from(wanted) * most / usual } else { wanted.into() };
        u32::try_from(wanted.min(most)).unwrap_or(u32::MAX)
    }

    /// Returns whether answers of this size need a form that ends before their limit: the context is small, or the remaining
    /// space for the answer.
    pub fn is_short(&self, max_tokens: u32) -> bool {
        self.context < LARGE_CONTEXT || max_tokens < SHORT_ANSWER
    }
}

/// A model in `config.toml`, even if it is named several times.
#[derive(Clone)]
pub struct ConfiguredModel {
    /// `provider:model`, "reflex" or "scripted:FILE".
    pub name: String,
    /// The model itself, without retries and fallbacks.
    pub model: Arc<dyn Model>,
    /// Whether it is part of kiso and needs no network.
    pub built_in: bool,
    /// Roles for which it is the first choice.
    pub roles: Vec<Role>,
    /// Roles that use it as a fallback.
    pub fallback_of: Vec<Role>,
    /// Whether it gets the schema of an answer, according to the configuration.
    takes_schemas: bool,
    link: Link,
    settings: TokenBudget,
    /// Why it cannot be called, if its key is missing.
    unready: Option<ModelError>,
}

impl ConfiguredModel {
    /// Returns usage with the cost of calls that were made without a chain.
    pub fn charge(&self, usage: Usage) -> Usage {
        self.link.remote.as_ref().map_or(usage, |remote| remote.price.charge(usage))
    }
}

impl std::fmt::Debug for ConfiguredModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConfiguredModel").field("name", &self.name).field("roles", &self.roles).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Models {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.0.roles.iter().map(|(role, (model, _))| (role, model.name()))).finish()
    }
}

/// A model string that is not valid, or a model that cannot be called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the model {name:?} of the role {role} cannot be used: {why}")]
pub struct ModelError {
    /// A role of a prompt, "embedder" or "transcriber".
    pub role: &'static str,
    pub name: String,
    pub why: String,
}

impl Models {
    /// Opens the models of the configuration, without calling any. `env` returns the value of an environment variable; it is
    /// called for the keys of those providers that are used. A missing key is an error.
    pub fn open(
        config: &Config,
        env: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Result<Self, ModelError> {
        let models = Models::open_anyway(config, env)?;
        match models.unready().first() {
            Some(error) => Err(error.clone()),
            None => Ok(models),
        }
    }

    /// The same, but a model with a missing key only reports that when it is called.
    pub fn open_anyway(
        config: &Config,
        env: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Result<Self, ModelError> {
        let shared = ChainContext {
            slots: Slots::new(size(config.llm.max_concurrent_llm)),
            estimator: Arc::new(Estimator::default()),
            time: Arc::new(RealTime),
            retries: retries(config),
        };
        let opening = ModelOpening::new(config, &env);
        let ModelOpening { apart, keys, unready, .. } = opening.apart(&shared)?;
        let models = Models::of_config(config, shared, Arc::new(env), Vec::new(), keys, apart)?;
        Ok(models.with_unready(unready))
    }

    /// Counts calls together with those of the other processes of this home.
    pub fn in_home(self, home: &Home) -> Self {
        self.slots().share(home);
        self
    }

    /// Opens the models of another configuration. Knowledge about tokens is kept, and so are the slots, whose number follows the
    /// configuration. A missing key is an error, unless it was missing before.
    pub fn reopened(&self, config: &Config) -> Result<Self, ModelError> {
        let mut shared = self.0.shared.clone();
        shared.retries = retries(config);
        let opening = ModelOpening::new(config, self.0.env.as_ref());
        let ModelOpening { apart, keys, unready, .. } = opening.apart(&shared)?;
        let models = Models::of_config(config, shared, self.0.env.clone(), Vec::new(), keys, apart)?;
        let models = models.with_unready(unready);
        self.check_unready(&models)?;
        models.slots().resize(size(config.llm.max_concurrent_llm));
        Ok(models)
    }

    /// Uses the built-in rules instead of all models.
    pub fn built_in(&self, config: &Config) -> Result<Self, ModelError> {
        let Inner { shared, env, keys, .. } = &*self.0;
        Models::of_config(
            &config.with_model(reflex::NAME),
            shared.clone(),
            env.clone(),
            Vec::new(),
            keys.clone(),
            ModelsApart::default(),
        )
    }

    /// Returns the models as a session chooses them. A model for all applies to every role that works on a message, even one with
    /// its own model in `config.toml`, because the user wants to talk to the chosen model. Background work keeps its models.
    /// Knowledge about endpoints, breakers and slots are shared.
    pub fn chosen(&self, config: &Config, choice: &ModelChoice) -> Result<Self, ModelError> {
        let mut config = config.clone();
        if let Some(model) = &choice.all {
            config.model.clone_from(model);
            let working = Role::ALL.into_iter().filter(|role| role.declaration().duty == Duty::Message);
            working.for_each(|role| config.set_model_of(role.name(), None));
        }
        for (role, model) in &choice.roles {
            config.set_model_of(role, Some(model.clone()));
        }
        let unused =
            |opened: &ConfiguredModel| ConfiguredModel { roles: Vec::new(), fallback_of: Vec::new(), ..opened.clone() };
        let opened = self.0.opened.iter().map(unused).collect();
        let inner = &self.0;
        let (shared, env) = (inner.shared.clone(), inner.env.clone());
        let chosen = Models::of_config(&config, shared, env, opened, inner.keys.clone(), inner.apart.clone())?;
        self.check_unready(&chosen)?;
        Ok(chosen)
    }

    /// Returns the models with missing keys, and the errors.
    pub fn unready(&self) -> &[ModelError] {
        &self.0.unready
    }

    fn with_unready(mut self, more: Vec<ModelError>) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            inner.unready.extend(more);
        }
        self
    }

    /// Fails if one of `others` lacks its key and none of these models fails for the same reason.
    fn check_unready(&self, others: &Models) -> Result<(), ModelError> {
        let is_new = |error: &&ModelError| !self.0.unready.iter().any(|known| known.why == error.why);
        others.0.unready.iter().find(is_new).map_or(Ok(()), |error| Err(error.clone()))
    }

    fn of_config(
        config: &Config,
        shared: ChainContext,
        env: Environment,
        opened: Vec<ConfiguredModel>,
        keys: Vec<(String, SecretValue)>,
        apart: ModelsApart,
    ) -> Result<Self, ModelError> {
        let mut opening = ModelOpening::new(config, env.as_ref()).with(opened, keys);
        let mut roles = HashMap::new();
        for role in Role::ALL {
            let first = opening.open(role, config.model_of(role.name()))?;
            opening.opened[first].roles.push(role);
            let mut chain = vec![first];
            for name in config.fallbacks_of(role.name()) {
                let next = opening.open(role, name)?;
                // One attempt is enough, even if the general list contains a role's first choice.
                if !chain.contains(&next) {
                    opening.opened[next].fallback_of.push(role);
                    chain.push(next);
                }
            }
            let links: Vec<_> = chain.iter().map(|at| opening.opened[*at].link.clone()).collect();
            let mut settings = opening.opened[first].settings;
            // A prompt is created once, for whichever model answers in the end.
            settings.context = config.context_of_role(role);
            settings.context_budget = size(settings.context);
            roles.insert(role, (model(links, &shared), settings));
        }
        opening.take_connected_keys();
        let ModelOpening { mut opened, keys, mut unready, .. } = opening;
        opened.retain(|opened| !(opened.roles.is_empty() && opened.fallback_of.is_empty()));
        unready.extend(opened.iter().filter_map(|opened| opened.unready.clone()));
        Ok(Self(Arc::new(Inner { roles, opened, shared, keys, env, apart, unready })))
    }

    /// Opens each model in `config.toml` once, in the order of the roles; an error for one does not hide the others.
    pub fn each_of(config: &Config, env: impl Fn(&str) -> Option<String>) -> Vec<Result<ConfiguredModel, ModelError>> {
        let mut opening = ModelOpening::new(config, &env);
        let mut failed: Vec<ModelError> = Vec::new();
        for role in Role::ALL {
            let fallbacks = config.fallbacks_of(role.name()).iter().map(|name| (name.as_str(), true));
            for (name, fallback) in std::iter::once((config.model_of(role.name()), false)).chain(fallbacks) {
                match opening.open_ready(role, name) {
                    Ok(at) => {
                        let opened = &mut opening.opened[at];
                        if !fallback {
                            opened.roles.push(role);
                        } else if !opened.roles.contains(&role) && !opened.fallback_of.contains(&role) {
                            opened.fallback_of.push(role);
                        }
                    }
                    Err(error) if failed.iter().any(|known| known.name == error.name) => {}
                    Err(error) => failed.push(error),
                }
            }
        }
        let ready = opening.opened.into_iter().filter(|opened| opened.unready.is_none());
        ready.map(Ok).chain(failed.into_iter().map(Err)).collect()
    }

    /// Opens a model of a configured provider that need not be in use, with the same keys, without retries and fallbacks.
    pub fn single(&self, config: &Config, string: &str) -> Result<ConfiguredModel, ModelError> {
        let mut opening = ModelOpening::new(config, self.0.env.as_ref());
        let at = opening.open_ready(Role::Worker, string)?;
        Ok(opening.opened.swap_remove(at))
    }

    /// Returns the endpoint of a configured provider.
    pub fn endpoint(&self, config: &Config, provider: &Provider) -> Result<Endpoint, String> {
        ModelOpening::new(config, self.0.env.as_ref()).endpoint(provider, "", None)
    }

    /// [`Models::each_of`] with the same environment.
    pub fn each_in(&self, config: &Config) -> Vec<Result<ConfiguredModel, ModelError>> {
        Models::each_of(config, self.0.env.as_ref())
    }

    /// Returns whether the variable of a provider's key has a value.
    pub fn has_key(&self, variable: &str) -> bool {
        (self.0.env)(variable).is_some_and(|value| !value.trim().is_empty())
    }

    /// Returns whether every call is free and repeatable, because only the built-in rules are used.
    pub fn are_free(&self) -> bool {
        self.0.apart.embedder.is_none() && self.0.opened.iter().all(|opened| opened.name == reflex::NAME)
    }

    /// Returns the model of a role, with its retries and fallbacks.
    pub fn for_role(&self, role: Role) -> &dyn Model {
        self.0.roles[&role].0.as_ref()
    }

    /// Returns the model names of each role, by the role's name.
    pub fn by_role(&self) -> BTreeMap<&'static str, String> {
        Role::ALL.into_iter().map(|role| (role.name(), self.for_role(role).name().to_owned())).collect()
    }

    /// Returns the planner's model, and the models of roles that differ: "openai:a (router: openai:b; summarizer and titler:
    /// reflex)".
    pub fn summary(&self) -> String {
        let first = self.for_role(Role::Planner).name();
        let mut others: Vec<(&str, Vec<&str>)> = Vec::new();
        for role in Role::ALL {
            let name = self.for_role(role).name();
            match others.iter_mut().find(|(known, _)| *known == name) {
                _ if name == first => {}
                Some((_, roles)) => roles.push(role.name()),
                None => others.push((name, vec![role.name()])),
            }
        }
        let others: Vec<_> = others.iter().map(|(name, roles)| format!("{}: {name}", roles.join(", "))).collect();
        if others.is_empty() { first.to_owned() } else { format!("{first} ({})", others.join("; ")) }
    }

    /// Returns the budget of a role's models including fallbacks, and the answer size of its first choice. The budget is in
    /// estimated tokens; it decreases if the provider counts more tokens than the estimate.
    pub fn settings(&self, role: Role) -> TokenBudget {
        let (model, settings) = &self.0.roles[&role];
        let context_budget = self.0.shared.estimator.estimated(model.name(), settings.context_budget);
        TokenBudget { context_budget, ..*settings }
    }

    /// Returns the setting that is too small for a prompt of this role with this estimated size, if there is one: pieces that are
    /// never cut, such as the message itself, take the whole context. The provider would refuse the prompt, or cut off its
    /// beginning.
    pub fn too_small_for(&self, role: Role, tokens: usize) -> Option<LimitReached> {
        let budget = self.settings(role).context_budget;
        if tokens + LEAST_ANSWER <= budget {
            return None;
        }
        let smallest = self.smallest(role)?;
        let setting = match smallest.settings.budget_is_set {
            true => format!("model_settings.{:?}.context_budget", smallest.name),
            false => "context.budget_tokens".to_owned(),
        };
        let value = smallest.settings.context_budget as u64;
        Some(LimitReached { limit: "context_budget".to_owned(), value, setting, because: None })
    }

    /// Returns the maximum size in tokens of a message that is not archived: it must fit into the prompts that show the whole
    /// message, with everything else.
    pub fn message_tokens(&self) -> usize {
        let budgets = [Role::Router, Role::Planner].into_iter().filter(|role| self.smallest(*role).is_some());
        budgets.map(|role| self.settings(role).context_budget / MESSAGE_PART).min().unwrap_or(usize::MAX)
    }

    /// Returns whether a model of the role uses a schema for its answer: built-in models have their own formats.
    pub fn read_schemas(&self, role: Role) -> bool {
        self.smallest(role).is_some()
    }

    /// Returns whether the form of a role's answer is sent as a schema, so that its prompt need not explain the format.
    pub fn send_schemas(&self, role: Role) -> bool {
        let mut remote = self.0.opened.iter().filter(|opened| opened.roles.contains(&role) && !opened.built_in);
        remote.next().is_some_and(|opened| opened.takes_schemas)
    }

    /// Returns the role's model with the smallest context. Built-in models read prompts of any size.
    fn smallest(&self, role: Role) -> Option<&ConfiguredModel> {
        let of_role = |opened: &&ConfiguredModel| opened.roles.contains(&role) || opened.fallback_of.contains(&role);
        let remote = self.0.opened.iter().filter(of_role).filter(|opened| !opened.built_in);
        remote.min_by_key(|opened| opened.settings.context_budget)
    }

    /// Returns the number of tokens that the provider of the role's first choice will count for `estimated` tokens.
    pub fn counted(&self, role: Role, estimated: usize) -> usize {
        self.0.shared.estimator.counted(self.for_role(role).name(), estimated)
    }

    /// Returns each model once, in the order of the roles.
    pub fn each(&self) -> &[ConfiguredModel] {
        &self.0.opened
    }

    /// Returns the embedding model for passages and queries, if one is configured.
    pub fn embedder(&self) -> Option<&Embedder> {
        self.0.apart.embedder.as_deref()
    }

    /// Returns the model for transcription, if one is configured.
    pub fn transcriber(&self) -> Option<&Transcriber> {
        self.0.apart.transcriber.as_deref()
    }

    /// Returns the slots that all calls share.
    pub fn slots(&self) -> &Slots {
        &self.0.shared.slots
    }

    /// Returns the keys in use, with their variables: values that must be redacted everywhere.
    pub fn keys(&self) -> Vec<(String, SecretValue)> {
        self.0.keys.clone()
    }
}

fn retries(config: &Config) -> Retries {
    Retries {
        max_attempts: u32::try_from(config.llm.max_attempts).unwrap_or(u32::MAX),
        max_wait: Duration::from_secs(config.llm.max_retry_wait_s),
    }
}

/// Returns a first choice with its fallbacks. A built-in model without fallbacks needs no chain.
fn model(mut links: Vec<Link>, shared: &ChainContext) -> Arc<dyn Model> {
    let first = links.remove(0);
    if links.is_empty() && first.remote.is_none() {
        return first.model;
    }
    Arc::new(Chain::new(first, links, shared.clone()))
}

fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests;
