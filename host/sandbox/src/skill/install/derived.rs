//! The manifest of a component that has none.

use super::super::loader::{ParsedComponent, Shape};
use super::super::manifest::Manifest;
use kiso_base::home::SkillName;
use serde_json::{Value, json};
use std::path::Path;

/// Returns the manifest that is derived for a component without one.
pub(super) fn manifest(file: &Path, name: Option<&str>, parsed: &ParsedComponent) -> Result<Manifest, String> {
    let stem =
        file.file_stem().and_then(|s| s.to_str()).unwrap_or_default().to_lowercase().replace(['_', ' ', '.'], "-");
    let name = SkillName::parse(name.unwrap_or(&stem)).map_err(|e| format!("{e}; give it one with --name"))?;
    let (summary, args) = match parsed.shape {
        Shape::Functions => (format!("Functions of {name}"), json!({ "type": "object", "properties": {} })),
        // The arguments are not known, so none are refused: the command gets them unchanged.
        Shape::Command => (format!("The command {name}"), json!({ "type": "object", "properties": {} })),
        Shape::Skill => {
            return Err(
                "a kiso skill needs a manifest: put kiso.toml beside the file, or name it with --manifest".to_owned()
            );
        }
    };
    let mut manifest = Manifest::derived(name, summary, args);
    manifest.needs = parsed.implied.clone();
    Ok(manifest)
}

/// The text of the manifest for a component that has none. Its needs are its imports, which an administrator can grant.
pub(super) fn text(manifest: &Manifest) -> String {
    let quoted = |text: &str| Value::String(text.to_owned()).to_string();
    format!(
        "# Written by `kiso skill add`: the file brought no manifest.\n[kiso]\ntype = \"skill\"\nname = {}\nversion = {}\ndescription = {}\n\
         \n# What it imports, and can be granted.\n{}",
        quoted(manifest.name.as_str()),
        quoted(&manifest.version),
        quoted(&manifest.summary),
        manifest.needs.to_toml()
    )
}
