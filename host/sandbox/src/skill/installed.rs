//! Skills on disk: `skills/NAME/` of the home and those inside the binary.

use super::args::ArgsSchema;
use super::deflated::DeflatedBytes;
use super::error::SkillError;
use super::input::Keep;
use super::loader::Shape;
use super::manifest::{MAX_MANIFEST, Manifest};
use super::source::Identity;
use super::surface;
use crate::package::Package;
use kiso_base::home::{Home, SkillName};
use kiso_plan::code::{Blame, ErrorCode};
use kiso_plan::sink::ToolEffect;
use kiso_store::store::KvOwner;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

include!(concat!(env!("OUT_DIR"), "/bundled.rs"));

/// A skill that is part of the binary.
#[derive(Debug)]
pub struct BundledSkill {
    pub name: &'static str,
    /// SHA-256 of the component, in hexadecimal.
    pub digest: &'static str,
    /// Whether it is a WASI command.
    pub is_command: bool,
    pub manifest: &'static str,
    pub wasm: DeflatedBytes,
    /// The component, compiled for the default settings.
    pub code: DeflatedBytes,
}

/// A skill that can be called.
#[derive(Debug)]
pub struct InstalledSkill {
    pub manifest: Manifest,
    pub shape: Shape,
    /// Whether a core module was wrapped.
    pub wrapped: bool,
    /// The SDK that it was written with, if it names one.
    pub sdk: Option<String>,
    pub tools: Vec<Tool>,
    pub place: ComponentLocation,
    /// The owner of the values of its calls.
    owner: OnceLock<KvOwner>,
}

/// Where the component's bytes are stored.
#[derive(Debug, Clone)]
pub enum ComponentLocation {
    /// Inside the binary.
    Binary(&'static BundledSkill),
    /// In the home, with its SHA-256 at the time of installation, and its source.
    Home { path: PathBuf, digest: String, source: Option<String>, provenance: Provenance },
}

/// Where a skill was last fetched, and who signed it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Provenance {
    /// The file, or the registry; `source` stays the skill's first source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// SHA-256 of the fetched file. The component may have been made from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_digest: Option<String>,
    /// The key that signed it, to which the skill is pinned: a line of base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signer: Option<String>,
}

/// A tool that can be called: for most skills the skill itself.
#[derive(Debug)]
pub struct Tool {
    /// The name in plans and for people: "search", or "calc.add" in a component of several functions.
    pub name: String,
    /// The name for the guest: "search", or "add".
    pub inner: String,
    pub args: ArgsSchema,
}

/// `installed.json`: the findings of the installation, so that a listing compiles nothing.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct InstallRecord {
    pub shape: Shape,
    pub wrapped: bool,
    pub sdk: Option<String>,
    pub digest: String,
    /// Where the file came from; an older kiso did not record it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub source: Option<String>,
    #[serde(flatten)]
    pub provenance: Provenance,
    /// Inner name and schema of each tool.
    pub tools: Vec<(String, Value)>,
}

pub(super) const RECORD: &str = "installed.json";

/// Bytes of `installed.json`, at most: the schemas of a skill, as indented JSON.
const MAX_RECORD: usize = 1 << 20;

pub(super) const WASM: &str = "skill.wasm";
pub(super) const MANIFEST: &str = "kiso.toml";

/// Whether a skill of this name is part of the binary.
pub fn is_bundled(name: &SkillName) -> bool {
    BUNDLED.iter().any(|bundled| bundled.name == name.as_str())
}

/// The skills that are part of the binary.
pub fn bundled_names() -> impl Iterator<Item = &'static str> {
    BUNDLED.iter().map(|bundled| bundled.name)
}

impl InstalledSkill {
    pub fn name(&self) -> &SkillName {
        &self.manifest.name
    }

    pub fn is_bundled(&self) -> bool {
        matches!(self.place, ComponentLocation::Binary(_))
    }

    /// The component's bytes.
    pub fn wasm(&self) -> std::io::Result<Vec<u8>> {
        match &self.place {
            ComponentLocation::Binary(bundled) => Ok(bundled.wasm.unpack()),
            ComponentLocation::Home { path, .. } => std::fs::read(path),
        }
    }

    /// SHA-256 of the component, in hexadecimal.
    pub fn digest(&self) -> &str {
        match &self.place {
            ComponentLocation::Binary(bundled) => bundled.digest,
            ComponentLocation::Home { digest, .. } => digest,
        }
    }

    /// The package, if it is one.
    pub fn package(&self) -> Option<&Arc<Package>> {
        self.manifest.package.as_ref()
    }

    /// Whether it is part of kiso: a bundled skill, or a package of kiso.
    pub fn is_of_kiso(&self) -> bool {
        self.is_bundled() || self.package().is_some() && self.source().is_some_and(Package::is_source_of_kiso)
    }

    /// The source of its file, if it was recorded.
    pub fn source(&self) -> Option<&str> {
        match &self.place {
            ComponentLocation::Binary(_) => None,
            ComponentLocation::Home { source, .. } => source.as_deref(),
        }
    }

    /// Where it was last fetched, and who signed it.
    pub fn provenance(&self) -> Option<&Provenance> {
        match &self.place {
            ComponentLocation::Binary(_) => None,
            ComponentLocation::Home { provenance, .. } => Some(provenance),
        }
    }

    /// The key to which it is pinned.
    pub fn signer(&self) -> Option<&str> {
        self.provenance()?.signer.as_deref()
    }

    /// The identity that is compared when another file of its name comes.
    pub(super) fn identity(&self) -> Identity<'_> {
        let digest = match &self.place {
            ComponentLocation::Binary(_) => "",
            ComponentLocation::Home { digest, .. } => digest,
        };
        Identity { version: &self.manifest.version, digest, source: self.source() }
    }

    /// The values that a call may keep, and where.
    pub(super) fn keep(&self) -> Keep {
        Keep::Disk(self.owner.get_or_init(|| KvOwner::new(self.name(), self.source())).clone())
    }

    /// Reads a skill of the binary.
    #[expect(
        clippy::expect_used,
        reason = "a bundled manifest was checked by the tests; a bundled schema was checked by the tests"
    )]
    pub(super) fn bundled(bundled: &'static BundledSkill) -> Self {
        let manifest =
            Manifest::parse_known(MANIFEST, bundled.manifest).expect("a bundled manifest was checked by the tests");
        debug_assert_eq!(manifest.name.as_str(), bundled.name, "host/sandbox/build.rs names the folder");
        let shape = if bundled.is_command { Shape::Command } else { Shape::Skill };
        let tools = tools(&manifest, shape, Vec::new()).expect("a bundled schema was checked by the tests");
        let place = ComponentLocation::Binary(bundled);
        Self { manifest, shape, wrapped: false, sdk: None, tools, place, owner: OnceLock::new() }
    }

    /// Reads a skill of the home; `None` if it is not installed.
    pub(super) fn read(home: &Home, name: &SkillName) -> Result<Option<Self>, SkillError> {
        let dir = home.skill_dir(name);
        let damaged = |what: &str, why: String| {
            let message = format!("{} is damaged ({why}); remove the skill and add it again", dir.join(what).display());
            SkillError::new(name.as_str(), Blame::Host, ErrorCode::Io, message)
        };
        // An older kiso installed this skill, and this one would refuse it.
        let set_aside = |why: String| {
            let message = format!(
                "it is set aside and cannot be called: {why}; add it again, or `kiso skill remove {name}` removes it"
            );
            SkillError::new(name.as_str(), Blame::Skill, ErrorCode::SetAside, message)
        };
        let read = |what: &str, max: usize| match read_at_most(&dir.join(what), max) {
            Ok(bytes) if bytes.len() > max => {
                Err(set_aside(format!("{} has more than {max} bytes", dir.join(what).display())))
            }
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && what == RECORD => Ok(None),
            Err(error) => Err(damaged(what, error.to_string())),
        };
        let Some(record) = read(RECORD, MAX_RECORD)? else { return Ok(None) };
        let record: InstallRecord = serde_json::from_slice(&record).map_err(|e| damaged(RECORD, e.to_string()))?;
        let text = read(MANIFEST, MAX_MANIFEST)?.unwrap_or_default();
        let text = String::from_utf8(text).map_err(|e| damaged(MANIFEST, e.to_string()))?;
        let mut manifest = Manifest::parse(MANIFEST, &text).map_err(|e| set_aside(e.to_string()))?;
        // `--name` may have given it another name.
        manifest.name = name.clone();
        let InstallRecord { shape, wrapped, sdk, digest, source, provenance, tools } = record;
        let tools = self::tools(&manifest, shape, tools).map_err(set_aside)?;
        let place = ComponentLocation::Home { path: dir.join(WASM), digest, source, provenance };
        Ok(Some(Self { manifest, shape, wrapped, sdk, tools, place, owner: OnceLock::new() }))
    }
}

/// The beginning of a file: at most one byte more than `max`.
fn read_at_most(path: &Path, max: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(max as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The tools of a skill. A component of plain functions has one for each function. If there is only one, the skill's name alone
/// names it.
pub(super) fn tools(manifest: &Manifest, shape: Shape, found: Vec<(String, Value)>) -> Result<Vec<Tool>, String> {
    let skill = manifest.name.as_str();
    let from_manifest = found.is_empty();
    let named: Vec<(String, String, Value)> = if shape == Shape::Functions {
        let single = found.len() == 1;
        let name = |inner: &str| if single { skill.to_owned() } else { format!("{skill}.{inner}") };
        found.into_iter().map(|(inner, schema)| (name(&inner), inner, schema)).collect()
    } else {
        let args = found.into_iter().next().map_or_else(|| manifest.args.clone(), |(_, schema)| schema);
        vec![(skill.to_owned(), skill.to_owned(), args)]
    };
    let shown: Vec<_> = named.iter().map(|(name, _, schema)| (name.clone(), schema)).collect();
    surface::check(manifest, &shown)?;
    check_effects(manifest, &named)?;
    let args = |schema| if from_manifest { Ok(ArgsSchema::checked(schema)) } else { ArgsSchema::new(schema) };
    named.into_iter().map(|(name, inner, schema)| Ok(Tool { name, inner, args: args(schema)? })).collect()
}

/// Refuses effects of a tool or an argument that does not exist. Otherwise a typing error would have no effect and go unnoticed.
pub(super) fn check_effects(manifest: &Manifest, tools: &[(String, String, Value)]) -> Result<(), String> {
    for (name, effect) in &manifest.effects {
        let Some((_, _, schema)) = tools.iter().find(|(_, inner, _)| inner == name) else {
            let names: Vec<&str> = tools.iter().map(|(_, inner, _)| inner.as_str()).collect();
            return Err(format!("`effects` names {name:?}, which is not one of its tools ({})", names.join(", ")));
        };
        let ToolEffect::Changes(roles) = effect else { continue };
        let named = roles.address.iter().chain(&roles.value).chain(&roles.content);
        if let Some(unknown) = named.into_iter().find(|arg| schema["properties"].get(arg.as_str()).is_none()) {
            return Err(format!("`effects` of {name} names {unknown:?}, which is not one of its arguments"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bundled_manifests_and_schemas_hold() {
        for bundled in BUNDLED {
            Manifest::parse(MANIFEST, bundled.manifest).unwrap();
            let skill = InstalledSkill::bundled(bundled);
            assert_eq!(skill.name().as_str(), bundled.name);
            skill.tools.iter().for_each(|tool| drop(ArgsSchema::new(tool.args.schema().clone()).unwrap()));
            let parsed = super::super::loader::parse(&bundled.wasm.unpack()).unwrap();
            assert_eq!(parsed.shape, skill.shape);
            // The SDK adds the manifest to such components.
            let carried = (skill.shape == Shape::Skill).then_some(bundled.manifest);
            assert_eq!(parsed.manifest.as_deref(), carried, "the component carries its manifest");
        }
    }
}
