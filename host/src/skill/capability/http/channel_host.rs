//! The one host of a channel, with the token for it. Its grant is what the administrator wrote into `config.toml`, so there is no
//! manifest that asks and no pattern: requests go to this host and port, or nowhere.

use super::gate::{HttpRule, HttpRules, Injection};
use super::{METHODS, OutgoingHttp};
use crate::config::Http as HttpConfig;
use crate::secret::SecretValue;
use http::Uri;
use http::header::AUTHORIZATION;
use std::sync::Arc;
use std::time::Duration;

/// Characters of a token, at least: what is shorter may stand in any text, from which it is taken out.
pub const LEAST_TOKEN: usize = 8;

/// Where a channel may go.
pub struct ChannelHost {
    /// With its port, where the URL has one.
    host: String,
    allow_private: bool,
    token: Option<SecretValue>,
}

impl std::fmt::Debug for ChannelHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ChannelHost({})", self.host)
    }
}

impl ChannelHost {
    /// The host of a URL, which is reached with this token.
    pub fn new(url: &str, allow_private: bool, token: Option<SecretValue>) -> Result<ChannelHost, String> {
        let uri: Uri = url.parse().map_err(|_| "the url of the channel is not a URL".to_owned())?;
        let host = uri.authority().ok_or("the url of the channel names no host")?.as_str().to_ascii_lowercase();
        if token.as_ref().is_some_and(|token| token.expose().len() < LEAST_TOKEN) {
            return Err(format!("the token must have {LEAST_TOKEN} characters or more"));
        }
        Ok(ChannelHost { host, allow_private, token })
    }

    /// A text in which the token does not stand.
    pub fn redact(&self, text: &str) -> String {
        match &self.token {
            Some(token) => text.replace(token.expose(), "[token]"),
            None => text.to_owned(),
        }
    }
}

impl OutgoingHttp {
    /// Lets the requests of a call go to the host of its channel.
    pub fn reach(&mut self, to: &ChannelHost, config: &HttpConfig) {
        let bearer = |token: &SecretValue| {
            Injection::Header(AUTHORIZATION, SecretValue::new(format!("Bearer {}", token.expose())))
        };
        let rule = HttpRule {
            host: to.host.clone(),
            methods: METHODS.iter().map(|method| (*method).to_owned()).collect(),
            private: to.allow_private,
            inject: to.token.as_ref().map(bearer),
        };
        self.gate.rules = Arc::new(HttpRules {
            rules: vec![rule],
            max_response: usize::try_from(config.max_response_mib << 20).unwrap_or(usize::MAX),
            connect_timeout: Duration::from_secs(config.connect_timeout_s),
        });
    }
}
