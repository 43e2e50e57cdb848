//! `wasi:http/outgoing-handler`, in WASI 0.3 `wasi:http/client`: requests to granted hosts.

mod channel_host;
mod gate;
mod masked;
mod network;
mod rule;
mod sent_body;

pub(crate) use self::channel_host::ChannelHost;
pub(crate) use self::gate::{CallConnections, HttpGate, TellRefused};
pub(crate) use self::network::OpenNetwork;
pub(crate) use self::rule::{HttpRules, RefusedRequest};
pub(in crate::skill) use crate::skill::http_need::{HttpNeed, Inject};

use self::gate::PRIVATE;
use self::rule::{HttpRule, Injection};
use super::secrets::find;
use super::{Capability, Doc, Flag, FlagValues, Grantable, GuestState};
use crate::engine::limits::{HEADER_BYTES, HitCell};
use crate::skill::error::SkillError;
use crate::skill::http_need::reading;
use crate::skill::input::CallInput;
use crate::skill::usage::CapabilityUse;
use crate::skill::wit::ImportSpec;
use http::HeaderName;
use kiso_plan::network::METHODS;
use kiso_store::secret::Secrets;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::sync::{Semaphore, watch};
use toml::Spanned;
use wasmtime::component::Linker;
use wasmtime_wasi_http::WasiHttpCtx;

/// The requests of one call.
#[derive(Debug)]
pub struct OutgoingHttp {
    pub ctx: WasiHttpCtx,
    pub gate: HttpGate,
    /// Ends the call's connections when it is dropped.
    _alive: watch::Sender<()>,
}

/// One host that may be reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpGrant {
    /// The host of the manifest, or a narrower one: "example.org" if the manifest asks for "*".
    pub host: String,
    /// Methods in upper case; GET if the file lists none.
    #[serde(default = "reading")]
    pub methods: Vec<String>,
    /// The secret that kiso may put into requests to this host, and the header for it: exactly as the manifest asks.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub inject: Option<Inject>,
    /// Whether the host may have a private address (127.0.0.1, 192.168.…). A manifest cannot ask for this.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub private: bool,
}

impl HttpGrant {
    /// The grant for a host that the manifest's need covers.
    fn from_need(need: &HttpNeed, host: &str, private: bool) -> Self {
        Self { host: host.to_owned(), methods: need.methods.clone(), inject: need.inject.clone(), private }
    }

    /// Whether it includes every host that `host` includes.
    pub fn covers(&self, host: &str) -> bool {
        covers(&self.host, host)
    }

    /// Whether it grants everything that is asked for.
    fn holds(&self, asked: &Self) -> bool {
        covers(&self.host, &asked.host)
            && asked.methods.iter().all(|m| self.methods.contains(m))
            && asked.inject == self.inject
    }
}

const OUTGOING: &str = "wasi:http/outgoing-handler";
const CLIENT: &str = "wasi:http/client";

impl Capability for OutgoingHttp {
    const IMPORTS: &'static [ImportSpec] = &[
        ImportSpec::wasi("wasi:http/types", OUTGOING),
        ImportSpec::wasi(OUTGOING, OUTGOING),
        ImportSpec::wasi_0_3("wasi:http/types", CLIENT),
        ImportSpec::wasi_0_3(CLIENT, CLIENT),
    ];
    const DOC: Doc = Doc {
        about: "send HTTP requests to granted hosts",
        asked: "http = [{ host = \"example.org\", methods = [\"GET\"] }]",
    };
    /// Each need, and whether private addresses are allowed.
    type Allowed = Vec<(HttpNeed, bool)>;

    fn link<T: GuestState>(linker: &mut Linker<T>, _: fn(&mut T) -> &mut Self) -> wasmtime::Result<()> {
        // Its state is accessed through `WasiHttpView`.
        wasmtime_wasi_http::p2::add_only_http_to_linker_async(linker)
    }

    fn link_wasi_0_3<T: GuestState>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
        // The gate is one for both versions: `HttpGate` implements `WasiHttpHooks`.
        wasmtime_wasi_http::p3::add_to_linker(linker)
    }

    fn prepare(call: &CallInput<'_>, allowed: &Self::Allowed, _: &HitCell) -> Result<Self, SkillError> {
        let inject = |need: &HttpNeed| -> Result<Option<Injection>, SkillError> {
            let Some(Inject { header, secret }) = &need.inject else { return Ok(None) };
            let header = HeaderName::from_bytes(header.as_bytes());
            let header = header.map_err(|e| SkillError::host(call.skill.as_str(), e))?;
            Ok(Some(match find(call, secret)? {
                Ok(value) => Injection::Header(header, value),
                // Without its secret the request would fail with an error that nobody understands.
                Err(how) => Injection::Unset { secret: secret.clone(), how },
            }))
        };
        let rules = allowed.iter().map(|(need, private)| {
            let (host, methods) = (need.host.clone(), need.methods.clone());
            Ok::<_, SkillError>(HttpRule { host, methods, private: *private, inject: inject(need)?, mask: None })
        });
        let rules = HttpRules {
            rules: rules.collect::<Result<_, _>>()?,
            max_response: usize::try_from(call.http.max_response_mib << 20).unwrap_or(usize::MAX),
            connect_timeout: Duration::from_secs(call.http.connect_timeout_s),
        };
        let mut ctx = WasiHttpCtx::new();
        ctx.set_field_size_limit(HEADER_BYTES);
        let (transaction, permit) = (call.transaction.clone(), call.permit.clone());
        let open = call.network.as_ref().map(|(network, needs)| {
            let need = |need: &HttpNeed| {
                let (host, methods) = (need.host.clone(), need.methods.clone());
                Ok::<_, SkillError>(HttpRule { host, methods, private: false, inject: inject(need)?, mask: None })
            };
            let needs = Some(needs.iter().map(need).collect::<Result<_, _>>()?);
            Ok::<_, SkillError>(OpenNetwork {
                network: network.clone(),
                needs,
                secrets: Secrets::default(),
                stop: Arc::new(|_| ()),
            })
        });
        let (rules, open) = (Arc::new(rules), open.transpose()?);
        let places = usize::try_from(call.budget.handles()).unwrap_or(Semaphore::MAX_PERMITS);
        let (alive, call) = watch::channel(());
        let connections = Some(CallConnections { places: Arc::new(Semaphore::new(places)), call });
        let gate = HttpGate { rules, open, transaction, permit, connections, ..HttpGate::default() };
        Ok(Self { ctx, gate, _alive: alive })
    }

    fn used(&self) -> CapabilityUse {
        self.gate.reached.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn check() -> Option<Result<String, String>> {
        Some(Ok(format!("{} certificate authorities", kiso_base::net::roots::count_authorities())))
    }
}

impl Grantable for OutgoingHttp {
    type Toml = Vec<Spanned<HttpNeed>>;
    type Need = Vec<HttpNeed>;
    type Grant = Vec<HttpGrant>;

    const FLAGS: &'static [Flag] = &[
        Flag {
            name: "host",
            value: Some("HOST"),
            help: "Also reach this host: \"example.org\", \"*.example.org\", \"example.org:8080\"",
            requires: None,
            conflicts_with: None,
        },
        Flag {
            name: "private",
            value: None,
            help: "The hosts of this command may have private addresses (127.0.0.1, 192.168.…)",
            requires: None,
            conflicts_with: None,
        },
    ];
    const IMPLIED_BY: &'static [&'static str] = &[OUTGOING, CLIENT];

    fn check_need(written: Self::Toml, declared: &[&str]) -> Result<Self::Need, (usize, String)> {
        let checked = written.into_iter().map(|need| {
            check_need(need.get_ref(), declared).map_err(|message| (need.span().start, message))?;
            Ok(need.into_inner())
        });
        checked.collect()
    }

    fn check_grant(grant: &Self::Grant) -> Result<(), String> {
        grant.iter().try_for_each(|granted| check_host(&granted.host))
    }

    fn implied() -> Self::Need {
        let methods = METHODS.iter().map(|method| (*method).to_owned()).collect();
        vec![HttpNeed { host: "*".to_owned(), methods, inject: None }]
    }

    fn to_toml(need: &Self::Need) -> String {
        if need.is_empty() {
            return String::new();
        }
        let text = |text: &str| Value::String(text.to_owned());
        let hosts: Vec<String> = need
            .iter()
            .map(|need| format!("{{ host = {}, methods = {} }}", text(&need.host), json!(need.methods)))
            .collect();
        format!("http = [{}]\n", hosts.join(", "))
    }

    fn asked(need: &Self::Need) -> Self::Grant {
        need.iter().map(|need| HttpGrant::from_need(need, &need.host, false)).collect()
    }

    fn beyond(asked: &Self::Grant, granted: &Self::Grant) -> Self::Grant {
        asked.iter().filter(|asked| !granted.iter().any(|granted| granted.holds(asked))).cloned().collect()
    }

    fn without(asked: &Self::Grant, other: &Self::Grant) -> Self::Grant {
        asked.iter().filter(|asked| !other.contains(asked)).cloned().collect()
    }

    fn allow(needs: &Self::Need, grant: &Self::Grant) -> Self::Allowed {
        let mut allowed = Vec::new();
        for need in needs {
            for granted in grant {
                // The narrower of the two applies.
                let host = if covers(&need.host, &granted.host) {
                    &granted.host
                } else if covers(&granted.host, &need.host) {
                    &need.host
                } else {
                    continue;
                };
                if need.inject != granted.inject {
                    continue;
                }
                let methods = need.methods.iter().filter(|m| granted.methods.contains(m)).cloned().collect();
                allowed.push((HttpNeed { host: host.clone(), methods, ..need.clone() }, granted.private));
            }
        }
        allowed
    }

    fn least(granted: &Self::Grant, _: &Self::Need, used: &CapabilityUse) -> Self::Grant {
        if used.has_more() {
            return granted.clone();
        }
        let mut least: Self::Grant = Vec::new();
        for granted in granted {
            let mut hosts: BTreeMap<&str, Vec<String>> = BTreeMap::new();
            for (method, host) in used.iter().filter(|(_, host)| covers(&granted.host, host)) {
                if granted.methods.iter().any(|known| known == method) {
                    hosts.entry(host).or_default().push(method.to_owned());
                }
            }
            for (host, methods) in hosts {
                let private = granted.private && used.names(PRIVATE).any(|known| known == host);
                let narrower = HttpGrant { host: host.to_owned(), methods, inject: granted.inject.clone(), private };
                if !least.contains(&narrower) {
                    least.push(narrower);
                }
            }
        }
        least
    }

    fn add(grant: &mut Self::Grant, need: &Self::Need, host: &str, skill: &str) -> Result<(), String> {
        add_host(grant, need, host, false, skill)
    }

    fn add_chosen(grant: &mut Self::Grant, need: &Self::Need, chosen: &FlagValues, skill: &str) -> Result<(), String> {
        let private = chosen.has("private");
        if private && chosen.values("host").is_empty() && chosen.values("ask-host").is_empty() {
            return Err(
                "--private says something about the hosts of --host or --ask-host, and none is given".to_owned()
            );
        }
        chosen.values("host").iter().try_for_each(|host| add_host(grant, need, host, private, skill))
    }

    fn lines(grant: &Self::Grant) -> Vec<String> {
        let line = |granted: &HttpGrant| {
            let host = if granted.host == "*" { "every public host" } else { &granted.host };
            let inject = granted.inject.as_ref().map_or_else(String::new, |inject| {
                format!(", kiso adding the header {} with the secret `{}`", inject.header, inject.secret)
            });
            format!("reach {host} over HTTP ({}){inject}", granted.methods.join(", "))
        };
        grant.iter().map(line).collect()
    }

    fn summary(allowed: &Self::Allowed) -> Vec<String> {
        let line = |(need, private): &(HttpNeed, bool)| {
            let private = if *private { ", private addresses too" } else { "" };
            format!("reach {} ({}{private})", need.host, need.methods.join(", "))
        };
        allowed.iter().map(line).collect()
    }

    fn allowed_json(allowed: &Self::Allowed) -> Value {
        let host = |(need, private): &(HttpNeed, bool)| json!({ "host": need.host, "methods": need.methods, "private": private });
        allowed.iter().map(host).collect()
    }

    fn grant_json(key: &str, grant: &Self::Grant, into: &mut Map<String, Value>) {
        let host = |granted: &HttpGrant| {
            let mut shown = json!(granted);
            // The file leaves it out if it is false.
            shown["private"] = granted.private.into();
            shown
        };
        into.insert(key.to_owned(), grant.iter().map(host).collect());
    }
}

/// Adds a host that the manifest covers. Returns an error for any other.
pub(crate) fn add_host(
    grant: &mut Vec<HttpGrant>,
    needs: &[HttpNeed],
    host: &str,
    private: bool,
    skill: &str,
) -> Result<(), String> {
    check_host(host)?;
    let Some(need) = needs.iter().find(|need| covers(&need.host, host)) else {
        let asked: Vec<&str> = needs.iter().map(|n| n.host.as_str()).collect();
        let asked = if asked.is_empty() { "no host".to_owned() } else { asked.join(", ") };
        return Err(format!("{skill} asks for {asked}, so a grant of {host} would have no effect"));
    };
    grant.retain(|granted| granted.host != host);
    grant.push(HttpGrant::from_need(need, host, private));
    Ok(())
}

fn check_need(need: &HttpNeed, declared: &[&str]) -> Result<(), String> {
    check_host(&need.host)?;
    if need.methods.is_empty() {
        return Err("`methods` must name at least one method".to_owned());
    }
    for method in &need.methods {
        if !METHODS.contains(&method.as_str()) {
            return Err(format!(
                "`{method}` is not a method; there are GET, HEAD, POST, PUT, PATCH, DELETE and OPTIONS"
            ));
        }
    }
    if let Some(inject) = &need.inject {
        if HeaderName::from_bytes(inject.header.as_bytes()).is_err() {
            return Err(format!("`{}` is not a name of a header", inject.header));
        }
        if !declared.contains(&inject.secret.as_str()) {
            return Err(format!(
                "`inject` names the secret `{}`, which is neither in `secrets` nor in [kiso.skill.env]",
                inject.secret
            ));
        }
        if need.host.starts_with('*') {
            return Err("`inject` needs a host by its full name: a secret goes to nobody else".to_owned());
        }
    }
    Ok(())
}

/// Checks a host of a manifest or a grant.
fn check_host(host: &str) -> Result<(), String> {
    let name = host.strip_prefix("*.").unwrap_or(host);
    let fits = !name.is_empty()
        && name.len() <= 260
        && (name == "*"
            || name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']' | '_')));
    if fits {
        Ok(())
    } else {
        Err(format!(
            "`{host}` is not a host: a name such as \"api.example.org\", \"*.example.org\" or \"*\", with an optional \":port\""
        ))
    }
}

/// Whether `wide` includes every host that `narrow` includes. "*" also covers other ports than the scheme's default: whoever
/// grants "example.org:8080" has named the port.
fn covers(wide: &str, narrow: &str) -> bool {
    wide == narrow
        || wide == "*"
        || wide.strip_prefix('*').is_some_and(|suffix| suffix.starts_with('.') && narrow.ends_with(suffix))
}

#[cfg(test)]
mod tests {
    use super::covers;

    #[test]
    fn a_pattern_covers_only_what_lies_below_it() {
        let table = [
            ("*", "example.org", true),
            ("*", "*.example.org", true),
            ("*.example.org", "a.example.org", true),
            ("*.example.org", "*.a.example.org", true),
            ("*.example.org", "example.org", false),
            ("*.example.org", "evilexample.org", false),
            ("*.example.org", "*", false),
            ("example.org", "example.org", true),
            ("example.org", "a.example.org", false),
            ("example.org", "*", false),
        ];
        for (wide, narrow, expected) in table {
            assert_eq!(covers(wide, narrow), expected, "{wide} over {narrow}");
        }
    }
}
