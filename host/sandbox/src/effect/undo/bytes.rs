//! Paths below a session's directory, in the bytes of the file system.

use data_encoding::BASE64;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The place of the workspace in a session's directory.
const WORK: &[u8] = b"work";

/// The place of the changes to opened folders: `folders/KEY/upper`.
const FOLDERS: &[u8] = b"folders/";
const UPPER: &[u8] = b"/upper/";

/// The beginning of names that are reserved for the upper layer of a folder. Guests cannot use them.
const LAYER: &[u8] = b".kiso~";

/// The target of a mark for a deleted entry of the folder.
pub(crate) const DELETED: &[u8] = b"/.kiso/deleted";

/// Whether a name belongs to the upper layer of a folder and not to its user.
pub(crate) fn is_of_layer(name: &OsStr) -> bool {
    name.as_bytes().starts_with(LAYER)
}

/// A path below a session's directory, such as `work/a.csv`. Names in it are neither empty nor `.` nor `..`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionPath(Vec<u8>);

impl SessionPath {
    /// Makes it from a path below the directory of the session.
    pub fn new(path: &Path) -> Self {
        Self(path.as_os_str().as_bytes().to_vec())
    }

    /// The path of a file that a log keeps.
    pub fn kept(log: u64, number: u64) -> Self {
        Self(format!("undo/{log}/{number}").into_bytes())
    }

    pub fn join(&self, name: &OsStr) -> Self {
        let mut path = self.0.clone();
        path.push(b'/');
        path.extend_from_slice(name.as_bytes());
        Self(path)
    }

    pub fn names(&self) -> impl DoubleEndedIterator<Item = &OsStr> {
        self.0.split(|byte| *byte == b'/').map(OsStr::from_bytes)
    }

    /// The path and the directories that contain it.
    pub fn with_parents(&self) -> impl Iterator<Item = SessionPath> {
        let ends = self.0.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at).rev();
        std::iter::once(self.0.len()).chain(ends).map(|end| Self(self.0[..end].to_vec()))
    }

    pub fn is_below(&self, other: &Self) -> bool {
        self.0.strip_prefix(other.0.as_slice()).is_some_and(|rest| rest.first() == Some(&b'/'))
    }

    /// Whether a log keeps it.
    pub fn is_kept(&self) -> bool {
        self.0.starts_with(b"undo/")
    }

    /// Whether it is in the workspace, or in the changes to an opened folder.
    pub fn is_work(&self) -> bool {
        self.0.strip_prefix(WORK).is_some_and(|rest| rest.first() == Some(&b'/')) || self.in_folder().is_some()
    }

    /// The key of an opened folder, and the path below that.
    fn in_folder(&self) -> Option<(&[u8], &[u8])> {
        let rest = self.0.strip_prefix(FOLDERS)?;
        let end = rest.iter().position(|byte| *byte == b'/')?;
        let (key, below) = rest.split_at(end);
        Some((key, below.strip_prefix(UPPER)?))
    }

    /// Whether it is among the changes to an opened folder.
    pub fn is_of_folder(&self) -> bool {
        self.in_folder().is_some()
    }

    /// Whether its name is reserved for the layer of an opened folder.
    pub fn is_of_layer(&self) -> bool {
        self.in_folder().is_some() && self.names().any(is_of_layer)
    }

    pub fn as_path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.0))
    }
}

/// The path for people: below the workspace, or in an opened folder, with a placeholder for each byte that is not text.
impl fmt::Display for SessionPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((key, below)) = self.in_folder() {
            let at = String::from_utf8_lossy(key).replace("%2F", "/").replace("%25", "%");
            return write!(f, "/{at}/{}", String::from_utf8_lossy(below));
        }
        let path = self.0.strip_prefix(WORK).and_then(|rest| rest.strip_prefix(b"/")).unwrap_or(&self.0);
        f.write_str(&String::from_utf8_lossy(path))
    }
}

impl fmt::Debug for SessionPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(&self.0))
    }
}

/// Begins text that is not UTF-8; no path has this byte.
const ENCODED: char = '\0';

impl Serialize for SessionPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => serializer.serialize_str(&format!("{ENCODED}{}", BASE64.encode(&self.0))),
        }
    }
}

impl<'de> Deserialize<'de> for SessionPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match text.strip_prefix(ENCODED) {
            None => Ok(Self(text.into_bytes())),
            Some(encoded) => BASE64.decode(encoded.as_bytes()).map(Self).map_err(serde::de::Error::custom),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_written_and_read_whatever_its_bytes_are() {
        for bytes in [b"work/a".as_slice(), b"work/\xff\xfe/x", "work/ä \"\n".as_bytes()] {
            let path = SessionPath(bytes.to_vec());
            let text = serde_json::to_string(&path).unwrap();
            assert!(!text.contains('\n'), "{text}");
            assert_eq!(serde_json::from_str::<SessionPath>(&text).unwrap(), path);
        }
    }

    #[test]
    fn what_is_below_what_is_told_by_names() {
        let path = |text: &str| SessionPath(text.as_bytes().to_vec());
        assert!(path("work/a/b").is_below(&path("work/a")) && path("work/a").is_work());
        assert!(!path("work/ab").is_below(&path("work/a")) && !path("work/a").is_below(&path("work/a")));
        assert!(!path("work").is_work() && !path("workshop/a").is_work() && !SessionPath::kept(1, 2).is_work());
        assert_eq!(path("work/a/b").to_string(), "a/b");
        assert!(path("folders/srv%2Fa/upper/b").is_work() && !path("folders/srv%2Fa/bases").is_work());
        assert_eq!(path("folders/srv%2Fa/upper/b/c").to_string(), "/srv/a/b/c");
    }
}
