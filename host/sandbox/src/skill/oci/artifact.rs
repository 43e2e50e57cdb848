//! The parts of an artifact: manifest, configuration, layer.

use super::super::agent::{AgentSkillArchive, MAX_PACKED};
use super::super::loader::{self, MAX_WASM_BYTES};
use super::super::signature::{AGENT_SKILL, COMPONENT, Statement};
use super::{OciError, OciReference, sha256};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

pub(super) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// The annotation with the signature of the skill.
pub(super) const ANNOTATION_SIGNATURE: &str = "io.github.kiso.signature";

/// From the image specification.
const ANNOTATION_TITLE: &str = "org.opencontainers.image.title";
const ANNOTATION_VERSION: &str = "org.opencontainers.image.version";
const ANNOTATION_DESCRIPTION: &str = "org.opencontainers.image.description";
const ANNOTATION_LICENSES: &str = "org.opencontainers.image.licenses";

/// From the draft "Agent Skills OCI Artifacts", version 0.1.0, which other programs that keep Agent Skills in registries follow.
const ANNOTATION_SKILL: &str = "io.agentskills.skill.name";
const AGENT_SKILL_ARTIFACT: &str = "application/vnd.agentskills.skill.v1";
const AGENT_SKILL_CONFIG_FORM: &str = "1";

/// Annotations that are read.
const MAX_ANNOTATIONS: usize = 200;

/// Characters of an annotation that are shown.
const MAX_SHOWN: usize = 200;

/// The kind of an artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ArtifactKind {
    /// In the form of the CNCF.
    Component,
    /// In the form of the draft for Agent Skills.
    AgentSkill,
}

impl ArtifactKind {
    /// The kind for a configuration of this type.
    fn from_config(config: &str) -> Option<Self> {
        [Self::Component, Self::AgentSkill].into_iter().find(|kind| kind.config() == config)
    }

    fn config(self) -> &'static str {
        match self {
            Self::Component => "application/vnd.wasm.config.v0+json",
            Self::AgentSkill => "application/vnd.agentskills.skill.config.v1+json",
        }
    }

    fn layer(self) -> &'static str {
        match self {
            Self::Component => "application/wasm",
            Self::AgentSkill => "application/vnd.agentskills.skill.content.v1.tar+gzip",
        }
    }

    /// Bytes of its layer.
    pub(super) fn max_layer(self) -> u64 {
        match self {
            Self::Component => MAX_WASM_BYTES,
            Self::AgentSkill => MAX_PACKED,
        }
    }

    /// The extension of the file that its layer becomes.
    pub(super) fn ending(self) -> &'static str {
        match self {
            Self::Component => "wasm",
            Self::AgentSkill => "skill",
        }
    }

    /// The name in statements and indexes.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Component => COMPONENT,
            Self::AgentSkill => AGENT_SKILL,
        }
    }
}

/// A part of an artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Descriptor {
    pub media_type: String,
    pub digest: String,
    pub size: u64,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<String, String>,
}

/// The fields of a manifest that are read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ArtifactManifest {
    schema_version: u32,
    #[serde(default)]
    artifact_type: Option<String>,
    pub config: Descriptor,
    pub layers: Vec<Descriptor>,
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
}

impl ArtifactManifest {
    /// Reads a manifest. The type of the configuration decides the kind of the artifact.
    pub(super) fn read(text: &[u8], from: &OciReference) -> Result<(ArtifactKind, Self), OciError> {
        let wrong = |why: String| OciError::Artifact { what: from.to_string(), why };
        let brief = |text: &str| text.chars().take(100).collect::<String>();
        let manifest: Self =
            serde_json::from_slice(text).map_err(|error| wrong(format!("its manifest cannot be read: {error}")))?;
        if manifest.schema_version != 2 {
            return Err(wrong("its manifest is of another version".to_owned()));
        }
        let kind = ArtifactKind::from_config(&manifest.config.media_type).ok_or_else(|| {
            wrong(format!(
                "its configuration is {:?}, and neither {} nor {}",
                brief(&manifest.config.media_type),
                ArtifactKind::Component.config(),
                ArtifactKind::AgentSkill.config()
            ))
        })?;
        let is_other = |given: &&str| kind == ArtifactKind::AgentSkill && *given != AGENT_SKILL_ARTIFACT;
        if let Some(given) = manifest.artifact_type.as_deref().filter(is_other) {
            return Err(wrong(format!("its type is {:?} and not {AGENT_SKILL_ARTIFACT}", brief(given))));
        }
        let [layer] = manifest.layers.as_slice() else {
            return Err(wrong(format!("it has {} layers and not one", manifest.layers.len())));
        };
        if layer.media_type != kind.layer() {
            return Err(wrong(format!("its layer is {:?} and not {}", brief(&layer.media_type), kind.layer())));
        }
        for part in [&manifest.config, layer] {
            let hex = part.digest.strip_prefix("sha256:").unwrap_or_default();
            if hex.len() != 64 || !hex.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f')) {
                return Err(wrong("a digest in its manifest is not sha256".to_owned()));
            }
        }
        if layer.size > kind.max_layer() {
            return Err(OciError::TooLarge { what: "the layer".to_owned(), max: kind.max_layer() });
        }
        if manifest.annotations.len() > MAX_ANNOTATIONS {
            return Err(wrong(format!("it has more than {MAX_ANNOTATIONS} annotations")));
        }
        Ok((kind, manifest))
    }

    /// The skill's name in the manifest's annotations.
    pub(super) fn title(&self) -> Option<String> {
        self.annotation(ANNOTATION_TITLE)
    }

    pub(super) fn version(&self) -> Option<String> {
        self.annotation(ANNOTATION_VERSION)
    }

    fn annotation(&self, key: &str) -> Option<String> {
        let text: String = self.annotations.get(key)?.chars().filter(|c| !c.is_control()).take(MAX_SHOWN).collect();
        Some(text).filter(|text| !text.is_empty())
    }
}

/// Checks that the configuration of a component describes the layer. That of an Agent Skill only repeats `SKILL.md`, which takes
/// precedence.
pub(super) fn check_config(
    kind: ArtifactKind,
    config: &[u8],
    layer: &str,
    from: &OciReference,
) -> Result<(), OciError> {
    let wrong = |why: &str| OciError::Artifact { what: from.to_string(), why: why.to_owned() };
    let config: Value = serde_json::from_slice(config).map_err(|_| wrong("its configuration is no JSON"))?;
    if kind == ArtifactKind::AgentSkill {
        return if config.is_object() { Ok(()) } else { Err(wrong("its configuration is no object")) };
    }
    if config["architecture"] != "wasm" {
        return Err(wrong("its configuration is not for wasm"));
    }
    match config["layerDigests"].as_array() {
        Some(digests) if digests.iter().any(|digest| digest == layer) => Ok(()),
        Some(_) => Err(wrong("its configuration is of another layer")),
        None => Ok(()),
    }
}

/// The parts of an artifact to push. The same files always give the same parts.
pub(super) struct ArtifactParts {
    pub layer: Vec<u8>,
    pub config: Vec<u8>,
    pub manifest: Vec<u8>,
}

impl ArtifactParts {
    pub(super) fn of_component(
        bytes: Vec<u8>,
        of: &Statement,
        signature: Option<String>,
    ) -> Result<Self, loader::LoadError> {
        let config = config_of(&bytes)?;
        let layer = Descriptor::new(ArtifactKind::Component.layer(), &bytes);
        let manifest = manifest_of(ArtifactKind::Component, &config, layer, annotations_of(of, signature));
        Ok(Self { layer: bytes, config, manifest })
    }

    pub(super) fn of_agent_skill(skill: AgentSkillArchive, signature: Option<String>) -> Self {
        let name = &skill.statement.name;
        let config = agent_config_of(&skill);
        // The file name for programs that download any artifact.
        let title = BTreeMap::from([(ANNOTATION_TITLE.to_owned(), format!("{name}.tar.gz"))]);
        let layer = Descriptor::new(ArtifactKind::AgentSkill.layer(), &skill.bytes);
        let layer = Descriptor { annotations: title, ..layer };
        let mut annotations = annotations_of(&skill.statement, signature);
        annotations.insert(ANNOTATION_SKILL.to_owned(), name.clone());
        annotations.insert(ANNOTATION_DESCRIPTION.to_owned(), skill.said.description.clone());
        if let Some(license) = &skill.said.license {
            annotations.insert(ANNOTATION_LICENSES.to_owned(), license.clone());
        }
        let manifest = manifest_of(ArtifactKind::AgentSkill, &config, layer, annotations);
        Self { layer: skill.bytes, config, manifest }
    }
}

impl Descriptor {
    fn new(media_type: &str, bytes: &[u8]) -> Self {
        let (media_type, size) = (media_type.to_owned(), bytes.len() as u64);
        Self { media_type, digest: sha256(bytes), size, annotations: BTreeMap::new() }
    }
}

fn config_of(bytes: &[u8]) -> Result<Vec<u8>, loader::LoadError> {
    let (imports, exports, component) = loader::names(bytes)?;
    let mut config = json!({
        "created": "1970-01-01T00:00:00Z",
        "architecture": "wasm",
        "os": if component { "wasip2" } else { "wasip1" },
        "layerDigests": [sha256(bytes)],
    });
    if component {
        config["component"] = json!({ "exports": exports, "imports": imports, "target": null });
    }
    Ok(config.to_string().into_bytes())
}

/// The content of `SKILL.md`, for programs that look at an artifact without downloading its layer.
fn agent_config_of(skill: &AgentSkillArchive) -> Vec<u8> {
    let AgentSkillArchive { statement, said, .. } = skill;
    let mut config = json!({
        "schemaVersion": AGENT_SKILL_CONFIG_FORM,
        "name": statement.name,
        "description": said.description,
    });
    if !statement.version.is_empty() {
        config["version"] = json!(statement.version);
    }
    if let Some(license) = &said.license {
        config["license"] = json!(license);
    }
    if let Some(compatibility) = &said.compatibility {
        config["compatibility"] = json!(compatibility);
    }
    if let Some(tools) = &said.allowed_tools {
        config["allowedTools"] = json!(tools);
    }
    if !said.metadata.is_empty() {
        let metadata = said.metadata.iter().map(|(key, value)| (key.clone(), Value::from(value.as_str())));
        config["metadata"] = Value::Object(metadata.collect());
    }
    config.to_string().into_bytes()
}

fn annotations_of(of: &Statement, signature: Option<String>) -> BTreeMap<String, String> {
    let mut annotations = BTreeMap::from([(ANNOTATION_TITLE.to_owned(), of.name.clone())]);
    // An Agent Skill may lack a version.
    if !of.version.is_empty() {
        annotations.insert(ANNOTATION_VERSION.to_owned(), of.version.clone());
    }
    if let Some(signature) = signature {
        annotations.insert(ANNOTATION_SIGNATURE.to_owned(), signature);
    }
    annotations
}

fn manifest_of(kind: ArtifactKind, config: &[u8], layer: Descriptor, annotations: BTreeMap<String, String>) -> Vec<u8> {
    let mut manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": Descriptor::new(kind.config(), config),
        "layers": [layer],
        "annotations": annotations,
    });
    if kind == ArtifactKind::AgentSkill {
        manifest["artifactType"] = json!(AGENT_SKILL_ARTIFACT);
    }
    manifest.to_string().into_bytes()
}
