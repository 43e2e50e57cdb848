//! Removes a directory with everything below it, whatever a guest made of it.
//!
//! A tree may be deeper than any path is long and than a process may hold files open, so nothing here recurses: what is
//! below the first level is moved up to it before it is emptied, and two directories are open at a time. Every name is
//! looked up in an open directory and no link is followed, so nothing outside is reached, whoever changes the tree
//! meanwhile.

use std::ffi::CString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dev, Dir, FileType, Mode, OFlags, fstat, openat, renameat, statat, unlinkat};
use rustix::io::Errno;

/// Removes what is at `path`, a directory or anything else; that nothing is there is no error.
///
/// What cannot be removed stays, with what is above it, and the first reason is returned: everything else is gone then.
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
        // What was moved up during a pass may be seen only by the next.
        if changed == 0 {
            break;
        }
    }
    drop(top);
    let removed = unless_gone(unlinkat(CWD, path, AtFlags::REMOVEDIR));
    // Something may have been in the way in one pass and be gone in the next.
    removed.map_err(|error| failed.unwrap_or(error))
}

/// Moves directories up to the first level, under names that are free there.
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
                // A guest took that name; an empty directory is replaced, which is as well.
                Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => {}
                done => return unless_gone(done),
            }
        }
    }
}

/// Empties the directory `name` of the first level: files are removed, directories moved up beside it.
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

/// Some file systems do not tell kinds with the names.
fn kind(dir: &OwnedFd, name: &std::ffi::CStr, told: FileType) -> rustix::io::Result<FileType> {
    match told {
        FileType::Unknown => Ok(FileType::from_raw_mode(statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode)),
        told => Ok(told),
    }
}

/// Another process may remove the same tree.
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

    /// Directories inside each other, made the way a path never could.
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
        // The paths have 20,000 bytes; PATH_MAX is 4,096. Two of them, for names must not clash on the way up.
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

    /// The attack: links where a removal that follows them, at the top or below, would delete what is outside.
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
            return; // root may do everything
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
