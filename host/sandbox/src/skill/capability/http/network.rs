//! Hosts outside of all grants, for command lines and bundled skills: whether `[network]` or a person allows them.

use super::channel_host::LEAST_TOKEN;
use super::covers;
use super::masked::SecretMask;
use super::rule::{HttpRule, Injection, RefusedRequest};
use crate::effect::network::{Network, WantedHost, command_to_allow, is_near};
use crate::effect::sink::Permit;
use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderName, Method};
use kiso_base::home::SkillName;
use kiso_plan::approval::NETWORK;
use kiso_plan::network::{NetworkAccess, NetworkSecret, READING};
use kiso_store::secret::{SecretValue, Secrets};
use std::fmt;
use std::sync::Arc;

/// The network access of a call beside its grant.
#[derive(Clone)]
pub struct OpenNetwork {
    pub network: Network,
    /// The needs of the manifest; `None` for a command line, which may want every host.
    pub needs: Option<Vec<HttpRule>>,
    /// The secrets of the call; a rule names those that go into its requests.
    pub secrets: Secrets,
    /// Ends the work, because a person is asked first.
    pub stop: Arc<dyn Fn(&str) + Send + Sync>,
}

impl fmt::Debug for OpenNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenNetwork").field("network", &self.network).finish_non_exhaustive()
    }
}

/// A request, as rules see it.
#[derive(Debug, Clone, Copy)]
pub(super) struct HostRequest<'a> {
    pub method: &'a Method,
    /// In lower case.
    pub host: &'a str,
    pub port: u16,
    pub default_port: u16,
    /// Whether it only reads.
    pub reads: bool,
}

impl OpenNetwork {
    /// The rule for a request. The error is the reason for a refusal, or `None` if the manifest does not ask for the host.
    pub(super) fn rule(&self, wanted: HostRequest<'_>, permit: &Permit) -> Result<HttpRule, Option<RefusedRequest>> {
        let HostRequest { method, host, port, default_port, reads } = wanted;
        let named = if port == default_port { host.to_owned() } else { format!("{host}:{port}") };
        let asked_for = match &self.needs {
            None => None,
            Some(needs) => {
                let of_method = |need: &&HttpRule| need.methods.iter().any(|known| known == method.as_str());
                let need = needs.iter().filter(of_method).find(|need| covers(&need.host, &named));
                Some(need.ok_or(None)?)
            }
        };
        let label = permit.read().get().label();
        let decision = self.network.decide(&named, (method.as_str(), reads), &label);
        let problem = permit.refuses_request(host, !reads, decision.by_name);
        let command = || command_to_allow(&named, method.as_str(), reads, is_near(&named));
        if decision.access == NetworkAccess::Deny {
            let why = decision.source.why_denied().to_owned();
            return Err(Some(RefusedRequest::Network { host: named, why }));
        }
        if decision.access != NetworkAccess::Allow || problem.is_some() {
            let (host, method) = (named.clone(), method.to_string());
            // A call that has changed something outside cannot be repeated, so nobody is asked and the call continues.
            let can_ask = !permit.has_changed();
            if can_ask && self.network.want(WantedHost { host, method, reads, because: problem.clone() }) {
                (self.stop)(&named);
                return Err(Some(RefusedRequest::Network {
                    host: named,
                    why: "you are asked about it first".to_owned(),
                }));
            }
            if let Some(why) = problem {
                return Err(Some(RefusedRequest::Labels { host: named, why }));
            }
            let why = format!("`{}` allows it", command());
            return Err(Some(RefusedRequest::Network { host: named, why }));
        }
        permit.note_reached(&named, !reads, decision.source.why_allowed());
        let host = if decision.by_name { named } else { "*".to_owned() };
        let methods = vec![method.to_string()];
        let of_need = || asked_for.map_or((None, None), |need| (need.inject.clone(), need.mask.clone()));
        let (inject, mask) = decision.secret.map_or_else(of_need, |secret| self.injection(&secret));
        Ok(HttpRule { host, methods, private: decision.private, inject, mask })
    }
}

impl OpenNetwork {
    /// The injection of a rule's secret into a request, and the mask for the response.
    fn injection(&self, secret: &NetworkSecret) -> (Option<Injection>, Option<Arc<SecretMask>>) {
        let of_network = SkillName::parse(NETWORK).ok();
        let of_environment = || self.secrets.environment(of_network.as_ref()?, &secret.name);
        let Some(value) = self.secrets.session(&secret.name).or_else(of_environment) else {
            let how = format!("set it with `kiso secret set {}`", secret.name);
            return (Some(Injection::Unset { secret: secret.name.clone(), how }), None);
        };
        let header = secret.header.as_deref().and_then(|header| HeaderName::from_bytes(header.as_bytes()).ok());
        let login = secret.user.as_ref().map(|user| {
            let both = format!("{user}:{}", value.expose());
            SecretValue::new(data_encoding::BASE64.encode(both.as_bytes()))
        });
        let text = match (&login, &header) {
            (Some(login), _) => format!("Basic {}", login.expose()),
            (None, None) => format!("Bearer {}", value.expose()),
            (None, Some(_)) => value.expose().to_owned(),
        };
        let all: Vec<_> = [Some(value), login.as_ref()].into_iter().flatten().collect();
        let mask = (value.expose().len() >= LEAST_TOKEN).then(|| Arc::new(SecretMask::of_all(&all)));
        (Some(Injection::Header(header.unwrap_or(AUTHORIZATION), SecretValue::new(text))), mask)
    }
}

/// Whether a request only reads: by its method, or because it is how git reads a repository.
pub(super) fn is_reading(parts: &Parts) -> bool {
    let media_type = parts.headers.get(http::header::CONTENT_TYPE);
    let reads_git = parts.method == Method::POST
        && parts.uri.path().ends_with("/git-upload-pack")
        && media_type.is_some_and(|media_type| media_type == "application/x-git-upload-pack-request");
    reads_git || READING.contains(&parts.method.as_str())
}
