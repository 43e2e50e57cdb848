//! The steps of an acceptance, and the new files beside the folder.

use super::super::Overlay;
use super::super::base::FileState;
use super::super::compare::has_mode;
use super::super::difference::{EntryKind, FolderChange, FolderChangeKind, FolderDifference};
use super::super::lower::{DIRECTORY, kind};
use super::super::raise::fill;
use super::super::walk::{SeenLabels, last};
use super::journal::number;
use super::step::{AcceptStep, staged_name};
use crate::effect::undo::SessionPath;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, fchmod, fchown, fstat, openat, symlinkat};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

impl Overlay {
    /// The steps of the changes, with the new files in the staging directory.
    pub(super) fn prepare(
        &self,
        chosen: &[&FolderChange],
        difference: &FolderDifference,
        stage: &Path,
    ) -> io::Result<Vec<AcceptStep>> {
        let stage_dir = rustix::fs::open(stage, DIRECTORY, Mode::empty())?;
        let mut next = 0;
        let mut number = || {
            next += 1;
            next
        };
        let mut steps = Vec::new();
        let mut moves: Vec<(&Path, &Path)> =
            chosen.iter().filter_map(|change| Some((change.moved_from()?, change.path.as_path()))).collect();
        // A file below a directory that also moves is moved first.
        moves.sort_by_key(|(from, _)| std::cmp::Reverse(from.iter().count()));
        let mut staged = BTreeMap::new();
        for (from, to) in moves {
            let before = self.lower.stat(from)?.ok_or(io::ErrorKind::NotFound)?;
            let number = number();
            staged.insert(to, (number, self::number(before.st_ino)));
            let before = FileState::from_stat(&before);
            steps.push(AcceptStep::TakeOut { from: SessionPath::new(from), staged: number, before });
        }
        // Copies of one file of the upper layer become one file in the folder.
        let mut copies: BTreeMap<u64, u64> = BTreeMap::new();
        for change in chosen {
            let path = SessionPath::new(&change.path);
            match (&change.kind, &change.after) {
                (FolderChangeKind::Deleted, _) => {
                    let before = self.state_of(change)?;
                    steps.push(AcceptStep::Remove { path, kept: number(), before });
                }
                (FolderChangeKind::Moved(_), _) => {
                    if let Some((staged, inode)) = staged.get(change.path.as_path()) {
                        steps.push(AcceptStep::Place { staged: *staged, path, inode: *inode });
                    }
                }
                (_, Some(after)) if after.is_dir() => steps.push(AcceptStep::MakeDir { path, mode: after.mode }),
                (_, Some(after)) => {
                    let new = number();
                    let is_whole = change.part.is_none();
                    let first = copies.get(&after.inode).copied().filter(|_| after.kind == EntryKind::File && is_whole);
                    let linked = match (first, difference.unchanged.get(&after.inode).filter(|_| is_whole)) {
                        (Some(first), _) => Some(link(&stage_dir, first, new)?),
                        // If the file system has no links, the file is copied.
                        (None, Some(path)) => self.link_existing(path, &stage_dir, new).ok(),
                        (None, None) => None,
                    };
                    let inode = match linked {
                        Some(inode) => inode,
                        None => self.stage_file(change, &stage_dir, new)?,
                    };
                    if is_whole {
                        copies.entry(after.inode).or_insert(new);
                    }
                    let before = match change.before {
                        Some(_) => Some(self.state_of(change)?),
                        None => None,
                    };
                    steps.push(AcceptStep::Put { path, new, inode, kept: number(), before, is_part: !is_whole });
                }
                (_, None) => {}
            }
        }
        File::from(stage_dir).sync_all()?;
        Ok(steps)
    }

    /// Gives a file of the folder a second name in the staging directory. Returns its inode.
    fn link_existing(&self, path: &Path, stage: &OwnedFd, new: u64) -> io::Result<u64> {
        let dir = self.lower.open_dir(path.parent().unwrap_or(Path::new("")))?;
        let name = path.file_name().unwrap_or_default();
        rustix::fs::linkat(&dir, name, stage, staged_name(new), AtFlags::empty())?;
        Ok(number(rustix::fs::statat(stage, staged_name(new), AtFlags::SYMLINK_NOFOLLOW)?.st_ino))
    }

    /// The folder's entry before a change.
    fn before(&self, change: &FolderChange) -> io::Result<Option<Stat>> {
        change.lower.as_deref().map_or(Ok(None), |lower| self.lower.stat(lower))
    }

    fn state_of(&self, change: &FolderChange) -> io::Result<FileState> {
        let stat = self.before(change)?.ok_or(io::ErrorKind::NotFound)?;
        Ok(FileState::from_stat(&stat))
    }

    /// Copies a file or link of the upper layer into the staging directory. Returns its inode there.
    fn stage_file(&self, change: &FolderChange, stage: &OwnedFd, new: u64) -> io::Result<u64> {
        let spot = self.walk(Path::new(""), change.path.as_os_str(), false, &mut SeenLabels::new(None))?;
        let name = staged_name(new);
        let Some((entry, found)) = &spot.entry else { return Err(io::ErrorKind::NotFound.into()) };
        if found.stat().is_some_and(|stat| kind(stat) == FileType::Symlink) {
            let target = self.read_link(last(&spot.dirs)?, entry, found)?;
            symlinkat(OsStr::from_bytes(&target), stage, &name)?;
            let made = rustix::fs::statat(stage, &name, AtFlags::SYMLINK_NOFOLLOW)?;
            return Ok(number(made.st_ino));
        }
        let from = self.open_found(&spot)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let to = File::from(openat(stage, &name, flags, Mode::RUSR | Mode::WUSR)?);
        match &change.part {
            Some(text) => io::Write::write_all(&mut &to, text.as_bytes())?,
            None => fill(&from, &to)?,
        }
        let copy = fstat(&from)?;
        self.take_over(&to, &copy, self.before(change)?.as_ref(), change)?;
        to.sync_all()?;
        Ok(number(fstat(&to)?.st_ino))
    }

    /// Gives a new file the owner, the permissions and the extended attributes of the one that it replaces, and its own time.
    fn take_over(&self, to: &File, copy: &Stat, before: Option<&Stat>, change: &FolderChange) -> io::Result<()> {
        let mut mode = copy.st_mode;
        if let Some(before) = before {
            let made = fstat(to)?;
            if (made.st_uid, made.st_gid) != (before.st_uid, before.st_gid) {
                let (user, group) =
                    (rustix::fs::Uid::from_raw(before.st_uid), rustix::fs::Gid::from_raw(before.st_gid));
                // Only an administrator gives files away; the group may still be possible.
                if fchown(to, Some(user), Some(group)).is_err() {
                    let _ = fchown(to, None, Some(group));
                }
            }
            if has_mode(copy, before) || change.part.is_some() {
                mode = before.st_mode;
            }
            if let Ok(old) = self.open_before(change) {
                copy_attributes(&old, to);
            }
        }
        fchmod(to, Mode::from_raw_mode(mode & 0o7777))?;
        let modified = std::time::UNIX_EPOCH
            + std::time::Duration::new(
                u64::try_from(copy.st_mtime).unwrap_or(0),
                u32::try_from(copy.st_mtime_nsec).unwrap_or(0),
            );
        to.set_modified(modified)
    }
}

/// Gives a staged file a second name. Returns its inode.
fn link(stage: &OwnedFd, first: u64, new: u64) -> io::Result<u64> {
    rustix::fs::linkat(stage, staged_name(first), stage, staged_name(new), AtFlags::empty())?;
    Ok(number(rustix::fs::statat(stage, staged_name(new), AtFlags::SYMLINK_NOFOLLOW)?.st_ino))
}

/// Copies extended attributes. Those that the file system refuses are left out.
fn copy_attributes(from: &File, to: &File) {
    use rustix::fs::{XattrFlags, fgetxattr, flistxattr, fsetxattr};
    const MOST: usize = 64 << 10;
    let mut names = vec![0; MOST];
    let Ok(length) = flistxattr(from, &mut names[..]) else { return };
    for name in names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let name = OsStr::from_bytes(name);
        let mut value = vec![0; MOST];
        if let Ok(length) = fgetxattr(from, name, &mut value[..]) {
            let _ = fsetxattr(to, name, &value[..length], XattrFlags::empty());
        }
    }
}
