//! A skill's file that was fetched: from a registry, from an address, or from an index.

use super::Skills;
use super::error::SkillError;
use std::path::PathBuf;

/// A fetched file. It is deleted when this is dropped.
#[derive(Debug)]
pub struct FetchedFile {
    dir: PathBuf,
    pub file: PathBuf,
    /// The source that identifies it when another version comes: registry and name, the address, or the index.
    pub source: String,
    /// The place from which it can be fetched again, with its digest.
    pub location: String,
    /// The signature that came with it.
    pub signature: Option<String>,
}

impl Drop for FetchedFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

impl Skills {
    /// Writes fetched bytes into a file of this name.
    pub(super) fn keep_fetched(
        &self,
        name: &str,
        bytes: &[u8],
        (source, location): (String, String),
        signature: Option<String>,
    ) -> Result<FetchedFile, SkillError> {
        let host = |error: std::io::Error| SkillError::host(&source, error);
        let dir = self.home().temp_path();
        std::fs::create_dir(&dir).map_err(host)?;
        let fetched = FetchedFile { file: dir.join(name), dir, source: source.clone(), location, signature };
        std::fs::write(&fetched.file, bytes).map_err(host)?;
        Ok(fetched)
    }
}
