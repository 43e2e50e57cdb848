//! The directories that a call has read and changed, for an administrator: up to two levels below the directories that it sees.

use crate::skill::usage::CapabilityUse;
use kiso_base::system::path_of;
use std::fs::File;
use std::path::{Component, Path, PathBuf};

/// The kinds of use: a directory was read, or changed.
pub(crate) const READ: &str = "read";
pub(crate) const WRITE: &str = "write";

/// Levels below a directory that the guest sees: `/work/2026/june`.
const LEVELS: usize = 2;

/// The directories of one call.
#[derive(Debug, Default)]
pub struct DirectoryUse {
    /// Directories of this machine, with the guest's paths.
    roots: Vec<(PathBuf, &'static str)>,
    /// Whether the paths are without links, as the system names them.
    is_real: bool,
    used: CapabilityUse,
}

impl DirectoryUse {
    /// Adds a directory that the guest sees. All other directories are not recorded: they belong to the host, and every guest
    /// gets them.
    pub fn root(&mut self, dir: &Path, at: &'static str) {
        self.roots.push((dir.to_path_buf(), at));
        self.is_real = false;
    }

    /// Records an operation at a path that begins in a directory.
    pub fn note(&mut self, dir: &File, path: &str, how: &str, is_dir: bool) {
        // More entries would not change the result.
        if self.used.has_more() {
            return;
        }
        // Most calls access no file, so this waits for the first access.
        if !self.is_real {
            self.roots.retain_mut(|(root, _)| {
                root.canonicalize().is_ok_and(|real| {
                    *root = real;
                    true
                })
            });
            self.is_real = true;
        }
        match path_of(dir) {
            Ok(base) => {
                if let Some(name) = self.name(&base, path, is_dir) {
                    self.used.add(how, &name);
                }
            }
            // The directory is not known.
            Err(_) => self.used.leave_open(),
        }
    }

    /// The recorded use.
    pub fn used(&self) -> &CapabilityUse {
        &self.used
    }

    /// The directory for the guest. Links in the path are not followed: the guest named it in this way.
    fn name(&self, base: &Path, path: &str, is_dir: bool) -> Option<String> {
        let found = self.roots.iter().filter(|(root, _)| base.starts_with(root));
        let (root, at) = found.max_by_key(|(root, _)| root.as_os_str().len())?;
        let mut parts: Vec<String> = Vec::new();
        for part in base.strip_prefix(root).ok()?.components().chain(Path::new(path).components()) {
            match part {
                Component::Normal(part) => parts.push(part.to_string_lossy().into_owned()),
                Component::ParentDir => drop(parts.pop()),
                _ => {}
            }
        }
        let above = usize::from(!is_dir && !matches!(path.trim_end_matches('/'), "" | "." | ".."));
        parts.truncate(parts.len().saturating_sub(above).min(LEVELS));
        Some(parts.iter().fold((*at).to_owned(), |name, part| format!("{name}/{part}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_named_as_the_guest_sees_it() {
        let touched = DirectoryUse {
            roots: vec![("/home/s/work".into(), "/work"), ("/home/s/tmp".into(), "/tmp")],
            ..DirectoryUse::default()
        };
        for (base, path, is_dir, expected) in [
            ("/home/s/work", "a.csv", false, Some("/work")),
            ("/home/s/work", "data/a.csv", false, Some("/work/data")),
            ("/home/s/work", "data/2026/june/a.csv", false, Some("/work/data/2026")),
            ("/home/s/work", "data/../b/a.csv", false, Some("/work/b")),
            ("/home/s/work", "data", true, Some("/work/data")),
            ("/home/s/work", ".", false, Some("/work")),
            ("/home/s/work/data", "a.csv", false, Some("/work/data")),
            ("/home/s/tmp", "x/../../../y", false, Some("/tmp")),
            ("/usr/lib", "a", false, None),
            ("/home/s/worker", "a", false, None),
        ] {
            assert_eq!(touched.name(Path::new(base), path, is_dir).as_deref(), expected, "{base} {path}");
        }
    }
}
