//! Detects whether a file has changed since it was read.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// The properties of a file that change with its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileVersion {
    inode: u64,
    bytes: u64,
    /// The time of its last change, in seconds and nanoseconds. Unlike the time of modification, nobody can set it.
    changed: (i64, i64),
}

impl FileVersion {
    /// Systems count time in ticks of some milliseconds, so a file that was changed just now may change again within the same
    /// tick.
    const SETTLED: Duration = Duration::from_millis(100);

    /// Returns `None` if the file does not exist, or if it was changed so recently that another change could go unnoticed. Call
    /// it before you read the file: a file that takes its place meanwhile has another version.
    pub(super) fn read(path: &Path) -> Option<FileVersion> {
        let found = std::fs::metadata(path).ok()?;
        let (seconds, nanos) = (found.ctime(), found.ctime_nsec());
        let changed = Duration::new(u64::try_from(seconds).ok()?, u32::try_from(nanos).ok()?);
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?;
        let version = FileVersion { inode: found.ino(), bytes: found.len(), changed: (seconds, nanos) };
        now.checked_sub(changed).filter(|age| *age >= Self::SETTLED).map(|_| version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_changed_is_another_version_however_soon() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("record");
        assert_eq!(FileVersion::read(&path), None);
        let settled = |text: &str| {
            std::fs::write(&path, text).unwrap();
            loop {
                match FileVersion::read(&path) {
                    Some(version) => return version,
                    None => std::thread::sleep(Duration::from_millis(5)),
                }
            }
        };
        let (one, other) = (settled("one"), settled("two"));
        assert_eq!(FileVersion::read(&path), Some(other));
        assert_ne!(one, other, "of the same size");
        let beside = dir.path().join("beside");
        std::fs::write(&beside, "six").unwrap();
        std::fs::rename(&beside, &path).unwrap();
        assert_ne!(FileVersion::read(&path), Some(other));
    }
}
