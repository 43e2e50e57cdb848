//! What is configured, and what it has cost.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::clock::now_ms;
use crate::config::{Config, PRESETS};
use crate::gateway::App;
use crate::gateway::auth::Who;
use crate::gateway::error::ApiError;
use crate::gateway::wire::{Made, Page, Query, page_size};
use crate::llm::Usage;
use crate::llm::probe::probe;

/// `GET /config`: every key with the value in force. Keys of providers stand in the environment, and are not among them.
pub async fn config(_: Who, State(app): State<App>) -> Json<Value> {
    Json(app.0.drive.config_now().to_json(is_set))
}

/// `GET /models`: the models of the configuration, and the providers that can be added to it.
pub async fn models(_: Who, State(app): State<App>) -> Json<Value> {
    let config = app.0.drive.config_now();
    let models = config.model_strings().into_iter().map(|string| {
        let settings = config.named(string).ok().and_then(|named| config.settings_of(named));
        json!({
            "model": string,
            "context_budget": settings.and_then(|known| known.context_budget).unwrap_or(config.context.budget_tokens),
            "input_price_micros": settings.and_then(|known| known.input_price),
            "output_price_micros": settings.and_then(|known| known.output_price),
        })
    });
    let models: Vec<_> = models.collect();
    let known = app.0.drive.now().models;
    let presets = PRESETS.iter().map(|preset| {
        let key_env = preset.key_env();
        json!({
            "name": preset.name, "model": preset.model, "advice": preset.advice(), "toml": preset.text(),
            "key_env": key_env, "key_is_set": key_env.is_none_or(|variable| known.has_key(&variable)),
        })
    });
    let presets: Vec<_> = presets.collect();
    Json(json!({ "default": config.model, "items": models, "presets": presets }))
}

/// One check at a time: each calls models, which costs.
static CHECK: Mutex<()> = Mutex::const_new(());

/// `POST /models/check`: really calls each model that `config.toml` names, as it stands now, and tells what it can do. The
/// keys come from the daemon's environment; none is in the answer.
pub async fn check(_: Who, State(app): State<App>) -> Made<Value> {
    let Ok(_alone) = CHECK.try_lock() else {
        let message = "the models are being checked already";
        return Err(ApiError::new(StatusCode::CONFLICT, "busy", message).hint("wait for the end of that check"));
    };
    let drive = app.0.drive.now();
    let config = Config::load(&drive.home).map_err(|error| ApiError::bad_request(error.to_string()))?;
    let mut checks = Vec::new();
    for opened in drive.models.each_in(&config) {
        let opened = match opened {
            Ok(opened) => opened,
            Err(error) => {
                checks.push(json!({ "model": error.name, "ok": false, "detail": error.why }));
                continue;
            }
        };
        if opened.built_in {
            checks.push(json!({ "model": opened.name, "ok": true, "built_in": true, "detail": "built in" }));
            continue;
        }
        let (found, usage) = probe(opened.model.as_ref()).await;
        if usage != Usage::default() {
            let usage = opened.charge(usage);
            drive.store.write(move |tx| tx.add_usage_of_day(now_ms(), usage)).await?;
        }
        let silent = found.iter().find(|one| one.name == "answers" && !one.works);
        let detail = silent.map_or_else(|| "it answers".to_owned(), |one| one.note.clone());
        let detail = drive.keys_alone().redact(&detail);
        checks.push(json!({ "model": opened.name, "ok": silent.is_none(), "detail": detail, "capabilities": found }));
    }
    // A file that was changed counts from `kiso config reload` on.
    let in_use = drive.config.model == config.model && drive.config.providers == config.providers;
    Ok(Json(json!({ "checks": checks, "in_use": in_use })))
}

/// Which part of the listing of days.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Days {
    /// A day, as in `day`.
    before: Option<String>,
    limit: Option<u32>,
}

/// `GET /usage`: what models used on each day (UTC) on which they were called, the last one first.
pub async fn usage(_: Who, State(app): State<App>, Query(part): Query<Days>) -> Made<Page<Value>> {
    let before = part.before.as_deref().map(day_of).transpose()?;
    let limit = page_size(part.limit)?;
    let days = app.0.drive.store.read(move |view| view.usage_by_day(before, limit)).await?;
    let full = days.len() == limit as usize;
    let next = days.last().filter(|_| full).map(|(day, _)| named(*day));
    let items = days.into_iter().map(|(day, totals)| {
        json!({
            "day": named(day), "calls": totals.calls, "input_tokens": totals.usage.input_tokens,
            "output_tokens": totals.usage.output_tokens, "cost_micros": totals.usage.cost_micros,
        })
    });
    Ok(Json(Page { items: items.collect(), next }))
}

/// Days since 1970 as "2027-01-31".
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
