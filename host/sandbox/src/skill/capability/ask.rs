//! Grants with "ask": hosts and secrets that a call may use only after a person has approved it.

use super::http::{HttpGrant, HttpNeed, OutgoingHttp, add_host};
use super::list::{Flag, FlagValues};
use super::secrets::ReadableSecrets;
use super::{Capability, Grantable, Needs};
use kiso_plan::approval::CardAccess;
use kiso_plan::network::split_port;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// The "ask" part of a grant: `[ask]` in the grant's file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AskGrant {
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub http: Vec<HttpGrant>,
    #[serde(skip_serializing_if = "BTreeSet::is_empty", default)]
    pub secrets: BTreeSet<String>,
}

/// The overlap of this part and the manifest.
#[derive(Debug, Clone, Default)]
pub struct AskEffective {
    pub http: <OutgoingHttp as Capability>::Allowed,
    pub secrets: <ReadableSecrets as Capability>::Allowed,
}

/// The options of `kiso skill grant` for it.
pub(super) const FLAGS: &[Flag] = &[
    Flag {
        name: "ask-host",
        value: Some("HOST"),
        help: "Reach this host only after you have accepted that in a run",
        requires: None,
        conflicts_with: None,
    },
    Flag {
        name: "ask-secret",
        value: Some("NAME"),
        help: "Use this secret only after you have accepted that in a run",
        requires: None,
        conflicts_with: None,
    },
];

impl AskGrant {
    /// Returns an error if it contains a host or secret that is also granted without asking.
    pub fn check(&self, http: &[HttpGrant], secrets: &BTreeSet<String>) -> Result<(), String> {
        OutgoingHttp::check_grant(&self.http)?;
        for asked in &self.http {
            if let Some(open) = http.iter().find(|open| open.covers(&asked.host)) {
                return Err(format!(
                    "`{}` is to be asked for, and is granted without asking by `{}`; take one of them out",
                    asked.host, open.host
                ));
            }
        }
        match self.secrets.intersection(secrets).next() {
            Some(name) => Err(format!(
                "the secret `{name}` is to be asked for, and is granted without asking; take one of them out"
            )),
            None => Ok(()),
        }
    }

    /// The access that a call can have after approval.
    pub fn allow(&self, needs: &Needs) -> AskEffective {
        AskEffective {
            http: OutgoingHttp::allow(&needs.http, &self.http),
            secrets: ReadableSecrets::allow(&needs.secrets, &self.secrets),
        }
    }

    /// Adds the values of the options. Returns an error if the skill does not ask for them.
    pub fn add_chosen(&mut self, needs: &Needs, chosen: &FlagValues, skill: &str) -> Result<(), String> {
        let private = chosen.has("private");
        for host in chosen.values("ask-host") {
            add_host(&mut self.http, &needs.http, host, private, skill)?;
        }
        for name in chosen.values("ask-secret") {
            let injected = needs.http.iter().any(|need| need.inject.as_ref().is_some_and(|at| at.secret == *name));
            if injected && !needs.secrets.contains(name) {
                return Err(format!(
                    "{skill} never reads the secret `{name}`: kiso puts it into requests; `--ask-host` asks for both"
                ));
            }
            ReadableSecrets::add(&mut self.secrets, &needs.secrets, name, skill)?;
        }
        Ok(())
    }

    /// Removes hosts and secrets that are now granted without asking.
    pub fn give_way(&mut self, http: &[HttpGrant], secrets: &BTreeSet<String>) {
        self.http.retain(|asked| !http.iter().any(|open| open.covers(&asked.host)));
        self.secrets.retain(|name| !secrets.contains(name));
    }

    /// The permissions, each a line that completes "It asks to".
    pub fn lines(&self) -> Vec<String> {
        let lines = OutgoingHttp::lines(&self.http).into_iter().chain(ReadableSecrets::lines(&self.secrets));
        lines.map(|line| format!("{line}, once you have accepted it")).collect()
    }

    /// The form for programs; nothing is added if it is empty.
    pub fn json(&self, into: &mut Map<String, Value>) {
        if *self == Self::default() {
            return;
        }
        let mut ask = Map::new();
        OutgoingHttp::grant_json("http", &self.http, &mut ask);
        ReadableSecrets::grant_json("secrets", &self.secrets, &mut ask);
        into.insert("ask".to_owned(), Value::Object(ask));
    }
}

impl AskEffective {
    pub fn is_empty(&self) -> bool {
        self.http.is_empty() && self.secrets.is_empty()
    }

    pub fn lines(&self) -> Vec<String> {
        let lines = OutgoingHttp::summary(&self.http).into_iter().chain(ReadableSecrets::summary(&self.secrets));
        lines.map(|line| format!("{line}, once you have accepted it")).collect()
    }

    pub fn json(&self, into: &mut Value) {
        if !self.is_empty() {
            into["ask"] = serde_json::json!({
                "http": OutgoingHttp::allowed_json(&self.http),
                "secrets": ReadableSecrets::allowed_json(&self.secrets),
            });
        }
    }

    /// The rule for a host of an address ("example.org", "example.org:8080"), if there is one.
    pub fn rule(&self, host: &str) -> Option<&HttpNeed> {
        self.http.iter().map(|(need, _)| need).find(|need| asks_for(&need.host, host))
    }

    /// The access that `accepted` allows: each host as it was approved, with no more methods than are granted.
    pub fn accepted(&self, accepted: &CardAccess) -> AskEffective {
        let mut allowed = AskEffective::default();
        for wanted in &accepted.hosts {
            for (need, private) in self.http.iter().filter(|(need, _)| asks_for(&need.host, &wanted.host)) {
                let methods = need.methods.iter().filter(|method| wanted.methods.contains(method)).cloned().collect();
                // A secret that goes into its requests was shown by name.
                if need.inject.as_ref().is_none_or(|inject| accepted.secrets.contains(&inject.secret)) {
                    allowed.http.push((HttpNeed { host: wanted.host.clone(), methods, ..need.clone() }, *private));
                }
            }
        }
        allowed.secrets = self.secrets.iter().filter(|name| accepted.secrets.contains(name)).cloned().collect();
        allowed
    }
}

/// Whether a grant of `pattern` is about `host`, a name or a pattern with the same port.
fn asks_for(pattern: &str, host: &str) -> bool {
    if pattern == host {
        return true;
    }
    let ((pattern, port), (host, of_host)) = (split_port(pattern), split_port(host));
    let name = match pattern.strip_prefix("*.") {
        Some(domain) => host.strip_suffix(domain).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
        None => pattern == "*" || pattern.eq_ignore_ascii_case(host),
    };
    name && port == of_host
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_asked_for_by_its_name_and_port() {
        for (pattern, host, asks) in [
            ("a.example", "a.example", true),
            ("a.example", "A.EXAMPLE", true),
            ("a.example", "b.a.example", false),
            ("a.example", "a.example:8080", false),
            ("a.example:8080", "a.example:8080", true),
            ("*.example", "a.example", true),
            ("*.example", "example", false),
            ("*.example", "aexample", false),
            ("*.example", ".example", false),
            ("*", "a.example", true),
            ("*", "a.example:8080", false),
            ("*", "*", true),
        ] {
            assert_eq!(asks_for(pattern, host), asks, "{pattern} {host}");
        }
    }
}
