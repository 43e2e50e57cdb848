//! The way that a path leads: through entries of directories and through links, each of which somebody has put there.

use super::FileLabels;
use crate::effect::label::LabelId;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat, statat};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// The key of a label: an inode, for one of its labels, or an entry of a directory. In halves, so that an entry of the table has
/// 12 bytes.
pub(super) type LabelKey = [u32; 2];

/// The kinds of labels of a directory's entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryLabel {
    /// The label of everybody who decided which file has the name, or that none has.
    Way,
    /// The label of everybody who replaced an entry of others.
    Displaced,
}

/// Levels of directories that are examined, at most.
pub(super) const LEVELS: usize = 128;

/// Links on the way of a path, at most; as on Linux.
const MAX_LINKS: usize = 40;

/// The flags for directories on the way. A link is an error.
pub(super) const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The target of a path.
#[derive(Debug, Default)]
pub(super) struct Way {
    /// The label of the entries and links on the way, without the last entry.
    pub(super) label: LabelId,
    pub(super) end: End,
}

#[derive(Debug, Default)]
pub(super) enum End {
    /// An entry, which may be missing.
    Entry(Entry),
    /// A directory that the path does not name by an entry, such as `.`.
    Dir(OwnedFd),
    /// The path has no target.
    #[default]
    Nowhere,
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) dir: OwnedFd,
    pub(super) name: OsString,
    pub(super) found: Option<Stat>,
}

impl Entry {
    /// Whether a process that writes a new file here need not learn what was here: nothing, or a file without another name.
    pub(super) fn is_replaceable(&self) -> bool {
        self.found.as_ref().is_none_or(|found| is_file(found) && found.st_nlink == 1)
    }
}

impl FileLabels {
    /// Walks a path that begins in a directory. A link at its end is followed if `follows` is set or the path ends with a slash.
    pub(super) fn walk(&self, dir: impl AsFd, path: &OsStr, follows: bool) -> Way {
        let mut way = Way::default();
        // A path that cannot be walked further has no target, but the label of the way so far.
        way.end = self.steps(dir.as_fd(), path, follows, &mut way.label).unwrap_or_default();
        way
    }

    fn steps(&self, base: BorrowedFd<'_>, path: &OsStr, follows: bool, label: &mut LabelId) -> io::Result<End> {
        let mut path = path.as_bytes();
        let mut follows = follows;
        while let Some(shorter) = path.strip_suffix(b"/").or_else(|| path.strip_suffix(b"/.")) {
            (path, follows) = (shorter, true);
        }
        let mut rest = parts(path);
        let mut dirs = vec![base.try_clone_to_owned()?];
        let mut links = 0;
        while let Some(part) = rest.pop() {
            if part == ".." {
                // Guests cannot leave a directory that was given to them in this way.
                if dirs.len() == 1 {
                    return Ok(End::Nowhere);
                }
                dirs.pop();
                continue;
            }
            let Some(dir) = dirs.last() else { return Ok(End::Nowhere) };
            let found = statat(dir, &part, AtFlags::SYMLINK_NOFOLLOW).ok();
            let is_link = found.as_ref().is_some_and(|found| kind(found) == FileType::Symlink);
            if let Some(found) = found.as_ref().filter(|_| is_link && (follows || !rest.is_empty())) {
                *label = label.join(self.of_slot(dir, &part)).join(self.get(content_key(found)));
                links += 1;
                let target = readlinkat(dir, &part, Vec::new())?.into_bytes();
                if links > MAX_LINKS || target.first() == Some(&b'/') {
                    return Ok(End::Nowhere);
                }
                follows |= target.ends_with(b"/") && rest.is_empty();
                rest.extend(parts(&target));
                continue;
            }
            if rest.is_empty() {
                let dir = dirs.pop().unwrap_or(base.try_clone_to_owned()?);
                return Ok(End::Entry(Entry { dir, name: part, found }));
            }
            *label = label.join(self.of_slot(dir, &part));
            let next = openat(dir, &part, DIRECTORY, Mode::empty())?;
            if dirs.len() > LEVELS {
                return Ok(End::Nowhere);
            }
            dirs.push(next);
        }
        Ok(dirs.pop().map_or(End::Nowhere, End::Dir))
    }
}

/// The names of a path, the last one first. `..` is not resolved.
fn parts(path: &[u8]) -> Vec<OsString> {
    let parts = path.split(|byte| *byte == b'/').filter(|part| !matches!(*part, b"" | b"."));
    parts.rev().map(|part| OsString::from_vec(part.to_vec())).collect()
}

pub(super) fn kind(found: &Stat) -> FileType {
    FileType::from_raw_mode(found.st_mode)
}

pub(super) fn is_file(found: &Stat) -> bool {
    kind(found) == FileType::RegularFile
}

/// The key for a file's bytes, a link's target, or a directory's times.
pub(super) fn content_key(found: &Stat) -> LabelKey {
    inode_key(found, false)
}

/// The key for a file's times and its number of names, or for the names that a directory has lost.
pub(super) fn other_key(found: &Stat) -> LabelKey {
    inode_key(found, true)
}

/// The device and the inode.
// The types differ between systems.
#[allow(clippy::useless_conversion, clippy::unnecessary_cast)]
pub(super) fn number(found: &Stat) -> (u64, u64) {
    (u64::try_from(found.st_dev).unwrap_or_default(), found.st_ino as u64)
}

fn inode_key(found: &Stat, other: bool) -> LabelKey {
    number_key(number(found), other)
}

pub(super) fn number_key((device, inode): (u64, u64), other: bool) -> LabelKey {
    // An odd number, so that two inodes of one device never become one.
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    halves(inode.wrapping_mul(2).wrapping_add(u64::from(other)).wrapping_add(device.wrapping_mul(SPREAD)))
}

pub(super) fn halves(key: u64) -> LabelKey {
    [(key >> 32) as u32, key as u32]
}

/// The attributes of an open file.
pub(super) fn stat_of(file: impl AsFd) -> io::Result<Stat> {
    Ok(fstat(file)?)
}
