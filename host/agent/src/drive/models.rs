//! Which model answers for which role, and what stands behind it: endpoints with their keys, fallbacks, slots, prices.

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

/// Tokens of an answer without which a prompt is not sent: a title has as many.
const LEAST_ANSWER: usize = 64;

/// Tokens of an answer below which its form is bounded: what the roles with the shorter answers ask for.
const SHORT_ANSWER: u32 = 2_048;

/// The part of a context that a message may take, as a divisor.
const MESSAGE_PART: usize = 3;

/// The models of all roles. Cheap to clone; clones share slots, breakers and what was learned about tokens.
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

/// Models that give no answers.
#[derive(Clone, Default)]
struct ModelsApart {
    embedder: Option<Arc<Embedder>>,
    transcriber: Option<Arc<Transcriber>>,
}

/// Gives the value of an environment variable.
type Environment = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// What a role's prompts and answers may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenBudget {
    /// Tokens of prompt and answer together, as kiso estimates them.
    pub context_budget: usize,
    /// The same as the provider counts them, which is what the file says.
    pub context: u64,
    /// Tokens of an answer, at most.
    pub max_output_tokens: u32,
    /// Whether the file says so. An answer may then have that much, whatever its role asks for.
    pub output_is_set: bool,
    /// Whether the file gives the model a context of its own, and not only the one for all.
    pub budget_is_set: bool,
}

impl TokenBudget {
    /// Tokens of an answer for which its role asks for `wanted`. What the administrator set counts more: a role knows
    /// how long its answers are, and not how long the model thinks before them. A model with more room has more for each answer to
    /// a message.
    pub fn answer(&self, role: Role, wanted: u32) -> u32 {
        if self.output_is_set {
            return self.max_output_tokens;
        }
        let (most, usual) = (u64::from(self.max_output_tokens), DEFAULT_MAX_OUTPUT);
        let more = role.declaration().duty == Duty::Message && most > usual;
        let wanted = if more { u64::from(wanted) * most / usual } else { wanted.into() };
        u32::try_from(wanted.min(most)).unwrap_or(u32::MAX)
    }

    /// Whether answers of so many tokens need a form in which they end before their limit: the context is small, or what is left for
    /// the answer.
    pub fn is_short(&self, max_tokens: u32) -> bool {
        self.context < LARGE_CONTEXT || max_tokens < SHORT_ANSWER
    }
}

/// One model that `config.toml` names, however often.
#[derive(Clone)]
pub struct ConfiguredModel {
    /// `provider:model`, "reflex" or "scripted:FILE".
    pub name: String,
    /// The model itself, without retries and fallbacks.
    pub model: Arc<dyn Model>,
    /// Whether it is part of kiso and needs no network.
    pub built_in: bool,
    /// Roles whose first choice it is.
    pub roles: Vec<Role>,
    /// Roles that fall back to it.
    pub fallback_of: Vec<Role>,
    /// Whether it is sent the schema of an answer, as far as the configuration says.
    takes_schemas: bool,
    link: Link,
    settings: TokenBudget,
    /// Why it cannot be called, if it lacks its key.
    unready: Option<ModelError>,
}

impl ConfiguredModel {
    /// What calls cost that were made without a chain around them.
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

/// A model string that names nothing, or a model that cannot be called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the model {name:?} of the role {role} cannot be used: {why}")]
pub struct ModelError {
    /// A role of a prompt, "embedder" or "transcriber".
    pub role: &'static str,
    pub name: String,
    pub why: String,
}

impl Models {
    /// Opens the models that the configuration names, without calling any. `env` gives the value of an environment variable;
    /// it is asked for the keys of those providers that are used. A key that is missing is an error.
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

    /// The same, where a model without its key answers that it has none.
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

    /// The same, whose calls count together with those of the other processes of this home.
    pub fn in_home(self, home: &Home) -> Self {
        self.slots().share(home);
        self
    }

    /// The models of another configuration. What is known about tokens is kept, and so are the slots, whose number follows the
    /// configuration. A key that is missing is an error, unless it was missing before.
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

    /// The built-in rules in the place of all models.
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

    /// The same models as a session wants them. A model for all is meant for every role that works on a message, also for
    /// one that has its own in `config.toml`: whoever chooses a model wants to talk to it. What is done behind the reply
    /// keeps its own. What is known of endpoints, their breakers and the slots are shared.
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

    /// The models that lack their keys, and why.
    pub fn unready(&self) -> &[ModelError] {
        &self.0.unready
    }

    fn with_unready(mut self, more: Vec<ModelError>) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            inner.unready.extend(more);
        }
        self
    }

    /// An error if one of `others` lacks its key and none of these does for the same reason.
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
                // Asked once is enough, also where the list for all names a role's first choice.
                if !chain.contains(&next) {
                    opening.opened[next].fallback_of.push(role);
                    chain.push(next);
                }
            }
            let links: Vec<_> = chain.iter().map(|at| opening.opened[*at].link.clone()).collect();
            let mut settings = opening.opened[first].settings;
            // A prompt is made once, for whoever answers in the end.
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

    /// Each model that `config.toml` names, once and in the order of the roles, or why it cannot be opened: one that lacks
    /// its key does not hide the others.
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

    /// A model of a provider of the configuration that need not be in use, with the keys of these; the model itself, without retries
    /// and fallbacks.
    pub fn single(&self, config: &Config, string: &str) -> Result<ConfiguredModel, ModelError> {
        let mut opening = ModelOpening::new(config, self.0.env.as_ref());
        let at = opening.open_ready(Role::Worker, string)?;
        Ok(opening.opened.swap_remove(at))
    }

    /// Where a provider of the configuration is reached.
    pub fn endpoint(&self, config: &Config, provider: &Provider) -> Result<Endpoint, String> {
        ModelOpening::new(config, self.0.env.as_ref()).endpoint(provider, "", None)
    }

    /// [`Models::each_of`] with the environment of these.
    pub fn each_in(&self, config: &Config) -> Vec<Result<ConfiguredModel, ModelError>> {
        Models::each_of(config, self.0.env.as_ref())
    }

    /// Whether there is a value for the variable of a provider's key.
    pub fn has_key(&self, variable: &str) -> bool {
        (self.0.env)(variable).is_some_and(|value| !value.trim().is_empty())
    }

    /// Whether every call costs nothing and says the same when it is made again: no model is asked but the built-in rules.
    pub fn are_free(&self) -> bool {
        self.0.apart.embedder.is_none() && self.0.opened.iter().all(|opened| opened.name == reflex::NAME)
    }

    /// The model of a role, with its retries and fallbacks.
    pub fn of(&self, role: Role) -> &dyn Model {
        self.0.roles[&role].0.as_ref()
    }

    /// The model of each role, by the names of both.
    pub fn by_role(&self) -> BTreeMap<&'static str, String> {
        Role::ALL.into_iter().map(|role| (role.name(), self.of(role).name().to_owned())).collect()
    }

    /// The planner's model, and those of the roles that have others: "openai:a (router: openai:b; summarizer and titler:
    /// reflex)".
    pub fn summary(&self) -> String {
        let first = self.of(Role::Planner).name();
        let mut others: Vec<(&str, Vec<&str>)> = Vec::new();
        for role in Role::ALL {
            let name = self.of(role).name();
            match others.iter_mut().find(|(known, _)| *known == name) {
                _ if name == first => {}
                Some((_, roles)) => roles.push(role.name()),
                None => others.push((name, vec![role.name()])),
            }
        }
        let others: Vec<_> = others.iter().map(|(name, roles)| format!("{}: {name}", roles.join(", "))).collect();
        if others.is_empty() { first.to_owned() } else { format!("{first} ({})", others.join("; ")) }
    }

    /// What a role's models may be given, the fallbacks included, and what its first choice may answer with. The budget is
    /// in estimated tokens, of which it gets fewer when the provider turns out to count more than the estimate.
    pub fn settings(&self, role: Role) -> TokenBudget {
        let (model, settings) = &self.0.roles[&role];
        let context_budget = self.0.shared.estimator.estimated(model.name(), settings.context_budget);
        TokenBudget { context_budget, ..*settings }
    }

    /// The setting that a prompt for this role, of so many tokens by the plain estimate, is too large for, if it is: the pieces that are never cut, such as the
    /// message itself, take the whole context. The provider would refuse it, or cut off its beginning.
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

    /// Tokens that a message may have before it is put away: what is told of it must fit into the prompts that show the
    /// whole of it, beside everything else.
    pub fn message_tokens(&self) -> usize {
        let budgets = [Role::Router, Role::Planner].into_iter().filter(|role| self.smallest(*role).is_some());
        budgets.map(|role| self.settings(role).context_budget / MESSAGE_PART).min().unwrap_or(usize::MAX)
    }

    /// Whether a schema of the answer means anything to a model of the role: what is built in has its own forms.
    pub fn read_schemas(&self, role: Role) -> bool {
        self.smallest(role).is_some()
    }

    /// Whether the form of a role's answer is sent as a schema, so that its prompt need not say how JSON is told from talk.
    pub fn send_schemas(&self, role: Role) -> bool {
        let mut remote = self.0.opened.iter().filter(|opened| opened.roles.contains(&role) && !opened.built_in);
        remote.next().is_some_and(|opened| opened.takes_schemas)
    }

    /// The model of a role that has the smallest context. What is built in reads prompts of any size.
    fn smallest(&self, role: Role) -> Option<&ConfiguredModel> {
        let of_role = |opened: &&ConfiguredModel| opened.roles.contains(&role) || opened.fallback_of.contains(&role);
        let remote = self.0.opened.iter().filter(of_role).filter(|opened| !opened.built_in);
        remote.min_by_key(|opened| opened.settings.context_budget)
    }

    /// What the provider of the role's first choice will count, where `estimated` tokens are sent.
    pub fn counted(&self, role: Role, estimated: usize) -> usize {
        self.0.shared.estimator.counted(self.of(role).name(), estimated)
    }

    /// Each model once, in the order of the roles.
    pub fn each(&self) -> &[ConfiguredModel] {
        &self.0.opened
    }

    /// The model that gives passages and questions their vectors, where one is configured.
    pub fn embedder(&self) -> Option<&Embedder> {
        self.0.apart.embedder.as_deref()
    }

    /// The model that writes down speech, if one is configured.
    pub fn transcriber(&self) -> Option<&Transcriber> {
        self.0.apart.transcriber.as_deref()
    }

    /// The slots that all calls share.
    pub fn slots(&self) -> &Slots {
        &self.0.shared.slots
    }

    /// The keys that are in use, by the variable that holds each: values that must be kept out of everything written.
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

/// A first choice with its fallbacks. What is built in and has none needs nothing around it.
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
