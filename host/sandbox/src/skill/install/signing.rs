//! The statement that a publisher signs for a component.

use super::super::digest::Digest;
use super::super::error::SkillError;
use super::super::installed::MANIFEST;
use super::super::loader::{self, ParsedComponent};
use super::super::manifest::Manifest;
use super::super::signature::{COMPONENT, Statement};
use super::{Skills, derived, read_manifest};
use crate::package::PackageFolder;
use kiso_plan::code::{Blame, ErrorCode};
use std::path::Path;

impl Skills {
    /// Returns the statement that a signature of a component, an Agent Skill or a package covers.
    pub fn statement(&self, file: &Path) -> Result<Statement, SkillError> {
        if PackageFolder::is_one(file) {
            let (folder, packed) = PackageFolder::read(file).map_err(|error| {
                let shown = file.display().to_string();
                SkillError::new(&shown, Blame::Caller, ErrorCode::BadManifest, error.to_string())
            })?;
            return Ok(super::package::statement(&folder, &packed));
        }
        if Self::is_agent_skill(file) {
            return self.agent_statement(file);
        }
        let shown = file.display().to_string();
        let refuse = |code: ErrorCode, message: String| SkillError::new(&shown, Blame::Caller, code, message);
        let bytes = loader::read_file(file).map_err(|m| refuse(ErrorCode::NotFound, m))?;
        let parsed = loader::parse(&bytes).map_err(|e| refuse(ErrorCode::BadComponent, e.to_string()))?;
        let text = parsed.manifest.clone().or_else(|| read_manifest(&file.with_file_name(MANIFEST)).ok());
        let manifest = match &text {
            Some(text) => Manifest::parse(&shown, text).map_err(|e| refuse(ErrorCode::BadManifest, e.to_string()))?,
            None => derived::manifest(file, None, &parsed).map_err(|m| refuse(ErrorCode::BadManifest, m))?,
        };
        Ok(statement(file, &bytes, text.as_deref(), &manifest, &parsed))
    }
}

/// Returns the statement that a signature of this file covers. Without a manifest, the name is that of the file, whatever it is
/// installed under.
pub(super) fn statement(
    file: &Path,
    bytes: &[u8],
    text: Option<&str>,
    manifest: &Manifest,
    parsed: &ParsedComponent,
) -> Statement {
    let own = text.is_none().then(|| derived::manifest(file, None, parsed).ok()).flatten();
    Statement {
        name: own.as_ref().unwrap_or(manifest).name.to_string(),
        version: manifest.version.clone(),
        kind: COMPONENT,
        digest: Digest::compute(bytes).to_string(),
        manifest: text.map(|text| Digest::compute(text.as_bytes()).to_string()),
    }
}
