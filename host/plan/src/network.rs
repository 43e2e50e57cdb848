//! Rules for the hosts that command lines may reach, and how they apply to a request.
//!
//! ```text
//! rules of config.toml, the first that fits ─▶ allow, deny
//!                │ ask, or none
//!                ▼
//! rules that were remembered: deny before allow ─▶ what this run was allowed ─▶ the default
//! ```

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

use crate::label::{Integrity, Label};
use crate::plan::CallerScope;

/// Methods that change nothing at a host.
pub const READING: [&str; 3] = ["GET", "HEAD", "OPTIONS"];

/// Methods that a rule can name.
pub const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// Maximum bytes of a rule's host.
const MAX_HOST: usize = 260;

/// The access that a rule gives.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, EnumString, IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum NetworkAccess {
    Allow,
    /// A person is asked.
    #[default]
    Ask,
    Deny,
}

impl NetworkAccess {
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A secret that kiso adds to requests to a host, so that command lines never have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkSecret {
    pub name: String,
    pub header: Option<String>,
    pub user: Option<String>,
}

/// A rule about hosts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetworkRule {
    /// "example.org", "*.example.org" (any name below, not the name itself) or "*", each with an optional ":PORT". Without a
    /// port, the scheme's default port.
    pub host: String,
    pub access: NetworkAccess,
    /// In upper case. If empty, the rule applies to the methods that read (GET, HEAD, OPTIONS); a rule that denies then applies
    /// to all methods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub methods: Vec<String>,
    /// Whether the host may have an address in a local network (127.0.0.1, 192.168.…). Requires a full host name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub private: bool,
    /// Whose command lines it applies to; if absent, to all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<CallerScope>,
    /// Restricts it to command lines that have read text of these authors, or of less trusted ones; if absent, it applies to all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<Integrity>,
    /// The name of a secret that is added to each request that it allows: a secret of the session, or of the environment
    /// (`KISO_SKILL_NETWORK_NAME`). Requires a full host name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// The header of the secret. If absent, it is "authorization", with "Bearer " before the secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_header: Option<String>,
    /// The user whose password the secret is: then it is sent with basic authentication.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_user: Option<String>,
}

impl NetworkRule {
    pub fn new(host: &str, access: NetworkAccess) -> Self {
        let (methods, private) = (Vec::new(), false);
        Self {
            host: host.to_owned(),
            access,
            methods,
            private,
            role: None,
            label: None,
            secret: None,
            secret_header: None,
            secret_user: None,
        }
    }

    /// Returns an error if the rule is invalid.
    pub fn check(&self) -> Result<(), String> {
        let (name, port) = split_port(&self.host);
        let plain = name.strip_prefix("*.").unwrap_or(name);
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '[' | ']');
        let fits = self.host.len() <= MAX_HOST
            && !plain.is_empty()
            && !plain.starts_with('.')
            && (name == "*" || plain.chars().all(is_part))
            && (!plain.contains(':') || plain.starts_with('[') && plain.ends_with(']'))
            && port != Some(0);
        if !fits {
            return Err(format!(
                "{:?} is not a host: a name such as \"example.org\", \"*.example.org\" or \"*\", with an optional \":PORT\"",
                self.host
            ));
        }
        // A request with the scheme's port has no port here, so such a rule would only match the other scheme.
        if let Some(port @ (80 | 443)) = port {
            return Err(format!("leave out :{port}, the port of the scheme"));
        }
        if let Some(method) = self.methods.iter().find(|method| !METHODS.contains(&method.as_str())) {
            return Err(format!("{method:?} is not a method; there are {}", METHODS.join(", ")));
        }
        if self.secret.is_none() && (self.secret_header.is_some() || self.secret_user.is_some()) {
            return Err("a header or user of a secret needs `secret`".to_owned());
        }
        if self.secret.is_some() {
            if name.starts_with('*') || self.access != NetworkAccess::Allow {
                return Err("`secret` needs `allow` and a host by its full name: it goes to nobody else".to_owned());
            }
            let is_token = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.@".contains(c));
            let header = self.secret_header.as_deref().unwrap_or_default();
            let user = self.secret_user.as_deref().unwrap_or_default();
            if !is_token(header) || !is_token(user) || header.len() > MAX_HOST || user.len() > MAX_HOST {
                return Err("the header or the user of `secret` is no plain name".to_owned());
            }
            if self.secret_header.is_some() && self.secret_user.is_some() {
                return Err("`secret` has a header or a user, and not both".to_owned());
            }
        }
        if self.private && name.starts_with('*') {
            return Err("`private` needs a host by its full name".to_owned());
        }
        Ok(())
    }

    /// Whether it names a single host.
    pub fn names_host(&self) -> bool {
        !self.host.starts_with('*')
    }

    fn fits(&self, request: &NetworkRequest<'_>) -> bool {
        let names = match self.methods.is_empty() {
            true => self.access == NetworkAccess::Deny || request.reads,
            false => self.methods.iter().any(|method| method == request.method) || self.reads() && request.reads,
        };
        names
            && self.role.is_none_or(|role| role == request.role)
            && self.label.is_none_or(|label| request.label.integrity >= label)
            && covers(&self.host, request.host, request.port)
    }

    /// Whether it applies to methods that read.
    fn reads(&self) -> bool {
        self.methods.iter().any(|method| method == "GET")
    }
}

/// A request of a command line.
#[derive(Debug, Clone)]
pub struct NetworkRequest<'a> {
    /// In lower case; IPv6 addresses have brackets.
    pub host: &'a str,
    /// `None` for the scheme's default port.
    pub port: Option<u16>,
    pub method: &'a str,
    /// Whether it only reads.
    pub reads: bool,
    pub role: CallerScope,
    /// The label of everything that the process has read.
    pub label: &'a Label,
}

/// The decision of the rules about a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkDecision {
    pub access: NetworkAccess,
    pub private: bool,
    /// Whether the administrator's file names this very host. That works like a grant: text from outside may decide about its
    /// requests.
    pub by_name: bool,
    pub secret: Option<NetworkSecret>,
    pub source: NetworkSource,
}

/// The source of a decision about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkSource {
    /// No rule matches.
    Default,
    /// A rule of `config.toml`.
    Configured,
    /// A remembered rule.
    Remembered,
    /// An answer to an approval of this run.
    Answer,
    /// An approval of this run that expired without an answer.
    Unanswered,
    /// The host is named in the user's own message.
    Message,
}

impl NetworkSource {
    /// Returns for a person why a request is allowed.
    pub fn why_allowed(self) -> &'static str {
        match self {
            Self::Default => "every site is allowed",
            Self::Configured => "a rule of config.toml allows it",
            Self::Remembered => "a rule allows it",
            Self::Answer => "you allowed it once",
            Self::Unanswered => "nobody answered",
            Self::Message => "your message names this address",
        }
    }

    /// Returns for a person why a request is denied.
    pub fn why_denied(self) -> &'static str {
        match self {
            Self::Answer => "you refused it",
            Self::Unanswered => "nobody answered the approval in time",
            Self::Default | Self::Configured | Self::Remembered | Self::Message => {
                "a rule denies it; `kiso network` lists the rules"
            }
        }
    }
}

impl NetworkDecision {
    fn by_default(access: NetworkAccess) -> Self {
        Self { access, private: false, by_name: false, secret: None, source: NetworkSource::Default }
    }

    fn from_rule(rule: &NetworkRule, source: NetworkSource) -> Self {
        let NetworkRule { secret, secret_header, secret_user, .. } = rule.clone();
        let secret = secret.map(|name| NetworkSecret { name, header: secret_header, user: secret_user });
        Self { access: rule.access, private: rule.private, by_name: false, secret, source }
    }
}

/// The network rules for one command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NetworkRules {
    /// Rules of `config.toml`, in order.
    pub configured: Vec<NetworkRule>,
    /// Rules of `kiso network`, and answers that people gave for a conversation or for all.
    pub remembered: Vec<NetworkRule>,
    /// For this run only: answers to its approvals.
    pub accepted: Vec<NetworkRule>,
    /// For this run only: approvals that expired without an answer.
    pub unanswered: Vec<NetworkRule>,
    /// For this run only: hosts that the user's own message names.
    pub named: Vec<NetworkRule>,
    pub default: NetworkAccess,
}

impl NetworkRules {
    pub fn decide(&self, request: &NetworkRequest<'_>) -> NetworkDecision {
        let fits = |rule: &&NetworkRule| rule.fits(request);
        let configured = self.configured.iter().find(fits);
        if let Some(rule) = configured.filter(|rule| rule.access != NetworkAccess::Ask) {
            let decision = NetworkDecision::from_rule(rule, NetworkSource::Configured);
            return NetworkDecision { by_name: rule.names_host(), ..decision };
        }
        let remembered =
            |access: NetworkAccess| self.remembered.iter().find(|rule| rule.access == access && rule.fits(request));
        let first = |rules: &[NetworkRule], source| {
            rules.iter().find(fits).map(|rule| NetworkDecision::from_rule(rule, source))
        };
        let of = |access| remembered(access).map(|rule| NetworkDecision::from_rule(rule, NetworkSource::Remembered));
        of(NetworkAccess::Deny)
            .or_else(|| of(NetworkAccess::Allow))
            .or_else(|| first(&self.accepted, NetworkSource::Answer))
            .or_else(|| first(&self.unanswered, NetworkSource::Unanswered))
            .or_else(|| first(&self.named, NetworkSource::Message))
            .or_else(|| of(NetworkAccess::Ask))
            .or_else(|| configured.map(|rule| NetworkDecision::from_rule(rule, NetworkSource::Configured)))
            .unwrap_or_else(|| NetworkDecision::by_default(self.default))
    }
}

/// Whether the host of a rule matches a host and port (`None` for the scheme's default).
pub fn covers(pattern: &str, host: &str, port: Option<u16>) -> bool {
    let (name, of_port) = split_port(pattern);
    let is_below = |domain: &str| {
        host.len() > domain.len() + 1
            && host.as_bytes()[host.len() - domain.len() - 1] == b'.'
            && host[host.len() - domain.len()..].eq_ignore_ascii_case(domain)
    };
    of_port == port
        && match name.strip_prefix("*.") {
            Some(domain) => host.is_char_boundary(host.len().saturating_sub(domain.len())) && is_below(domain),
            None => name == "*" || name.eq_ignore_ascii_case(host),
        }
}

/// Splits `host:port` and `[v6]:port`.
pub fn split_port(host: &str) -> (&str, Option<u16>) {
    match host.rsplit_once(':') {
        Some((name, port)) if !name.contains(':') || name.ends_with(']') => match port.parse() {
            Ok(port) => (name, Some(port)),
            Err(_) => (host, None),
        },
        _ => (host, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(host: &str, access: NetworkAccess) -> NetworkRule {
        NetworkRule::new(host, access)
    }

    fn decide(rules: &NetworkRules, host: &str, method: &str, label: &Label) -> NetworkDecision {
        let reads = READING.contains(&method);
        let (name, port) = split_port(host);
        rules.decide(&NetworkRequest { host: name, port, method, reads, role: CallerScope::User, label })
    }

    #[test]
    fn a_host_is_covered_by_its_name_and_port() {
        for (pattern, host, covered) in [
            ("example.org", "example.org", true),
            ("example.org", "EXAMPLE.org", true),
            ("example.org", "www.example.org", false),
            ("example.org", "evilexample.org", false),
            ("example.org", "example.org:8080", false),
            ("example.org:8080", "example.org:8080", true),
            ("*.example.org", "a.b.example.org", true),
            ("*.example.org", "example.org", false),
            ("*.example.org", ".example.org", false),
            ("*.example.org", "evilexample.org", false),
            ("*", "example.org", true),
            ("*", "example.org:8080", false),
            ("[::1]:80", "[::1]:80", true),
            ("*.ünï", "a.ünï", true),
            ("*.nï", "ün", false),
        ] {
            let (name, port) = split_port(host);
            assert_eq!(covers(pattern, name, port), covered, "{pattern} {host}");
        }
    }

    #[test]
    fn the_administrators_file_comes_first_and_a_denial_before_what_was_allowed() {
        use NetworkAccess::{Allow, Ask, Deny};
        let rules = NetworkRules {
            configured: vec![
                rule("deny.example", Deny),
                rule("ask.example", Ask),
                NetworkRule { label: Some(Integrity::World), ..rule("*.mixed.example", Deny) },
                rule("*.mixed.example", Allow),
                NetworkRule { role: Some(CallerScope::Admin), ..rule("admin.example", Allow) },
            ],
            remembered: vec![
                rule("deny.example", Allow),
                rule("never.example", Allow),
                rule("never.example", Deny),
                rule("kept.example", Allow),
            ],
            accepted: vec![
                rule("ask.example", Allow),
                rule("never.example", Allow),
                NetworkRule { methods: vec!["POST".to_owned()], ..rule("post.example", Allow) },
                rule("refused.example", Deny),
            ],
            unanswered: vec![rule("late.example", Deny)],
            named: vec![rule("named.example", Allow), rule("refused.example", Allow)],
            default: Ask,
        };
        let (own, world) = (Label::default(), Label::world("web:x.example"));
        for (host, method, label, access) in [
            ("deny.example", "GET", &own, Deny),
            ("deny.example", "POST", &own, Deny),
            ("ask.example", "GET", &own, Allow),
            ("ask.example", "POST", &own, Ask),
            ("a.mixed.example", "GET", &own, Allow),
            ("a.mixed.example", "GET", &world, Deny),
            ("admin.example", "GET", &own, Ask),
            ("never.example", "GET", &own, Deny),
            ("kept.example", "HEAD", &own, Allow),
            ("kept.example", "PUT", &own, Ask),
            ("post.example", "POST", &own, Allow),
            ("post.example", "GET", &own, Ask),
            ("other.example", "GET", &own, Ask),
        ] {
            assert_eq!(decide(&rules, host, method, label).access, access, "{method} {host}");
        }
        for (host, access, source) in [
            ("deny.example", Deny, NetworkSource::Configured),
            ("kept.example", Allow, NetworkSource::Remembered),
            ("ask.example", Allow, NetworkSource::Answer),
            ("refused.example", Deny, NetworkSource::Answer),
            ("late.example", Deny, NetworkSource::Unanswered),
            ("named.example", Allow, NetworkSource::Message),
            ("other.example", Ask, NetworkSource::Default),
        ] {
            let decision = decide(&rules, host, "GET", &own);
            assert_eq!((decision.access, decision.source), (access, source), "{host}");
        }
        assert!(decide(&rules, "deny.example", "GET", &own).by_name);
        assert!(!decide(&rules, "kept.example", "GET", &own).by_name);
        assert!(!decide(&rules, "a.mixed.example", "GET", &own).by_name);
    }

    #[test]
    fn a_rule_that_cannot_be_one_says_why() {
        for (host, private, fits) in [
            ("example.org", false, true),
            ("example.org:8080", true, true),
            ("[::1]:8080", true, true),
            ("*", false, true),
            ("*", true, false),
            ("*.example.org", true, false),
            ("", false, false),
            ("*.", false, false),
            ("a b", false, false),
            ("https://example.org", false, false),
            ("example.org/x", false, false),
            ("example.org:0", false, false),
            ("example.org:443", false, false),
        ] {
            let rule = NetworkRule { private, ..rule(host, NetworkAccess::Allow) };
            assert_eq!(rule.check().is_ok(), fits, "{host} {private}");
        }
        let methods = vec!["BREW".to_owned()];
        assert!(NetworkRule { methods, ..rule("a.example", NetworkAccess::Allow) }.check().is_err());
    }
}
