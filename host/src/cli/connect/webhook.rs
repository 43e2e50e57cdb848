//! `kiso connect webhook`: lists and tests receivers of replies, and retries failed deliveries.

use crate::channel::Trouble;
use crate::channel::webhook::{Webhook, WebhookError};
use crate::cli::show::printable_line;
use crate::cli::trace::time;
use crate::cli::{Exit, Failure, Opened, Shared, block_on, environment};
use clap::Subcommand;
use kiso_base::clock::now_ms;
use kiso_base::config;
use kiso_plan::report::counted;
use kiso_sandbox::skill::Quiet;
use serde_json::json;
use std::sync::Arc;

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum WebhookCommand {
    /// List the webhooks in config.toml with the state of their deliveries
    List,
    /// Print the signing key that the receiver needs
    Secret { name: String },
    /// Send a test event and show the receiver's answer
    Test { name: String },
    /// List failed deliveries, newest first
    Failed {
        /// How many to list
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
    },
    /// Retry waiting and failed deliveries of one webhook, or of all; `kiso serve` sends them
    Retry { name: Option<String> },
}

impl WebhookCommand {
    pub(super) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let opened = Opened::new(shared, Arc::new(Quiet))?;
        match self {
            Self::List => list(&opened, shared.json),
            Self::Secret { name } => secret(&opened, name, shared.json),
            Self::Test { name } => test(&opened, name, shared.json),
            Self::Failed { limit } => failed(&opened, *limit, shared.json),
            Self::Retry { name } => retry(&opened, name.as_deref(), shared.json),
        }
    }
}

fn list(opened: &Opened, as_json: bool) -> Result<Exit, Failure> {
    let lines = opened.store.read_blocking(|view| view.webhooks())?;
    if opened.config.webhooks.is_empty() && !as_json {
        errln!("there are no webhooks; add one as [webhooks.NAME] in config.toml");
    }
    for given in &opened.config.webhooks {
        let line = lines.iter().find(|line| line.webhook == given.name);
        let count = |of: fn(&kiso_store::store::WebhookLine) -> u64| line.map_or(0, of);
        let (pending, delivered, failed) = (count(|line| line.pending), count(|l| l.delivered), count(|l| l.failed));
        let webhook = Webhook::open(&opened.home, &opened.config, given, environment);
        let (host, error) = match &webhook {
            Ok(webhook) => (Some(webhook.host.clone()), None),
            Err(error) => (None, Some(error.to_string())),
        };
        if as_json {
            let object = json!({
                "type": "webhook", "webhook": given.name, "host": host, "sessions": given.sessions, "events": given.events,
                "pending": pending, "delivered": delivered, "failed": failed,
                "next_ms": line.and_then(|line| line.next_ms), "error": error,
            });
            outln!("{object}");
        } else {
            let what = host.or(error).unwrap_or_default();
            let events = given.events.join(", ");
            let name = &given.name;
            outln!("{name}  {what}  {events}  {pending} waiting, {delivered} delivered, {failed} failed");
        }
    }
    Ok(Exit::Done)
}

fn secret(opened: &Opened, name: &str, as_json: bool) -> Result<Exit, Failure> {
    let webhook = find(opened, name)?;
    if as_json {
        outln!("{}", json!({ "type": "webhook_secret", "webhook": name, "secret": webhook.key().expose() }));
    } else {
        outln!("{}", webhook.key().expose());
    }
    Ok(Exit::Done)
}

fn test(opened: &Opened, name: &str, as_json: bool) -> Result<Exit, Failure> {
    let webhook = find(opened, name)?;
    match block_on(webhook.test(now_ms()))? {
        Ok(answer) => {
            if as_json {
                let (host, status) = (&webhook.host, answer.status);
                outln!("{}", json!({ "type": "tested", "webhook": name, "host": host, "status": status }));
            } else {
                outln!("{} received it and answered {}", webhook.host, answer.status);
            }
            Ok(Exit::Done)
        }
        Err(failed) => {
            let exit = if failed.trouble == Trouble::Private { Exit::Policy } else { Exit::Failed };
            Err(Failure::new(exit, format!("{} did not receive it: {}", webhook.host, failed.text())))
        }
    }
}

fn failed(opened: &Opened, limit: u32, as_json: bool) -> Result<Exit, Failure> {
    let failed = opened.store.read_blocking(move |view| view.failed_deliveries(limit))?;
    if failed.is_empty() && !as_json {
        errln!("no deliveries have failed");
    }
    for delivery in failed {
        let (name, event, error) = (&delivery.channel, delivery.event.as_str(), delivery.error.unwrap_or_default());
        if as_json {
            let run = delivery.run.map(|run| run.to_string());
            let object = json!({
                "type": "delivery", "id": delivery.key, "webhook": name, "event": event, "message": delivery.message,
                "run": run, "at_ms": delivery.at_ms, "attempts": delivery.attempts, "ended_ms": delivery.ended_ms,
                "error": error,
            });
            outln!("{object}");
        } else {
            let (ended, attempts) = (time(delivery.ended_ms.unwrap_or_default()), delivery.attempts);
            let what = match (delivery.message, delivery.run) {
                (Some(message), _) => format!("message {message}"),
                (None, Some(run)) => format!("run {run}"),
                (None, None) => "deleted".to_owned(),
            };
            let attempts = counted(attempts.into(), "attempt", "attempts");
            outln!("{ended}  {name}  {event}  {what}  {attempts}: {}", printable_line(&error));
        }
    }
    Ok(Exit::Done)
}

fn retry(opened: &Opened, name: Option<&str>, as_json: bool) -> Result<Exit, Failure> {
    if let Some(name) = name {
        find_webhook(opened, name)?;
    }
    let of = name.map(str::to_owned);
    let count = opened.store.write_blocking(move |tx| tx.retry_deliveries(of.as_deref(), now_ms()))?;
    if as_json {
        outln!("{}", json!({ "type": "retried", "webhook": name, "deliveries": count }));
    } else {
        outln!("{} due now", counted(count, "delivery is", "deliveries are"));
    }
    Ok(Exit::Done)
}

fn find_webhook<'a>(opened: &'a Opened, name: &str) -> Result<&'a config::WebhookSettings, Failure> {
    let all = &opened.config.webhooks;
    all.iter().find(|webhook| webhook.name == name).ok_or_else(|| {
        let names: Vec<_> = all.iter().map(|webhook| webhook.name.as_str()).collect();
        let there =
            if names.is_empty() { "there is none".to_owned() } else { format!("there are {}", names.join(", ")) };
        let short: String = name.chars().take(80).collect();
        Failure::new(Exit::Usage, format!("config.toml has no webhook {short:?}; {there}"))
    })
}

fn find(opened: &Opened, name: &str) -> Result<Webhook, Failure> {
    Ok(Webhook::open(&opened.home, &opened.config, find_webhook(opened, name)?, environment)?)
}

impl From<WebhookError> for Failure {
    fn from(error: WebhookError) -> Failure {
        let exit = if matches!(error, WebhookError::Private { .. }) { Exit::Policy } else { Exit::Config };
        Failure::new(exit, error.to_string())
    }
}
