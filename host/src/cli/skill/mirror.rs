//! `kiso skill mirror`: saves the sources of this home's skills in a folder, for homes without network, and because
//! publishers delete files.

use super::installing::{SkillCandidate, SkillFile};
use super::push::RegistryArgs;
use super::sync::same;
use super::{open, package as package_install};
use crate::cli::show::{Show, printable_line};
use crate::cli::{Exit, Failure, Opened, Shared};
use kiso_sandbox::package::{self, PackageFolder};
use kiso_sandbox::skill::signature::{AGENT_SKILL, ENDING};
use kiso_sandbox::skill::{LockedSkill, is_index_source};
use serde_json::json;
use std::path::{Path, PathBuf};

/// The file that lists everything in the folder.
const LOCK: &str = "skills.lock";

#[derive(Debug, clap::Args)]
pub(crate) struct MirrorArgs {
    /// The folder to write; files that are there already are not fetched again
    folder: PathBuf,
    #[command(flatten)]
    registry: RegistryArgs,
}

/// The result for a skill.
enum Kept {
    Fetched,
    Unchanged,
}

impl MirrorArgs {
    pub(crate) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let (opened, show) = open(shared)?;
        let mut exit = Exit::Done;
        create(&self.folder)?;
        for locked in opened.skills.locked() {
            let kept = self.keep(&opened, &locked, &show);
            show.rest();
            let (status, why) = match kept {
                Ok(Kept::Fetched) => ("kept", None),
                Ok(Kept::Unchanged) => ("unchanged", None),
                Err(failure) => {
                    exit = Exit::Failed;
                    ("failed", Some(failure.message))
                }
            };
            if shared.json {
                outln!("{}", json!({ "type": "mirror", "skill": locked.name, "status": status, "why": why }));
            } else {
                let why = why.map(|why| format!(": {why}")).unwrap_or_default();
                outln!("{status:9} {}{}", printable_line(&locked.name), printable_line(&why));
            }
        }
        let lock = opened.home.skills_lock_path();
        if lock.exists() {
            let bytes = std::fs::read(&lock).map_err(|error| unwritten(&lock, &error))?;
            write(&self.folder.join(LOCK), &bytes)?;
        }
        Ok(exit)
    }

    fn keep(&self, opened: &Opened, locked: &LockedSkill, show: &Show) -> Result<Kept, Failure> {
        let dir = self.folder.join(&locked.name);
        if let Some(folder) = package::find_source(&locked.source) {
            return keep_downloads(folder, &dir, show);
        }
        let digest = Some(locked.digest.as_str()).filter(|_| locked.kind != AGENT_SKILL);
        let digest = digest.filter(|_| is_index_source(&locked.source).is_some());
        let file = match self.registry.fetch(&opened.skills, &locked.source, digest, show)? {
            Some(fetched) => SkillFile::Fetched(fetched),
            None => match locked.source.strip_prefix("file:") {
                Some(path) => SkillFile::Named(PathBuf::from(path)),
                None => {
                    let why = format!("it came by {}, which cannot be fetched again", locked.source);
                    return Err(Failure::new(Exit::Failed, why));
                }
            },
        };
        let candidate = SkillCandidate::examine(&opened.skills, &file, None, Some(&locked.name))?;
        let provenance = candidate.provenance();
        same(locked, provenance.file_digest.as_deref().unwrap_or_default(), provenance.signer.as_deref())?;
        let (bytes, ending) = match &candidate {
            SkillCandidate::Package(_) => (packed(file.path())?, "zip".to_owned()),
            _ if file.path().is_dir() => {
                let message = "it is a folder of this machine; pack it as a .zip file and add that, or copy it by hand";
                return Err(Failure::new(Exit::Failed, message));
            }
            _ => {
                let read = std::fs::read(file.path());
                let ending = file.path().extension().map(|ending| ending.to_string_lossy().into_owned());
                (read.map_err(|error| unwritten(file.path(), &error))?, ending.unwrap_or_default())
            }
        };
        create(&dir)?;
        let kept = dir.join(format!("{}.{ending}", locked.name));
        if let Some(signature) = file.signature() {
            write(&dir.join(format!("{}.{ending}.{ENDING}", locked.name)), signature.as_bytes())?;
        }
        let is_there = std::fs::read(&kept).is_ok_and(|there| there == bytes);
        if !is_there {
            write(&kept, &bytes)?;
        }
        if let SkillCandidate::Package(candidate) = &candidate {
            return keep_downloads(&candidate.folder, &dir, show);
        }
        Ok(if is_there { Kept::Unchanged } else { Kept::Fetched })
    }
}

/// Saves a package's downloads from its publishers.
fn keep_downloads(folder: &PackageFolder, dir: &Path, show: &Show) -> Result<Kept, Failure> {
    let package = &folder.package;
    let there = package_install::files_of(dir, package).unwrap_or_default();
    if folder.unpack(&there).is_ok() {
        return Ok(Kept::Unchanged);
    }
    let sources = package_install::fetch_all(show, package, &[])?;
    folder.unpack(&sources).map_err(|error| Failure::new(Exit::Policy, error.to_string()))?;
    create(dir)?;
    for ((url, _), bytes) in package.addresses().into_iter().zip(sources) {
        let name = file_name(url);
        // The package's archive has that name.
        let name = if name == format!("{}.zip", package.name) { format!("download-{name}") } else { name };
        write(&dir.join(name), &bytes)?;
    }
    Ok(Kept::Fetched)
}

/// Returns the bytes of a package's archive.
fn packed(path: &Path) -> Result<Vec<u8>, Failure> {
    let read = PackageFolder::read(path).map(|(_, packed)| packed);
    read.map_err(|error| Failure::new(Exit::Policy, error.to_string()))
}

/// Returns the last part of an address as a file name.
fn file_name(url: &str) -> String {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let last = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._+-".contains(c) { c } else { '-' };
    let name: String = last.trim_start_matches('.').chars().map(plain).take(200).collect();
    if name.is_empty() { "download".to_owned() } else { name }
}

fn create(dir: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(dir).map_err(|error| unwritten(dir, &error))
}

/// Writes a file completely or not at all.
fn write(file: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let part = file.with_file_name(format!(".{}.part", std::process::id()));
    let written = std::fs::write(&part, bytes).and_then(|()| std::fs::rename(&part, file));
    written.map_err(|error| unwritten(file, &error))
}

fn unwritten(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(Exit::Failed, format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_download_is_named_by_its_address() {
        for (url, name) in [
            ("https://h/a/python-3.12.0.wasm", "python-3.12.0.wasm"),
            ("https://h/a/x%2F1+2.whl?y=z", "x-2F1+2.whl"),
            ("https://h/..", "download"),
            ("https://h/.hidden", "hidden"),
        ] {
            assert_eq!(file_name(url), name);
        }
    }
}
