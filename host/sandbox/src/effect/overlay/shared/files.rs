//! The shared files as a person sees them, without a session.

use super::super::lower::{Lower, is_dir, is_missing, kind, stat_at};
use crate::effect::files::FileLabels;
use crate::effect::label::LabelId;
use crate::effect::undo::is_of_layer;
use kiso_base::home::Home;
use kiso_plan::label::Label;
use rustix::fs::FileType;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The files that all sessions share.
#[derive(Debug)]
pub struct SharedFiles {
    lower: Lower,
    labels: Arc<FileLabels>,
}

/// An entry among the shared files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedEntry {
    /// Below `/shared`.
    pub path: PathBuf,
    pub is_dir: bool,
    /// Whether it is a symbolic link, which no request follows.
    pub is_link: bool,
    /// 0 for a directory.
    pub bytes: u64,
    /// Milliseconds since 1970.
    pub modified_ms: i64,
    /// The labels of its name and of its content.
    pub label: Label,
}

impl SharedFiles {
    pub fn open(home: &Home) -> io::Result<Self> {
        let folder = home.shared_folder().map_err(io::Error::other)?;
        Ok(Self { lower: Lower::open(&folder.path)?, labels: FileLabels::of_dir(&home.shared_dir()) })
    }

    /// The entries in a directory, or in all directories below it, by path; at most `most`. Also returns whether there are more.
    pub fn list(&self, dir: &Path, is_deep: bool, most: usize) -> io::Result<(Vec<SharedEntry>, bool)> {
        let (mut found, mut pending) = (BTreeMap::new(), vec![dir.to_owned()]);
        while let Some(dir) = pending.pop() {
            let opened = self.lower.open_dir(&dir)?;
            for entry in rustix::fs::Dir::read_from(&opened)? {
                let entry = entry?;
                let name = OsStr::from_bytes(entry.file_name().to_bytes());
                let path = dir.join(name);
                if matches!(name.as_bytes(), b"." | b"..") || is_of_layer(name) {
                    continue;
                }
                if found.len() >= most {
                    return Ok((found.into_values().collect(), true));
                }
                let Some(entry) = self.entry(&opened, name, path)? else { continue };
                if is_deep && entry.is_dir {
                    pending.push(entry.path.clone());
                }
                found.insert(entry.path.clone(), entry);
            }
        }
        Ok((found.into_values().collect(), false))
    }

    /// Opens a file for reading.
    pub fn open_file(&self, path: &Path) -> io::Result<File> {
        self.lower.open_file(path)
    }

    /// The entry at a path.
    pub fn find(&self, path: &Path) -> io::Result<Option<SharedEntry>> {
        let (dir, Some(name)) = (path.parent().unwrap_or(Path::new("")), path.file_name()) else { return Ok(None) };
        match self.lower.open_dir(dir) {
            Ok(opened) if !is_of_layer(name) => self.entry(&opened, name, path.to_owned()),
            Ok(_) => Ok(None),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The entry with a name in a directory. `path` is its path below `/shared`.
    fn entry(&self, dir: &OwnedFd, name: &OsStr, path: PathBuf) -> io::Result<Option<SharedEntry>> {
        let Some(stat) = stat_at(dir, name)?.filter(|stat| is_shown(kind(stat))) else { return Ok(None) };
        let label = self.labels.of_slot(dir, name).join(self.labels.of_stat(&stat));
        Ok(Some(SharedEntry {
            path,
            is_dir: is_dir(&stat),
            is_link: kind(&stat) == FileType::Symlink,
            bytes: if is_dir(&stat) { 0 } else { u64::try_from(stat.st_size).unwrap_or(0) },
            modified_ms: stat.st_mtime.saturating_mul(1_000),
            label: (*label.join(LabelId::session()).label()).clone(),
        }))
    }
}

fn is_shown(kind: FileType) -> bool {
    matches!(kind, FileType::RegularFile | FileType::Directory | FileType::Symlink)
}
