//! The labels of the text of Agent Skills: that of their publishers, also if a command line reads it, unless an administrator
//! trusts them.

use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::label::LabelId;
use kiso_base::system::path_of;
use kiso_plan::label::Label;

/// The name used for a folder that was deleted.
const GONE: &str = "*";

/// The label of the text of the Agent Skill of this name. An administrator answers for those that are `trusted`.
pub fn label_of_skill(trusted: &[String], name: &str) -> Label {
    if trusted.iter().any(|known| known == name) { Label::default() } else { Label::of_skill(name) }
}

/// The labels of the files of Agent Skills, by where they are on this machine. Cheap to clone.
#[derive(Debug, Clone)]
pub struct PublishedFiles(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Without links.
    root: PathBuf,
    /// The directory of the folders in use, relative to the root. The others are being installed or removed.
    folders: PathBuf,
    trusted: Vec<String>,
}

impl PublishedFiles {
    /// The labels of the `folders` in `root`, a directory that contains only Agent Skills.
    pub fn new(root: &Path, folders: &Path, trusted: Vec<String>) -> Self {
        let folders = folders.strip_prefix(root).unwrap_or(folders).to_owned();
        let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        Self(Arc::new(Inner { root, folders, trusted }))
    }

    /// The label of the content of an open file or directory. The administrator chose the names in the directory of all folders.
    pub fn label_of(&self, at: impl AsFd) -> LabelId {
        self.below(at, Path::new(""), 1)
    }

    /// The label of the entry at a path below an open directory.
    pub fn of_entry(&self, dir: impl AsFd, path: &str) -> LabelId {
        self.below(dir, Path::new(path), 2)
    }

    /// The label of a path, if it has at least this depth: the administrator chose the name of the folder itself.
    fn below(&self, at: impl AsFd, path: &Path, depth: usize) -> LabelId {
        let inner = &*self.0;
        // Its path is not known, so it could belong to any skill.
        let gone = || LabelId::from_label(&label_of_skill(&inner.trusted, GONE));
        let Ok(found) = path_of(at) else { return gone() };
        let Ok(inside) = found.strip_prefix(&inner.root) else { return LabelId::default() };
        let Ok(inside) = inside.strip_prefix(&inner.folders) else { return gone() };
        // A folder contains no links, so `..` cannot lead out of all folders.
        let mut parts: Vec<&OsStr> = Vec::new();
        for part in inside.components().chain(path.components()) {
            match part {
                Component::Normal(part) => parts.push(part),
                Component::ParentDir => drop(parts.pop()),
                _ => {}
            }
        }
        match parts.as_slice() {
            [name, ..] if parts.len() >= depth => LabelId::from_label(&label_of_skill(&inner.trusted, shown(name))),
            _ => LabelId::default(),
        }
    }
}

fn shown(name: &OsStr) -> &str {
    name.to_str().unwrap_or(GONE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{File, create_dir_all, rename, write};

    #[test]
    fn files_have_the_label_of_the_skill_that_they_are_of() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap().join("agent-skills");
        create_dir_all(root.join("folders/greet/scripts")).unwrap();
        create_dir_all(root.join("folders/mine")).unwrap();
        create_dir_all(dir.path().join("work")).unwrap();
        write(root.join("folders/greet/scripts/hello.sh"), "echo").unwrap();
        let files = PublishedFiles::new(&root, &root.join("folders"), vec!["mine".to_owned()]);
        let open = |path: &str| File::open(root.join(path)).unwrap();
        let (greet, user) = (LabelId::from_label(&Label::of_skill("greet")), LabelId::default());
        assert_eq!(files.label_of(open("folders/greet/scripts/hello.sh")), greet);
        assert_eq!(
            (files.label_of(open("folders/greet")), files.label_of(open("folders/greet/scripts"))),
            (greet, greet)
        );
        assert_eq!((files.label_of(open("folders/mine")), files.label_of(open("folders"))), (user, user));
        assert_eq!(files.label_of(open("../work")), user);
        let all = open("folders");
        assert_eq!((files.of_entry(&all, "greet"), files.of_entry(&all, "greet/x")), (user, greet));
        assert_eq!((files.of_entry(&all, "mine/x"), files.of_entry(open("folders/greet"), "x")), (user, greet));
        assert_eq!((files.of_entry(&all, "mine/../greet/x"), files.of_entry(&all, "mine/a/../x")), (greet, user));
        assert_eq!(files.of_entry(open("folders/greet/scripts"), "../SKILL.md"), greet);
        // A folder that was replaced while it was open has an unknown publisher.
        let old = open("folders/greet/scripts");
        rename(root.join("folders/greet"), root.join(".greet.new")).unwrap();
        assert_eq!(files.label_of(old), LabelId::from_label(&Label::of_skill(GONE)));
    }
}
