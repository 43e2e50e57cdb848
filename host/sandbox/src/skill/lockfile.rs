//! `skills.lock`: the installed skills, where they came from, and who signed them. It is rewritten with each change. From it,
//! `kiso skill sync` makes another home equal. It contains no grants: each home decides what a skill may do.

use super::Skills;
use super::error::SkillError;
use super::signature::{AGENT_SKILL, COMPONENT, PACKAGE};
use kiso_plan::code::{Blame, ErrorCode};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::Read;
use std::path::Path;

/// The form that this kiso writes.
const FORM: u32 = 1;

/// Bytes of a file, and skills in it.
const MAX_FILE: u64 = 1 << 20;
const MAX_SKILLS: usize = 2_000;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Lockfile {
    form: u32,
    #[serde(default, rename = "skill")]
    skills: Vec<LockedSkill>,
}

/// An installed skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedSkill {
    pub name: String,
    /// "component", "agent-skill" or "package".
    pub kind: String,
    pub version: String,
    /// `file:PATH`, `oci://HOST/NAME:TAG`, or `upload:DIGEST`.
    pub source: String,
    /// SHA-256 of the file; of an Agent Skill, over its files; of a package of kiso, that of its component.
    pub digest: String,
    /// The key to which it is pinned, a line of base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signer: Option<String>,
}

impl Skills {
    /// The installed skills, by name.
    pub fn locked(&self) -> Vec<LockedSkill> {
        let components = self.list().into_iter().flatten().filter(|skill| !skill.is_bundled());
        let component = components.map(|skill| {
            let provenance = skill.provenance().cloned().unwrap_or_default();
            let source = provenance.location.or_else(|| skill.source().map(str::to_owned));
            LockedSkill {
                name: skill.name().to_string(),
                kind: if skill.package().is_some() { PACKAGE } else { COMPONENT }.to_owned(),
                version: skill.manifest.version.clone(),
                source: source.unwrap_or_else(|| "unknown".to_owned()),
                digest: provenance.file_digest.unwrap_or_else(|| skill.digest().to_owned()),
                signer: provenance.signer,
            }
        });
        let agent = self.agent_skills().into_iter().flatten().map(|skill| LockedSkill {
            name: skill.name.to_string(),
            kind: AGENT_SKILL.to_owned(),
            version: skill.version().to_owned(),
            source: skill.provenance.location.clone().unwrap_or_else(|| skill.source.clone()),
            digest: skill.digest.clone(),
            signer: skill.provenance.signer.clone(),
        });
        let mut all: Vec<_> = component.chain(agent).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// Rewrites the home's file.
    pub(super) fn write_lock(&self) -> Result<(), SkillError> {
        let file = Lockfile { form: FORM, skills: self.locked() };
        let text = toml::to_string(&file).map_err(|error| SkillError::host("skills.lock", error))?;
        let text = format!(
            "# What is installed here; `kiso skill sync` makes another home the same. Written by kiso.\n{text}"
        );
        let path = self.home().skills_lock_path();
        self.home().write_atomic(&path, text.as_bytes()).map_err(|error| SkillError::host("skills.lock", error))
    }
}

/// Reads such a file.
pub fn read_lock(path: &Path) -> Result<Vec<LockedSkill>, SkillError> {
    let refuse = |code: ErrorCode, why: String| SkillError::new(&path.display().to_string(), Blame::Caller, code, why);
    let mut text = String::new();
    let read = fs::File::open(path).and_then(|file| file.take(MAX_FILE + 1).read_to_string(&mut text));
    read.map_err(|error| refuse(ErrorCode::NotFound, format!("cannot read it: {error}")))?;
    if text.len() as u64 > MAX_FILE {
        return Err(refuse(ErrorCode::TooLarge, format!("it has more than {MAX_FILE} bytes")));
    }
    let file: Lockfile = toml::from_str(&text)
        .map_err(|error| refuse(ErrorCode::BadLock, format!("it is not a skills.lock: {}", error.message())))?;
    if file.form != FORM {
        return Err(refuse(
            ErrorCode::BadLock,
            format!("it has form {}, and this kiso reads {FORM}; update kiso", file.form),
        ));
    }
    if file.skills.len() > MAX_SKILLS {
        return Err(refuse(ErrorCode::TooLarge, format!("it names more than {MAX_SKILLS} skills")));
    }
    Ok(file.skills)
}
