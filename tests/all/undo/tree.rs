//! Everything in a workspace that an undo must restore: kinds, contents, modes, link targets, and hard links.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The entry at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Entry {
    Dir {
        mode: u32,
    },
    Link(PathBuf),
    File {
        mode: u32,
        digest: String,
        /// The first name of the same file.
        same_as: PathBuf,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tree(BTreeMap<PathBuf, Entry>);

impl Tree {
    pub(crate) fn read(root: &Path) -> Tree {
        let (mut entries, mut inodes) = (BTreeMap::new(), BTreeMap::new());
        let mut paths = Vec::new();
        below(root, &mut paths);
        paths.sort();
        for path in paths {
            let name = path.strip_prefix(root).unwrap().to_owned();
            let found = fs::symlink_metadata(&path).unwrap();
            let entry = if found.is_dir() {
                Entry::Dir { mode: found.mode() }
            } else if found.is_symlink() {
                Entry::Link(fs::read_link(&path).unwrap())
            } else {
                let digest = ring::digest::digest(&ring::digest::SHA256, &fs::read(&path).unwrap());
                let digest = digest.as_ref()[..8].iter().map(|byte| format!("{byte:02x}")).collect();
                let same_as = inodes.entry(found.ino()).or_insert_with(|| name.clone()).clone();
                Entry::File { mode: found.mode(), digest, same_as }
            };
            entries.insert(name, entry);
        }
        Tree(entries)
    }

    /// The tree without a directory and everything below it.
    pub(crate) fn without(mut self, dir: &str) -> Tree {
        self.0.retain(|path, _| !path.starts_with(dir));
        self
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.0
            .keys()
            .map(|path| String::from_utf8_lossy(&OsString::into_vec(path.clone().into())).into_owned())
            .collect()
    }

    /// Asserts that both are equal, and reports the differences.
    #[track_caller]
    pub(crate) fn assert_same(&self, other: &Tree) {
        let paths: std::collections::BTreeSet<_> = self.0.keys().chain(other.0.keys()).collect();
        let differ: Vec<_> = paths
            .into_iter()
            .filter(|path| self.0.get(*path) != other.0.get(*path))
            .map(|path| format!("{}: {:?} is now {:?}", path.display(), self.0.get(path), other.0.get(path)))
            .take(20)
            .collect();
        assert!(differ.is_empty(), "{differ:#?}");
    }
}

fn below(dir: &Path, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if fs::symlink_metadata(&path).unwrap().is_dir() {
            below(&path, paths);
        }
        paths.push(path);
    }
}
