//! Webhooks: notify other programs over HTTP.
//!
//! Each entry of the outbox is sent until the receiver confirms it: at least once, and each time with the same key, by which
//! the receiver recognizes duplicates. docs/webhooks.md describes the interface for receivers.

mod send;
mod sign;

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use futures_util::future::BoxFuture;
use http::Uri;

use super::sink::ChannelSink;
use super::{Channel, Letter, NotDelivered, RetryPolicy};
use kiso_base::config::{self, Config, WebhookUrl, check_webhook_url};
use kiso_base::home::Home;
use kiso_base::net::is_public;
use kiso_store::secret::SecretValue;
use kiso_store::store::{Subscription, WebhookEvent};

pub use self::send::ReceiverAnswer;

/// Minimum characters of a configured key: shorter ones could be guessed.
const LEAST_KEY: usize = 16;

/// A usable webhook.
#[derive(Clone)]
pub struct Webhook {
    pub name: String,
    /// The receiver's host, for display: no path, which may hold a secret.
    pub host: String,
    pub sessions: Vec<String>,
    pub events: Vec<WebhookEvent>,
    uri: Uri,
    key: SecretValue,
    allow_private: bool,
    timeout: Duration,
    retry: RetryPolicy,
    sink: ChannelSink,
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Webhook({} at {})", self.name, self.host)
    }
}

/// Reasons why a configured webhook cannot be used. Contains nothing of its address except the host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WebhookError {
    #[error("{variable}, the variable with the {what} of [webhooks.{webhook}], is not set")]
    NotSet { webhook: String, variable: String, what: &'static str },
    #[error("{variable}, the variable with the address of [webhooks.{webhook}], {why}")]
    BadUrl { webhook: String, variable: String, why: &'static str },
    #[error("{variable}, the variable with the key of [webhooks.{webhook}], must have {LEAST_KEY} characters or more")]
    ShortKey { webhook: String, variable: String },
    #[error("[webhooks.{webhook}] is at {host}, a private address: allow it with allow_private = true")]
    Private { webhook: String, host: String },
}

impl Webhook {
    /// Returns the webhooks of a configuration, in its order. `environment` returns the value of a variable.
    pub fn open_all(
        home: &Home,
        config: &Config,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Vec<Webhook>, WebhookError> {
        config.webhooks.iter().map(|webhook| Webhook::open(home, config, webhook, &environment)).collect()
    }

    /// Opens one webhook.
    pub fn open(
        home: &Home,
        config: &Config,
        given: &config::WebhookSettings,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Webhook, WebhookError> {
        let name = || given.name.clone();
        let variable = |variable: &String, what| {
            let value = environment(variable).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
            value.ok_or_else(|| WebhookError::NotSet { webhook: name(), variable: variable.clone(), what })
        };
        let url = match &given.url {
            WebhookUrl::Here(url) => url.clone(),
            WebhookUrl::Env(from) => {
                let bad = |why| WebhookError::BadUrl { webhook: name(), variable: from.clone(), why };
                let url = variable(from, "address")?;
                check_webhook_url(&url, given.allow_private).map_err(bad)?;
                url
            }
        };
        // The address was checked by the configuration or just now.
        let uri: Uri = url.parse().unwrap_or_default();
        let host = uri.authority().map(|authority| authority.as_str().to_ascii_lowercase()).unwrap_or_default();
        let address = uri.host().unwrap_or_default().trim_matches(['[', ']']).parse::<IpAddr>();
        if !given.allow_private && address.is_ok_and(|address| !is_public(address)) {
            return Err(WebhookError::Private { webhook: name(), host });
        }
        let key = match &given.secret_env {
            None => sign::derived_key(home, &given.name),
            Some(from) => {
                let key = variable(from, "key")?;
                if key.chars().count() < LEAST_KEY {
                    return Err(WebhookError::ShortKey { webhook: name(), variable: from.clone() });
                }
                SecretValue::new(key)
            }
        };
        let events = WebhookEvent::ALL.into_iter();
        Ok(Webhook {
            name: name(),
            sink: ChannelSink::new(config, format!("host:{}", uri.host().unwrap_or_default().to_ascii_lowercase())),
            host,
            sessions: given.sessions.clone(),
            events: events.filter(|event| given.events.iter().any(|word| word == event.as_str())).collect(),
            uri,
            key,
            allow_private: given.allow_private,
            timeout: Duration::from_secs(given.timeout_s),
            retry: RetryPolicy {
                max_attempts: u32::try_from(given.max_attempts).unwrap_or(u32::MAX),
                max_age_ms: i64::try_from(given.max_age_h).unwrap_or(i64::MAX).saturating_mul(3_600_000),
                base_ms: given.retry_base_ms,
                max_ms: given.retry_max_s.saturating_mul(1_000),
            },
        })
    }

    /// Returns the signing key in the receiver's form.
    pub fn key(&self) -> &SecretValue {
        &self.key
    }

    /// Sends a test delivery once, and waits for the response.
    pub async fn test(&self, now_ms: i64) -> Result<ReceiverAnswer, NotDelivered> {
        send::send(self, &Letter::test(now_ms), now_ms).await
    }
}

impl Channel for Webhook {
    fn name(&self) -> &str {
        &self.name
    }

    fn place(&self) -> String {
        self.host.clone()
    }

    fn subscription(&self) -> Option<Subscription> {
        let (sessions, events) = (self.sessions.clone(), self.events.clone());
        Some(Subscription { channel: self.name.clone(), sessions, events })
    }

    fn sink(&self) -> Option<&ChannelSink> {
        Some(&self.sink)
    }

    fn retry_policy(&self) -> RetryPolicy {
        self.retry
    }

    fn deliver<'a>(&'a self, letter: &'a Letter, now_ms: i64) -> BoxFuture<'a, Result<(), NotDelivered>> {
        Box::pin(async move { send::send(self, letter, now_ms).await.map(drop) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiso_base::config::WEBHOOK_EVENTS;

    fn opened(toml: &str, variables: &[(&str, &str)]) -> Result<Vec<Webhook>, WebhookError> {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(&dir.path().join("home")).unwrap();
        let config = Config::parse(toml.as_bytes()).unwrap();
        let of = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        Webhook::open_all(&home, &config, of)
    }

    #[test]
    fn the_configuration_knows_every_event() {
        let told = WebhookEvent::ALL.map(WebhookEvent::as_str);
        assert_eq!(told, WEBHOOK_EVENTS);
    }

    #[test]
    fn a_webhook_is_shown_without_its_path_and_its_key() {
        let toml = "[webhooks.a]\nurl_env = \"URL\"\nsecret_env = \"KEY\"\n";
        let variables = [("URL", "https://Example.org:8443/hidden?x=hidden"), ("KEY", "hidden-hidden-hidden")];
        let [webhook] = opened(toml, &variables).unwrap().try_into().unwrap();
        assert_eq!(format!("{webhook:?}"), "Webhook(a at example.org:8443)");
        assert_eq!(webhook.key().expose(), "hidden-hidden-hidden");
    }

    #[test]
    fn what_cannot_be_used_is_told_without_secrets() {
        let toml = "[webhooks.a]\nurl_env = \"URL\"\nsecret_env = \"KEY\"\n";
        let told = |variables: &[(&str, &str)]| opened(toml, variables).unwrap_err().to_string();
        let url = ("URL", "https://example.org/hidden");
        assert_eq!(told(&[]), "URL, the variable with the address of [webhooks.a], is not set");
        assert!(told(&[("URL", "http://example.org/hidden")]).contains("[webhooks.a], must begin with https://"));
        assert_eq!(told(&[url]), "KEY, the variable with the key of [webhooks.a], is not set");
        assert!(told(&[url, ("KEY", "hidden")]).contains("must have 16 characters or more"));
        for host in ["127.0.0.1", "10.0.0.1:8443", "[::1]", "169.254.169.254", "[::ffff:192.168.0.1]:1"] {
            let toml = format!("[webhooks.a]\nurl = \"https://{host}/hidden\"\n");
            let told = opened(&toml, &[]).unwrap_err();
            assert_eq!(told, WebhookError::Private { webhook: "a".to_owned(), host: host.to_owned() });
            opened(&format!("{toml}allow_private = true\n"), &[]).unwrap();
        }
    }
}
