//! Code that `tar` and `unzip` share: where an entry of an archive may be written, and with which permissions.

use std::io;
use std::path::{Component, Path, PathBuf};

use command::permissions;

/// Permissions of a file that was just made.
const MADE: u32 = 0o644;

/// The path of an entry below the directory that is unpacked into, without its first components. Nothing if it leads
/// out of there, or is the directory itself.
pub fn inside(name: &Path, strip: usize) -> Option<PathBuf> {
    let mut path = PathBuf::new();
    for component in name.components() {
        match component {
            Component::Normal(part) => path.push(part),
            Component::CurDir | Component::RootDir => {}
            Component::ParentDir | Component::Prefix(_) => return None,
        }
    }
    let path: PathBuf = path.components().skip(strip).collect();
    (!path.as_os_str().is_empty()).then_some(path)
}

/// Whether a directory on the way to this path is a symbolic link, through which an entry could be written elsewhere.
pub fn through_link(base: &Path, path: &Path) -> bool {
    let mut at = base.to_owned();
    let parents = path.parent().into_iter().flat_map(Path::components);
    parents.into_iter().any(|component| {
        at.push(component);
        at.is_symlink()
    })
}

/// Gives a file that was just unpacked the permissions that it was packed with.
pub fn set_permissions(path: &Path, bits: u32) -> io::Result<()> {
    if bits & 0o777 == MADE { Ok(()) } else { permissions::set(path, bits & 0o777) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_stay_inside() {
        assert_eq!(inside(Path::new("./a/b"), 0), Some("a/b".into()));
        assert_eq!(inside(Path::new("/etc/passwd"), 0), Some("etc/passwd".into()));
        assert_eq!(inside(Path::new("a/b/c"), 2), Some("c".into()));
        assert_eq!(inside(Path::new("a/../../b"), 0), None);
        assert_eq!(inside(Path::new("a/"), 1), None);
    }
}
