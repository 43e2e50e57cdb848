//! Installs a folder as an Agent Skill.

use super::archive;
use super::folder::{Folder, FolderError, SKILL_MD};
use super::frontmatter::{self, Frontmatter};
use super::{AgentFile, AgentSkill};
use crate::skill::digest::Digest;
use crate::skill::error::SkillError;
use crate::skill::fetched::FetchedFile;
use crate::skill::installed::Provenance;
use crate::skill::placing::{exchange, not_locked};
use crate::skill::publisher::SignatureCheck;
use crate::skill::signature::{AGENT_SKILL, Statement};
use crate::skill::source::{self, Identity};
use crate::skill::surface_change::{SurfaceChange, fact};
use crate::skill::{Skills, surface};
use kiso_base::home::SkillName;
use kiso_plan::code::{Blame, ErrorCode};
use std::fs;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// A folder that was read and checked, and not installed.
#[derive(Debug)]
pub struct AgentCandidate {
    pub skill: AgentSkill,
    folder: Folder,
    /// Whether it replaces an installed one of the same name.
    pub replaces: bool,
    /// The reason why it may come from somebody else than the skill that it replaces.
    pub doubt: Option<String>,
    /// The changes in the text for models, compared with the skill that it replaces.
    pub change: SurfaceChange,
    /// The reason why an existing signature does not count.
    pub signature_warning: Option<String>,
    /// The digest of the skill that was installed when this one was examined.
    seen: Option<String>,
}

/// A folder or an archive as it goes into a registry.
#[derive(Debug)]
pub(in crate::skill) struct AgentSkillArchive {
    /// The statement that a signature covers.
    pub statement: Statement,
    pub said: Frontmatter,
    /// Its files: a tar archive in gzip.
    pub bytes: Vec<u8>,
}

/// The way in which a folder or an archive came here.
#[derive(Debug, Clone, Copy)]
enum AgentOrigin<'a> {
    Here,
    Fetched(&'a FetchedFile),
    /// A client sent it. Its earlier source is not known.
    Upload,
    /// It is in this project.
    Project(&'a str),
}

impl Skills {
    /// Whether a path belongs to an Agent Skill and not to a component: a directory, an archive, or a `SKILL.md`.
    pub fn is_agent_skill(path: &Path) -> bool {
        let archive =
            |ending: &std::ffi::OsStr| ending.eq_ignore_ascii_case("zip") || ending.eq_ignore_ascii_case("skill");
        path.is_dir() || path.ends_with(SKILL_MD) || path.extension().is_some_and(archive)
    }

    /// Whether a file that a client sent is an Agent Skill and not a component. The content decides, because the name is not
    /// known.
    pub fn is_uploaded_agent_skill(path: &Path) -> std::io::Result<bool> {
        let mut begin = Vec::new();
        fs::File::open(path)?.take(64).read_to_end(&mut begin)?;
        Ok(archive::is_agent_skill(&begin))
    }

    /// Reads a folder or an archive and describes it. Changes nothing.
    pub fn examine_agent_skill(&self, path: &Path, name: Option<&str>) -> Result<AgentCandidate, SkillError> {
        self.examine_agent_skill_from(path, AgentOrigin::Here, name)
    }

    /// The same for an archive that was fetched.
    pub fn examine_fetched_agent_skill(
        &self,
        fetched: &FetchedFile,
        name: Option<&str>,
    ) -> Result<AgentCandidate, SkillError> {
        self.examine_agent_skill_from(&fetched.file, AgentOrigin::Fetched(fetched), name)
    }

    /// The same for an archive, or a `SKILL.md` alone, that a client sent.
    pub fn examine_uploaded_agent_skill(&self, path: &Path, name: Option<&str>) -> Result<AgentCandidate, SkillError> {
        self.examine_agent_skill_from(path, AgentOrigin::Upload, name)
    }

    /// The same for a folder in a project, which is its source.
    pub(in crate::skill) fn examine_project_skill(
        &self,
        path: &Path,
        project: &str,
    ) -> Result<AgentCandidate, SkillError> {
        self.examine_agent_skill_from(path, AgentOrigin::Project(project), None)
    }

    fn examine_agent_skill_from(
        &self,
        path: &Path,
        origin: AgentOrigin<'_>,
        name: Option<&str>,
    ) -> Result<AgentCandidate, SkillError> {
        let path = if path.ends_with(SKILL_MD) && path.is_file() { path.parent().unwrap_or(path) } else { path };
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let shown = path.display().to_string();
        let refuse = |code: ErrorCode, message: String| SkillError::new(&shown, Blame::Caller, code, message);
        let unfit = |error: FolderError| match error {
            FolderError::NoInstructions if path.join("kiso.toml").exists() => refuse(
                error.code(),
                format!("{error}; it is a project of a component: `kiso skill build {shown}` makes the file to add"),
            ),
            error => refuse(error.code(), error.to_string()),
        };
        let folder = match origin {
            AgentOrigin::Upload => archive::read_upload(path).and_then(Folder::complete),
            _ => take_in(path),
        };
        let folder = folder.map_err(unfit)?;
        let files_digest = folder.digest();
        let digest = files_digest.to_string();
        let text = std::str::from_utf8(folder.find(SKILL_MD).unwrap_or_default());
        let text = text.map_err(|_| unfit(FolderError::Frontmatter { why: "it is not UTF-8 text".to_owned() }))?;
        let no_yaml = || FolderError::Frontmatter {
            why: "it does not begin with a line `---`, YAML and another line `---`".to_owned(),
        };
        let (yaml, body) = frontmatter::split(text).ok_or_else(no_yaml).map_err(unfit)?;
        let mut said = frontmatter::read(yaml).map_err(unfit)?;
        if body.is_empty() {
            said.warnings.push("there are no instructions behind the YAML".to_owned());
        }
        let given =
            name.map(SkillName::parse).transpose().map_err(|error| refuse(ErrorCode::BadArgs, error.to_string()))?;
        let own = match (named(&mut said, folder.name.as_deref()), &given) {
            (Ok(own), _) => own,
            (Err(_), Some(given)) => given.clone(),
            (Err(message), None) => return Err(refuse(ErrorCode::BadAgentSkill, message)),
        };
        let name = given.unwrap_or_else(|| own.clone());
        self.check_free(&name)?;
        let (from, location) = match origin {
            AgentOrigin::Fetched(fetched) => (fetched.source.clone(), fetched.location.clone()),
            AgentOrigin::Project(project) => (project.to_owned(), project.to_owned()),
            AgentOrigin::Upload => (source::of_upload(&files_digest), source::of_upload(&files_digest)),
            AgentOrigin::Here => {
                let from = source::of_file(path);
                let from = from.map_err(|error| refuse(ErrorCode::NotFound, format!("cannot read it: {error}")))?;
                (from.clone(), from)
            }
        };
        let skill = AgentSkill {
            description: said.description,
            license: said.license,
            compatibility: said.compatibility,
            metadata: said.metadata,
            allowed_tools: said.allowed_tools,
            by_name_only: said.by_name_only,
            source: from,
            provenance: Provenance { location: Some(location), file_digest: Some(digest.clone()), signer: None },
            digest,
            warnings: said.warnings,
            files: folder
                .files
                .iter()
                .map(|(path, bytes)| AgentFile { path: path.clone(), bytes: bytes.len() as u64 })
                .collect(),
            name,
        };
        // A damaged one is replaced as if it were missing.
        let old = self.agent_skill(skill.name.as_str()).ok().flatten();
        let statement = statement(&own, &skill);
        let signed = match origin {
            AgentOrigin::Here | AgentOrigin::Project(_) => self.signed_beside(path, &statement)?,
            AgentOrigin::Fetched(FetchedFile { signature: Some(text), .. }) => self.signed(text, &statement)?,
            AgentOrigin::Fetched(_) | AgentOrigin::Upload => SignatureCheck::default(),
        };
        let pinned = old.as_deref().and_then(|old| old.provenance.signer.as_deref());
        self.check_publisher(skill.name.as_str(), pinned, &signed)?;
        // Files with the same digest, or a signature of the same key, may come from another source.
        let known = old.as_deref().filter(|old| old.digest == skill.digest || pinned.is_some());
        let source = known.map_or(skill.source.clone(), |old| old.source.clone());
        let provenance = Provenance { signer: signed.by, ..skill.provenance.clone() };
        let skill = AgentSkill { source, provenance, ..skill };
        let doubt = old.as_deref().and_then(|old| source::doubt(skill.name.as_str(), identity(old), identity(&skill)));
        let change = old.as_deref().map(|old| self.agent_change(old, &skill, &folder)).unwrap_or_default();
        let seen = old.as_deref().map(|old| old.digest.clone());
        let (replaces, signature_warning) = (seen.is_some(), signed.warning);
        Ok(AgentCandidate { skill, folder, replaces, doubt, change, signature_warning, seen })
    }

    /// The difference from the installed skill: its part in every prompt, its instructions line by line, and the names of its
    /// other files.
    fn agent_change(&self, old: &AgentSkill, new: &AgentSkill, folder: &Folder) -> SurfaceChange {
        if old.digest == new.digest {
            return SurfaceChange::default();
        }
        let dir = self.home().agent_skill_dir(&old.name);
        let was = |path: &str| fs::read(dir.join(path)).unwrap_or_default();
        let old_files: Vec<_> = old.files.iter().map(|file| (file.path.as_str(), was(&file.path))).collect();
        let (mut before, mut after) = (agent_facts(old), agent_facts(new));
        before.extend(old_files.iter().filter_map(|(path, bytes)| file_fact(path, bytes)));
        after.extend(folder.files.iter().filter_map(|(path, bytes)| file_fact(path, bytes)));
        let mut change = SurfaceChange::between(&before, &after);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        change.compare_texts(SKILL_MD, &text(&was(SKILL_MD)), &text(folder.find(SKILL_MD).unwrap_or_default()));
        change
    }

    /// Returns the description and the licence of a folder or an archive.
    pub(in crate::skill) fn agent_description(&self, path: &Path) -> Result<(String, Option<String>), SkillError> {
        let (_, said) = said_by(path).map_err(|error| refused(path, &error))?;
        Ok((said.description, said.license))
    }

    /// Returns the statement that a signature of a folder or an archive covers.
    pub(in crate::skill) fn agent_statement(&self, path: &Path) -> Result<Statement, SkillError> {
        let stated = said_by(path).and_then(|(folder, mut said)| own_statement(&folder, &mut said));
        stated.map_err(|error| refused(path, &error))
    }

    /// Packs a folder or an archive for a registry. The same files are the same bytes.
    pub(in crate::skill) fn pack_agent_skill(&self, path: &Path) -> Result<AgentSkillArchive, SkillError> {
        let packed = said_by(path).and_then(|(folder, mut said)| {
            let statement = own_statement(&folder, &mut said)?;
            let bytes = archive::pack(&folder, &statement.name)?;
            Ok(AgentSkillArchive { statement, said, bytes })
        });
        packed.map_err(|error| refused(path, &error))
    }

    /// Puts the folder where command lines see it, and lists it.
    pub fn install_agent_skill(&self, candidate: AgentCandidate) -> Result<Arc<AgentSkill>, SkillError> {
        let AgentCandidate { skill, folder, seen, .. } = candidate;
        let name = &skill.name;
        let host = |error: &dyn std::fmt::Display| SkillError::host(name.as_str(), error);
        let _lock = self.home().lock_install().map_err(|error| not_locked(name, &error))?;
        self.check_free(name)?;
        if self.agent_skill(name.as_str()).ok().flatten().map(|old| old.digest.clone()) != seen {
            let message = "it was installed or removed by somebody else meanwhile; nothing changed, try again";
            let busy = SkillError::new(name.as_str(), Blame::Host, ErrorCode::Busy, message);
            return Err(SkillError { retryable: true, ..busy });
        }
        let (dir, record) = (self.home().agent_skill_dir(name), self.home().agent_skill_record(name));
        let new = self.home().agent_skills_dir().join(format!(".{name}.new"));
        self.home().remove_tree(&new).map_err(|error| host(&error))?;
        write_all(&folder, &new).map_err(|error| host(&format!("{}: {error}", new.display())))?;
        // The record is removed first: until both are replaced, no skill of this name exists.
        match fs::remove_file(&record) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(host(&format!("{}: {error}", record.display())));
            }
            _ => {}
        }
        exchange(self.home(), &new, &dir).map_err(|error| host(&error))?;
        let text = serde_json::to_vec_pretty(&skill).map_err(|error| host(&error))?;
        self.home().write_atomic(&record, &text).map_err(|error| host(&error))?;
        self.write_lock()?;
        let installed = self.agent_skill(name.as_str())?;
        installed.ok_or_else(|| host(&"the skill vanished while it was installed"))
    }

    /// No other skill and no built-in tool has the name.
    fn check_free(&self, name: &SkillName) -> Result<(), SkillError> {
        let taken = |whose: &str| {
            let message = format!("`{name}` is {whose}; give this one another name with --name");
            Err(SkillError::new(name.as_str(), Blame::Caller, ErrorCode::NameTaken, message))
        };
        if self.bundled(name).is_some() {
            return taken("a bundled skill");
        }
        if surface::is_reserved(name.as_str()) {
            return taken("the name of a built-in tool");
        }
        if self.home().skill_dir(name).exists() {
            return taken("an installed component");
        }
        Ok(())
    }
}

/// The parts that every prompt contains, and the tools that the skill allows.
fn agent_facts(skill: &AgentSkill) -> Vec<String> {
    let mut facts = vec![fact("description", &skill.description)];
    facts.extend(skill.allowed_tools.iter().map(|tools| fact("allowed-tools", &tools.join(", "))));
    facts.push(match skill.by_name_only {
        true => "models are not told of it: it comes into use by its name alone".to_owned(),
        false => "models are told of it".to_owned(),
    });
    facts
}

/// A file beside the instructions, as a fact that changes with its bytes.
fn file_fact(path: &str, bytes: &[u8]) -> Option<String> {
    (path != SKILL_MD)
        .then(|| format!("file {path:?}, {} bytes, SHA-256 {:.16}", bytes.len(), Digest::compute(bytes).to_string()))
}

fn refused(path: &Path, error: &FolderError) -> SkillError {
    SkillError::new(&path.display().to_string(), Blame::Caller, error.code(), error.to_string())
}

/// A directory or an archive, and what its instructions say of it.
fn said_by(path: &Path) -> Result<(Folder, Frontmatter), FolderError> {
    let folder = take_in(path)?;
    let text = std::str::from_utf8(folder.find(SKILL_MD).unwrap_or_default());
    let text = text.map_err(|_| FolderError::Frontmatter { why: "it is not UTF-8 text".to_owned() })?;
    let (yaml, _) = frontmatter::split(text).ok_or(FolderError::NoInstructions)?;
    let said = frontmatter::read(yaml)?;
    Ok((folder, said))
}

/// The files of a directory, or of an archive.
fn take_in(path: &Path) -> Result<Folder, FolderError> {
    let folder = if path.is_dir() { Folder::of_dir(path)? } else { archive::read(path)? };
    folder.complete()
}

/// The statement of what was taken in, under its own name.
fn own_statement(folder: &Folder, said: &mut Frontmatter) -> Result<Statement, FolderError> {
    let name = named(said, folder.name.as_deref()).map_err(|why| FolderError::Frontmatter { why })?;
    let version = said.metadata.iter().find(|(key, _)| key == "version").map(|(_, version)| version.clone());
    Ok(Statement {
        name: name.to_string(),
        version: version.unwrap_or_default(),
        kind: AGENT_SKILL,
        digest: folder.digest().to_string(),
        manifest: None,
    })
}

fn statement(own: &SkillName, skill: &AgentSkill) -> Statement {
    Statement {
        name: own.to_string(),
        version: skill.version().to_owned(),
        kind: AGENT_SKILL,
        digest: skill.digest.clone(),
        manifest: None,
    }
}

fn identity(skill: &AgentSkill) -> Identity<'_> {
    Identity { version: skill.version(), digest: &skill.digest, source: Some(&skill.source) }
}

/// Returns the name to install a skill under: its own name if it has one, otherwise the name of its folder.
fn named(said: &mut Frontmatter, folder: Option<&str>) -> Result<SkillName, String> {
    let own = said.name.clone().filter(|name| !name.trim().is_empty());
    if own.is_none() {
        said.warnings.push("it has no name; that of its folder is used".to_owned());
    }
    let wanted = own.as_deref().or(folder).unwrap_or_default().trim();
    let plain = plain(wanted);
    let name = SkillName::parse(&plain)
        .map_err(|_| format!("its name {wanted:.100?} cannot be one; give it another with --name"))?;
    if plain != wanted {
        said.warnings.push(format!(
            "the name {wanted:.100?} is not 1 to 64 of a-z, 0-9 and single dashes between them; it is installed as {plain}"
        ));
    }
    if let Some(folder) = folder.filter(|folder| own.is_some() && *folder != wanted) {
        said.warnings
            .push(format!("its name is {wanted:.100?} and that of its folder {folder:.100?}; they should be the same"));
    }
    Ok(name)
}

/// Replaces every run of other characters by one dash.
fn plain(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c.to_ascii_lowercase() {
            c if c.is_ascii_alphanumeric() => out.push(c),
            _ if out.is_empty() || out.ends_with('-') => {}
            _ => out.push('-'),
        }
    }
    out.truncate(64);
    out.trim_end_matches('-').to_owned()
}

fn write_all(folder: &Folder, dir: &Path) -> std::io::Result<()> {
    for (path, bytes) in &folder.files {
        let place = dir.join(path);
        if let Some(above) = place.parent() {
            fs::create_dir_all(above)?;
        }
        fs::write(place, bytes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_becomes_one_that_can_be_a_directory() {
        for (given, name, warned) in [
            ("pdf-forms", "pdf-forms", 0),
            ("3d-models", "3d-models", 0),
            ("PDF Forms", "pdf-forms", 1),
            ("a--b", "a-b", 1),
            ("-x-", "x", 1),
            ("../../etc", "etc", 1),
        ] {
            let mut said = Frontmatter { name: Some(given.to_owned()), ..Frontmatter::default() };
            let folder = Some(given);
            assert_eq!(named(&mut said, folder).unwrap().as_str(), name);
            assert_eq!(said.warnings.len(), warned, "{given}: {:?}", said.warnings);
        }
        let mut said = Frontmatter { name: Some("a".to_owned()), ..Frontmatter::default() };
        named(&mut said, Some("b")).unwrap();
        assert_eq!(said.warnings.len(), 1);
        assert!(named(&mut Frontmatter { name: Some("…".to_owned()), ..Frontmatter::default() }, None).is_err());
        assert_eq!(named(&mut Frontmatter::default(), Some("My Skill")).unwrap().as_str(), "my-skill");
    }
}
