//! Agent Skills in a project's `.agents/skills` and `.claude/skills`. Anybody who can write to the project may have written them,
//! so none is used before an administrator has trusted it. Then a copy is installed, and later changes in the project have no
//! effect here.

use super::AgentSkill;
use crate::skill::Skills;
use crate::skill::error::SkillError;
use kiso_base::home::SkillName;
use kiso_plan::code::{Blame, ErrorCode};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The folders of a project in which programs look for skills.
const FOLDERS: [&str; 2] = [".agents/skills", ".claude/skills"];

/// Maximum number of skills that are read from one project.
const MAX_SKILLS: usize = 200;

/// The beginning of the source of such a skill, before the directory.
const SCHEME: &str = "project:";

/// A skill of a project, or a trusted one that is not in the project any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectSkill {
    /// Its name, or the name of its folder if it cannot be read.
    pub name: String,
    /// Its folder, relative to the project.
    pub place: String,
    /// SHA-256 over its present files; empty if there are none.
    pub digest: String,
    pub state: ProjectSkillState,
}

/// The state of a skill of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProjectSkillState {
    /// Nobody has trusted it.
    New,
    /// It has changed since it was trusted. The trusted copy is still used.
    Changed,
    /// It has not changed since it was trusted.
    Trusted,
    /// It was trusted, and is not in the project any more.
    Gone,
    /// It cannot be installed, and why.
    Refused(String),
}

impl ProjectSkill {
    /// For programs: docs/json.md.
    pub fn shown(&self, project: &Path) -> Value {
        let why = match &self.state {
            ProjectSkillState::Refused(why) => Some(why),
            _ => None,
        };
        json!({ "skill": self.name, "project": project, "place": self.place, "digest": self.digest, "state": self.state.word(), "why": why })
    }
}

impl ProjectSkillState {
    /// The state in one word.
    pub fn word(&self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Changed => "changed",
            Self::Trusted => "trusted",
            Self::Gone => "gone",
            Self::Refused(_) => "refused",
        }
    }

    /// Whether trusting it would change something.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::New | Self::Changed | Self::Gone)
    }
}

impl Skills {
    /// The skills of a project, by name. Changes nothing.
    pub fn project_skills(&self, project: &Path) -> Result<Vec<ProjectSkill>, SkillError> {
        let (project, source) = known_by(project)?;
        let mut found: Vec<ProjectSkill> = Vec::new();
        for (place, path) in folders(&project) {
            let folder = place.rsplit('/').next().unwrap_or_default().to_owned();
            let (name, digest, state) = match self.examine_project_skill(&path, &source) {
                Err(error) => (folder, String::new(), ProjectSkillState::Refused(error.message)),
                Ok(candidate) => {
                    let old = self.agent_skill(candidate.skill.name.as_str()).ok().flatten();
                    let name = candidate.skill.name.to_string();
                    let state = match old {
                        _ if found.iter().any(|other| other.name == name) => {
                            ProjectSkillState::Refused("another folder of the project has this name".to_owned())
                        }
                        None => ProjectSkillState::New,
                        Some(old) if old.source != source => {
                            let why = "an Agent Skill of this name is installed from elsewhere; remove that one first";
                            ProjectSkillState::Refused(why.to_owned())
                        }
                        Some(old) if old.digest == candidate.skill.digest => ProjectSkillState::Trusted,
                        Some(_) => ProjectSkillState::Changed,
                    };
                    (name, candidate.skill.digest, state)
                }
            };
            found.push(ProjectSkill { name, place, digest, state });
        }
        let gone = self.agent_skills().into_iter().flatten().filter(|skill| skill.source == source);
        let gone = gone.filter(|skill| found.iter().all(|found| found.name != skill.name.as_str()));
        let gone: Vec<_> = gone.map(|skill| skill.name.to_string()).collect();
        found.extend(gone.into_iter().map(|name| ProjectSkill {
            name,
            place: String::new(),
            digest: String::new(),
            state: ProjectSkillState::Gone,
        }));
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    /// Installs new and changed skills, and removes those that are gone. `seen` is the state that the person saw: if it has
    /// changed since, this fails.
    pub fn trust_project(&self, project: &Path, seen: &[ProjectSkill]) -> Result<Vec<Arc<AgentSkill>>, SkillError> {
        let (project, source) = known_by(project)?;
        let changed = |what: &str| {
            let message = format!("{what} changed meanwhile; look again");
            SkillError::new(&project.display().to_string(), Blame::Host, ErrorCode::Busy, message)
        };
        if self.project_skills(&project)? != seen {
            return Err(changed("the skills of the project"));
        }
        let mut trusted = Vec::new();
        for skill in seen {
            match skill.state {
                ProjectSkillState::New | ProjectSkillState::Changed => {
                    let candidate = self.examine_project_skill(&project.join(&skill.place), &source)?;
                    if candidate.skill.digest != skill.digest {
                        return Err(changed(&skill.name));
                    }
                    trusted.push(self.install_agent_skill(candidate)?);
                }
                ProjectSkillState::Gone => {
                    if let Ok(name) = SkillName::parse(&skill.name) {
                        self.remove(&name)?;
                    }
                }
                ProjectSkillState::Trusted | ProjectSkillState::Refused(_) => {}
            }
        }
        Ok(trusted)
    }
}

/// A project's directory without links, and the source of its skills.
fn known_by(project: &Path) -> Result<(PathBuf, String), SkillError> {
    let shown = project.display().to_string();
    let refuse = |why: String| SkillError::new(&shown, Blame::Caller, ErrorCode::NotFound, why);
    let real = project.canonicalize().map_err(|error| refuse(format!("it cannot be read: {error}")))?;
    if !real.is_dir() {
        return Err(refuse("it is not a directory".to_owned()));
    }
    let source = format!("{SCHEME}{}", real.display());
    Ok((real, source))
}

/// The folders that may be skills: below the project, each with its place there.
fn folders(project: &Path) -> Vec<(String, PathBuf)> {
    let mut all = Vec::new();
    for folder in FOLDERS {
        // A link out of the project is not followed: others may write there.
        let Ok(dir) = project.join(folder).canonicalize() else { continue };
        if !dir.starts_with(project) {
            continue;
        }
        let entries = fs::read_dir(&dir).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| dir.join(name).join("SKILL.md").exists())
            .collect();
        names.sort();
        all.extend(names.into_iter().map(|name| (format!("{folder}/{name}"), dir.join(name))));
    }
    all.truncate(MAX_SKILLS);
    all
}
