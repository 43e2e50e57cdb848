//! How what is installed takes the place of what was there.

use super::error::SkillError;
use kiso_base::home::{Home, HomeError, SkillName};
use kiso_plan::code::{Blame, ErrorCode};
use rustix::fs::{CWD, RenameFlags};
use std::fs;
use std::path::Path;

/// Puts the directory `new` where `dir` is, and removes what was there. At no moment is there nothing, or half of one.
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
    // A file system that cannot exchange.
    let old = new.with_extension("old");
    home.remove_tree(&old)?;
    fs::rename(dir, &old)?;
    fs::rename(new, dir)?;
    Ok(home.remove_tree(&old)?)
}

/// The skills cannot be changed now: somebody else does so, which will pass, or the home cannot be written.
pub(super) fn not_locked(name: &SkillName, error: &HomeError) -> SkillError {
    let busy = matches!(error, HomeError::Busy { .. });
    let code = if busy { ErrorCode::Busy } else { ErrorCode::Io };
    SkillError { retryable: busy, ..SkillError::new(name.as_str(), Blame::Host, code, error.to_string()) }
}
