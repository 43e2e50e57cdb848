//! `kiso skill push`, and how a registry is asked.

use super::open;
use super::sign::read;
use crate::cli::show::{Show, printable_line};
use crate::cli::{Exit, Failure, Shared, block_on, environment};
use crate::skill::{OciError, OciReference, PulledComponent, RegistryCredentials, Skills};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Credentials for registries, as JSON.
const VARIABLE: &str = "KISO_REGISTRY_AUTH";

#[derive(Debug, clap::Args)]
pub struct RegistryArgs {
    /// For a registry: a file with names and passwords, in the form of Docker's config.json [default: what KISO_REGISTRY_AUTH holds]
    #[arg(long, value_name = "FILE")]
    auth: Option<PathBuf>,
}

impl RegistryArgs {
    /// Who asks.
    pub(super) fn credentials(&self) -> Result<RegistryCredentials, Failure> {
        let text = match &self.auth {
            Some(path) => Some(read(path)?),
            None => environment(VARIABLE).filter(|text| !text.trim().is_empty()),
        };
        Ok(text.map(|text| RegistryCredentials::read(&text)).transpose()?.unwrap_or_default())
    }

    /// Gets what a path names out of a registry, if it does name that.
    pub(super) fn pull(&self, skills: &Skills, path: &Path, show: &Show) -> Result<Option<PulledComponent>, Failure> {
        let Some(text) = path.to_str().filter(|text| OciReference::is_one(text)) else { return Ok(None) };
        let from = OciReference::parse(text)?;
        let who = self.credentials()?;
        show.busy(&from.to_string());
        let pulled = block_on(skills.pull(&from, &who));
        show.rest();
        Ok(Some(pulled??))
    }
}

#[derive(Debug, clap::Args)]
pub struct PushArgs {
    /// The .wasm file; the signature beside it goes with it
    file: PathBuf,
    /// Where to put it: oci://HOST/NAME:TAG
    to: String,
    #[command(flatten)]
    registry: RegistryArgs,
}

impl PushArgs {
    pub fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let (opened, show) = open(shared)?;
        let to = OciReference::parse(&self.to)?;
        if to.digest().is_some() {
            return Err(Failure::new(Exit::Usage, "a digest is what a push results in; name a tag"));
        }
        let who = self.registry.credentials()?;
        show.busy(&to.to_string());
        let pushed = block_on(opened.skills.push(&self.file, &to, &who));
        show.rest();
        let at = pushed??;
        if shared.json {
            outln!("{}", json!({ "type": "pushed", "place": at.to_string(), "digest": at.digest() }));
        } else {
            outln!("pushed {}", printable_line(&at.to_string()));
        }
        Ok(Exit::Done)
    }
}

impl From<OciError> for Failure {
    fn from(error: OciError) -> Self {
        Failure::new(Exit::Usage, error.to_string())
    }
}
