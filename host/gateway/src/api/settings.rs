//! Configuration, models and usage.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::sync::Mutex;

use crate::App;
use crate::auth::Who;
use crate::document::routes;
use crate::error::ApiError;
use crate::wire::{JsonResult, Page, Query, page_size};
use kiso_agent::drive::{ConfiguredModel, ModelError, RunExecutor};
use kiso_base::clock::now_ms;
use kiso_base::config::{Config, PRESETS};
use kiso_llm::probe::{ProbeResult, probe};
use kiso_llm::trouble::ModelTrouble;
use kiso_plan::limits::Usage;
use kiso_store::store::Totals;

routes! {
    /// The models of the configuration
    GET "/models" Chat => models;
    /// Call each model in `config.toml`, and report its capabilities
    POST "/models/check" Admin => check,
        200 "The results of the check", 400 "config.toml is not valid", 409 "Another check is running";
    /// Usage of models by day (UTC), latest first
    GET "/usage" Chat => usage;
    /// Every key of config.toml with its current value
    /// Keys of providers are not included: they are in the environment.
    GET "/config" Admin => config, 200 "The configuration";
}

/// The models of the configuration, and the providers that can be added to it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Models")]
pub(super) struct ModelsView {
    /// The model of every session without its own.
    default: String,
    items: Vec<ModelView>,
    /// Models that cannot be called because their keys are missing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unready: Vec<UnreadyModelView>,
    /// Providers that can be added to config.toml.
    presets: Vec<PresetView>,
}

/// A model of the configuration.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Model")]
pub(super) struct ModelView {
    model: String,
    /// Maximum size of a prompt in tokens.
    context_budget: u64,
    /// Price in millionths of a US dollar per million tokens.
    input_price_micros: Option<u64>,
    output_price_micros: Option<u64>,
}

/// A model that cannot be called.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "UnreadyModel")]
pub(super) struct UnreadyModelView {
    model: String,
    why: String,
}

/// A provider that can be added to config.toml.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Preset")]
pub(super) struct PresetView {
    name: &'static str,
    /// The provider's own name.
    title: &'static str,
    model: &'static str,
    #[schemars(extend("enum" = ["openai", "anthropic"]))]
    kind: &'static str,
    base_url: String,
    /// Page for creating a key; null if none is needed.
    key_url: Option<&'static str>,
    advice: String,
    /// Text to add to config.toml.
    toml: String,
    /// The environment variable with its key.
    key_env: Option<String>,
    key_is_set: bool,
}

/// Results of model checks.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ModelChecks {
    checks: Vec<ModelCheck>,
    /// False if the daemon still uses an older version of the file.
    in_use: bool,
}

/// Result of a model check.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ModelCheck {
    model: String,
    pub(super) ok: bool,
    pub(super) detail: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    built_in: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    capabilities: Option<Vec<ProbeResult>>,
    /// The next step, if the model does not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<&'static str>,
}

impl ModelCheck {
    fn new(model: impl Into<String>, ok: bool, detail: impl Into<String>) -> ModelCheck {
        ModelCheck { model: model.into(), ok, detail: detail.into(), built_in: false, capabilities: None, remedy: None }
    }
}

pub(super) async fn config(_: Who, State(app): State<App>) -> Json<Map<String, Value>> {
    match app.0.drive.newest_config().to_json(is_set) {
        Value::Object(object) => Json(object),
        other => unreachable!("a configuration is an object: {other}"),
    }
}

pub(super) async fn models(_: Who, State(app): State<App>) -> Json<ModelsView> {
    let config = app.0.drive.newest_config();
    let models = config.model_strings().into_iter().map(|string| {
        let settings = config.named(string).ok().and_then(|named| config.settings_of(named));
        ModelView {
            model: string.to_owned(),
            context_budget: settings.and_then(|known| known.context_budget).unwrap_or(config.context.budget_tokens),
            input_price_micros: settings.and_then(|known| known.input_price),
            output_price_micros: settings.and_then(|known| known.output_price),
        }
    });
    let items = models.collect();
    let known = app.0.drive.newest().models;
    let presets = PRESETS.iter().map(|preset| {
        let key_env = preset.key_env();
        PresetView {
            name: preset.name,
            title: preset.title,
            kind: preset.kind().name(),
            base_url: preset.base_url(),
            key_url: preset.key_url,
            model: preset.model,
            advice: preset.advice(),
            toml: preset.text(),
            key_is_set: key_env.as_deref().is_none_or(|variable| known.has_key(variable)),
            key_env,
        }
    });
    let unready =
        known.unready().iter().map(|error| UnreadyModelView { model: error.name.clone(), why: error.why.clone() });
    let unready = unready.collect();
    Json(ModelsView { default: config.model.clone(), items, unready, presets: presets.collect() })
}

/// Allows one check at a time: each calls models, which costs money.
static CHECK: Mutex<()> = Mutex::const_new(());

/// Checks one model, unless another check is running.
pub(super) async fn checked(
    drive: &RunExecutor,
    opened: Result<ConfiguredModel, ModelError>,
) -> Result<ModelCheck, ApiError> {
    let _alone = CHECK.try_lock().map_err(|_| busy())?;
    probed(drive, opened).await
}

async fn probed(drive: &RunExecutor, opened: Result<ConfiguredModel, ModelError>) -> Result<ModelCheck, ApiError> {
    let opened = match opened {
        Ok(opened) => opened,
        Err(error) => {
            let remedy = Some(ModelTrouble::NoKey.remedy());
            return Ok(ModelCheck { remedy, ..ModelCheck::new(error.name, false, error.why) });
        }
    };
    if opened.built_in {
        return Ok(ModelCheck { built_in: true, ..ModelCheck::new(opened.name, true, "built in") });
    }
    let (mut found, usage) = probe(opened.model.as_ref()).await;
    if usage != Usage::default() {
        let usage = opened.charge(usage);
        drive.store.write(move |tx| tx.add_usage_of_day(now_ms(), usage)).await?;
    }
    let keys = drive.keys_alone();
    found.iter_mut().for_each(|one| one.note = keys.redact(&one.note));
    let silent = found.iter().find(|one| one.name == "answers" && !one.works);
    let remedy = silent.and_then(|one| ModelTrouble::in_text(&one.note)).map(|(trouble, _)| trouble.remedy());
    let detail = silent.map_or_else(|| "it answers".to_owned(), |one| one.note.clone());
    let ok = silent.is_none();
    Ok(ModelCheck { capabilities: Some(found), remedy, ..ModelCheck::new(opened.name, ok, detail) })
}

fn busy() -> ApiError {
    let message = "the models are being checked already";
    ApiError::new(StatusCode::CONFLICT, "busy", message).hint("wait for the end of that check")
}

/// Uses the keys from the daemon's environment and its store. The response contains no keys.
pub(super) async fn check(_: Who, State(app): State<App>) -> JsonResult<ModelChecks> {
    let _alone = CHECK.try_lock().map_err(|_| busy())?;
    let drive = app.0.drive.newest();
    let config = Config::load(&drive.home).map_err(|error| ApiError::bad_request(error.to_string()))?;
    // Connected providers are in the store.
    let config = drive.with_connected(config).await?;
    let mut checks = Vec::new();
    for opened in drive.models.each_in(&config) {
        checks.push(probed(&drive, opened).await?);
    }
    // A changed file takes effect after `kiso config reload`.
    let in_use = drive.config.model == config.model && drive.config.providers == config.providers;
    Ok(Json(ModelChecks { checks, in_use }))
}

/// Page of the listing of days.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Days {
    /// A day, such as 2027-01-31.
    #[schemars(extend("format" = "date"))]
    before: Option<String>,
    /// Number of entries per page; 50 by default.
    #[schemars(range(min = 1, max = 500))]
    limit: Option<u32>,
}

/// Model calls, tokens and cost of a day (UTC), without the built-in rules.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Day {
    #[schemars(extend("format" = "date"))]
    day: String,
    calls: u64,
    input_tokens: u64,
    output_tokens: u64,
    /// Input tokens that the provider served from its cache.
    cached_tokens: u64,
    /// Millionths of a US dollar; null if unknown.
    cost_micros: Option<u64>,
}

/// Returns the usage of days on which models were called.
pub(super) async fn usage(_: Who, State(app): State<App>, Query(part): Query<Days>) -> JsonResult<Page<Day>> {
    let before = part.before.as_deref().map(day_of).transpose()?;
    let limit = page_size(part.limit)?;
    let days = app.0.drive.store.read(move |view| view.usage_by_day(before, limit)).await?;
    let full = days.len() == limit as usize;
    let next = days.last().filter(|_| full).map(|(day, _)| named(*day));
    let config = app.0.drive.newest_config();
    let items = days.into_iter().map(|(day, totals)| {
        let Totals { calls, usage } = totals;
        let Usage { input_tokens, output_tokens, cached_tokens, .. } = usage;
        let cost_micros = config.known_cost(usage);
        Day { day: named(day), calls, input_tokens, output_tokens, cached_tokens, cost_micros }
    });
    Ok(Json(Page { items: items.collect(), next }))
}

/// Formats days since 1970 as "2027-01-31".
fn named(day: i64) -> String {
    let days = i32::try_from(day).unwrap_or(0);
    let date = jiff::civil::date(1970, 1, 1).checked_add(jiff::Span::new().days(days));
    date.map_or_else(|_| day.to_string(), |date| date.to_string())
}

fn day_of(text: &str) -> Result<i64, ApiError> {
    let wrong = || ApiError::bad_request("`before` is not a day such as 2027-01-31");
    let date: jiff::civil::Date = text.parse().map_err(|_| wrong())?;
    let since = date.since(jiff::civil::date(1970, 1, 1)).map_err(|_| wrong())?;
    Ok(i64::from(since.get_days()))
}

fn is_set(variable: &str) -> bool {
    std::env::var(variable).is_ok_and(|value| !value.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_named_and_found_again() {
        assert_eq!((named(0).as_str(), named(20_454).as_str()), ("1970-01-01", "2026-01-01"));
        assert_eq!(day_of("2026-01-01").unwrap(), 20_454);
        assert!(day_of("yesterday").is_err() && day_of("2026-13-01").is_err());
    }
}
