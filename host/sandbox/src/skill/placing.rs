//! Replaces installed files by others.

use super::error::SkillError;
use kiso_base::home::{Home, HomeError, SkillName};
use kiso_plan::code::{Blame, ErrorCode};
use rustix::fs::{CWD, RenameFlags};
use std::fs;
use std::path::Path;

/// Exchanges the directory `new` with `dir`, and removes the old content. There is a complete directory at each moment.
pub(super) fn exchange(home: &Home, new: &Path, dir: &Path) -> anyhow::Result<()> {
    if let Some(above) = dir.parent() {
        fs::create_dir_all(above)?;
    }
    if !dir.exists() {
        return Ok(fs::rename(new, dir)?);
    }
    if rustix::fs::renameat_with(CWD, new, CWD, dir, RenameFlags::EXCHANGE).is_ok() {
        return Ok(home.remove_tree(new)?);
    }
    // The file system cannot exchange directories.
    let old = new.with_extension("old");
    home.remove_tree(&old)?;
    fs::rename(dir, &old)?;
    fs::rename(new, dir)?;
    Ok(home.remove_tree(&old)?)
}

/// The error if the skills are locked: another process is changing them, or the home cannot be written.
pub(super) fn not_locked(name: &SkillName, error: &HomeError) -> SkillError {
    let busy = matches!(error, HomeError::Busy { .. });
    let code = if busy { ErrorCode::Busy } else { ErrorCode::Io };
    SkillError { retryable: busy, ..SkillError::new(name.as_str(), Blame::Host, code, error.to_string()) }
}
