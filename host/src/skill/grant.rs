//! What an administrator allowed a skill: `grants/NAME.toml`. No tool and no skill can reach these files.
//!
//! Without a word about it a skill gets `/work` as its manifest asks, the default memory and time, and nothing else. What a
//! call gets is the overlap of what the manifest asks for and what was granted. A component without a manifest may be granted
//! what it imports; until it is, it reads `/work` and reaches no host.

use super::error::{Blame, SkillError};
use super::manifest::{HttpNeed, Inject, Manifest, Workspace, check_host};
use super::{Installed, Skills};
use crate::config::Engine as EngineConfig;
use crate::home::{Home, SkillName};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// A grant as it stands in its file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// Less than the manifest asks for, if the administrator wants so.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub workspace: Option<Workspace>,
    /// Memory in MiB beyond the default.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub memory_mib: Option<u64>,
    /// Time in seconds beyond the default.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub timeout_s: Option<u64>,
    /// Names of secrets, of the session and of the environment.
    #[serde(skip_serializing_if = "BTreeSet::is_empty", default)]
    pub secrets: BTreeSet<String>,
    /// Hosts.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub http: Vec<HttpGrant>,
}

/// One host that may be reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpGrant {
    /// As in the manifest, or narrower: "example.org" where the manifest asks for "*".
    pub host: String,
    /// Methods in upper case; GET where the file says nothing.
    #[serde(default = "get_only")]
    pub methods: Vec<String>,
    /// The secret that kiso may put into requests to this host, and the header for it: exactly as the manifest asks.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub inject: Option<Inject>,
    /// Also when the host's address is private (127.0.0.1, 192.168.…). A manifest cannot ask for this.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub private: bool,
}

impl HttpGrant {
    /// What a manifest asks for, for a host that it covers.
    pub fn of(need: &HttpNeed, host: &str, private: bool) -> Self {
        Self { host: host.to_owned(), methods: need.methods.clone(), inject: need.inject.clone(), private }
    }

    /// Whether everything that `need` asks for is granted here.
    fn holds(&self, need: &HttpNeed) -> bool {
        covers(&self.host, &need.host)
            && need.methods.iter().all(|m| self.methods.contains(m))
            && need.inject == self.inject
    }
}

/// Why a grant file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum GrantError {
    #[error("{path}: {message}")]
    Invalid { path: String, message: String },
    #[error("cannot read {path}: {error}")]
    Read { path: String, error: std::io::Error },
}

impl Grant {
    /// The grant of a skill; none if the administrator gave none.
    pub fn load(home: &Home, skill: &SkillName) -> Result<Option<Self>, GrantError> {
        let file = home.grant_path(skill);
        let path = file.display().to_string();
        let text = match std::fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(GrantError::Read { path, error }),
        };
        let grant: Self = toml::from_str(&text).map_err(|error| GrantError::Invalid {
            path: path.clone(),
            message: error.to_string().trim().to_owned(),
        })?;
        for http in &grant.http {
            check_host(&http.host).map_err(|message| GrantError::Invalid { path: path.clone(), message })?;
        }
        Ok(Some(grant))
    }

    /// Everything that the manifest asks for.
    pub fn all(manifest: &Manifest, config: &EngineConfig) -> Self {
        let asked = RequestedGrant::of(manifest, config);
        Self {
            workspace: None,
            memory_mib: asked.memory_mib,
            timeout_s: asked.timeout_s,
            secrets: asked.secrets,
            http: asked.http.iter().map(|need| HttpGrant::of(need, &need.host, false)).collect(),
        }
    }

    /// Nothing at all, not even `/work`.
    pub fn nothing() -> Self {
        Self { workspace: Some(Workspace::None), ..Self::default() }
    }

    /// Lets it see `/work`, or write there too, as far as the manifest asks. Says why where it does not.
    pub fn set_workspace(&mut self, manifest: &Manifest, workspace: Workspace) -> Result<(), String> {
        let asked = manifest.needs.workspace;
        if workspace > asked {
            let verb = if workspace == Workspace::Write { "write to" } else { "see" };
            return Err(format!(
                "{} does not ask to {verb} /work, so a grant of it would have no effect",
                manifest.name
            ));
        }
        self.workspace = Some(workspace);
        Ok(())
    }

    /// Gives the memory and time that the manifest asks for, or takes back what was granted of them.
    pub fn set_limits(&mut self, manifest: &Manifest, config: &EngineConfig, granted: bool) {
        let asked = if granted { RequestedGrant::of(manifest, config) } else { RequestedGrant::default() };
        (self.memory_mib, self.timeout_s) = (asked.memory_mib, asked.timeout_s);
    }

    /// Adds a host, one that the manifest covers. Says why where it does not.
    pub fn add_host(&mut self, manifest: &Manifest, host: &str, private: bool) -> Result<(), String> {
        check_host(host)?;
        let Some(need) = manifest.needs.http.iter().find(|need| covers(&need.host, host)) else {
            let asked: Vec<&str> = manifest.needs.http.iter().map(|n| n.host.as_str()).collect();
            let asked = if asked.is_empty() { "no host".to_owned() } else { asked.join(", ") };
            return Err(format!("{} asks for {asked}, so a grant of {host} would have no effect", manifest.name));
        };
        self.http.retain(|granted| granted.host != host);
        self.http.push(HttpGrant::of(need, host, private));
        Ok(())
    }

    /// Adds a secret, one that the manifest declares. Says why where it does not.
    pub fn add_secret(&mut self, manifest: &Manifest, secret: &str) -> Result<(), String> {
        if !manifest.secrets.iter().any(|declared| declared == secret) && !manifest.env.contains_key(secret) {
            return Err(format!("{} declares no secret `{secret}`", manifest.name));
        }
        self.secrets.insert(secret.to_owned());
        Ok(())
    }

    /// The text of the grant's file.
    pub fn to_toml(&self) -> String {
        let head = "# What this skill may do. Written by `kiso skill add` and `kiso skill grant`; edit it or delete it at will.\n";
        format!("{head}{}", toml::to_string(self).expect("a grant has a TOML form"))
    }
}

/// What a manifest asks for beyond what every skill gets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestedGrant {
    pub memory_mib: Option<u64>,
    pub timeout_s: Option<u64>,
    /// Secrets that the skill may read. One that is only injected into requests stands with its host.
    pub secrets: BTreeSet<String>,
    pub http: Vec<HttpNeed>,
    /// To write, where the version before only read, or to see the workspace at all.
    pub workspace: Option<Workspace>,
}

impl RequestedGrant {
    pub fn of(manifest: &Manifest, config: &EngineConfig) -> Self {
        let needs = &manifest.needs;
        Self {
            memory_mib: needs.memory_mib.filter(|m| *m > config.default_memory_mib),
            timeout_s: needs.timeout_s.filter(|t| *t > config.default_timeout_s),
            secrets: manifest.readable_secrets(),
            http: needs.http.clone(),
            workspace: None,
        }
    }

    /// What is asked here that `grant` does not cover.
    pub fn beyond(&self, grant: &Grant) -> Self {
        let more = |asked: Option<u64>, granted: Option<u64>| asked.filter(|a| granted.is_none_or(|g| *a > g));
        Self {
            memory_mib: more(self.memory_mib, grant.memory_mib),
            timeout_s: more(self.timeout_s, grant.timeout_s),
            secrets: self.secrets.difference(&grant.secrets).cloned().collect(),
            http: self.http.iter().filter(|need| !grant.http.iter().any(|g| g.holds(need))).cloned().collect(),
            workspace: self.workspace,
        }
    }

    /// What is asked here and not in `other`.
    pub fn without(&self, other: &Self) -> Self {
        Self {
            memory_mib: self.memory_mib.filter(|_| other.memory_mib.is_none()),
            timeout_s: self.timeout_s.filter(|_| other.timeout_s.is_none()),
            secrets: self.secrets.difference(&other.secrets).cloned().collect(),
            http: self.http.iter().filter(|need| !other.http.contains(need)).cloned().collect(),
            workspace: self.workspace.filter(|_| other.workspace.is_none()),
        }
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// One line for each thing, to be read before answering "allow?".
impl fmt::Display for RequestedGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for need in &self.http {
            write!(
                f,
                "  reach {} over HTTP ({})",
                if need.host == "*" { "every public host" } else { &need.host },
                need.methods.join(", ")
            )?;
            if let Some(inject) = &need.inject {
                write!(f, ", kiso adding the header {} with the secret `{}`", inject.header, inject.secret)?;
            }
            writeln!(f)?;
        }
        for secret in &self.secrets {
            writeln!(f, "  receive the secret `{secret}`")?;
        }
        if let Some(workspace) = self.workspace {
            writeln!(f, "  {workspace} files in the session's workspace")?;
        }
        if let Some(mib) = self.memory_mib {
            writeln!(f, "  use {mib} MiB of memory")?;
        }
        if let Some(seconds) = self.timeout_s {
            writeln!(f, "  run for {seconds} s")?;
        }
        Ok(())
    }
}

/// What a call gets: the overlap of manifest and grant.
#[derive(Debug, Clone)]
pub struct Allowed {
    pub workspace: Workspace,
    pub memory_mib: u64,
    pub timeout_s: u64,
    pub secrets: BTreeSet<String>,
    /// Each with whether private addresses are reachable.
    pub http: Vec<(HttpNeed, bool)>,
}

impl Allowed {
    /// `trusted` skills are part of the binary: they get the memory and time they ask for, but reach no host unless
    /// that was granted.
    pub fn new(manifest: &Manifest, grant: Option<&Grant>, config: &EngineConfig, trusted: bool) -> Self {
        let needs = &manifest.needs;
        let limit = |asked: Option<u64>, granted: Option<u64>, default: u64, max: u64| {
            let granted = if trusted { u64::MAX } else { granted.unwrap_or(0) };
            asked.map_or(default, |asked| asked.min(granted.max(default))).min(max)
        };
        let none = Grant::default();
        let grant = grant.unwrap_or(&none);
        let mut http = Vec::new();
        for need in &needs.http {
            for granted in &grant.http {
                // The narrower of the two counts.
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
                http.push((HttpNeed { host: host.clone(), methods, ..need.clone() }, granted.private));
            }
        }
        let declared = manifest.readable_secrets();
        Self {
            workspace: grant.workspace.map_or(needs.workspace, |w| w.min(needs.workspace)),
            memory_mib: limit(needs.memory_mib, grant.memory_mib, config.default_memory_mib, config.max_memory_mib),
            timeout_s: limit(needs.timeout_s, grant.timeout_s, config.default_timeout_s, config.max_timeout_s),
            secrets: grant.secrets.intersection(&declared).cloned().collect(),
            http,
        }
    }
}

impl Skills {
    /// What a call of this skill would get.
    pub fn allowed(&self, skill: &Installed) -> Result<Allowed, SkillError> {
        Ok(self.allowed_under(skill, &self.grant(skill)?))
    }

    pub(super) fn allowed_under(&self, skill: &Installed, grant: &Grant) -> Allowed {
        Allowed::new(&skill.manifest, Some(grant), &self.config().engine, skill.is_bundled())
    }

    /// What an administrator granted this skill beyond what every skill gets.
    pub fn grant(&self, skill: &Installed) -> Result<Grant, SkillError> {
        let grant = Grant::load(self.home(), skill.name()).map_err(|e| bad_grant(skill.name(), &e))?;
        Ok(grant.unwrap_or_default())
    }
}

/// A grant file that cannot be read refuses every call: what it meant to allow is not known.
fn bad_grant(skill: &SkillName, error: &GrantError) -> SkillError {
    SkillError::new(skill.as_str(), Blame::Host, "bad-grant", error.to_string())
}

fn get_only() -> Vec<String> {
    vec!["GET".to_owned()]
}

/// Whether every host that `narrow` names is also named by `wide`. A "*" covers other ports than the scheme's own too:
/// the one who grants "example.org:8080" has named the port.
pub fn covers(wide: &str, narrow: &str) -> bool {
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
