//! Providers of models: those of `config.toml`, and those that an administrator connects while kiso runs. A key is never
//! returned; it is sent only to its provider.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use super::settings::{ModelCheck, checked};
use crate::App;
use crate::auth::Who;
use crate::document::routes;
use crate::error::ApiError;
use crate::wire::{Body, JsonResult, Path, Query};
use kiso_agent::drive::{ConnectError, MAX_KEY, ProviderEntry};
use kiso_base::config::{Config, PRESETS, Provider, ProviderKind};
use kiso_llm::LlmError;
use kiso_llm::catalog::{self, MAX_NAME, OfferedModel};
use kiso_llm::trouble::ModelTrouble;
use kiso_store::secret::SecretValue;

routes! {
    /// Providers of models
    /// Providers of `config.toml` take precedence over connected ones of the same name. The response contains no keys.
    GET "/providers" Admin => list;
    /// Connect a provider, or change a connected one
    /// Its key is stored encrypted and sent only to this address.
    PUT "/providers/{name}" Admin => connect, 400 "The name, the address or the key is not valid, or `config.toml` defines the provider", 507 "Too many providers";
    /// Remove a connected provider, with its key and its models
    DELETE "/providers/{name}" Admin => disconnect, 404 "No such provider is connected";
    /// The models that a provider lists
    GET "/providers/{name}/models" Admin => offered, 404 "There is no such provider", 502 "The provider did not answer, or refused";
    /// Use a model of a connected provider
    /// The model can then be chosen for each session. As the default, it is the model of every role without its own, unless
    /// `config.toml` names another one.
    PUT "/providers/{name}/models" Admin => add_model, 400 "The name is not valid for a model", 404 "No such provider is connected", 507 "Too many models";
    /// Remove a model of a connected provider
    DELETE "/providers/{name}/models" Admin => remove_model, 404 "There is no such model";
    /// Call a model of a provider, and report its capabilities
    POST "/providers/{name}/check" Admin => check, 404 "There is no such provider", 409 "Another check is running";
}

/// Maximum context in tokens. A larger one only makes answers slower and more expensive.
const MAX_CONTEXT: u64 = 128_000;

/// Minimum context in tokens. No prompt fits into a smaller one.
const MIN_CONTEXT: u64 = 4_000;

/// Limits concurrent fetches of model lists; others wait. Each may take megabytes.
static PLACES: Semaphore = Semaphore::const_new(2);

/// Time limit for connecting, because a person waits for it.
const CONNECT: Duration = Duration::from_secs(10);

/// Providers of models.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Providers")]
pub(super) struct ProvidersShown {
    items: Vec<ProviderShown>,
    /// The model of every role without its own.
    default: String,
    /// Whether `config.toml` names that model, so that a connected model cannot replace it.
    default_is_configured: bool,
}

/// A provider of models.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Provider")]
struct ProviderShown {
    name: String,
    #[schemars(extend("enum" = ["openai", "anthropic"]))]
    kind: &'static str,
    base_url: String,
    /// Whether the provider is in `config.toml`; it can be changed only there.
    configured: bool,
    /// Whether it has a key, if it requires one.
    has_key: bool,
    /// Whether it requires a key.
    wants_key: bool,
    /// Names of its usable models, as `provider:model`.
    models: Vec<String>,
    /// Whether a provider of `config.toml` has the same name and is used instead.
    hidden: bool,
    /// The result of the last request that listed its models or tested one: "works", or the code of a failure, such as
    /// "key_refused". Null if there was none since kiso started or the provider was changed.
    last_call: Option<&'static str>,
}

/// The result of the last call of each provider: `None` if it succeeded. Kept only in memory, and only for existing providers.
#[derive(Debug, Default)]
pub(crate) struct ProviderCalls(Mutex<HashMap<String, Option<ModelTrouble>>>);

impl ProviderCalls {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Option<ModelTrouble>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn last(&self, name: &str) -> Option<&'static str> {
        self.lock().get(name).map(|trouble| trouble.map_or("works", ModelTrouble::code))
    }

    fn forget(&self, name: &str) {
        self.lock().remove(name);
    }

    /// Records that a list of models was received, or why it was not. Some providers list models without checking the key, so a
    /// received list does not replace a failed test of the key.
    fn listed(&self, name: &str, trouble: Option<ModelTrouble>) {
        let mut all = self.lock();
        let of_key =
            |known: &Option<ModelTrouble>| matches!(known, Some(ModelTrouble::KeyRefused | ModelTrouble::NoCredit));
        if trouble.is_some() || !all.get(name).is_some_and(of_key) {
            all.insert(name.to_owned(), trouble);
        }
    }

    /// Records the result of a test. Problems with a single model are not recorded.
    fn tested(&self, name: &str, check: &ModelCheck) {
        let trouble = ModelTrouble::in_text(&check.detail).map(|(trouble, _)| trouble);
        match trouble.filter(|_| !check.ok) {
            None if check.ok => _ = self.lock().insert(name.to_owned(), None),
            Some(ModelTrouble::KeyRefused | ModelTrouble::NoCredit | ModelTrouble::Unreachable) => {
                self.lock().insert(name.to_owned(), trouble);
            }
            None | Some(_) => {}
        }
    }
}

/// A provider to connect.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewProvider")]
pub(super) struct ProviderToConnect {
    /// "anthropic", or "openai" for every server with chat completions.
    #[schemars(extend("enum" = ["openai", "anthropic"]))]
    kind: String,
    /// Common beginning of its addresses, such as `https://api.openai.com/v1`.
    base_url: String,
    /// Absent for a server that requires no key. Without it and with the same `base_url`, the stored key stays.
    #[schemars(length(max = MAX_KEY), extend("writeOnly" = true))]
    key: Option<Key>,
}

/// A received key; never printed.
#[derive(Debug, JsonSchema)]
#[schemars(transparent)]
struct Key(#[schemars(with = "String")] SecretValue);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: serde::Deserializer<'de>>(input: D) -> Result<Key, D::Error> {
        Ok(Key(SecretValue::new(String::deserialize(input)?)))
    }
}

/// A connected provider.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ConnectedProvider")]
pub(super) struct ConnectedProvider {
    name: String,
    base_url: String,
    has_key: bool,
}

/// The models that a provider lists.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "OfferedModels")]
pub(super) struct OfferedModels {
    items: Vec<Offered>,
}

/// A model that a provider lists.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "OfferedModel")]
struct Offered {
    /// Name at the provider.
    name: String,
    /// Context in tokens, if the provider states it.
    context: Option<u64>,
}

/// A model of the provider.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ModelToUse")]
pub(super) struct ModelToUse {
    /// Name at the provider.
    #[schemars(length(min = 1, max = MAX_NAME))]
    model: String,
    /// Context in tokens, as the provider states it.
    context: Option<u64>,
    /// Whether it is the model for every role without its own.
    default: bool,
}

/// A model of the provider.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ModelOfProvider")]
pub(super) struct ModelOfProvider {
    /// Name at the provider.
    #[schemars(length(min = 1, max = MAX_NAME))]
    model: String,
}

/// A usable model.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ModelInUse")]
pub(super) struct ModelInUse {
    /// `provider:model`.
    model: String,
    /// Whether it is the model for every role without its own.
    in_use: bool,
}

/// The answer to a removal.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ProviderForgotten")]
pub(super) struct ProviderForgotten {
    forgotten: bool,
}

pub(super) async fn list(_: Who, State(app): State<App>) -> JsonResult<ProvidersShown> {
    let (rows, connected) = app.0.drive.store.read(|view| Ok((view.connected_providers()?, view.connected()?))).await?;
    let drive = app.0.drive.newest();
    let config = &drive.config;
    let of = |name: &str, strings: &[&str]| {
        let prefix = format!("{name}:");
        strings.iter().filter(|model| model.starts_with(&prefix)).map(|model| (*model).to_owned()).collect::<Vec<_>>()
    };
    let in_file = config.providers.iter().filter(|provider| !provider.connected).map(|provider| ProviderShown {
        name: provider.name.clone(),
        kind: provider.kind.name(),
        base_url: provider.base_url.clone(),
        configured: true,
        has_key: provider.key_env.as_deref().is_some_and(|variable| drive.models.has_key(variable)),
        wants_key: provider.key_env.is_some(),
        models: of(&provider.name, &config.model_strings()),
        hidden: false,
        last_call: app.0.provider_calls.last(&provider.name),
    });
    let mut items: Vec<_> = in_file.collect();
    let strings: Vec<&str> = connected.models.iter().map(|model| model.name.as_str()).collect();
    for row in rows {
        let hidden = items.iter().any(|known| known.configured && known.name == row.name);
        let has_key = row.sealed.is_some();
        items.push(ProviderShown {
            models: of(&row.name, &strings),
            last_call: app.0.provider_calls.last(&row.name).filter(|_| !hidden),
            kind: row.kind.name(),
            name: row.name,
            base_url: row.base_url,
            configured: false,
            has_key,
            wants_key: has_key,
            hidden,
        });
    }
    let (default, default_is_configured) = (config.model.clone(), default_is_configured(config));
    Ok(Json(ProvidersShown { items, default, default_is_configured }))
}

pub(super) async fn connect(
    who: Who,
    State(app): State<App>,
    Path(name): Path<String>,
    Body(new): Body<ProviderToConnect>,
) -> JsonResult<ConnectedProvider> {
    let kind = ProviderKind::named(&new.kind)
        .ok_or_else(|| ApiError::bad_request("`kind` is neither \"openai\" nor \"anthropic\""))?;
    let (base_url, key, by) = (new.base_url, new.key.map(|Key(key)| key), who.name().to_owned());
    let entry = ProviderEntry { name, kind, base_url, key, by };
    let provider = app.0.drive.connect_provider(entry).await.map_err(refusal)?;
    app.0.provider_calls.forget(&provider.name);
    let name = provider.name.clone();
    let known = app.0.drive.store.read(move |view| view.connected_provider(&name)).await?;
    let has_key = known.is_some_and(|known| known.sealed.is_some());
    Ok(Json(ConnectedProvider { name: provider.name, base_url: provider.base_url, has_key }))
}

pub(super) async fn disconnect(
    _: Who,
    State(app): State<App>,
    Path(name): Path<String>,
) -> JsonResult<ProviderForgotten> {
    match app.0.drive.disconnect_provider(&name).await.map_err(refusal)? {
        true => {
            app.0.provider_calls.forget(&name);
            Ok(Json(ProviderForgotten { forgotten: true }))
        }
        false => Err(no_provider(&name)),
    }
}

pub(super) async fn offered(_: Who, State(app): State<App>, Path(name): Path<String>) -> JsonResult<OfferedModels> {
    let drive = app.0.drive.newest();
    let provider = provider(&drive.config, &name)?;
    let endpoint = drive.models.endpoint(&drive.config, provider);
    let unready = |message: String| LlmError::Unready { model: name.clone(), message };
    let calls = &app.0.provider_calls;
    let failed = |error: &LlmError| {
        calls.listed(&name, Some(ModelTrouble::from_error(error).unwrap_or(ModelTrouble::ProviderFailed)));
        failed(error, &name)
    };
    let mut endpoint = endpoint.map_err(|why| failed(&unready(why)))?;
    endpoint.patience.connect = endpoint.patience.connect.min(CONNECT);
    let _place = PLACES.acquire().await.map_err(|closed| ApiError::internal(&closed))?;
    let models = catalog::offered(provider.kind, endpoint).await.map_err(|error| failed(&error))?;
    calls.listed(&name, None);
    let items = models.into_iter().map(|OfferedModel { name, context }| Offered { name, context }).collect();
    Ok(Json(OfferedModels { items }))
}

pub(super) async fn add_model(
    _: Who,
    State(app): State<App>,
    Path(name): Path<String>,
    Body(new): Body<ModelToUse>,
) -> JsonResult<ModelInUse> {
    check_name(&new.model)?;
    let drive = app.0.drive.newest();
    let known = provider(&drive.config, &name)?;
    if !known.connected {
        let message = format!("{name} is a provider of config.toml");
        return Err(ApiError::bad_request(message).hint("name the model there, and run `kiso config reload`"));
    }
    let context = context(known, &new);
    let (of, model, is_default) = (name.clone(), new.model.clone(), new.default);
    let write = app.0.drive.store.write(move |tx| tx.put_connected_model((&of, &model), context, is_default));
    if !write.await? {
        return Err(no_provider(&name));
    }
    app.0.drive.adopt_connected().await.map_err(refusal)?;
    let model = format!("{name}:{}", new.model);
    let in_use = app.0.drive.newest_config().model == model;
    Ok(Json(ModelInUse { model, in_use }))
}

pub(super) async fn remove_model(
    _: Who,
    State(app): State<App>,
    Path(name): Path<String>,
    Query(of): Query<ModelOfProvider>,
) -> JsonResult<ProviderForgotten> {
    let (provider, model) = (name.clone(), of.model.clone());
    let gone = app.0.drive.store.write(move |tx| tx.delete_connected_model(&provider, &model)).await?;
    app.0.drive.adopt_connected().await.map_err(refusal)?;
    match gone {
        true => Ok(Json(ProviderForgotten { forgotten: true })),
        false => Err(ApiError::not_found(format!("{name} has no model {:?} that was added here", of.model))),
    }
}

pub(super) async fn check(
    _: Who,
    State(app): State<App>,
    Path(name): Path<String>,
    Body(of): Body<ModelOfProvider>,
) -> JsonResult<ModelCheck> {
    check_name(&of.model)?;
    let drive = app.0.drive.newest();
    provider(&drive.config, &name)?;
    let string = format!("{name}:{}", of.model);
    let opened = drive.models.single(&drive.config, &string);
    let found = checked(&drive, opened).await?;
    app.0.provider_calls.tested(&name, &found);
    Ok(Json(found))
}

/// Returns whether `config.toml` sets the default model.
fn default_is_configured(config: &Config) -> bool {
    let provider = config.model.split_once(':').map_or("", |(provider, _)| provider);
    let connected = config.providers.iter().any(|known| known.connected && known.name == provider);
    config.model != kiso_llm::reflex::NAME && !connected
}

/// Returns the model's context in tokens, as stated by its provider or, at an address of a preset, by the preset.
fn context(provider: &Provider, model: &ModelToUse) -> Option<u64> {
    let said = model.context.filter(|tokens| *tokens >= MIN_CONTEXT).map(|tokens| tokens.min(MAX_CONTEXT));
    let old = ["gpt-3.5", "gpt-4-"].iter().any(|old| model.model.starts_with(old)) || model.model == "gpt-4";
    said.or_else(|| {
        let preset = PRESETS.iter().find(|preset| preset.base_url() == provider.base_url);
        preset.and_then(|preset| preset.context_budget()).filter(|_| !old)
    })
}

fn provider<'c>(config: &'c Config, name: &str) -> Result<&'c Provider, ApiError> {
    config.providers.iter().find(|provider| provider.name == name).ok_or_else(|| no_provider(name))
}

fn no_provider(name: &str) -> ApiError {
    ApiError::not_found(format!("there is no provider {name:?}")).hint("connect it first")
}

fn check_name(model: &str) -> Result<(), ApiError> {
    match catalog::is_model_name(model) {
        true => Ok(()),
        false => Err(ApiError::bad_request(format!(
            "`model` is not a model's name: it has 1 to {MAX_NAME} visible ASCII characters and no spaces"
        ))),
    }
}

/// Returns the error of a call that the provider did not answer, with its own message and the next step.
fn failed(error: &LlmError, provider: &str) -> ApiError {
    let trouble = ModelTrouble::from_error(error).unwrap_or(ModelTrouble::ProviderFailed);
    let message = match error {
        LlmError::Unavailable { message, .. }
        | LlmError::Refused { message, .. }
        | LlmError::Unready { message, .. } => {
            format!("{}: {message}", trouble.title())
        }
        LlmError::Script(message) => message.clone(),
    };
    tracing::info!("the provider {provider} did not list its models: {message}");
    ApiError::new(StatusCode::BAD_GATEWAY, "provider_failed", message).hint(trouble.remedy())
}

fn refusal(error: ConnectError) -> ApiError {
    match error {
        ConnectError::Invalid(why) => ApiError::bad_request(why),
        ConnectError::Store(error) => error.into(),
        ConnectError::Vault(error) => ApiError::internal(&error),
        ConnectError::Model(error) => ApiError::bad_request(error.to_string()),
    }
}
