//! Makes an index of a folder of files, so that anybody can host one.

use super::{FORM, IndexedSkill, MAX_INDEX, MAX_SKILLS, MAX_TEXT, SkillIndex, index_statement};
use crate::package::PackageFolder;
use crate::skill::digest::Digest;
use crate::skill::error::SkillError;
use crate::skill::manifest::Manifest;
use crate::skill::publisher::signature_of;
use crate::skill::signature::{AGENT_SKILL, COMPONENT, ENDING, MAX_FILE, PACKAGE, SecretKey};
use crate::skill::{Skills, loader};
use kiso_base::clock::now_ms;
use kiso_base::home::SkillName;
use kiso_plan::code::{Blame, ErrorCode};
use std::fs;
use std::path::{Path, PathBuf};

/// The name of the file.
const FILE: &str = "index.json";

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// The settings of an index that is made.
#[derive(Debug, Clone)]
pub struct IndexSettings {
    pub name: SkillName,
    /// The days for which it is valid.
    pub days: u32,
}

/// An index that was written.
#[derive(Debug, Clone)]
pub struct MadeIndex {
    pub file: PathBuf,
    pub index: SkillIndex,
}

impl Skills {
    /// Writes and signs the index of the `.wasm`, `.zip` and `.skill` files of a folder, and of the package folders in it, which
    /// it packs. Its number is one more than that of the present index.
    pub fn make_index(&self, dir: &Path, settings: &IndexSettings, key: &SecretKey) -> Result<MadeIndex, SkillError> {
        let refuse =
            |code: ErrorCode, why: String| SkillError::new(&dir.display().to_string(), Blame::Caller, code, why);
        let host = |error: &dyn std::fmt::Display| SkillError::host(&dir.display().to_string(), error);
        let entries =
            fs::read_dir(dir).map_err(|error| refuse(ErrorCode::NotFound, format!("cannot read it: {error}")))?;
        let paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        let mut files: Vec<PathBuf> = paths.iter().filter(|path| is_packed(path)).cloned().collect();
        for folder in paths.iter().filter(|path| path.is_dir() && PackageFolder::is_one(path)) {
            files.push(pack_beside(folder)?);
        }
        files.sort();
        files.dedup();
        if files.is_empty() {
            return Err(refuse(
                ErrorCode::NotFound,
                "there is no .wasm, .zip or .skill file and no package folder in it".to_owned(),
            ));
        }
        if files.len() > MAX_SKILLS {
            return Err(refuse(ErrorCode::TooLarge, format!("it has more than {MAX_SKILLS} skills")));
        }
        let skills: Vec<_> = files.iter().map(|file| self.indexed(file)).collect::<Result<_, _>>()?;
        for (n, skill) in skills.iter().enumerate() {
            let same = |other: &&IndexedSkill| other.name == skill.name && other.version == skill.version;
            if let Some(other) = skills[..n].iter().find(same) {
                let why = format!("{} and {} are both {} {}", other.place, skill.place, skill.name, skill.version);
                return Err(refuse(ErrorCode::BadIndex, why));
            }
        }
        let file = dir.join(FILE);
        let serial = match fs::read(&file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => 1,
            Err(error) => return Err(host(&error)),
            Ok(bytes) => {
                let old: SkillIndex = kiso_base::json::parse(&bytes).map_err(|error| {
                    let why = format!("{FILE} is there and cannot be read ({error}); its number would be lost");
                    refuse(ErrorCode::BadIndex, why)
                })?;
                old.serial.saturating_add(1)
            }
        };
        let until = now_ms().saturating_add(i64::from(settings.days) * DAY_MS);
        // In whole seconds.
        let expires = jiff::Timestamp::from_second(until / 1_000).map_err(|error| host(&error))?;
        let name = settings.name.to_string();
        let index = SkillIndex { form: FORM, name, serial, expires: expires.to_string(), skills };
        let mut text = serde_json::to_string_pretty(&index).map_err(|error| host(&error))?;
        text.push('\n');
        if text.len() as u64 > MAX_INDEX {
            return Err(refuse(ErrorCode::TooLarge, format!("the index would have more than {MAX_INDEX} bytes")));
        }
        let signature = key.sign(&index_statement(&Digest::compute(text.as_bytes()).to_string()));
        fs::write(&file, &text).map_err(|error| host(&error))?;
        fs::write(dir.join(format!("{FILE}.{ENDING}")), signature).map_err(|error| host(&error))?;
        Ok(MadeIndex { file, index })
    }

    /// Returns the entry of a file in the index. Only files that can be installed get one.
    fn indexed(&self, file: &Path) -> Result<IndexedSkill, SkillError> {
        let shown = file.display().to_string();
        let refuse = |code: ErrorCode, why: String| SkillError::new(&shown, Blame::Caller, code, why);
        let place = file.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        if !place.chars().all(|c| c.is_ascii_alphanumeric() || "._-+".contains(c)) {
            return Err(refuse(
                ErrorCode::BadArgs,
                "its name has other characters than letters, digits and . _ - +".to_owned(),
            ));
        }
        let bytes = fs::read(file).map_err(|error| refuse(ErrorCode::NotFound, format!("cannot read it: {error}")))?;
        let statement = self.statement(file)?;
        let (kind, summary, license, commands) = match statement.kind {
            AGENT_SKILL => {
                let (description, license) = self.agent_description(file)?;
                (AGENT_SKILL, description, license, Vec::new())
            }
            PACKAGE => {
                let read = PackageFolder::read(file);
                let (folder, _) = read.map_err(|error| refuse(ErrorCode::BadManifest, error.to_string()))?;
                let spec = &folder.package.spec;
                (PACKAGE, folder.summary.clone(), Some(spec.licence.clone()), spec.commands.clone())
            }
            _ => {
                let parsed =
                    loader::parse(&bytes).map_err(|error| refuse(ErrorCode::BadComponent, error.to_string()))?;
                let text = parsed.manifest.ok_or_else(|| {
                    refuse(
                        ErrorCode::BadManifest,
                        "it has no kiso.toml inside; `kiso skill pack` puts it there".to_owned(),
                    )
                })?;
                let manifest = Manifest::parse(&shown, &text)
                    .map_err(|error| refuse(ErrorCode::BadManifest, error.to_string()))?;
                (COMPONENT, manifest.summary, None, Vec::new())
            }
        };
        let signature = match fs::read_to_string(signature_of(file)) {
            Ok(text) if text.len() as u64 <= MAX_FILE => Some(text),
            Ok(_) => return Err(refuse(ErrorCode::BadSignature, "the signature beside it is too long".to_owned())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(refuse(ErrorCode::BadSignature, error.to_string())),
        };
        Ok(IndexedSkill {
            name: statement.name,
            version: statement.version,
            kind: kind.to_owned(),
            summary: summary.chars().take(MAX_TEXT).collect(),
            license: license.map(|license| license.chars().take(MAX_TEXT).collect()),
            commands,
            place,
            sha256: Digest::compute(&bytes).to_string(),
            size: bytes.len() as u64,
            signature,
        })
    }
}

/// Writes the archive of a package folder beside it, with the name and version of the package.
fn pack_beside(folder: &Path) -> Result<PathBuf, SkillError> {
    let refuse =
        |why: String| SkillError::new(&folder.display().to_string(), Blame::Caller, ErrorCode::BadManifest, why);
    let (read, packed) = PackageFolder::read(folder).map_err(|error| refuse(error.to_string()))?;
    let file = folder.with_file_name(format!("{}-{}.zip", read.package.name, read.package.version));
    fs::write(&file, packed).map_err(|error| refuse(format!("cannot write {}: {error}", file.display())))?;
    Ok(file)
}

fn is_packed(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_ascii_lowercase();
    matches!(ending.as_str(), "wasm" | "zip" | "skill") && path.is_file()
}
