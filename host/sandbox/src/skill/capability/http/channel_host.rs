//! The one host of a channel, with its token. The administrator's `config.toml` is the grant, without needs of a manifest and
//! without patterns: requests go to this host and port, or nowhere.

use super::OutgoingHttp;
use super::masked::SecretMask;
use super::rule::{HttpRule, HttpRules, Injection};
use http::Uri;
use http::header::AUTHORIZATION;
use kiso_base::config::{Http as HttpConfig, TokenPlace};
use kiso_plan::network::METHODS;
use kiso_store::secret::SecretValue;
use std::sync::Arc;
use std::time::Duration;

/// The minimum length of a token. A shorter one could occur in any text, and masking would damage that.
pub(super) const LEAST_TOKEN: usize = 8;

/// The host that a channel may reach.
pub struct ChannelHost {
    /// With its port, if the URL has one.
    host: String,
    allow_private: bool,
    token: Option<(Injection, Arc<SecretMask>)>,
}

impl std::fmt::Debug for ChannelHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ChannelHost({})", self.host)
    }
}

impl ChannelHost {
    /// Makes it from a URL, with this token in this place.
    pub fn new(
        url: &str,
        allow_private: bool,
        token: Option<SecretValue>,
        place: TokenPlace,
    ) -> Result<ChannelHost, String> {
        let uri: Uri = url.parse().map_err(|_| "the url of the channel is not a URL".to_owned())?;
        let host = uri.authority().ok_or("the url of the channel names no host")?.as_str().to_ascii_lowercase();
        if token.as_ref().is_some_and(|token| token.expose().len() < LEAST_TOKEN) {
            return Err(format!("the token must have {LEAST_TOKEN} characters or more"));
        }
        let token = token.map(|token| {
            let mask = Arc::new(SecretMask::new(&token));
            let injection = match place {
                TokenPlace::Header => {
                    Injection::Header(AUTHORIZATION, SecretValue::new(format!("Bearer {}", token.expose())))
                }
                TokenPlace::Path => Injection::Path(token),
            };
            (injection, mask)
        });
        Ok(ChannelHost { host, allow_private, token })
    }

    /// Returns a text without the token.
    pub fn redact(&self, text: &str) -> String {
        match &self.token {
            Some((_, mask)) => mask.text(text),
            None => text.to_owned(),
        }
    }
}

impl OutgoingHttp {
    /// Allows the requests of a call to these hosts, which an administrator wrote into `config.toml`, with any method.
    pub fn open_to(&mut self, hosts: &[String], private: bool, config: &HttpConfig) {
        let methods: Vec<String> = METHODS.iter().map(|method| (*method).to_owned()).collect();
        let rule = |host: &String| {
            let (host, methods) = (host.clone(), methods.clone());
            HttpRule { host, methods, private, inject: None, mask: None }
        };
        self.set_rules(hosts.iter().map(rule).collect(), config);
    }

    /// Allows the requests of a call to the host of its channel.
    pub fn reach(&mut self, to: &ChannelHost, config: &HttpConfig) {
        let (inject, mask) = to.token.clone().unzip();
        let rule = HttpRule {
            host: to.host.clone(),
            methods: METHODS.iter().map(|method| (*method).to_owned()).collect(),
            private: to.allow_private,
            inject,
            mask,
        };
        self.set_rules(vec![rule], config);
    }

    fn set_rules(&mut self, rules: Vec<HttpRule>, config: &HttpConfig) {
        self.gate.rules = Arc::new(HttpRules {
            rules,
            max_response: usize::try_from(config.max_response_mib << 20).unwrap_or(usize::MAX),
            connect_timeout: Duration::from_secs(config.connect_timeout_s),
        });
    }
}
