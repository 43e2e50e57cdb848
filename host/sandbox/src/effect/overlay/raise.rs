//! Brings an entry into the upper layer before it changes: a directory as an empty one that extends the folder's, a file as a
//! copy.

use super::Overlay;
use super::lower::{DIRECTORY, is_dir, kind, missing, stat_at};
use super::mark::{COPY, LayerMark, ORIGIN, SHARED};
use super::walk::{LowerEntry, MergedDir, MergedEntry, Spot, last, shared_name};
use crate::effect::files::FileLabels;
use crate::effect::label::LabelId;
use crate::effect::undo::{Transaction, UndoRefusal};
use kiso_base::system::share_blocks;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, Stat, Timespec, Timestamps, fchmod, fstat, futimens, linkat, mkdirat, openat,
    renameat, symlinkat, unlinkat,
};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// The writer of the upper layer, with its quota, undo and labels.
pub(crate) trait LayerWriter {
    type Error: From<io::Error> + From<UndoRefusal>;
    /// Counts as about to be written until it is dropped.
    type Charge;

    /// Charges an entry with this many bytes.
    fn charge(&self, bytes: u64) -> Result<Self::Charge, Self::Error>;

    fn transaction(&self) -> Option<&Arc<Transaction>>;

    fn labels(&self) -> Option<&Arc<FileLabels>>;
}

impl Overlay {
    /// Opens the last of the directories in the upper layer. If it is missing there, creates it with its parents.
    pub(super) fn raise_dir<W: LayerWriter>(
        &self,
        dirs: &mut [MergedDir],
        writer: &W,
    ) -> Result<Arc<OwnedFd>, W::Error> {
        for at in 1..dirs.len() {
            if dirs[at].upper.is_some() {
                continue;
            }
            let name = dirs[at].name.clone();
            let (above, lower) = (upper(&dirs[at - 1])?, dirs[at].lower.clone().unwrap_or_default());
            let stat = self.lower.stat(&lower)?.filter(is_dir).ok_or_else(missing)?;
            self.remember(&lower, Some(&stat))?;
            let made = make_shadow(&above, &name, &stat, writer)?;
            dirs[at].upper = Some(Arc::new(made));
        }
        Ok(upper(dirs.last().ok_or_else(missing)?)?)
    }

    /// Brings an entry of the folder into the upper layer under its name: a directory as one that extends the folder's, a file as
    /// a copy, a link as a link. With `is_emptied`, the content of a file is not copied.
    pub(super) fn raise<W: LayerWriter>(&self, spot: &mut Spot, is_emptied: bool, writer: &W) -> Result<(), W::Error> {
        let Some((name, MergedEntry::Lower(entry))) = spot.entry.clone() else {
            return Ok(());
        };
        // A copy would not be hidden any more.
        if !is_emptied && kind(&entry.stat) == FileType::RegularFile && self.is_refused(&entry.path, &spot.path()) {
            return Err(io::Error::from(rustix::io::Errno::ACCESS).into());
        }
        let dir = self.raise_dir(&mut spot.dirs, writer)?;
        self.remember_state(&entry.path, Some(entry.original))?;
        match kind(&entry.stat) {
            FileType::Directory => {
                if entry.is_marked {
                    return Err(io::Error::other("a directory is named by a mark").into());
                }
                make_shadow(&dir, &name, &entry.stat, writer)?;
            }
            FileType::RegularFile => self.copy_file(&dir, &name, &entry, is_emptied, writer)?,
            FileType::Symlink => {
                let target = self.lower.read_link(&entry.path)?;
                if entry.is_marked {
                    remove(&dir, &name, writer)?;
                }
                let target = <OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(&target);
                make_link(&dir, &name, target, Some(&entry.stat), writer)?;
            }
            _ => return Err(io::Error::from(io::ErrorKind::PermissionDenied).into()),
        }
        let stat = stat_at(&dir, &name)?.ok_or_else(missing)?;
        spot.entry = Some((name, MergedEntry::Upper(stat)));
        match is_emptied {
            true => Ok(()),
            false => self.keep_name_label(spot, writer),
        }
    }

    /// Gives a name in the upper layer the label that it has in the lower one.
    pub(super) fn keep_name_label<W: LayerWriter>(&self, spot: &Spot, writer: &W) -> Result<(), W::Error> {
        let (Some(labels), Some((name, _))) = (writer.labels().filter(|_| self.is_shared()), &spot.entry) else {
            return Ok(());
        };
        let label = self.name_label(labels, last(&spot.dirs)?, name);
        if !label.is_ordinary() {
            let upper = upper(last(&spot.dirs)?)?;
            keep_times(&upper, || labels.naming(&upper, name, label)?.done())?;
        }
        Ok(())
    }

    fn copy_file<W: LayerWriter>(
        &self,
        dir: &OwnedFd,
        name: &OsStr,
        entry: &LowerEntry,
        is_emptied: bool,
        writer: &W,
    ) -> Result<(), W::Error> {
        let copy = OsStr::new(COPY);
        // A crash without a transaction may have left a copy.
        if stat_at(dir, copy)?.is_some() {
            unlinkat(dir, copy, AtFlags::empty()).map_err(io::Error::from)?;
        }
        let shared = match &entry.shared {
            Some(shared) => Some((self.shared_dir().ok_or_else(missing)?, shared.clone())),
            None => None,
        };
        let _charge = match &shared {
            Some(_) => writer.charge(0)?,
            None if is_emptied => writer.charge(0)?,
            None => writer.charge(u64::try_from(entry.stat.st_size).unwrap_or(0))?,
        };
        if let Some(work) = writer.transaction() {
            work.making(dir, copy)?;
        }
        match &shared {
            Some((from, shared)) => linkat(from, shared, dir, copy, AtFlags::empty()).map_err(io::Error::from)?,
            None => {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let to = openat(dir, copy, flags, Mode::RUSR | Mode::WUSR).map_err(io::Error::from)?;
                let to = File::from(to);
                if !is_emptied {
                    fill(&self.lower.open_file(&entry.path)?, &to)?;
                }
                put_attributes(&to, &entry.stat)?;
                if let Some(work) = writer.transaction() {
                    work.opened(&to);
                }
                if let Some(labels) = writer.labels() {
                    let label = if is_emptied { LabelId::default() } else { labels.of_stat(&entry.stat) };
                    labels.made(&to, label)?;
                }
                self.share(dir, &entry.stat, writer)?;
            }
        }
        if let Some(work) = writer.transaction() {
            work.moving((dir, copy), (dir, name))?;
        }
        keep_times(dir, || Ok(renameat(dir, copy, dir, name)?))?;
        Ok(())
    }

    /// The copy of a file with other names in the folder belongs to all of them.
    fn share<W: LayerWriter>(&self, dir: &OwnedFd, stat: &Stat, writer: &W) -> Result<(), W::Error> {
        let Some(name) = shared_name(stat) else { return Ok(()) };
        let shared = match self.shared_dir() {
            Some(shared) => shared,
            None => {
                let _charge = writer.charge(0)?;
                if let Some(work) = writer.transaction() {
                    work.making(&self.upper, OsStr::new(SHARED))?;
                }
                keep_times(&self.upper, || Ok(mkdirat(&self.upper, SHARED, Mode::RWXU)?))?;
                self.shared_dir().ok_or_else(missing)?
            }
        };
        let _charge = writer.charge(0)?;
        if let Some(work) = writer.transaction() {
            work.making(&shared, &name)?;
        }
        linkat(dir, COPY, &shared, &name, AtFlags::empty()).map_err(io::Error::from)?;
        Ok(())
    }
}

fn upper(dir: &MergedDir) -> io::Result<Arc<OwnedFd>> {
    dir.upper.clone().ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// Makes a directory in the upper layer that extends one of the folder, with its times.
fn make_shadow<W: LayerWriter>(dir: &OwnedFd, name: &OsStr, stat: &Stat, writer: &W) -> Result<OwnedFd, W::Error> {
    let _charge = writer.charge(0)?;
    if let Some(work) = writer.transaction() {
        work.making(dir, name)?;
    }
    keep_times(dir, || Ok(mkdirat(dir, name, Mode::RWXU)?))?;
    let made: OwnedFd = openat(dir, name, DIRECTORY, Mode::empty()).map_err(io::Error::from)?;
    if let Some(labels) = writer.labels() {
        labels.made(&made, labels.of_stat(stat))?;
    }
    put_attributes(&made, stat)?;
    Ok(made)
}

/// Makes a mark.
pub(super) fn make_mark<W: LayerWriter>(
    dir: &OwnedFd,
    name: &OsStr,
    mark: &LayerMark,
    writer: &W,
) -> Result<(), W::Error> {
    make_link(dir, name, &mark.target(), None, writer)
}

/// Makes a link, which may be a copy of another one.
fn make_link<W: LayerWriter>(
    dir: &OwnedFd,
    name: &OsStr,
    target: &OsStr,
    original: Option<&Stat>,
    writer: &W,
) -> Result<(), W::Error> {
    let _charge = writer.charge(0)?;
    if let Some(work) = writer.transaction() {
        work.making(dir, name)?;
    }
    keep_times(dir, || Ok(symlinkat(target, dir, name)?))?;
    if let Some(labels) = writer.labels() {
        labels.made_at(dir, name, original.map_or(LabelId::default(), |original| labels.of_stat(original)))?;
    }
    Ok(())
}

/// Removes a mark or a link.
pub(super) fn remove<W: LayerWriter>(dir: &OwnedFd, name: &OsStr, writer: &W) -> Result<(), W::Error> {
    use crate::effect::undo::RemovedEntry;
    let done = match writer.transaction() {
        Some(work) => keep_times(dir, || Ok(work.removing(dir, name)))??,
        None => RemovedEntry::Delete,
    };
    if done == RemovedEntry::Delete {
        keep_times(dir, || Ok(unlinkat(dir, name, AtFlags::empty())?))?;
    }
    Ok(())
}

/// Sets the directory of the folder that a directory of the upper layer extends.
pub(super) fn set_origin<W: LayerWriter>(dir: &OwnedFd, origin: &LayerMark, writer: &W) -> Result<(), W::Error> {
    let name = OsStr::new(ORIGIN);
    if LayerMark::read(dir, name)?.is_some() {
        remove(dir, name, writer)?;
    }
    make_mark(dir, name, origin, writer)
}

/// Changes of the layer's own entries must not change the directory's times.
fn keep_times<V>(dir: impl AsFd, change: impl FnOnce() -> io::Result<V>) -> io::Result<V> {
    let before = fstat(&dir)?;
    let done = change()?;
    put_times(dir, &before)?;
    Ok(done)
}

/// Gives a copy the permissions and times of the original. Its owner may always write to it.
fn put_attributes(to: impl AsFd, stat: &Stat) -> io::Result<()> {
    fchmod(&to, Mode::from_raw_mode(stat.st_mode & 0o7777) | owner_bits(stat))?;
    put_times(to, stat)
}

/// Permissions that every copy has for its owner.
pub(super) fn owner_bits(stat: &Stat) -> Mode {
    if is_dir(stat) { Mode::RWXU } else { Mode::RUSR | Mode::WUSR }
}

// The types differ between systems.
#[allow(clippy::useless_conversion, clippy::unnecessary_cast)]
fn put_times(to: impl AsFd, stat: &Stat) -> io::Result<()> {
    let time = |seconds, nanoseconds| Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
    let times = Timestamps {
        last_access: time(stat.st_atime as _, stat.st_atime_nsec as _),
        last_modification: time(stat.st_mtime as _, stat.st_mtime_nsec as _),
    };
    Ok(futimens(to, &times)?)
}

/// Copies the content of a file, or shares its blocks.
pub(super) fn fill(from: &File, to: &File) -> io::Result<()> {
    if !share_blocks(from, to) {
        let (mut reader, mut writer) = (from, to);
        io::copy(&mut reader, &mut writer)?;
    }
    Ok(())
}
