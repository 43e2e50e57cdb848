//! `kiso backup`: copies the store while it is in use.

use super::{Exit, Failure, Shared};
use kiso_base::clock::now_ms;
use kiso_base::home::Home;
use kiso_plan::report::size;
use kiso_store::store::{BackupError, Store};
use serde_json::json;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
pub(super) struct BackupArgs {
    /// File to write. Safe to run while the daemon is running
    file: PathBuf,
    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
    /// Also write the home's key to FILE.key. Anyone who has both can read everything; without the key, encrypted data stays unreadable
    #[arg(long)]
    with_key: bool,
}

impl BackupArgs {
    pub(super) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let file = absolute(&self.file)?;
        // The configuration is not read: a mistake in it must not prevent a backup.
        let home = Home::open(&Home::locate(shared.home.as_deref())?)?;
        let key = self.with_key.then(|| key_beside(&file));
        if let Some(key) = &key
            && !self.force
            && key.symlink_metadata().is_ok()
        {
            return Err(BackupError::Exists { path: key.clone() }.into());
        }
        let store = Store::open(&home.store_path())?;
        let copied = store.back_up(&file, self.force, now_ms())?;
        store.close();
        if let Some(key) = &key {
            home.save_key(key)
                .map_err(|error| Failure::new(Exit::Failed, format!("{} cannot be written: {error}", key.display())))?;
        }
        if shared.json {
            outln!(
                "{}",
                json!({ "type": "backup", "file": file, "bytes": copied.bytes, "version": copied.version, "key": key })
            );
            return Ok(Exit::Done);
        }
        outln!("{} ({}, version {}, checked)", file.display(), size(copied.bytes), copied.version);
        errln!(
            "not included: config.toml, roles, skills, grants, and session files; copy them from {}",
            home.path().display()
        );
        match key {
            Some(key) => errln!("the key is in {}: keep it separate from the backup", key.display()),
            None => errln!(
                "the key is not included: if {} is lost, encrypted messages and secrets cannot be read; --with-key saves it",
                home.path().join("key").display()
            ),
        }
        Ok(Exit::Done)
    }
}

/// Returns the file for the key of a backup, for `--with-key`.
pub(super) fn key_beside(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".key");
    PathBuf::from(name)
}

pub(super) fn absolute(file: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(file).map_err(|error| Failure::new(Exit::Usage, format!("{}: {error}", file.display())))
}

impl From<BackupError> for Failure {
    fn from(error: BackupError) -> Failure {
        let exit = match error {
            BackupError::Store(error) => return error.into(),
            BackupError::Exists { .. } | BackupError::Itself { .. } => Exit::Usage,
            BackupError::NoBackup { .. } | BackupError::Damaged { .. } | BackupError::Live { .. } => Exit::Usage,
            _ => Exit::Failed,
        };
        Failure::new(exit, error.to_string())
    }
}
