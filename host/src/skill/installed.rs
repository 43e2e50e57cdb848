//! Skills on disk: `skills/NAME/` of the home and those inside the binary.

use super::args::ArgsSchema;
use super::error::{Blame, SkillError};
use super::loader::Shape;
use super::manifest::Manifest;
use crate::home::{Home, SkillName};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::path::PathBuf;

include!(concat!(env!("OUT_DIR"), "/bundled.rs"));

/// A skill that is part of the binary.
#[derive(Debug)]
pub struct Bundled {
    pub name: &'static str,
    pub manifest: &'static str,
    pub wasm: &'static [u8],
    /// The same, compiled for the default settings.
    pub code: &'static [u8],
}

/// A skill that can be called.
#[derive(Debug)]
pub struct Installed {
    pub manifest: Manifest,
    pub shape: Shape,
    /// Whether a core module was wrapped.
    pub wrapped: bool,
    /// What it was written with, if it says so.
    pub sdk: Option<String>,
    pub tools: Vec<Tool>,
    pub place: Place,
}

/// Where the component's bytes are.
#[derive(Debug, Clone)]
pub enum Place {
    /// Inside the binary.
    Binary(&'static Bundled),
    /// In the home, with the SHA-256 that it had when it was installed.
    Home { path: PathBuf, digest: String },
}

/// One thing that can be called: for most skills the skill itself.
#[derive(Debug)]
pub struct Tool {
    /// What plans and people write: "search", or "calc.add" in a component of several functions.
    pub name: String,
    /// What the guest is told: "search", or "add".
    pub inner: String,
    pub args: ArgsSchema,
}

/// `installed.json`: what the host found out when it installed the skill, so that a listing compiles nothing.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Record {
    pub shape: Shape,
    pub wrapped: bool,
    pub sdk: Option<String>,
    pub digest: String,
    /// Inner name and schema of each tool.
    pub tools: Vec<(String, Value)>,
}

pub(super) const RECORD: &str = "installed.json";
pub(super) const WASM: &str = "skill.wasm";
pub(super) const MANIFEST: &str = "kiso.toml";

/// Whether a skill of this name is part of the binary.
pub fn is_bundled(name: &SkillName) -> bool {
    BUNDLED.iter().any(|bundled| bundled.name == name.as_str())
}

impl Installed {
    pub fn name(&self) -> &SkillName {
        &self.manifest.name
    }

    pub fn is_bundled(&self) -> bool {
        matches!(self.place, Place::Binary(_))
    }

    /// The component's bytes.
    pub fn wasm(&self) -> std::io::Result<Cow<'static, [u8]>> {
        match &self.place {
            Place::Binary(bundled) => Ok(Cow::Borrowed(bundled.wasm)),
            Place::Home { path, .. } => Ok(Cow::Owned(std::fs::read(path)?)),
        }
    }

    /// Reads a skill of the binary.
    pub(super) fn bundled(bundled: &'static Bundled) -> Self {
        let manifest =
            Manifest::parse(MANIFEST, bundled.manifest).expect("a bundled manifest was checked by the tests");
        debug_assert_eq!(manifest.name.as_str(), bundled.name, "host/build.rs names the folder");
        let tools = tools(&manifest, Shape::Skill, Vec::new()).expect("a bundled schema was checked by the tests");
        let place = Place::Binary(bundled);
        Self { manifest, shape: Shape::Skill, wrapped: false, sdk: None, tools, place }
    }

    /// Reads a skill of the home; none if there is none of that name.
    pub(super) fn read(home: &Home, name: &SkillName) -> Result<Option<Self>, SkillError> {
        let dir = home.skill_dir(name);
        let damaged = |what: &str, why: String| {
            let message = format!("{} is damaged ({why}); remove the skill and add it again", dir.join(what).display());
            SkillError::new(name.as_str(), Blame::Host, "io", message)
        };
        let record = match std::fs::read(dir.join(RECORD)) {
            Ok(record) => record,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(damaged(RECORD, error.to_string())),
        };
        let record: Record = serde_json::from_slice(&record).map_err(|e| damaged(RECORD, e.to_string()))?;
        let text = std::fs::read_to_string(dir.join(MANIFEST)).map_err(|e| damaged(MANIFEST, e.to_string()))?;
        let mut manifest = Manifest::parse(MANIFEST, &text).map_err(|e| damaged(MANIFEST, e.to_string()))?;
        // `--name` may have given it another one.
        manifest.name = name.clone();
        let tools = tools(&manifest, record.shape, record.tools).map_err(|e| damaged(RECORD, e))?;
        let place = Place::Home { path: dir.join(WASM), digest: record.digest };
        Ok(Some(Self { manifest, shape: record.shape, wrapped: record.wrapped, sdk: record.sdk, tools, place }))
    }
}

/// The tools of a skill. A component of plain functions has one for each function; the name of the skill alone names
/// the function where there is only one.
pub(super) fn tools(manifest: &Manifest, shape: Shape, found: Vec<(String, Value)>) -> Result<Vec<Tool>, String> {
    let skill = manifest.name.as_str();
    if shape != Shape::Functions {
        let args = found.into_iter().next().map_or_else(|| manifest.args.clone(), |(_, schema)| schema);
        return Ok(vec![Tool { name: skill.to_owned(), inner: skill.to_owned(), args: ArgsSchema::new(args)? }]);
    }
    let single = found.len() == 1;
    let tool = |(inner, schema): (String, Value)| {
        let name = if single { skill.to_owned() } else { format!("{skill}.{inner}") };
        Ok(Tool { name, inner, args: ArgsSchema::new(schema)? })
    };
    found.into_iter().map(tool).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bundled_manifests_and_schemas_hold() {
        for bundled in BUNDLED {
            let skill = Installed::bundled(bundled);
            assert_eq!(skill.name().as_str(), bundled.name);
            let parsed = super::super::loader::parse(bundled.wasm).unwrap();
            assert_eq!(parsed.shape, Shape::Skill);
            assert_eq!(parsed.manifest.as_deref(), Some(bundled.manifest), "the component carries its manifest");
        }
    }
}
