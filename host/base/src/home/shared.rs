//! The shared files: one folder that all sessions see.

use std::fs;
use std::path::PathBuf;

use super::folder::SHARED;
use super::{Home, HomeError, SessionFolder};

impl Home {
    /// The directory of the shared files, with their labels and their lock.
    pub fn shared_dir(&self) -> PathBuf {
        self.path().join("shared")
    }

    /// The shared files as a folder that every session has open.
    pub fn shared_folder(&self) -> Result<SessionFolder, HomeError> {
        let path = self.shared_dir().join("work");
        fs::create_dir_all(&path).map_err(|error| HomeError::from_io(&path, "create", error))?;
        Ok(SessionFolder {
            at: SHARED.to_owned(),
            path,
            write: true,
            secrets: true,
            entry: None,
            deliveries: false,
            opened_ms: 0,
        })
    }
}
