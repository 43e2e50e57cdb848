//! `kiso skill grant`: what an administrator allows.

use super::open;
use crate::cli::{Exit, Failure, Shared};
use crate::skill::grant::{Grant, HttpGrant, covers};
use crate::skill::manifest::check_host;
use serde_json::json;

#[derive(Debug, clap::Args)]
pub struct GrantSkill {
    /// The skill
    name: String,
    /// Everything that its manifest asks for
    #[arg(long, conflicts_with_all = ["none", "host", "secret"])]
    all: bool,
    /// Nothing beyond what every skill gets
    #[arg(long, conflicts_with_all = ["host", "secret"])]
    none: bool,
    /// Also reach this host: "example.org", "*.example.org", "example.org:8080"
    #[arg(long, value_name = "HOST")]
    host: Vec<String>,
    /// The hosts of this command may have private addresses (127.0.0.1, 192.168.…)
    #[arg(long, requires = "host")]
    private: bool,
    /// Also receive this secret
    #[arg(long, value_name = "NAME")]
    secret: Vec<String>,
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
            grant = Grant::default();
        }
        for host in &self.host {
            check_host(host).map_err(|m| Failure::new(Exit::Usage, m))?;
            let Some(need) = manifest.needs.http.iter().find(|need| covers(&need.host, host)) else {
                let asked: Vec<&str> = manifest.needs.http.iter().map(|n| n.host.as_str()).collect();
                let asked = if asked.is_empty() { "no host".to_owned() } else { asked.join(", ") };
                let message = format!("{} asks for {asked}, so a grant of {host} would have no effect", manifest.name);
                return Err(Failure::new(Exit::Usage, message));
            };
            grant.http.retain(|g| g.host != *host);
            grant.http.push(HttpGrant::of(need, host, self.private));
        }
        for secret in &self.secret {
            if !manifest.secrets.contains(secret) && !manifest.env.contains_key(secret) {
                return Err(Failure::new(Exit::Usage, format!("{} declares no secret `{secret}`", manifest.name)));
            }
            grant.secrets.insert(secret.clone());
        }
        if self.all || self.none || !self.host.is_empty() || !self.secret.is_empty() {
            opened.skills.write_grant(skill.name(), &grant)?;
        }
        if shared.json {
            outln!("{}", json!({ "type": "grant", "skill": manifest.name.as_str(), "grant": grant }));
        } else {
            let text = grant.to_toml();
            let rules: Vec<&str> = text.lines().filter(|l| !l.starts_with('#') && !l.is_empty()).collect();
            outln!(
                "{}",
                if rules.is_empty() {
                    "nothing is granted beyond what every skill gets".to_owned()
                } else {
                    rules.join("\n")
                }
            );
        }
        Ok(Exit::Done)
    }
}
