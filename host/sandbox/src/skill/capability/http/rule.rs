//! The hosts that a call's requests may reach, and the errors for all others.

use super::masked::SecretMask;
use http::HeaderName;
use kiso_plan::code::{Blame, ErrorCode};
use kiso_plan::network::split_port;
use kiso_store::secret::SecretValue;
use std::sync::Arc;
use std::time::Duration;

/// The hosts that one call may reach, as granted.
#[derive(Debug, Clone, Default)]
pub struct HttpRules {
    pub rules: Vec<HttpRule>,
    /// The longest body of a response, in bytes.
    pub max_response: usize,
    /// The longest wait for a connection.
    pub connect_timeout: Duration,
}

/// One granted host.
#[derive(Debug, Clone)]
pub struct HttpRule {
    /// "api.example.org", "*.example.org" (any name below, not the name itself), "*" (every host), each with an
    /// optional ":port"; without one the scheme's own port is meant.
    pub host: String,
    /// Methods in upper case.
    pub methods: Vec<String>,
    /// Whether loopback, private and link-local addresses may be reached. Only an administrator's file can say so.
    pub private: bool,
    /// The secret that the host puts into each request. The guest never sees the value.
    pub inject: Option<Injection>,
    /// Removes the secret from responses, because a service may repeat what it was sent.
    pub mask: Option<Arc<SecretMask>>,
}

/// A secret in a request.
#[derive(Debug, Clone)]
pub enum Injection {
    Header(HeaderName, SecretValue),
    /// Replaces the first [`PLACEHOLDER`] of the path. A request without one is sent without the secret.
    Path(SecretValue),
    /// The secret has no value; `how` says how to set one. Requests are refused until then.
    Unset {
        secret: String,
        how: String,
    },
}

/// The text that a guest writes into a path in the place of the secret.
pub(super) const PLACEHOLDER: &str = "$TOKEN";

impl HttpRules {
    pub(super) fn find(&self, method: &http::Method, host: &str, port: u16, default_port: u16) -> Option<&HttpRule> {
        self.rules.iter().find(|rule| rule.allows(method, host, port, default_port))
    }
}

impl HttpRule {
    /// The name of a host in a grant for it alone.
    pub(super) fn named(&self, host: &str, port: u16, default_port: u16) -> String {
        match self.host.contains('*') {
            false => self.host.clone(),
            true if port == default_port => host.to_owned(),
            true => format!("{host}:{port}"),
        }
    }

    pub(super) fn allows(&self, method: &http::Method, host: &str, port: u16, default_port: u16) -> bool {
        let (name, allowed_port) = split_port(&self.host);
        let methods = &self.methods;
        methods.iter().any(|m| m == method.as_str())
            && port == allowed_port.unwrap_or(default_port)
            && match name.strip_prefix("*.") {
                Some(domain) => {
                    host.len() > domain.len() + 1 && host.ends_with(domain) && {
                        host.as_bytes()[host.len() - domain.len() - 1] == b'.'
                    }
                }
                None => name == "*" || name.eq_ignore_ascii_case(host),
            }
    }
}

/// A request that the grant does not cover.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefusedRequest {
    /// The host is not granted, or not for this method.
    Host { host: String, method: String },
    /// No rule allows the host, and no person has.
    Network { host: String, why: String },
    /// The host is granted, but its address is private.
    Private { host: String },
    /// The host is granted, but the secret for it has no value.
    Unset { host: String, secret: String, how: String },
    /// The host is granted, but its secret would be sent over the public internet without encryption.
    Clear { host: String },
    /// The host is granted, but data that the call has read may not be sent there, or an untrusted source influenced the
    /// decision.
    Labels { host: String, why: String },
}

impl RefusedRequest {
    /// The next step for the reader of the error.
    pub fn hint(&self, skill: &str) -> String {
        match self {
            Self::Host { host, method } => {
                format!(
                    "{skill} may not send {method} requests to {host}; allow it with `kiso skill grant {skill} --host {host}`"
                )
            }
            Self::Network { host, why } => format!("{host} may not be reached; {why}"),
            Self::Private { host } => {
                format!(
                    "{host} has a private address; allow it with `kiso skill grant {skill} --host {host} --private`"
                )
            }
            Self::Unset { host, secret, how } => {
                format!("requests to {host} carry the secret `{secret}`, which is not set; {how}")
            }
            Self::Clear { host } => {
                format!("requests to {host} carry a secret, which goes over the internet with https only")
            }
            Self::Labels { host, why } => {
                format!("nothing was sent to {host}: {why}; `kiso approval explain` shows how it came to that")
            }
        }
    }

    /// Who has to change something, and the error's code, given the guest's code.
    pub fn blame(&self, code: ErrorCode) -> (Blame, ErrorCode) {
        match self {
            Self::Host { .. } | Self::Network { .. } | Self::Private { .. } => (Blame::Policy, code),
            Self::Labels { .. } => (Blame::Policy, ErrorCode::EffectDenied),
            Self::Unset { .. } => (Blame::Caller, ErrorCode::SecretMissing),
            Self::Clear { .. } => (Blame::Skill, code),
        }
    }

    /// Whether a guest's failure message is about this request. The guest may have continued without it, and failed for another
    /// reason.
    pub fn is_told_by(&self, message: &str) -> bool {
        let (Self::Host { host, .. }
        | Self::Network { host, .. }
        | Self::Private { host }
        | Self::Unset { host, .. }
        | Self::Clear { host }
        | Self::Labels { host, .. }) = self;
        let names = ["HttpRequestDenied", "DestinationIpProhibited", "ConfigurationError"];
        message.to_ascii_lowercase().contains(host.as_str()) || names.iter().any(|name| message.contains(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(host: &str) -> HttpRule {
        HttpRule { host: host.into(), methods: vec!["GET".into()], private: false, inject: None, mask: None }
    }

    #[test]
    fn a_rule_allows_its_host_and_nothing_that_looks_like_it() {
        let get = http::Method::GET;
        let table = [
            ("example.org", "example.org", 443, true),
            ("example.org", "EXAMPLE.ORG", 443, true),
            ("example.org", "evil-example.org", 443, false),
            ("example.org", "example.org.evil.net", 443, false),
            ("example.org", "www.example.org", 443, false),
            ("example.org", "example.org", 8443, false),
            ("example.org:8443", "example.org", 8443, true),
            ("example.org:8443", "example.org", 443, false),
            ("*.example.org", "a.example.org", 443, true),
            ("*.example.org", "a.b.example.org", 443, true),
            ("*.example.org", "example.org", 443, false),
            ("*.example.org", "evilexample.org", 443, false),
            ("*.example.org", ".example.org", 443, false),
            ("*", "anything.net", 443, true),
            ("*", "anything.net", 8080, false),
            ("[::1]:8080", "[::1]", 8080, true),
        ];
        for (allowed, host, port, expected) in table {
            assert_eq!(rule(allowed).allows(&get, host, port, 443), expected, "{allowed} against {host}:{port}");
        }
        assert!(!rule("example.org").allows(&http::Method::POST, "example.org", 443, 443));
    }
}
