//! Removes an installed skill.

use super::Skills;
use super::error::SkillError;
use super::placing::not_locked;
use kiso_base::home::SkillName;
use kiso_plan::code::{Blame, ErrorCode};
use std::fs;

impl Skills {
    /// Removes a skill and its grant.
    pub fn remove(&self, name: &SkillName) -> Result<(), SkillError> {
        if self.bundled(name).is_some() {
            let message = "it is a bundled skill; it is part of kiso and cannot be removed";
            return Err(SkillError::new(name.as_str(), Blame::Caller, ErrorCode::Bundled, message));
        }
        let _lock = self.home().lock_install().map_err(|e| not_locked(name, &e))?;
        if self.home().agent_skill_record(name).exists() {
            self.remove_agent_skill(name)?;
            return self.write_lock();
        }
        let dir = self.home().skill_dir(name);
        if !dir.exists() {
            return Err(self.unknown(name.as_str()));
        }
        // The grant first: a skill without a grant can do less, but a grant without its skill could apply to another of that
        // name.
        let grant = self.home().grant_path(name);
        match fs::remove_file(&grant) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(SkillError::host(name.as_str(), format!("{}: {error}", grant.display())));
            }
            _ => {}
        }
        fs::remove_dir_all(&dir).map_err(|e| SkillError::host(name.as_str(), format!("{}: {e}", dir.display())))?;
        let files = self.home().package_dir(name.as_str());
        if files.exists() {
            self.home()
                .remove_tree(&files)
                .map_err(|error| SkillError::host(name.as_str(), format!("{}: {error}", files.display())))?;
        }
        let gone = name.to_string();
        self.0.store.post(move |tx| tx.forget_skill_use(&gone));
        self.write_lock()
    }
}
