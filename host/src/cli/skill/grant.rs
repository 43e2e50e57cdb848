//! `kiso skill grant`: what an administrator allows.

use super::open;
use crate::cli::show::printable;
use crate::cli::{Exit, Failure, Shared};
use crate::skill::grant::Grant;
use crate::skill::manifest::Workspace;
use serde_json::json;

#[derive(Debug, clap::Args)]
pub struct GrantSkill {
    /// The skill
    name: String,
    /// Everything its manifest asks for; without a manifest, everything it imports
    #[arg(long, conflicts_with_all = ["none", "read", "write", "host", "secret", "limits"])]
    all: bool,
    /// Nothing, not even /work
    #[arg(long, conflicts_with_all = ["read", "write", "host", "secret", "limits"])]
    none: bool,
    /// Also read /work
    #[arg(long, conflicts_with = "write")]
    read: bool,
    /// Also read and write /work
    #[arg(long)]
    write: bool,
    /// Also reach this host: "example.org", "*.example.org", "example.org:8080"
    #[arg(long, value_name = "HOST")]
    host: Vec<String>,
    /// The hosts of this command may have private addresses (127.0.0.1, 192.168.…)
    #[arg(long, requires = "host")]
    private: bool,
    /// Also receive this secret
    #[arg(long, value_name = "NAME")]
    secret: Vec<String>,
    /// Also the memory and time its manifest asks for
    #[arg(long)]
    limits: bool,
}

impl GrantSkill {
    pub fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let (opened, _) = open(shared)?;
        let skill = opened.skills.find(&self.name)?;
        let manifest = &skill.manifest;
        let mut grant = opened.skills.grant(&skill)?;
        if self.all {
            grant = Grant::all(manifest, &opened.config.engine);
        } else if self.none {
            grant = Grant::nothing();
        }
        let wrong = |why: String| Failure::new(Exit::Usage, why);
        if self.read || self.write {
            let workspace = if self.write { Workspace::Write } else { Workspace::Read };
            grant.set_workspace(manifest, workspace).map_err(wrong)?;
        }
        for host in &self.host {
            grant.add_host(manifest, host, self.private).map_err(wrong)?;
        }
        for secret in &self.secret {
            grant.add_secret(manifest, secret).map_err(wrong)?;
        }
        if self.limits {
            grant.set_limits(manifest, &opened.config.engine, true);
        }
        let workspace = self.read || self.write;
        if self.all || self.none || workspace || self.limits || !self.host.is_empty() || !self.secret.is_empty() {
            opened.skills.write_grant(skill.name(), &grant)?;
        }
        if shared.json {
            outln!("{}", json!({ "type": "grant", "skill": manifest.name.as_str(), "grant": grant.shown() }));
        } else {
            let text = grant.to_toml();
            let rules: Vec<&str> = text.lines().filter(|l| !l.starts_with('#') && !l.is_empty()).collect();
            outln!(
                "{}",
                if rules.is_empty() {
                    "nothing is granted beyond the defaults".to_owned()
                } else {
                    printable(&rules.join("\n"))
                }
            );
        }
        Ok(Exit::Done)
    }
}
