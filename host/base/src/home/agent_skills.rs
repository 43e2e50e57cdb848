//! Paths of Agent Skills and of the files about all skills and their publishers.

use std::path::PathBuf;

use super::{Home, SkillName};

impl Home {
    /// The installed skills, from which another home can be set up the same.
    pub fn skills_lock_path(&self) -> PathBuf {
        self.path().join("skills.lock")
    }

    /// The keys of trusted publishers.
    pub fn trusted_keys_path(&self) -> PathBuf {
        self.path().join("trusted-keys")
    }

    /// Contains a record for each Agent Skill, and their folders.
    pub fn agent_skills_dir(&self) -> PathBuf {
        self.path().join("agent-skills")
    }

    /// The record that was written when it was installed. It is outside of the skill's folder, which contains only its
    /// publisher's files.
    pub fn agent_skill_record(&self, skill: &SkillName) -> PathBuf {
        self.agent_skills_dir().join(format!("{skill}.json"))
    }

    /// The folders of all Agent Skills: `/skills` for tasks.
    pub fn agent_skill_folders(&self) -> PathBuf {
        self.agent_skills_dir().join("folders")
    }

    pub fn agent_skill_dir(&self, skill: &SkillName) -> PathBuf {
        self.agent_skill_folders().join(skill.as_str())
    }
}
