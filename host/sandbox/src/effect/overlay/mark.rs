//! Marks in the upper layer: links that no guest can make, because their target begins with a slash.
//!
//! A mark is an entry like any other for undo, labels and quotas. The names that begin with `.kiso~` are the layer's own.

use super::lower::stat_at;
use crate::effect::undo::DELETED;
use rustix::fs::{FileType, Stat, readlinkat};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// In a directory of the upper layer: the directory of the folder that it extends.
pub(super) const ORIGIN: &str = ".kiso~origin";

/// In the root of the upper layer: copies of files that have several names in the folder, by device and inode.
pub(super) const SHARED: &str = ".kiso~shared";

/// The name of a file while it is copied.
pub(super) const COPY: &str = ".kiso~copy";

const NEW: &[u8] = b"/.kiso/new";
const FROM: &[u8] = b"/.kiso/from/";

/// The longest path of a mark. Linux takes links of up to 4,095 bytes.
const MAX_PATH: usize = 3_072;

/// The meaning of a mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LayerMark {
    /// The folder's entry of this name is deleted.
    Deleted,
    /// For an [`ORIGIN`]: the directory extends no directory of the folder.
    New,
    /// The file is the one at this path of the folder; for an [`ORIGIN`], the directory is.
    From(PathBuf),
}

impl LayerMark {
    /// The mark for a path of the folder. `None` where the path is too long for one.
    pub(super) fn from_path(path: &Path) -> Option<Self> {
        (path.as_os_str().len() <= MAX_PATH).then(|| Self::From(path.to_owned()))
    }

    pub(super) fn target(&self) -> OsString {
        match self {
            Self::Deleted => OsStr::from_bytes(DELETED).to_owned(),
            Self::New => OsStr::from_bytes(NEW).to_owned(),
            Self::From(path) => OsString::from_vec([FROM, path.as_os_str().as_bytes()].concat()),
        }
    }

    fn parse(target: &[u8]) -> Option<Self> {
        match target {
            DELETED => Some(Self::Deleted),
            NEW => Some(Self::New),
            _ => target.strip_prefix(FROM).map(|path| Self::From(PathBuf::from(OsStr::from_bytes(path)))),
        }
    }

    /// Reads the mark of this name. `None` if the entry is missing or is not a mark.
    pub(super) fn read(dir: impl AsFd, name: &OsStr) -> io::Result<Option<Self>> {
        match readlinkat(dir, name, Vec::new()) {
            Ok(target) => Ok(Self::parse(target.as_bytes())),
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::INVAL | rustix::io::Errno::NOTDIR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// An entry of the upper layer.
#[derive(Debug)]
pub(super) enum UpperEntry {
    Missing,
    Marked(LayerMark),
    Plain(Stat),
}

impl UpperEntry {
    pub(super) fn find(dir: impl AsFd, name: &OsStr) -> io::Result<Self> {
        let Some(found) = stat_at(&dir, name)? else { return Ok(Self::Missing) };
        if FileType::from_raw_mode(found.st_mode) == FileType::Symlink
            && let Some(mark) = LayerMark::read(&dir, name)?
        {
            return Ok(Self::Marked(mark));
        }
        Ok(Self::Plain(found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_as_it_was_written() {
        let temp = tempfile::tempdir().unwrap();
        let dir = std::fs::File::open(temp.path()).unwrap();
        for mark in [
            LayerMark::Deleted,
            LayerMark::New,
            LayerMark::From(PathBuf::from("a/b c")),
            LayerMark::From(PathBuf::new()),
        ] {
            let path = temp.path().join("x");
            std::os::unix::fs::symlink(mark.target(), &path).unwrap();
            assert_eq!(LayerMark::read(&dir, OsStr::new("x")).unwrap(), Some(mark));
            std::fs::remove_file(path).unwrap();
        }
        std::os::unix::fs::symlink("a/b", temp.path().join("l")).unwrap();
        std::fs::write(temp.path().join("f"), "").unwrap();
        for name in ["l", "f", "none"] {
            assert_eq!(LayerMark::read(&dir, OsStr::new(name)).unwrap(), None, "{name}");
        }
        assert_eq!(LayerMark::from_path(Path::new(&"a".repeat(4_000))), None);
    }
}
