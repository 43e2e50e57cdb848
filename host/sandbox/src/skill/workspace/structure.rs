//! Limits the depth of directories and the targets of links, for every operation that makes or moves them.
//!
//! Both are said of real places: the directory that a path leads to is opened, and its parents are counted up to the
//! workspace. So neither a link in the path nor a handle on a directory far down makes a deep place look shallow.
//!
//! A link may lead up to the workspace and no further, wherever it is or comes to be. Guests could follow it no further
//! anyway; but programs of this machine that read a workspace (an editor, a backup) follow links wherever they lead.

use crate::engine::limits::MAX_LEVELS;
use cap_std::fs::Dir;
use rustix::fs::{AtFlags, Dev, FileType, Mode, OFlags, fstat, openat, readlinkat, stat, statat};
use rustix::path::Arg;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::rc::Rc;

/// The system's identifiers of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirId {
    device: Dev,
    inode: u64,
}

impl DirId {
    pub fn from_fd(dir: impl AsFd) -> io::Result<DirId> {
        let found = fstat(dir)?;
        Ok(DirId { device: found.st_dev, inode: found.st_ino })
    }

    /// The identifiers of the directory at a path. Links are followed.
    pub fn from_path(path: &Path) -> io::Result<DirId> {
        let found = stat(path)?;
        Ok(DirId { device: found.st_dev, inode: found.st_ino })
    }
}

/// A directory that a guest sees, with its path for the guest, such as `/work`.
#[derive(Debug, Clone)]
pub struct Root {
    pub id: DirId,
    pub at: String,
    /// Whether it is a person's folder, in which links may lead anywhere.
    pub is_folder: bool,
}

impl Root {
    /// A directory of the session, or one that is mounted for it.
    pub(crate) fn new(id: DirId, at: impl Into<String>) -> Self {
        Self { id, at: at.into(), is_folder: false }
    }
}

pub(crate) type Roots = Vec<Root>;

/// The reason why an entry may not be at a place.
#[derive(Debug, Clone, Copy)]
pub(super) enum PlaceError {
    /// Directories would be nested too deep.
    TooDeep,
    /// A link would lead out of the guest's directories.
    Outside,
    /// This is not known; the operation itself returns the same error.
    Io,
}

impl From<io::Error> for PlaceError {
    fn from(_: io::Error) -> Self {
        PlaceError::Io
    }
}

impl From<rustix::io::Errno> for PlaceError {
    fn from(_: rustix::io::Errno) -> Self {
        PlaceError::Io
    }
}

/// A name in a directory, at the end of a path.
#[derive(Debug)]
pub(super) struct EntryPath {
    dir: Dir,
    name: String,
    /// The guest's directory that contains it, and its level there.
    root: Root,
    levels: usize,
}

impl EntryPath {
    /// Resolves a path that begins in `dir`. A link at the end is not followed, all others are.
    pub(super) fn find(dir: &std::fs::File, path: &str, roots: &[Root]) -> Result<EntryPath, PlaceError> {
        let mut path = path;
        while let Some(shorter) = path.strip_suffix('/').or_else(|| path.strip_suffix("/.")) {
            path = shorter;
        }
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        if matches!(name, "" | "." | "..") {
            return Err(PlaceError::Io);
        }
        let base = Dir::from_std_file(dir.try_clone()?);
        let dir = if parent.is_empty() { base } else { base.open_dir(parent)? };
        let (root, levels) = levels(&dir, roots)?;
        Ok(EntryPath { dir, name: name.to_owned(), root, levels })
    }

    /// The directory that it is in, and the name.
    pub(super) fn slot(&self) -> (&Dir, &OsStr) {
        (&self.dir, OsStr::new(&self.name))
    }

    /// Whether both are names of one file or directory.
    pub(super) fn is_same(&self, other: &EntryPath) -> bool {
        let id = |entry: &EntryPath| {
            let found = statat(&entry.dir, &entry.name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
            Some(DirId { device: found.st_dev, inode: found.st_ino })
        };
        id(self).is_some_and(|one| id(other) == Some(one))
    }

    /// Whether a directory may be made here.
    pub(super) fn takes_directory(&self) -> Result<(), PlaceError> {
        if self.levels + 1 > MAX_LEVELS { Err(PlaceError::TooDeep) } else { Ok(()) }
    }

    /// The stored target of a link. A target that begins with `/` for the guest is made relative, because the guest's directory
    /// is elsewhere on this machine.
    pub(super) fn kept_target(&self, target: &str) -> String {
        let below = target.strip_prefix(self.root.at.as_str()).filter(|rest| rest.is_empty() || rest.starts_with('/'));
        match below.map(|rest| rest.trim_start_matches('/')) {
            Some(rest) if target.starts_with('/') => match "../".repeat(self.levels) + rest {
                here if here.is_empty() => ".".to_owned(),
                kept => kept,
            },
            _ => target.to_owned(),
        }
    }

    /// Whether a link with this target may be made here.
    pub(super) fn takes_link(&self, target: &str) -> Result<(), PlaceError> {
        if leads_up(target).is_some_and(|up| up <= self.levels) { Ok(()) } else { Err(PlaceError::Outside) }
    }

    /// Checks whether the entry `from` may be moved here, with everything below it.
    pub(super) fn takes(&self, from: &EntryPath) -> Result<(), PlaceError> {
        let found = statat(&from.dir, &from.name, AtFlags::SYMLINK_NOFOLLOW)?;
        match FileType::from_raw_mode(found.st_mode) {
            FileType::Symlink => {
                let target = readlinkat(&from.dir, &from.name, Vec::new())?;
                if self.root.is_folder && is_absolute(target.as_bytes()) {
                    return Ok(());
                }
                self.takes_link(target.to_str().map_err(|_| PlaceError::Outside)?)
            }
            // On the same level, everything below is as deep as it was, and as far from the top.
            FileType::Directory if (from.root.id, from.levels) == (self.root.id, self.levels) => Ok(()),
            FileType::Directory => {
                self.takes_directory()?;
                takes_below(enter(&from.dir, &from.name)?, self.levels + 1, self.root.is_folder)
            }
            _ => Ok(()),
        }
    }

    /// The bytes that are freed when the file here is deleted: those without another name. `None` for anything but a file or
    /// link.
    pub(super) fn file_bytes(&self) -> Option<u64> {
        let found = statat(&self.dir, &self.name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        match FileType::from_raw_mode(found.st_mode) {
            FileType::Directory => None,
            FileType::RegularFile if found.st_nlink == 1 => u64::try_from(found.st_size).ok(),
            _ => Some(0),
        }
    }
}

/// Opens a directory without following a link. `name` comes from an entry: it contains no slash and is not `..`.
pub(super) fn enter(dir: &Dir, name: impl Arg) -> io::Result<Dir> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(Dir::from_std_file(openat(dir, name, flags, Mode::empty())?.into()))
}

/// The level of a directory below the one of `roots` that contains it.
fn levels(dir: &Dir, roots: &[Root]) -> Result<(Root, usize), PlaceError> {
    let mut id = DirId::from_fd(dir)?;
    let mut above: Option<OwnedFd> = None;
    for levels in 0..=MAX_LEVELS {
        if let Some(root) = roots.iter().find(|root| root.id == id) {
            return Ok((root.clone(), levels));
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let next = match &above {
            None => openat(dir, "..", flags, Mode::empty())?,
            Some(below) => openat(below, "..", flags, Mode::empty())?,
        };
        id = DirId::from_fd(&next)?;
        above = Some(next);
    }
    Err(PlaceError::TooDeep)
}

/// Checks whether a directory may be at this level with everything below it: no directory too deep, and no link too high.
fn takes_below(dir: Dir, level: usize, is_folder: bool) -> Result<(), PlaceError> {
    // As in `measure`: the parent stays open, so that a name is looked up where it was read.
    let mut pending = vec![(Rc::new(dir), None::<OsString>, level)];
    while let Some((parent, name, level)) = pending.pop() {
        if level > MAX_LEVELS {
            return Err(PlaceError::TooDeep);
        }
        let dir = match name {
            Some(name) => Rc::new(enter(&parent, name)?),
            None => parent,
        };
        for entry in dir.entries()? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                pending.push((dir.clone(), Some(entry.file_name()), level + 1));
            } else if kind.is_symlink() {
                let target = readlinkat(&*dir, entry.file_name(), Vec::new())?;
                if is_folder && is_absolute(target.as_bytes()) {
                    continue;
                }
                let up = target.to_str().ok().and_then(leads_up);
                if up.is_none_or(|up| up > level) {
                    return Err(PlaceError::Outside);
                }
            }
        }
    }
    Ok(())
}

/// Whether a link has the same target from everywhere. Guests cannot make one, but a person's folder may contain some.
fn is_absolute(target: &[u8]) -> bool {
    target.first() == Some(&b'/')
}

/// How many directories a link goes up before it goes down; `None` if the target alone does not show it. After a name, ".." may
/// leave the target of a link with that name.
fn leads_up(target: &str) -> Option<usize> {
    if target.starts_with('/') {
        return None;
    }
    let parts = target.split('/').filter(|part| !matches!(*part, "" | "."));
    let (mut up, mut down) = (0, false);
    for part in parts {
        match part {
            ".." if down => return None,
            ".." => up += 1,
            _ => down = true,
        }
    }
    Some(up)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cap_std::ambient_authority;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_target_says_how_far_up_it_leads() {
        for (target, up) in [
            ("a", Some(0)),
            ("./a//b/", Some(0)),
            ("..", Some(1)),
            (".././../a/b", Some(2)),
            ("", Some(0)),
            ("a/..", None),
            ("../a/../b", None),
            ("/", None),
            ("/work/a", None),
        ] {
            assert_eq!(leads_up(target), up, "{target:?}");
        }
    }

    #[test]
    fn places_are_counted_where_paths_really_lead() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().join("work");
        std::fs::create_dir_all(root.join("a/b/c")).unwrap();
        symlink("a/b/c", root.join("deep")).unwrap();
        symlink("../..", root.join("a/b/up")).unwrap();
        let dir = Dir::open_ambient_dir(&root, ambient_authority()).unwrap();
        let roots = vec![Root::new(DirId::from_fd(&dir).unwrap(), "/work")];
        let at = |from: &str, path: &str| {
            let from = dir.open_dir(from).unwrap().into_std_file();
            EntryPath::find(&from, path, &roots).map(|place| place.levels)
        };
        assert_eq!(at(".", "x").unwrap(), 0);
        assert_eq!(at(".", "a/x/").unwrap(), 1);
        assert_eq!(at("a/b/c", "x").unwrap(), 3);
        assert_eq!(at(".", "deep/x").unwrap(), 3, "through a link");
        assert_eq!(at("a/b", "up/x").unwrap_err_kind(), "Io", "out of the directory that it begins in");
        assert_eq!(at(".", "a/b/up/x").unwrap(), 0);
        assert!(at(".", "..").is_err() && at(".", "a/..").is_err() && at(".", "none/x").is_err());
        assert!(at(".", "../x").is_err());
    }

    #[test]
    fn a_target_from_the_top_is_kept_from_the_link() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(temp.path().join("a/b")).unwrap();
        let dir = Dir::open_ambient_dir(temp.path(), ambient_authority()).unwrap();
        let roots = vec![Root::new(DirId::from_fd(&dir).unwrap(), "/work")];
        let file = dir.try_clone().unwrap().into_std_file();
        for (link, target, kept) in [
            ("l", "/work/f", "f"),
            ("a/b/l", "/work/f", "../../f"),
            ("a/l", "/work/a/b/", "../a/b/"),
            ("a/l", "/work", "../"),
            ("l", "/work", "."),
            ("l", "/work//f", "f"),
            ("l", "/workshop/f", "/workshop/f"),
            ("l", "/etc/passwd", "/etc/passwd"),
            ("a/l", "work/f", "work/f"),
        ] {
            assert_eq!(EntryPath::find(&file, link, &roots).unwrap().kept_target(target), kept, "{link} -> {target}");
        }
    }

    trait Kind {
        fn unwrap_err_kind(self) -> &'static str;
    }

    impl Kind for Result<usize, PlaceError> {
        fn unwrap_err_kind(self) -> &'static str {
            match self.unwrap_err() {
                PlaceError::TooDeep => "TooDeep",
                PlaceError::Outside => "Outside",
                PlaceError::Io => "Io",
            }
        }
    }

    #[test]
    fn what_moves_is_looked_at_with_all_below_it() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().join("work");
        let nested = |levels: usize| vec!["d"; levels].join("/");
        std::fs::create_dir_all(root.join("tall").join(nested(40))).unwrap();
        std::fs::create_dir_all(root.join("other").join(nested(30))).unwrap();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        symlink("../../tall", root.join("a/b/link")).unwrap();
        let dir = Dir::open_ambient_dir(&root, ambient_authority()).unwrap();
        let roots = vec![Root::new(DirId::from_fd(&dir).unwrap(), "/work")];
        let file = dir.try_clone().unwrap().into_std_file();
        let place = |path: &str| EntryPath::find(&file, path, &roots).unwrap();
        let takes = |to: &str, from: &str| match place(to).takes(&place(from)) {
            Ok(()) => "yes",
            Err(PlaceError::TooDeep) => "too deep",
            Err(PlaceError::Outside) => "outside",
            Err(PlaceError::Io) => "error",
        };
        assert_eq!(takes("new", "tall"), "yes");
        assert_eq!(takes(&format!("other/{}/new", nested(20)), "tall"), "yes");
        assert_eq!(takes(&format!("other/{}/new", nested(23)), "tall"), "too deep");
        assert_eq!(takes("c", "a/b"), "outside", "the link below it");
        assert_eq!(takes("a/c", "a/b"), "yes");
        assert_eq!(takes("other/d/b", "a/b"), "yes");
        assert_eq!(takes("a/link", "a/b/link"), "outside", "the link itself");
        assert_eq!(takes("other/d/d/link", "a/b/link"), "yes");
        assert_eq!(takes("x", "none"), "error");
    }
}
