//! A session's directory, accessed without following links: guests have filled the workspace in it.

use super::bytes::SessionPath;
use super::log::{EntryLabels, Look};
use super::shared::SessionAcceptances;
use crate::effect::files::FileLabels;
use crate::effect::label::LabelId;
use kiso_base::system::path_of;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, fchmod, fstat, mkdirat, open, openat, statat};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The directory of a session.
#[derive(Debug)]
pub struct Tree {
    root: OwnedFd,
    path: PathBuf,
    /// The file system that it is on.
    pub device: u64,
    /// The labels of its files.
    pub labels: Arc<FileLabels>,
    /// The changes that were accepted into the shared files.
    pub shared: SessionAcceptances,
}

/// The flags for opening directories. A link is an error.
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A name in an open directory.
#[derive(Debug)]
pub struct DirSlot<'a> {
    pub dir: OwnedFd,
    pub name: &'a OsStr,
}

impl Tree {
    pub fn open(path: &Path, shared: SessionAcceptances) -> io::Result<Self> {
        let root = open(path, DIRECTORY, Mode::empty())?;
        #[allow(clippy::useless_conversion, reason = "it is no u64 everywhere")]
        let device = u64::try_from(fstat(&root)?.st_dev).unwrap_or_default();
        Ok(Self { root, path: path.to_owned(), device, labels: FileLabels::of_dir(path), shared })
    }

    /// The directory that holds the path. No part of it may be a link.
    pub fn slot<'a>(&self, at: &'a SessionPath) -> io::Result<DirSlot<'a>> {
        let mut dir = self.root.try_clone()?;
        let mut names = at.names();
        let name = names.next_back().unwrap_or_default();
        for part in names {
            dir = openat(&dir, part, DIRECTORY, Mode::empty())?;
        }
        Ok(DirSlot { dir, name })
    }

    /// Like [`Tree::slot`], but makes missing directories, each with the label that its name had.
    pub fn slot_or_make<'a>(&self, at: &'a SessionPath, entries: &[EntryLabels]) -> io::Result<DirSlot<'a>> {
        let mut above: Vec<SessionPath> = at.with_parents().skip(1).collect();
        above.reverse();
        for dir in above {
            let slot = self.slot(&dir)?;
            if slot.look()? == Look::Nothing {
                self.label_entry(&slot, &dir, entries, false)?;
                mkdirat(&slot.dir, slot.name, Mode::from_raw_mode(0o755))?;
                self.labels.made_at(&slot.dir, slot.name, LabelId::default())?;
            }
        }
        self.slot(at)
    }

    /// Restores the labels of an entry: alone, or joined with its present ones.
    pub fn label_entry(
        &self,
        slot: &DirSlot<'_>,
        at: &SessionPath,
        had: &[EntryLabels],
        alone: bool,
    ) -> io::Result<()> {
        let had = had.iter().find(|had| had.at == *at);
        let had = had.map_or_else(Default::default, |had| {
            [LabelId::from_label(&had.label), LabelId::from_label(&had.displaced)]
        });
        let now = self.labels.entry_labels(&slot.dir, slot.name);
        let labels = if alone { had } else { [had[0].join(now[0]), had[1].join(now[1])] };
        self.labels.put_back_entry(&slot.dir, slot.name, labels)
    }

    /// Returns the state of a path.
    pub fn look(&self, at: &SessionPath) -> io::Result<Look> {
        match self.slot(at) {
            Ok(slot) => slot.look(),
            Err(error) if is_nothing(&error) => Ok(Look::Nothing),
            Err(error) => Err(error),
        }
    }

    /// Opens a regular file.
    pub fn open_file(&self, at: &SessionPath, flags: OFlags) -> io::Result<File> {
        let slot = self.slot(at)?;
        slot.open_file(flags)
    }

    /// Returns the paths of a directory's entries.
    pub fn names(&self, at: &SessionPath) -> io::Result<Vec<SessionPath>> {
        let slot = self.slot(at)?;
        let names = names_in(&open_dir(&slot.dir, slot.name)?)?;
        Ok(names.iter().map(|name| at.join(name)).collect())
    }

    /// The path of an open file in this directory; `None` if it is elsewhere.
    pub fn path_of(&self, fd: impl AsFd) -> io::Result<Option<SessionPath>> {
        let path = path_of(fd)?;
        Ok(path.strip_prefix(&self.path).ok().map(SessionPath::new))
    }
}

impl DirSlot<'_> {
    pub fn look(&self) -> io::Result<Look> {
        look(&self.dir, self.name)
    }

    /// Opens a regular file without blocking.
    pub fn open_file(&self, flags: OFlags) -> io::Result<File> {
        open_file(&self.dir, self.name, flags)
    }
}

/// Opens a directory. A link is an error.
pub(super) fn open_dir(dir: impl AsFd, name: &OsStr) -> io::Result<OwnedFd> {
    Ok(openat(dir, name, DIRECTORY, Mode::empty())?)
}

/// The names in a directory.
pub(super) fn names_in(dir: &OwnedFd) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in rustix::fs::Dir::read_from(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(OsStr::from_bytes(name).to_owned());
        }
    }
    Ok(names)
}

/// Opens a regular file without blocking. A link is an error.
pub(super) fn open_file(dir: impl AsFd, name: &OsStr, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(dir, name, flags, Mode::empty())?);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// Returns the state of the entry of this name.
pub(super) fn look(dir: impl AsFd, name: &OsStr) -> io::Result<Look> {
    let stat = match statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(error) => {
            let error = error.into();
            return if is_nothing(&error) { Ok(Look::Nothing) } else { Err(error) };
        }
    };
    // The types differ between systems.
    #[allow(clippy::useless_conversion)]
    let links = u64::from(stat.st_nlink);
    #[allow(clippy::useless_conversion)]
    let (inode, mode) = (stat.st_ino, u32::from(stat.st_mode) & 0o7777);
    Ok(match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => Look::Dir { inode, mode },
        FileType::RegularFile => {
            let modified = (stat.st_mtime as i64).wrapping_mul(1_000_000_000).wrapping_add(stat.st_mtime_nsec as i64);
            let bytes = u64::try_from(stat.st_size).unwrap_or(0);
            Look::File { inode, bytes, modified, mode, links }
        }
        _ => Look::Other { inode },
    })
}

/// Makes a directory with this mode, whatever the process's mask is.
pub(super) fn make_dir(slot: &DirSlot<'_>, mode: u32) -> io::Result<()> {
    mkdirat(&slot.dir, slot.name, Mode::from_raw_mode(0o700))?;
    let made = openat(&slot.dir, slot.name, DIRECTORY, Mode::empty())?;
    // 16 bits on some systems, 32 on others.
    #[allow(clippy::useless_conversion)]
    let mode = Mode::from_raw_mode(mode.try_into().unwrap_or_default());
    Ok(fchmod(&made, mode)?)
}

/// Whether an error says that the entry, or a directory on the way to it, does not exist.
pub(super) fn is_nothing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        || error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}
