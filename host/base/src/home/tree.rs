//! Removes a directory and everything below it, whatever a guest has put there.
//!
//! A tree may be deeper than the longest path, and than the number of files that a process may have open. So nothing here
//! recurses: directories below the first level are moved up to it before they are emptied, and only two directories are open at a
//! time. Every name is looked up in an open directory and no link is followed, so nothing outside is reached, even if the tree
//! changes meanwhile.

use std::ffi::CString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dev, Dir, FileType, Mode, OFlags, fstat, openat, renameat, statat, unlinkat};
use rustix::io::Errno;

/// Removes a directory or anything else at `path`. A missing path is not an error.
///
/// Anything that cannot be removed stays, with the directories above it, and the first error is returned. Everything else is
/// removed.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    let top = match open(CWD, path) {
        Ok(top) => top,
        Err(Errno::NOENT) => return Ok(()),
        Err(Errno::NOTDIR | Errno::LOOP) => return unless_gone(unlinkat(CWD, path, AtFlags::empty())),
        Err(error) => return Err(error.into()),
    };
    let device = fstat(&top)?.st_dev;
    let mut mover = Mover { top: &top, next: 0 };
    let mut failed = None;
    loop {
        let mut changed = 0;
        for entry in Dir::read_from(&top)? {
            let entry = entry?;
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            let done = match kind(&top, name, entry.file_type()) {
                Ok(FileType::Directory) => empty(&mut mover, name, device, &mut changed)
                    .and_then(|()| unless_gone(unlinkat(&top, name, AtFlags::REMOVEDIR))),
                Ok(_) => unless_gone(unlinkat(&top, name, AtFlags::empty())),
                Err(error) => unless_gone(Err(error)),
            };
            match done {
                Ok(()) => changed += 1,
                Err(error) => drop(failed.get_or_insert(error)),
            }
        }
        // The next pass may be the first to see what this one moved up.
        if changed == 0 {
            break;
        }
    }
    drop(top);
    let removed = unless_gone(unlinkat(CWD, path, AtFlags::REMOVEDIR));
    // An obstacle of one pass may be gone in the next.
    removed.map_err(|error| failed.unwrap_or(error))
}

/// Moves directories up to the first level, under unused names.
struct Mover<'a> {
    top: &'a OwnedFd,
    next: u64,
}

impl Mover<'_> {
    #[expect(clippy::expect_used, reason = "there is no NUL in it")]
    fn up(&mut self, from: &OwnedFd, name: &std::ffi::CStr) -> io::Result<()> {
        loop {
            let free = CString::new(format!(".up-{}", self.next)).expect("there is no NUL in it");
            self.next += 1;
            match renameat(from, name, self.top, &free) {
                // A guest uses that name. If it is an empty directory, it is replaced, which does no harm.
                Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => {}
                done => return unless_gone(done),
            }
        }
    }
}

/// Empties the directory `name` of the first level: removes files, and moves directories up beside it.
fn empty(mover: &mut Mover<'_>, name: &std::ffi::CStr, device: Dev, changed: &mut u64) -> io::Result<()> {
    let dir = match open(mover.top, name) {
        Ok(dir) => dir,
        Err(error) => return unless_gone(Err(error)),
    };
    if fstat(&dir)?.st_dev != device {
        return Err(io::Error::other("another file system is mounted there"));
    }
    let mut failed = None;
    for entry in Dir::read_from(&dir)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let done = match kind(&dir, name, entry.file_type()) {
            Ok(FileType::Directory) => mover.up(&dir, name),
            Ok(_) => unless_gone(unlinkat(&dir, name, AtFlags::empty())),
            Err(error) => unless_gone(Err(error)),
        };
        match done {
            Ok(()) => *changed += 1,
            Err(error) => drop(failed.get_or_insert(error)),
        }
    }
    failed.map_or(Ok(()), Err)
}

fn open<D: std::os::fd::AsFd, P: rustix::path::Arg>(dir: D, name: P) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(dir, name, flags, Mode::empty())
}

/// Returns the type of an entry. Some file systems do not list types with the names.
fn kind(dir: &OwnedFd, name: &std::ffi::CStr, told: FileType) -> rustix::io::Result<FileType> {
    match told {
        FileType::Unknown => Ok(FileType::from_raw_mode(statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode)),
        told => Ok(told),
    }
}

/// Ignores a missing entry: another process may be removing the same tree.
fn unless_gone(done: rustix::io::Result<()>) -> io::Result<()> {
    match done {
        Err(Errno::NOENT) => Ok(()),
        done => Ok(done?),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Temp;
    use super::*;
    use rustix::fs::mkdirat;
    use std::fs;
    use std::os::unix::fs::symlink;

    /// Creates directories nested more deeply than a path can be long.
    fn nest(at: &Path, levels: usize) {
        let mut dir = open(CWD, at).unwrap();
        for _ in 0..levels {
            mkdirat(&dir, "d", Mode::RWXU).unwrap();
            dir = open(&dir, "d").unwrap();
        }
        let file = openat(&dir, "leaf", OFlags::WRONLY | OFlags::CREATE, Mode::RUSR | Mode::WUSR).unwrap();
        rustix::io::write(&file, b"x").unwrap();
    }

    #[test]
    fn a_tree_deeper_than_any_path_and_any_limit_of_open_files_goes() {
        let temp = Temp::new();
        let tree = temp.0.join("tree");
        fs::create_dir(&tree).unwrap();
        // The paths have 20,000 bytes; PATH_MAX is 4,096. Two trees, because names must not conflict when they are moved up.
        for name in ["a", "b"] {
            fs::create_dir(tree.join(name)).unwrap();
            nest(&tree.join(name), 10_000);
        }
        fs::create_dir_all(tree.join(".up-0/full")).unwrap();
        fs::write(tree.join(".up-1"), "").unwrap();
        assert!(fs::remove_dir_all(&tree).is_err() || !tree.exists());
        remove(&tree).unwrap();
        assert!(!tree.exists());
        remove(&tree).unwrap();
    }

    #[test]
    fn a_crowded_tree_goes() {
        let temp = Temp::new();
        let tree = temp.0.join("tree");
        for dir in 0..20 {
            fs::create_dir_all(tree.join(format!("{dir}/below"))).unwrap();
            for file in 0..500 {
                fs::write(tree.join(format!("{dir}/below/{file}")), "").unwrap();
            }
        }
        remove(&tree).unwrap();
        assert!(!tree.exists());
    }

    /// Attack: links, at the top and below, through which a removal that follows them would delete files outside.
    #[test]
    fn links_are_removed_and_not_followed() {
        let temp = Temp::new();
        let outside = temp.0.join("outside");
        fs::create_dir_all(outside.join("inner")).unwrap();
        fs::write(outside.join("inner/precious"), "kept").unwrap();
        let tree = temp.0.join("tree");
        fs::create_dir_all(tree.join("a/b")).unwrap();
        for link in ["l", "a/l", "a/b/l"] {
            symlink(&outside, tree.join(link)).unwrap();
        }
        fs::hard_link(outside.join("inner/precious"), tree.join("a/twin")).unwrap();
        remove(&tree).unwrap();
        assert!(!tree.exists());
        symlink(&outside, &tree).unwrap();
        remove(&tree).unwrap();
        assert!(tree.symlink_metadata().is_err());
        assert_eq!(fs::read_to_string(outside.join("inner/precious")).unwrap(), "kept");
    }

    #[test]
    fn what_cannot_go_stays_alone_and_says_why() {
        use std::os::unix::fs::PermissionsExt;
        if rustix::process::geteuid().is_root() {
            return; // root can do everything
        }
        let temp = Temp::new();
        let tree = temp.0.join("tree");
        fs::create_dir_all(tree.join("shut")).unwrap();
        fs::write(tree.join("shut/kept"), "").unwrap();
        fs::write(tree.join("other"), "").unwrap();
        fs::set_permissions(tree.join("shut"), fs::Permissions::from_mode(0o500)).unwrap();
        assert_eq!(remove(&tree).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        assert!(tree.join("shut/kept").exists() && !tree.join("other").exists());
        fs::set_permissions(tree.join("shut"), fs::Permissions::from_mode(0o700)).unwrap();
        remove(&tree).unwrap();
    }
}
