//! The branches and tags of a repository, in the folder or in the session's version.

use crate::effect::overlay::Overlay;
use rustix::fs::FileType;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Bytes of the file of packed references that are read.
const MAX_PACKED: u64 = 8 << 20;

/// References that are read.
const MAX_REFS: usize = 10_000;

/// Directories within one another that are searched for references.
const MAX_DEPTH: usize = 16;

/// A repository in the folder, if the folder has it, or in the session's version.
pub(super) enum RepositorySide<'a> {
    Folder(&'a Overlay, Option<PathBuf>),
    Session(&'a Overlay, PathBuf),
}

impl RepositorySide<'_> {
    /// Opens a file below the `.git` directory.
    pub(super) fn open(&self, path: &str) -> Option<File> {
        match self {
            Self::Folder(overlay, repository) => overlay.lower.open_file(&repository.as_ref()?.join(path)).ok(),
            Self::Session(overlay, repository) => overlay.open_merged(&repository.join(path)).ok(),
        }
    }

    /// Reads the beginning of a file.
    fn read(&self, path: &str, most: u64) -> Option<String> {
        let mut text = Vec::new();
        self.open(path)?.take(most).read_to_end(&mut text).ok()?;
        Some(String::from_utf8_lossy(&text).into_owned())
    }

    fn names(&self, path: &str) -> Vec<(String, FileType)> {
        let listed = || -> io::Result<Vec<(String, FileType)>> {
            match self {
                Self::Session(overlay, repository) => {
                    let names = overlay.names(&repository.join(path))?;
                    Ok(names.into_iter().filter_map(|(name, kind)| Some((name.into_string().ok()?, kind))).collect())
                }
                Self::Folder(_, None) => Ok(Vec::new()),
                Self::Folder(overlay, Some(repository)) => {
                    let dir = overlay.lower.open_dir(&repository.join(path))?;
                    let mut names = Vec::new();
                    for entry in rustix::fs::Dir::read_from(dir)? {
                        let entry = entry?;
                        let name = OsStr::from_bytes(entry.file_name().to_bytes());
                        if !matches!(name.as_bytes(), b"." | b"..") {
                            names.extend(name.to_str().map(|name| (name.to_owned(), entry.file_type())));
                        }
                    }
                    Ok(names)
                }
            }
        };
        listed().unwrap_or_default()
    }
}

/// The branch or commit that is checked out.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum Head {
    #[default]
    Unknown,
    /// The full name of a branch.
    Branch(String),
    Detached(String),
}

/// Ids of references, by full name such as `refs/heads/main`.
#[derive(Debug, Default)]
pub(super) struct RepositoryRefs {
    pub(super) head: Head,
    pub(super) all: BTreeMap<String, String>,
}

impl RepositoryRefs {
    pub(super) fn read(side: &RepositorySide<'_>) -> Self {
        let mut refs = Self::default();
        if let Some(text) = side.read("HEAD", 4_096) {
            refs.head = match text.trim().strip_prefix("ref:") {
                Some(name) => Head::Branch(name.trim().to_owned()),
                None => object_id(text.trim()).map_or(Head::Unknown, Head::Detached),
            };
        }
        for line in side.read("packed-refs", MAX_PACKED).unwrap_or_default().lines() {
            if let Some((id, name)) = line.split_once(' ')
                && let Some(id) = object_id(id)
                && refs.all.len() < MAX_REFS
            {
                refs.all.insert(name.to_owned(), id);
            }
        }
        // A loose reference takes precedence over a packed one.
        refs.loose(side, "refs", 0);
        refs
    }

    fn loose(&mut self, side: &RepositorySide<'_>, dir: &str, depth: usize) {
        for (name, kind) in side.names(dir) {
            let path = format!("{dir}/{name}");
            if kind == FileType::Directory {
                if depth < MAX_DEPTH {
                    self.loose(side, &path, depth + 1);
                }
            } else if Path::new(&name).extension() != Some(OsStr::new("lock"))
                && self.all.len() < MAX_REFS
                && let Some(id) = side.read(&path, 4_096).and_then(|text| object_id(text.trim()))
            {
                self.all.insert(path, id);
            }
        }
    }

    /// Whether a reference names a commit.
    pub(super) fn has(&self, id: &str) -> bool {
        self.all.values().any(|known| known == id)
    }
}

/// An id of SHA-1 or SHA-256 in hexadecimal digits.
pub(super) fn object_id(text: &str) -> Option<String> {
    let is_id = matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then(|| text.to_ascii_lowercase())
}
