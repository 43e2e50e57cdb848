//! What a skill is, needs and was granted, as the command line and the gateway show it.

use super::grant::{Grant, RequestedGrant};
use super::manifest::{HttpNeed, Manifest, Workspace};
use super::{Ended, Installed, SkillError, Skills};
use crate::home::SessionName;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

impl Skills {
    /// What the skill asks for and was not granted.
    pub fn missing(&self, skill: &Installed, grant: &Grant) -> RequestedGrant {
        let missing = RequestedGrant::of(&skill.manifest, &self.config().engine).beyond(grant);
        // What a bundled skill needs of memory and time it has without a grant.
        if skill.is_bundled() { RequestedGrant { memory_mib: None, timeout_s: None, ..missing } } else { missing }
    }

    /// Everything about the skill that is worth showing: docs/json.md, `kiso skill info`.
    pub fn shown(&self, skill: &Installed) -> Result<Value, SkillError> {
        let allowed = self.allowed(skill)?;
        let manifest = &skill.manifest;
        let tools: Vec<_> = skill.tools.iter().map(|t| json!({ "name": t.name, "args": t.args.schema() })).collect();
        let http: Vec<_> = allowed
            .http
            .iter()
            .map(|(need, private)| json!({ "host": need.host, "methods": need.methods, "private": private }))
            .collect();
        Ok(json!({
            "skill": manifest.name.as_str(), "version": manifest.version, "origin": skill.origin(),
            "shape": skill.shape, "category": manifest.category, "summary": manifest.summary,
            "description": manifest.description, "digest": self.digest(skill), "source": skill.source(), "sdk": skill.sdk,
            "examples": manifest.examples, "tools": tools, "needs": needs(manifest),
            "allowed": {
                "workspace": allowed.workspace, "memory_mib": allowed.memory_mib, "timeout_s": allowed.timeout_s,
                "secrets": allowed.secrets, "http": http,
            },
        }))
    }
}

/// What a skill asks for, what of it is beyond a grant, and what was granted: one form for all three, so that a client can
/// show the difference.
struct GrantView<'a> {
    workspace: Option<Workspace>,
    memory_mib: Option<u64>,
    timeout_s: Option<u64>,
    secrets: &'a BTreeSet<String>,
    http: Vec<Value>,
}

impl GrantView<'_> {
    fn shown(self) -> Value {
        let secrets: Vec<_> = self.secrets.iter().map(|name| json!({ "name": name })).collect();
        let mut shown = json!({ "http": self.http, "secrets": secrets });
        if let Some(workspace) = self.workspace {
            shown["workspace"] = json!(workspace);
        }
        if let Some(memory_mib) = self.memory_mib {
            shown["memory_mib"] = json!(memory_mib);
        }
        if let Some(timeout_s) = self.timeout_s {
            (shown["timeout_s"], shown["time_ms"]) = (json!(timeout_s), json!(timeout_s.saturating_mul(1_000)));
        }
        shown
    }
}

/// A host that is asked for. That its address may be private is not a skill's to ask.
fn host(need: &HttpNeed) -> Value {
    let mut shown = json!(need);
    shown["private"] = false.into();
    shown
}

/// What the manifest asks for, also where every skill gets as much.
fn needs(manifest: &Manifest) -> Value {
    let needs = &manifest.needs;
    let wanted = GrantView {
        workspace: Some(needs.workspace),
        memory_mib: needs.memory_mib,
        timeout_s: needs.timeout_s,
        secrets: &manifest.readable_secrets(),
        http: needs.http.iter().map(host).collect(),
    };
    wanted.shown()
}

impl RequestedGrant {
    /// The form in which the gateway says what is asked for: docs/api.md.
    pub fn shown(&self) -> Value {
        let RequestedGrant { memory_mib, timeout_s, secrets, http, workspace } = self;
        let http = http.iter().map(host).collect();
        GrantView { workspace: *workspace, memory_mib: *memory_mib, timeout_s: *timeout_s, secrets, http }.shown()
    }
}

impl Grant {
    /// The same form for what was granted.
    pub fn shown(&self) -> Value {
        let Grant { workspace, memory_mib, timeout_s, secrets, http } = self;
        let http = http.iter().map(|granted| {
            let mut shown = json!(granted);
            shown["private"] = granted.private.into();
            shown
        });
        let http = http.collect();
        GrantView { workspace: *workspace, memory_mib: *memory_mib, timeout_s: *timeout_s, secrets, http }.shown()
    }
}

impl Installed {
    /// "bundled" or "installed".
    pub fn origin(&self) -> &'static str {
        if self.is_bundled() { "bundled" } else { "installed" }
    }
}

impl Ended {
    /// How the call ended: docs/json.md, `kiso skill run`. With `work`, files are named as this machine does, too.
    pub fn shown(&self, tool: &str, session: &SessionName, work: Option<&Path>) -> Value {
        let (answer, error) = (self.result.as_ref().ok(), self.result.as_ref().err());
        let files = answer.map(|a| &a.files).into_iter().flatten();
        let files = files.map(|f| {
            let mut file = json!({ "path": f.path });
            if let Some(work) = work {
                file["host_path"] = json!(work.join(&f.path));
            }
            file["media_type"] = json!(f.media_type);
            file["bytes"] = json!(f.bytes);
            file["title"] = json!(f.title);
            file["link"] = json!(f.link);
            file
        });
        json!({
            "tool": tool, "session": session.to_string(), "ok": error.is_none(), "text": answer.map(|a| &a.text),
            "data": answer.and_then(|a| a.data.as_ref()), "files": files.collect::<Vec<_>>(), "error": error,
            "log": self.log, "stdout": self.stdout, "stderr": self.stderr, "used": self.used,
        })
    }
}
