//! `[kiso.skill.needs]`: what a skill asks for. Nothing of it is given until an administrator grants it, except the
//! workspace.

use serde::{Deserialize, Serialize};
use toml::Spanned;

/// How a skill sees `/work`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Workspace {
    /// Not at all.
    None,
    /// It may read. This holds where the manifest says nothing.
    #[default]
    Read,
    /// It may read and write.
    Write,
}

impl std::fmt::Display for Workspace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Read => "read",
            Self::Write => "write",
        })
    }
}

/// What a skill asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Needs {
    pub workspace: Workspace,
    /// More than the default memory, in MiB.
    pub memory_mib: Option<u64>,
    /// More than the default time, in seconds.
    pub timeout_s: Option<u64>,
    pub http: Vec<HttpNeed>,
}

/// One host that a skill wants to reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpNeed {
    /// "api.example.org", "*.example.org" or "*", with an optional ":port".
    pub host: String,
    /// Methods in upper case; GET when not given.
    #[serde(default = "get_only")]
    pub methods: Vec<String>,
    /// A secret that the host puts into a header of each request; it never enters the guest.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub inject: Option<Inject>,
}

/// Which secret goes into which header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inject {
    pub header: String,
    pub secret: String,
}

fn get_only() -> Vec<String> {
    vec!["GET".to_owned()]
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct NeedsFile {
    #[serde(default)]
    workspace: Workspace,
    memory_mib: Option<Spanned<u64>>,
    timeout_s: Option<Spanned<u64>>,
    #[serde(default)]
    http: Vec<Spanned<HttpNeed>>,
}

impl NeedsFile {
    /// Checks what can be checked without a configuration; an error is a byte of the manifest and a message.
    pub(super) fn check(self, declared: &[&str]) -> Result<Needs, (usize, String)> {
        let at_least_one = |value: &Option<Spanned<u64>>, key: &str| match value {
            Some(v) if *v.get_ref() == 0 => Err((v.span().start, format!("`{key}` must be at least 1"))),
            _ => Ok(()),
        };
        at_least_one(&self.memory_mib, "memory_mib")?;
        at_least_one(&self.timeout_s, "timeout_s")?;
        let mut http = Vec::new();
        for need in self.http {
            let offset = need.span().start;
            let need = need.into_inner();
            check_http(&need, declared).map_err(|message| (offset, message))?;
            http.push(need);
        }
        Ok(Needs {
            workspace: self.workspace,
            memory_mib: self.memory_mib.map(Spanned::into_inner),
            timeout_s: self.timeout_s.map(Spanned::into_inner),
            http,
        })
    }
}

/// Methods that can be asked for.
pub const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

fn check_http(need: &HttpNeed, declared: &[&str]) -> Result<(), String> {
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
        if http::HeaderName::from_bytes(inject.header.as_bytes()).is_err() {
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

/// A host as it stands in a manifest or a grant.
pub fn check_host(host: &str) -> Result<(), String> {
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
