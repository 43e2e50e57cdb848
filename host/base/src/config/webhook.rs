//! `[webhooks.NAME]`: URLs that are notified of replies. The file never contains the signing key. An address with a secret can be
//! in an environment variable, too.
//!
//! ```toml
//! [webhooks.phone]
//! url = "https://hooks.example.org/kiso"
//! sessions = ["home", "team-*"]
//! ```

use super::fields::{NAME_RULE, TableFields, is_name};
use super::key::{Effect, Kind, NamedTable, ValueError, keys};
use super::provider::{is_secret, variable};
use serde::Serialize;
use std::borrow::Cow;
use std::fmt;
use toml::Spanned;
use toml::de::DeValue;

/// One `[webhooks.NAME]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WebhookSettings {
    pub name: String,
    #[serde(flatten)]
    pub url: WebhookUrl,
    /// Patterns with `*` and `?`; none means every session.
    pub sessions: Vec<String>,
    /// Events out of [`WEBHOOK_EVENTS`].
    pub events: Vec<String>,
    /// The environment variable with the signing key; `None` if kiso derives it.
    pub secret_env: Option<String>,
    /// Whether loopback, private and link-local addresses are allowed, and `http://` for them.
    pub allow_private: bool,
    /// Timeout of one attempt in seconds, from the connection to the response.
    pub timeout_s: u64,
    /// Maximum attempts before a delivery is given up.
    pub max_attempts: u64,
    /// Hours after which a delivery is given up, even after few attempts.
    pub max_age_h: u64,
    /// Milliseconds to wait after the first failed attempt; doubled after each further one.
    pub retry_base_ms: u64,
    /// Maximum seconds to wait for the next attempt, even if the receiver asks for more.
    pub retry_max_s: u64,
}

/// The address, or the variable that holds it. Only the variable's name is ever shown.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub enum WebhookUrl {
    #[serde(rename = "url")]
    Here(String),
    /// The environment variable that holds it.
    #[serde(rename = "url_env")]
    Env(String),
}

impl fmt::Debug for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WebhookUrl::Here(_) => f.write_str("Here(…)"),
            WebhookUrl::Env(variable) => write!(f, "Env({variable})"),
        }
    }
}

/// Events that a webhook can be notified of; a test of the gateway compares them with those that exist.
pub const WEBHOOK_EVENTS: [&str; 3] = ["reply", "run", "notify"];

/// The keys and the documentation of these tables.
#[rustfmt::skip]
pub(super) const TABLE: NamedTable = NamedTable {
    name: "webhooks",
    heading: "[webhooks.NAME]",
    doc: "URLs that are notified of replies; see docs/webhooks.md.",
    example: EXAMPLE,
    after: "gateway",
    effect: Effect::AtOnce,
    id: "name",
    keys: &keys(Effect::AtOnce, [
        ("url", Kind::Characters(2_000, false), "URL to notify, with https; either this or `url_env` is required."),
        ("url_env", Kind::Variable, "Environment variable with the URL, if the URL itself is secret."),
        ("sessions", Kind::List(32), "Sessions to report, with `*` and `?`; empty for all."),
        ("events", Kind::Listed(&["reply", "notify"], &WEBHOOK_EVENTS), "Events to report; without any, everything that is said to the user."),
        ("secret_env", Kind::Variable, "Environment variable with the signing key, at least 16 characters; without it, `kiso connect webhook secret` prints a derived key."),
        ("allow_private", Kind::Bool(false), "Whether to allow private addresses, and requests to them without TLS."),
        ("timeout_s", Kind::Int(10, 1, 300), "Seconds for one attempt."),
        ("max_attempts", Kind::Int(15, 1, 100), "Attempts until a delivery is abandoned."),
        ("max_age_h", Kind::Int(72, 1, 720), "Hours until a delivery is abandoned, but not before five attempts."),
        ("retry_base_ms", Kind::Int(5_000, 10, 3_600_000), "Milliseconds until the second attempt; doubled for each further attempt."),
        ("retry_max_s", Kind::Int(3_600, 1, 86_400), "Maximum seconds between two attempts, even if the receiver asks for more."),
    ]),
};

/// Every reply is compared with every webhook.
const MAX_WEBHOOKS: usize = 32;

/// How the commented file of a fresh home shows webhooks.
const EXAMPLE: &str = "
# URLs that are notified of replies; see docs/webhooks.md. `kiso connect webhook secret NAME` prints the signing key.
# [webhooks.phone]
# url = \"https://hooks.example.org/kiso\"
# sessions = [\"home\", \"team-*\"]
";

/// Reads one table. `others` are the tables that were read before it.
pub(super) fn read<'a>(
    name: &'a Spanned<Cow<'a, str>>,
    value: &'a Spanned<DeValue<'a>>,
    others: usize,
) -> Result<WebhookSettings, Vec<ValueError>> {
    let text = name.get_ref().as_ref();
    if !is_name(text) {
        return Err(vec![(name.span(), format!("webhooks.{text:?}: a webhook's name has {NAME_RULE}"))]);
    }
    if others >= MAX_WEBHOOKS {
        return Err(vec![(name.span(), format!("webhooks.{text}: there may be {MAX_WEBHOOKS} webhooks"))]);
    }
    let mut fields = TableFields::new(&TABLE, format!("webhooks.{text}"), name.span(), value)?;
    let allow_private = fields.bool("allow_private");
    let here = fields.checked("url", |url| check_webhook_url(url, allow_private).map(|()| url.to_owned()));
    let elsewhere = fields.checked("url_env", variable);
    match (fields.has("url"), fields.has("url_env")) {
        (false, false) => fields.missing("url", "such as \"https://hooks.example.org/kiso\", or url_env"),
        (true, true) => fields.missing("only one address", "url or url_env"),
        _ => {}
    }
    let secret_env = fields.checked("secret_env", variable);
    let sessions = fields.list(
        "sessions",
        "must be a list of names of sessions, in which * stands for any characters and ? for one",
        |text| {
            let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-*?".contains(&byte);
            (1..=64).contains(&text.len()) && text.bytes().all(allowed)
        },
    );
    let mut events = fields
        .list("events", "must be a list of \"reply\", \"notify\" and \"run\"", |text| WEBHOOK_EVENTS.contains(&text));
    events.dedup();
    let timeout_s = fields.int("timeout_s");
    let max_attempts = fields.int("max_attempts");
    let max_age_h = fields.int("max_age_h");
    let retry_base_ms = fields.int("retry_base_ms");
    let retry_max_s = fields.int("retry_max_s");
    fields.finish(|key| {
        is_secret(key).then_some("keys do not belong in this file; name the environment variable with secret_env.")
    })?;
    let url = match (here, elsewhere) {
        (Some(url), None) => WebhookUrl::Here(url),
        (None, Some(variable)) => WebhookUrl::Env(variable),
        _ => return Err(Vec::new()),
    };
    Ok(WebhookSettings {
        name: text.to_owned(),
        url,
        sessions,
        events,
        secret_env,
        allow_private,
        timeout_s,
        max_attempts,
        max_age_h,
        retry_base_ms,
        retry_max_s,
    })
}

/// Returns what is wrong with the address of a webhook, if anything. The error does not repeat the address, which may contain a
/// secret.
pub fn check_webhook_url(url: &str, allow_private: bool) -> Result<(), &'static str> {
    if url.contains(|c: char| c.is_whitespace() || c.is_control() || !c.is_ascii()) {
        return Err("must have no spaces and only ASCII characters");
    }
    let Ok(uri) = url.parse::<http::Uri>() else { return Err("must be an address, such as \"https://example.org/x\"") };
    match uri.scheme_str() {
        Some("https") => {}
        Some("http") if allow_private => {}
        Some("http") => {
            return Err("must begin with https://; http:// needs allow_private = true, and a private address");
        }
        _ => return Err("must begin with https://"),
    }
    let Some(authority) = uri.authority() else { return Err("must name a host") };
    if authority.as_str().contains('@') {
        return Err("must hold no user or password: the signature tells the receiver who it is");
    }
    if authority.host().is_empty() || authority.port().is_some_and(|port| port.as_u16() == 0) {
        return Err("must name a host, and a port other than 0");
    }
    if authority.as_str().ends_with(':') || authority.port().is_none() && authority.as_str() != authority.host() {
        return Err("must have a port of 1 to 65535, or none");
    }
    if url.contains('#') {
        return Err("must end before any #");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn problems(text: &str) -> String {
        let problems = Config::parse(text.as_bytes()).unwrap_err();
        problems.iter().map(|problem| format!("{problem}\n")).collect()
    }

    #[test]
    fn a_webhook_needs_an_address_and_nothing_more() {
        let config = Config::parse(b"[webhooks.a]\nurl = \"https://example.org/x?y\"\n").unwrap();
        let [webhook] = config.webhooks.as_slice() else { panic!("{config:?}") };
        assert_eq!(
            (webhook.events.as_slice(), webhook.allow_private),
            (["reply", "notify"].map(str::to_owned).as_slice(), false)
        );
        assert_eq!(webhook.url, WebhookUrl::Here("https://example.org/x?y".to_owned()));
        assert!(!format!("{config:?}").contains("/x?y"), "an address may hold a secret");
        let config = Config::parse(
            b"[webhooks.a]\nurl_env = \"HOOK_URL\"\nsecret_env = \"HOOK_KEY\"\nsessions = [\"a\", \"b-*\"]\n\
              events = [\"run\", \"reply\"]\nallow_private = true\n[webhooks.b]\nurl = \"http://10.0.0.1:8080\"\n\
              allow_private = true\n",
        );
        let config = config.unwrap();
        assert_eq!(config.webhooks[0].url, WebhookUrl::Env("HOOK_URL".to_owned()));
        assert_eq!(config.webhooks[0].sessions, ["a", "b-*"]);
        assert_eq!(config.webhooks.len(), 2);
    }

    #[test]
    fn what_is_wrong_with_a_webhook_is_told_without_its_address() {
        let url = |url: &str| format!("[webhooks.a]\nurl = \"{url}\"\n");
        for (text, said) in [
            ("[webhooks.a]\n".to_owned(), "[webhooks.a] needs url: such as"),
            (url("ftp://example.org/hidden"), "2:7: webhooks.a.url must begin with https://"),
            (url("http://example.org/hidden"), "http:// needs allow_private = true"),
            (url("https://u:hidden@example.org/"), "must hold no user or password"),
            (url("https:///hidden"), "must be an address"),
            (url("https://example.org:0/hidden"), "a port other than 0"),
            (url("https://example.org:99999/hidden"), "port of 1 to 65535"),
            (url("https://exa mple.org/hidden"), "no spaces"),
            (url("https://example.org/#hidden"), "before any #"),
            ("[webhooks.a]\nurl = 1\n".to_owned(), "webhooks.a.url must be a string"),
            ("[webhooks.a]\nurl = \"https://a.b\"\nurl_env = \"X\"\n".to_owned(), "needs only one address"),
            ("[webhooks.a]\nurl_env = \"sk-hidden\"\n".to_owned(), "url_env looks like a key itself"),
            ("[webhooks.a]\nurl = \"https://a.b\"\nsecret = \"hidden\"\n".to_owned(), "name the environment variable"),
            ("[webhooks.a]\nurl = \"https://a.b\"\nsessions = [\"a b\"]\n".to_owned(), "names of sessions"),
            (
                "[webhooks.a]\nurl = \"https://a.b\"\nevents = [\"all\"]\n".to_owned(),
                "\"reply\", \"notify\" and \"run\"",
            ),
            ("[webhooks.a]\nurl = \"https://a.b\"\nallow_private = 1\n".to_owned(), "must be true or false"),
            ("[webhooks.a]\nurl = \"https://a.b\"\ntimeout_s = 0\n".to_owned(), "out of range: 1 to 300"),
            ("[webhooks.\"a b\"]\n".to_owned(), "a webhook's name has"),
            ("webhooks = 1\n".to_owned(), "[webhooks] must be a table"),
        ] {
            let told = problems(&text);
            assert!(told.contains(said) && !told.contains("hidden"), "{text}: {told}");
        }
        let many: String = (0..33).map(|n| format!("[webhooks.a{n}]\nurl = \"https://a.b\"\n")).collect();
        assert_eq!(problems(&many), "65:11: webhooks.a32: there may be 32 webhooks\n");
    }
}
