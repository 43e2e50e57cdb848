//! Skills in OCI registries: a manifest that names a configuration and one layer. A component is the CNCF's artifact for WebAssembly
//! (`application/vnd.wasm.config.v0+json`, `application/wasm`), an Agent Skill that of the draft "Agent Skills OCI Artifacts"
//! (`application/vnd.agentskills.skill.config.v1+json`, and its folder as `….content.v1.tar+gzip`).
//!
//! A registry is not trusted: each part must have the length in the manifest, must not be too long, and must have the requested
//! digest. In reading order: [`mod@reference`] has the place, [`credential`] the name and password, [`request`] sends one
//! request, [`registry`] has the operations, and [`artifact`] the parts.

mod artifact;
mod credential;
mod reference;
mod registry;
mod request;

pub use self::credential::RegistryCredentials;
pub use self::reference::OciReference;

use self::artifact::{ANNOTATION_SIGNATURE, ArtifactKind, ArtifactManifest, ArtifactParts};
use self::registry::{Registry, RegistryAction};
use super::digest::Digest;
use super::error::SkillError;
use super::fetched::FetchedFile;
use super::loader;
use super::signature::MAX_FILE;
use super::{Skills, signature_of};
use kiso_plan::code::{Blame, ErrorCode};
use std::path::Path;

/// Bytes of a manifest, and of a configuration.
const MAX_MANIFEST: u64 = 1 << 20;

/// The error of a pull or push.
#[derive(Debug, thiserror::Error)]
pub enum OciError {
    #[error("{text:?} is not a place in a registry: {why}; write oci://HOST/NAME:TAG or oci://HOST/NAME@sha256:DIGEST")]
    Reference { text: String, why: &'static str },
    #[error("{host}: {why}")]
    Unreachable { host: String, why: String },
    #[error("{host} would be asked without encryption; that is done on this machine alone")]
    Plain { host: String },
    #[error("{host} sends to {to}, which is not followed: {why}")]
    Redirect { host: String, to: String, why: &'static str },
    #[error(
        "{host} wants to know who asks, or does not let this one ({status}); give credentials with --auth FILE or KISO_REGISTRY_AUTH"
    )]
    Denied { host: String, status: u16 },
    #[error("{host} has no {what}")]
    Missing { host: String, what: String },
    #[error("{host} answered {status} to {what}{said}")]
    Status { host: String, status: u16, what: String, said: String },
    #[error("{what} has more than the {max} bytes that are taken")]
    TooLarge { what: String, max: u64 },
    #[error(
        "{what} has the digest {is}, and {wanted} was asked for: it was changed on its way, or the registry is wrong"
    )]
    Digest { what: String, wanted: String, is: String },
    #[error("{what} is neither a component nor an Agent Skill: {why}")]
    Artifact { what: String, why: String },
    #[error("the credentials cannot be used: {0}")]
    Credentials(String),
}

impl OciError {
    /// The error's code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Reference { .. } => ErrorCode::BadReference,
            Self::Unreachable { .. } => ErrorCode::Unreachable,
            Self::Plain { .. } => ErrorCode::Unencrypted,
            Self::Redirect { .. } => ErrorCode::Redirect,
            Self::Denied { .. } => ErrorCode::Denied,
            Self::Missing { .. } => ErrorCode::NotFound,
            Self::Status { .. } => ErrorCode::Registry,
            Self::TooLarge { .. } => ErrorCode::TooLarge,
            Self::Digest { .. } => ErrorCode::Digest,
            Self::Artifact { .. } => ErrorCode::BadArtifact,
            Self::Credentials(_) => ErrorCode::BadCredentials,
        }
    }

    fn to_error_of(&self, of: &OciReference) -> SkillError {
        self.told_of(&of.to_string())
    }

    /// Converts it to the error of a skill.
    pub fn told_of(&self, of: &str) -> SkillError {
        let blame = match self {
            Self::Redirect { .. } | Self::Plain { .. } | Self::Digest { .. } | Self::Denied { .. } => Blame::Policy,
            Self::Unreachable { .. } | Self::Status { .. } => Blame::Host,
            _ => Blame::Caller,
        };
        SkillError::new(of, blame, self.code(), self.to_string())
    }
}

/// A skill's description in a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OciDescription {
    /// The digest of the manifest, in the form of registries.
    pub digest: String,
    /// "component" or "agent-skill".
    pub kind: &'static str,
    pub title: Option<String>,
    pub version: Option<String>,
}

impl Skills {
    /// Pulls a skill. Its source is registry and name: another tag is another version of the same skill.
    pub async fn pull(&self, from: &OciReference, who: &RegistryCredentials) -> Result<FetchedFile, SkillError> {
        let PulledArtifact { kind, layer, signature, digest } =
            pull(from, who).await.map_err(|error| error.to_error_of(from))?;
        let places = (from.source(), from.with_digest(&digest).to_string());
        self.keep_fetched(&format!("{}.{}", from.last(), kind.ending()), &layer, places, signature)
    }

    /// The tags of a name in a registry, up to a limit.
    pub async fn tags(&self, of: &OciReference, who: &RegistryCredentials) -> Result<Vec<String>, SkillError> {
        let tags = Registry::new(of, who, RegistryAction::Pull).tags(MAX_MANIFEST).await;
        tags.map_err(|error| error.to_error_of(of))
    }

    /// Returns a registry's description of a skill, without downloading it.
    pub async fn described(&self, of: &OciReference, who: &RegistryCredentials) -> Result<OciDescription, SkillError> {
        let described = async {
            let text = Registry::new(of, who, RegistryAction::Pull).manifest(MAX_MANIFEST).await?;
            let (kind, manifest) = ArtifactManifest::read(&text, of)?;
            let (title, version) = (manifest.title(), manifest.version());
            Ok(OciDescription { digest: sha256(&text), kind: kind.word(), title, version })
        };
        described.await.map_err(|error: OciError| error.to_error_of(of))
    }

    /// Pushes a component, or the folder or archive of an Agent Skill, with the signature beside it. Returns its place with the
    /// digest of its manifest.
    pub async fn push(
        &self,
        file: &Path,
        to: &OciReference,
        who: &RegistryCredentials,
    ) -> Result<OciReference, SkillError> {
        let refuse =
            |code: ErrorCode, why: String| SkillError::new(&file.display().to_string(), Blame::Caller, code, why);
        let signature = match std::fs::read_to_string(signature_of(file)) {
            Ok(text) if text.len() as u64 <= MAX_FILE => Some(text),
            Ok(_) => return Err(refuse(ErrorCode::BadSignature, "the signature beside it is too long".to_owned())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => {
                return Err(refuse(
                    ErrorCode::BadSignature,
                    format!("the signature beside it cannot be read: {error}"),
                ));
            }
        };
        let parts = match Self::is_agent_skill(file) {
            true => ArtifactParts::of_agent_skill(self.pack_agent_skill(file)?, signature),
            false => {
                let bytes = loader::read_file(file).map_err(|why| refuse(ErrorCode::NotFound, why))?;
                let parsed =
                    loader::parse(&bytes).map_err(|error| refuse(ErrorCode::BadComponent, error.to_string()))?;
                if parsed.manifest.is_none() && file.with_file_name("kiso.toml").exists() {
                    let why = "its kiso.toml lies beside it and would be left behind; `kiso skill pack` puts it inside";
                    return Err(refuse(ErrorCode::BadManifest, why.to_owned()));
                }
                let statement = self.statement(file)?;
                let parts = ArtifactParts::of_component(bytes, &statement, signature);
                parts.map_err(|error| refuse(ErrorCode::BadComponent, error.to_string()))?
            }
        };
        push(to, who, &parts).await.map_err(|error| error.to_error_of(to))
    }
}

/// An artifact from a registry, with every part checked.
struct PulledArtifact {
    kind: ArtifactKind,
    layer: Vec<u8>,
    signature: Option<String>,
    /// The digest of the manifest.
    digest: String,
}

async fn pull(from: &OciReference, who: &RegistryCredentials) -> Result<PulledArtifact, OciError> {
    let mut registry = Registry::new(from, who, RegistryAction::Pull);
    let text = registry.manifest(MAX_MANIFEST).await?;
    let digest = sha256(&text);
    if let Some(wanted) = from.digest()
        && *wanted != digest
    {
        return Err(OciError::Digest { what: "the manifest".to_owned(), wanted: wanted.to_owned(), is: digest });
    }
    let (kind, manifest) = ArtifactManifest::read(&text, from)?;
    let (layer, config) = (&manifest.layers[0], &manifest.config);
    // The configuration is small. For a component, only it says which system the layer is for.
    let config = registry.blob(config, "the configuration", MAX_MANIFEST).await?;
    artifact::check_config(kind, &config, &layer.digest, from)?;
    let layer = registry.blob(layer, "the layer", kind.max_layer()).await?;
    let signature = manifest.annotations.get(ANNOTATION_SIGNATURE).cloned();
    Ok(PulledArtifact { kind, layer, signature, digest })
}

async fn push(to: &OciReference, who: &RegistryCredentials, parts: &ArtifactParts) -> Result<OciReference, OciError> {
    let mut registry = Registry::new(to, who, RegistryAction::Push);
    registry.put_blob(&parts.layer, "the layer").await?;
    registry.put_blob(&parts.config, "the configuration").await?;
    registry.put_manifest(&parts.manifest).await?;
    Ok(to.with_digest(&sha256(&parts.manifest)))
}

/// A digest in the form of registries.
fn sha256(bytes: &[u8]) -> String {
    format!("sha256:{}", Digest::compute(bytes))
}
