//! Where the folders of Agent Skills are, and what is known of all skills and their publishers.

use std::path::PathBuf;

use super::{Home, SkillName};

impl Home {
    /// What is installed, as another home can be made the same.
    pub fn skills_lock_path(&self) -> PathBuf {
        self.path().join("skills.lock")
    }

    /// The keys of publishers whose signatures count.
    pub fn trusted_keys_path(&self) -> PathBuf {
        self.path().join("trusted-keys")
    }

    /// Holds a record for each Agent Skill, and their folders.
    pub fn agent_skills_dir(&self) -> PathBuf {
        self.path().join("agent-skills")
    }

    /// What was found out when it was installed. Beside its folder, which holds its publisher's files alone.
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
