//! What an artifact is made of: manifest, configuration, layer.

use super::super::loader::{self, MAX_WASM_BYTES};
use super::super::signature::Statement;
use super::{OciError, OciReference, sha256};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

pub(super) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.wasm.config.v0+json";
const LAYER: &str = "application/wasm";

/// The annotation with the signature of the component.
pub(super) const ANNOTATION_SIGNATURE: &str = "io.github.kiso.signature";

/// Of the image specification.
const ANNOTATION_TITLE: &str = "org.opencontainers.image.title";
const ANNOTATION_VERSION: &str = "org.opencontainers.image.version";

/// Annotations that are read.
const MAX_ANNOTATIONS: usize = 200;

/// Characters of one that is shown.
const MAX_SHOWN: usize = 200;

/// A part of an artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Descriptor {
    pub media_type: String,
    pub digest: String,
    pub size: u64,
}

/// What is read of a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ArtifactManifest {
    schema_version: u32,
    pub config: Descriptor,
    pub layers: Vec<Descriptor>,
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
}

impl ArtifactManifest {
    pub fn read(text: &[u8], from: &OciReference) -> Result<Self, OciError> {
        let wrong = |why: String| OciError::Artifact { what: from.to_string(), why };
        let manifest: Self =
            serde_json::from_slice(text).map_err(|error| wrong(format!("its manifest cannot be read: {error}")))?;
        if manifest.schema_version != 2 {
            return Err(wrong("its manifest is of another version".to_owned()));
        }
        if manifest.config.media_type != CONFIG {
            let kind: String = manifest.config.media_type.chars().take(100).collect();
            return Err(wrong(format!("its configuration is {kind:?} and not {CONFIG}")));
        }
        let [layer] = manifest.layers.as_slice() else {
            return Err(wrong(format!("it has {} layers and not one", manifest.layers.len())));
        };
        if layer.media_type != LAYER {
            let kind: String = layer.media_type.chars().take(100).collect();
            return Err(wrong(format!("its layer is {kind:?} and not {LAYER}")));
        }
        for part in [&manifest.config, layer] {
            let hex = part.digest.strip_prefix("sha256:").unwrap_or_default();
            if hex.len() != 64 || !hex.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f')) {
                return Err(wrong("a digest in its manifest is not sha256".to_owned()));
            }
        }
        if layer.size > MAX_WASM_BYTES {
            return Err(OciError::TooLarge { what: "the layer".to_owned(), max: MAX_WASM_BYTES });
        }
        if manifest.annotations.len() > MAX_ANNOTATIONS {
            return Err(wrong(format!("it has more than {MAX_ANNOTATIONS} annotations")));
        }
        Ok(manifest)
    }

    /// What it says that the component is called, and its version.
    pub fn title(&self) -> Option<String> {
        self.annotation(ANNOTATION_TITLE)
    }

    pub fn version(&self) -> Option<String> {
        self.annotation(ANNOTATION_VERSION)
    }

    fn annotation(&self, key: &str) -> Option<String> {
        Some(self.annotations.get(key)?.chars().filter(|c| !c.is_control()).take(MAX_SHOWN).collect())
    }
}

/// The configuration has to be about the layer.
pub(super) fn check_config(config: &[u8], layer: &str, from: &OciReference) -> Result<(), OciError> {
    let wrong = |why: &str| OciError::Artifact { what: from.to_string(), why: why.to_owned() };
    let config: Value = serde_json::from_slice(config).map_err(|_| wrong("its configuration is no JSON"))?;
    if config["architecture"] != "wasm" {
        return Err(wrong("its configuration is not for wasm"));
    }
    match config["layerDigests"].as_array() {
        Some(digests) if digests.iter().any(|digest| digest == layer) => Ok(()),
        Some(_) => Err(wrong("its configuration is of another layer")),
        None => Ok(()),
    }
}

/// The configuration of a component. The same bytes have the same one.
pub(super) fn config_of(bytes: &[u8]) -> Result<Vec<u8>, loader::LoadError> {
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

/// The manifest of a component, as it is pushed.
pub(super) fn manifest_of(config: &[u8], bytes: &[u8], of: &Statement, signature: Option<String>) -> Vec<u8> {
    let part = |media_type: &str, bytes: &[u8]| Descriptor {
        media_type: media_type.to_owned(),
        digest: sha256(bytes),
        size: bytes.len() as u64,
    };
    let mut annotations = BTreeMap::from([
        (ANNOTATION_TITLE.to_owned(), of.name.clone()),
        (ANNOTATION_VERSION.to_owned(), of.version.clone()),
    ]);
    if let Some(signature) = signature {
        annotations.insert(ANNOTATION_SIGNATURE.to_owned(), signature);
    }
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": part(CONFIG, config),
        "layers": [part(LAYER, bytes)],
        "annotations": annotations,
    });
    manifest.to_string().into_bytes()
}
