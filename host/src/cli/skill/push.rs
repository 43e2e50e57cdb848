//! `kiso skill push`, and requests to registries.

use super::open;
use super::sign::read;
use crate::cli::show::{Show, printable_line};
use crate::cli::{Exit, Failure, Shared, block_on, environment};
use kiso_plan::report::size;
use kiso_sandbox::skill::{
    FetchedFile, OciError, OciReference, RegistryCredentials, Skills, WebError, WebPlace, is_index_source,
};
use serde_json::json;
use std::path::PathBuf;

/// Variable with credentials for registries, as JSON.
const VARIABLE: &str = "KISO_REGISTRY_AUTH";

#[derive(Debug, clap::Args)]
pub(super) struct RegistryArgs {
    /// For a registry: a file with names and passwords, in the form of Docker's config.json [default: the content of
    /// KISO_REGISTRY_AUTH]
    #[arg(long, value_name = "FILE")]
    auth: Option<PathBuf>,
}

impl RegistryArgs {
    /// Returns the credentials for registries.
    pub(super) fn credentials(&self) -> Result<RegistryCredentials, Failure> {
        let text = match &self.auth {
            Some(path) => Some(read(path)?),
            None => environment(VARIABLE).filter(|text| !text.trim().is_empty()),
        };
        Ok(text.map(|text| RegistryCredentials::read(&text)).transpose()?.unwrap_or_default())
    }

    /// Fetches from a remote place: a registry, an address, or an index. Returns `None` for a local path. `digest` is that
    /// of the file, if it is known.
    pub(super) fn fetch(
        &self,
        skills: &Skills,
        place: &str,
        digest: Option<&str>,
        show: &Show,
    ) -> Result<Option<FetchedFile>, Failure> {
        let fetched = if OciReference::is_one(place) {
            let (from, who) = (OciReference::parse(place)?, self.credentials()?);
            show.busy(place);
            block_on(skills.pull(&from, &who))
        } else if WebPlace::is_one(place) {
            let from = WebPlace::parse(place)?.with_digest(digest)?;
            show.busy(from.url());
            let progress = |come: u64, _: Option<u64>| show.busy(&format!("fetched {}", size(come)));
            block_on(skills.fetch(&from, progress))
        } else if is_index_source(place).is_some() {
            let who = self.credentials()?;
            show.busy(place);
            block_on(async { skills.fetch_indexed(&skills.find_by_source(place, digest).await?, &who).await })
        } else {
            return Ok(None);
        };
        show.rest();
        Ok(Some(fetched??))
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct PushArgs {
    /// The .wasm file, or the folder, .zip or .skill file of an Agent Skill; the signature beside it goes with it
    file: PathBuf,
    /// Where to put it: oci://HOST/NAME:TAG
    to: String,
    #[command(flatten)]
    registry: RegistryArgs,
}

impl PushArgs {
    pub(crate) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let (opened, show) = open(shared)?;
        let to = OciReference::parse(&self.to)?;
        if to.digest().is_some() {
            return Err(Failure::new(Exit::Usage, "a push creates the digest; name a tag"));
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

impl From<WebError> for Failure {
    fn from(error: WebError) -> Self {
        let exit = if matches!(error, WebError::NoDigest { .. }) { Exit::Policy } else { Exit::Usage };
        Failure::new(exit, error.to_string())
    }
}

impl From<OciError> for Failure {
    fn from(error: OciError) -> Self {
        Failure::new(Exit::Usage, error.to_string())
    }
}
