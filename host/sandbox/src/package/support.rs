//! The files that a package's command sees beside the workspace: written once into the home, in a directory that is named by
//! what is in it, and never changed.

use super::Package;
use data_encoding::HEXLOWER;
use kiso_base::home::Home;
use ring::digest::{Context, SHA256};
use std::fs;
use std::io::Result;
use std::path::{Path, PathBuf};

/// Files by their path below the directory, and a name for all of them together.
#[derive(Debug)]
pub(super) struct SupportFiles {
    files: Vec<(String, &'static [u8])>,
    digest: String,
}

impl SupportFiles {
    pub(super) fn new(files: Vec<(String, &'static [u8])>) -> Self {
        let mut context = Context::new(&SHA256);
        for (path, bytes) in &files {
            context.update(path.as_bytes());
            context.update(&[0]);
            context.update(&(bytes.len() as u64).to_le_bytes());
            context.update(bytes);
        }
        let digest = HEXLOWER.encode(&context.finish().as_ref()[..8]);
        Self { files, digest }
    }

    /// Each by its path.
    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = &(String, &'static [u8])> {
        self.files.iter()
    }

    fn write(&self, dir: &Path) -> Result<()> {
        for (path, bytes) in &self.files {
            let file = dir.join(path);
            fs::create_dir_all(file.parent().unwrap_or(dir))?;
            fs::write(file, bytes)?;
        }
        Ok(())
    }
}

/// The directory with the package's files, whole or not there.
pub(super) fn directory(package: &Package, home: &Home) -> Result<PathBuf> {
    let files = (package.files)();
    let parent = home.package_dir(package.name);
    let dir = parent.join(&files.digest);
    if dir.is_dir() {
        return Ok(dir);
    }
    let new = parent.join(format!(".{}-{}.new", files.digest, std::process::id()));
    if new.exists() {
        // Of a process that had our id and was killed.
        fs::remove_dir_all(&new)?;
    }
    files.write(&new)?;
    match fs::rename(&new, &dir) {
        // Another one was first, with the same files.
        Err(_) if dir.is_dir() => fs::remove_dir_all(&new)?,
        renamed => renamed?,
    }
    Ok(dir)
}
