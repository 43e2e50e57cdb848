//! Agent Skills: folders with a `SKILL.md`, instructions for models in the words of whoever published them, with scripts and files
//! beside it. The format is that of agentskills.io.
//!
//! Such a skill is not called and has no grant. Models get its name and description; its text when it is in use; its other files
//! when they ask for them. Command lines see all files below `/skills`, read-only. So its scripts have the access of the session
//! and nothing else.
//!
//! In reading order: [`folder`], [`archive`] and [`tar`] take the files in, [`frontmatter`] reads what they say, [`install`] puts them
//! into the home, [`project`] finds those of a project.

mod archive;
mod folder;
mod frontmatter;
mod install;
mod project;
mod tar;

pub(super) use self::archive::MAX_PACKED;
pub use self::folder::FolderError;
pub use self::install::AgentCandidate;
pub(super) use self::install::AgentSkillArchive;
pub use self::project::{ProjectSkill, ProjectSkillState};

use self::folder::{MAX_INSTRUCTIONS, SKILL_MD};
use super::error::SkillError;
use super::file_version::FileVersion;
use super::installed::Provenance;
use super::{Skills, lock};
use crate::effect::published::{PublishedFiles, label_of_skill};
use kiso_base::home::SkillName;
use kiso_plan::code::{Blame, ErrorCode};
use kiso_plan::label::Label;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::sync::Arc;

/// The directory in which command lines see the folders.
pub const SKILLS_MOUNT: &str = "/skills";

/// Bytes of a record, at most.
const MAX_RECORD: u64 = 1 << 20;

/// An installed Agent Skill, as its record describes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentSkill {
    pub name: SkillName,
    /// The purpose of the skill and when to use it, in its publisher's words.
    pub description: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub license: Option<String>,
    /// Its requirements, in its publisher's words.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub compatibility: Option<String>,
    pub metadata: Vec<(String, String)>,
    /// The tools that it names, unchanged. `None` if it says nothing about tools.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub allowed_tools: Option<Vec<String>>,
    /// Whether it is hidden from models: a person brings it into use by its name.
    pub by_name_only: bool,
    /// SHA-256 over its files.
    pub digest: String,
    /// The source that identifies it: where it first came from.
    pub source: String,
    #[serde(flatten)]
    pub provenance: Provenance,
    /// Differences from the specification, a sentence each.
    pub warnings: Vec<String>,
    pub files: Vec<AgentFile>,
}

/// A file of an Agent Skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AgentFile {
    /// Below its folder.
    pub path: String,
    pub bytes: u64,
}

impl AgentSkill {
    /// `metadata.version`, or nothing.
    pub fn version(&self) -> &str {
        self.metadata.iter().find(|(key, _)| key == "version").map_or("", |(_, version)| version)
    }

    /// The path of its folder for command lines.
    pub fn place(&self) -> String {
        format!("{SKILLS_MOUNT}/{}", self.name)
    }

    /// The file that words such as `extract`, `extract.py` or `scripts/extract.py` name.
    pub fn script(&self, word: &str) -> Option<&AgentFile> {
        let word = word.trim_start_matches("./");
        let exact = self.files.iter().find(|file| file.path == word);
        let in_scripts = || self.files.iter().filter(|file| file.path.starts_with("scripts/"));
        let name = |file: &&AgentFile| {
            let name = file.path.rsplit('/').next().unwrap_or_default();
            name == word || name.rsplit_once('.').is_some_and(|(stem, _)| stem == word)
        };
        exact.or_else(|| in_scripts().find(name)).filter(|file| file.path != SKILL_MD)
    }
}

impl Skills {
    /// Every Agent Skill, by name. A damaged one is an error in its place.
    pub fn agent_skills(&self) -> Vec<Result<Arc<AgentSkill>, SkillError>> {
        let name = |file: &str| SkillName::parse(file.strip_suffix(".json")?).ok();
        let names = self.0.agent_names.read_names(&self.home().agent_skills_dir(), name);
        names.iter().filter_map(|name| self.read_agent_skill(name).transpose()).collect()
    }

    /// The Agent Skills that models are told about.
    pub fn told_agent_skills(&self) -> Vec<Arc<AgentSkill>> {
        self.agent_skills().into_iter().flatten().filter(|skill| !skill.by_name_only).collect()
    }

    /// An Agent Skill by its name; `None` if it is not installed.
    pub fn agent_skill(&self, name: &str) -> Result<Option<Arc<AgentSkill>>, SkillError> {
        match SkillName::parse(name) {
            Ok(name) => self.read_agent_skill(&name),
            Err(_) => Ok(None),
        }
    }

    /// Its text for models, without the YAML.
    pub fn instructions(&self, skill: &AgentSkill) -> Result<String, SkillError> {
        let text = self.agent_file(skill, SKILL_MD)?;
        Ok(frontmatter::split(&text).map_or(text.as_str(), |(_, body)| body).to_owned())
    }

    /// A file of it, as text.
    pub fn agent_file(&self, skill: &AgentSkill, path: &str) -> Result<String, SkillError> {
        let name = skill.name.as_str();
        let known = skill.files.iter().find(|file| file.path == path).ok_or_else(|| {
            let paths = skill.files.iter().map(|file| file.path.as_str());
            let near = super::near_names(path, paths.clone());
            let shown: Vec<&str> = if near.is_empty() { paths.take(50).collect() } else { near };
            let message = format!("it has no file {path:.100?}; there are {}", shown.join(", "));
            SkillError::new(name, Blame::Caller, ErrorCode::NotFound, message)
        })?;
        let place = self.home().agent_skill_dir(&skill.name).join(&known.path);
        let mut bytes = Vec::new();
        let read = fs::File::open(&place).and_then(|file| file.take(MAX_INSTRUCTIONS).read_to_end(&mut bytes));
        read.map_err(|error| damaged(name, &place, &error))?;
        String::from_utf8(bytes).or_else(|error| {
            // A text that was cut may end in the middle of a character.
            let valid = error.utf8_error().valid_up_to();
            if known.bytes > MAX_INSTRUCTIONS && valid + 4 > MAX_INSTRUCTIONS as usize {
                return Ok(String::from_utf8_lossy(&error.as_bytes()[..valid]).into_owned());
            }
            let message = format!("{path} is no text; a command line finds it at {}/{path}", skill.place());
            Err(SkillError::new(name, Blame::Caller, ErrorCode::NotText, message))
        })
    }

    /// The label of an Agent Skill's text.
    pub fn agent_skill_label(&self, name: &str) -> Label {
        label_of_skill(&self.config().policy.trusted_skills, name)
    }

    /// The labels of all Agent Skills' files, where guests see them.
    pub fn published_files(&self) -> PublishedFiles {
        let (root, folders) = (self.home().agent_skills_dir(), self.home().agent_skill_folders());
        PublishedFiles::new(&root, &folders, self.config().policy.trusted_skills.clone())
    }

    /// Removes an Agent Skill.
    pub(super) fn remove_agent_skill(&self, name: &SkillName) -> Result<(), SkillError> {
        let (record, dir) = (self.home().agent_skill_record(name), self.home().agent_skill_dir(name));
        // The record first: a folder without a record belongs to no skill.
        fs::remove_file(&record).map_err(|error| damaged(name.as_str(), &record, &error))?;
        lock(&self.0.agents).remove(name);
        self.home().remove_tree(&dir).map_err(|error| damaged(name.as_str(), &dir, &error))
    }

    fn read_agent_skill(&self, name: &SkillName) -> Result<Option<Arc<AgentSkill>>, SkillError> {
        let place = self.home().agent_skill_record(name);
        let version = FileVersion::read(&place);
        if let Some(version) = version
            && let Some((known, skill)) = lock(&self.0.agents).get(name)
            && *known == version
        {
            return Ok(Some(skill.clone()));
        }
        let mut bytes = Vec::new();
        match fs::File::open(&place).and_then(|file| file.take(MAX_RECORD).read_to_end(&mut bytes)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            read => read.map_err(|error| damaged(name.as_str(), &place, &error))?,
        };
        let skill: AgentSkill =
            serde_json::from_slice(&bytes).map_err(|error| damaged(name.as_str(), &place, &error.into()))?;
        let skill = Arc::new(AgentSkill { name: name.clone(), ..skill });
        if let Some(version) = version {
            lock(&self.0.agents).insert(name.clone(), (version, skill.clone()));
        }
        Ok(Some(skill))
    }
}

/// The error if an Agent Skill is given where a skill is needed that can be called.
pub(super) fn not_callable(skill: &AgentSkill) -> SkillError {
    let name = &skill.name;
    let message = format!(
        "it is an Agent Skill, instructions and scripts that are not called; read it with `skill_read`, run its scripts in a command \
         line from {}, or see `kiso skill run {name}`",
        skill.place()
    );
    SkillError::new(name.as_str(), Blame::Caller, ErrorCode::AgentSkill, message)
}

fn damaged(name: &str, place: &Path, error: &std::io::Error) -> SkillError {
    let message = format!("{} is damaged ({error}); remove the skill and add it again", place.display());
    SkillError::new(name, Blame::Host, ErrorCode::Io, message)
}
