//! Operations on a merged tree. Each has two halves: the first returns the place in the upper layer, and the second completes the
//! operation there.
//!
//! The caller holds the session's structure lock for everything that changes something. Between the two halves it does the operation itself,
//! on the upper layer, as on every other directory of the session.

use super::Overlay;
use super::lower::{DIRECTORY, is_dir, kind, missing, stat_at};
use super::mark::{LayerMark, ORIGIN, UpperEntry};
use super::raise::{LayerWriter, make_mark, remove};
use super::walk::{LowerEntry, MergedDir, MergedEntry, SeenLabels, Spot, last};
use crate::effect::files::FileLabels;
use crate::effect::label::LabelId;
use crate::effect::undo::is_of_layer;
use rustix::fs::{FileType, Mode, OFlags, openat};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A path below a directory that a guest has open.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GuestPath<'a> {
    /// The path of that directory in the merged tree.
    pub base: &'a Path,
    pub path: &'a OsStr,
    /// Whether a link at the end is followed.
    pub follows: bool,
}

/// An entry that is about to be read.
#[derive(Debug)]
pub(crate) struct ReadSlot {
    /// The directory that has it, in one of the layers.
    pub dir: OwnedFd,
    /// `.` for the directory itself.
    pub name: OsString,
    pub is_upper: bool,
}

/// A name in the upper layer that is about to change.
#[derive(Debug)]
pub(crate) struct WriteSlot {
    pub dir: OwnedFd,
    pub name: OsString,
    /// Whether the upper layer has the entry. Otherwise the folder has it, or it is missing.
    pub is_upper: bool,
    /// The folder's path of this name.
    natural: Option<PathBuf>,
    /// Whether a mark was removed that hid the folder's entry.
    pub(super) was_deleted: bool,
}

/// The mode in which a file is opened.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileAccess {
    pub writes: bool,
    pub makes: bool,
    pub is_first: bool,
    pub empties: bool,
}

/// The place where a file or directory is opened.
#[derive(Debug)]
pub(super) enum OpenSlot {
    Read(ReadSlot),
    Write(WriteSlot),
}

impl Overlay {
    /// Finds an entry. Fails if it is missing. `label` gets the labels on the way, and that of the missing name.
    pub(crate) fn look(
        &self,
        at: GuestPath<'_>,
        labels: Option<&FileLabels>,
        label: &mut LabelId,
    ) -> io::Result<ReadSlot> {
        let mut seen = SeenLabels::new(labels);
        let spot = self.walk(at.base, at.path, at.follows, &mut seen);
        *label = label.join(seen.label);
        self.read_slot(&spot?, labels, label)
    }

    fn read_slot(&self, spot: &Spot, labels: Option<&FileLabels>, label: &mut LabelId) -> io::Result<ReadSlot> {
        let dir = last(&spot.dirs)?;
        let Some((name, found)) = &spot.entry else {
            let (dir, is_upper) = match (&dir.upper, &dir.lower) {
                (Some(upper), _) => (upper.try_clone()?, true),
                (None, Some(lower)) => (self.lower.open_dir(lower)?, false),
                (None, None) => return Err(io::ErrorKind::NotFound.into()),
            };
            return Ok(ReadSlot { dir, name: OsString::from("."), is_upper });
        };
        match found {
            MergedEntry::Upper(_) => Ok(ReadSlot { dir: upper(dir)?.try_clone()?, name: name.clone(), is_upper: true }),
            MergedEntry::Lower(entry) => {
                // The author of the mark chose the file.
                if let Some(labels) = labels {
                    *label = label.join(self.name_label(labels, dir, name));
                }
                self.lower_slot(entry)
            }
            MergedEntry::Nothing { .. } => {
                if let Some(labels) = labels {
                    *label = label.join(self.name_label(labels, dir, name));
                }
                Err(io::ErrorKind::NotFound.into())
            }
        }
    }

    /// Opens a file that a walk has found.
    pub(super) fn open_found(&self, spot: &Spot) -> io::Result<File> {
        let slot = self.read_slot(spot, None, &mut LabelId::default())?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(openat(&slot.dir, &slot.name, flags, Mode::empty())?);
        match file.metadata()?.is_file() {
            true => Ok(file),
            false => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    fn lower_slot(&self, entry: &LowerEntry) -> io::Result<ReadSlot> {
        if let Some(name) = &entry.shared
            && let Some(dir) = self.shared_dir()
        {
            return Ok(ReadSlot { dir, name: name.clone(), is_upper: true });
        }
        let dir = match &entry.dir {
            Some(opened) => opened.try_clone()?,
            None => self.lower.open_dir(entry.path.parent().unwrap_or(Path::new("")))?,
        };
        Ok(ReadSlot { dir, name: entry.path.file_name().unwrap_or(OsStr::new(".")).to_owned(), is_upper: false })
    }

    /// The place where a file or directory is opened. A file that is to be written is in the upper layer afterwards.
    pub(super) fn open_slot<W: LayerWriter>(
        &self,
        at: GuestPath<'_>,
        access: FileAccess,
        writer: &W,
        label: &mut LabelId,
    ) -> Result<OpenSlot, W::Error> {
        let mut spot = self.seek(at, writer, label)?;
        // A process that makes a file in any case learns nothing about an earlier one.
        let is_blind = access.makes && access.empties && !access.is_first;
        if !is_blind {
            self.learn(&spot, writer, label)?;
        }
        let labels = writer.labels().cloned();
        let Some((name, found)) = spot.entry.clone() else {
            return Ok(OpenSlot::Read(self.read_slot(&spot, labels.as_deref(), label)?));
        };
        match &found {
            MergedEntry::Nothing { .. } if access.makes => Ok(OpenSlot::Write(self.free_slot(&mut spot, writer)?)),
            MergedEntry::Lower(_) if access.makes && access.is_first => Err(errno(Errno::EXIST)),
            MergedEntry::Lower(entry) if is_dir(&entry.stat) => {
                // A handle of the folder's directory must be found again by its path.
                if entry.path != spot.path() || entry.is_marked {
                    self.raise(&mut spot, false, writer)?;
                }
                Ok(OpenSlot::Read(self.read_slot(&spot, labels.as_deref(), label)?))
            }
            MergedEntry::Lower(entry) => {
                if !access.empties && self.is_refused(&entry.path, &spot.path()) {
                    return Err(errno(Errno::ACCESS));
                }
                if !access.writes {
                    return Ok(OpenSlot::Read(self.read_slot(&spot, labels.as_deref(), label)?));
                }
                if kind(&entry.stat) != FileType::RegularFile {
                    return Err(errno(Errno::PERM));
                }
                self.raise(&mut spot, access.empties, writer)?;
                if access.empties && !is_blind {
                    self.keep_name_label(&spot, writer)?;
                }
                Ok(OpenSlot::Write(self.slot(&spot, &name, true)?))
            }
            MergedEntry::Upper(_) => Ok(OpenSlot::Write(self.slot(&spot, &name, true)?)),
            MergedEntry::Nothing { .. } => Err(missing().into()),
        }
    }

    /// The place of a new directory, link or name.
    pub(super) fn make_slot<W: LayerWriter>(
        &self,
        at: GuestPath<'_>,
        writer: &W,
        label: &mut LabelId,
    ) -> Result<WriteSlot, W::Error> {
        let mut spot = self.seek(at, writer, label)?;
        self.learn(&spot, writer, label)?;
        match &spot.entry {
            Some((_, MergedEntry::Nothing { .. })) => self.free_slot(&mut spot, writer),
            // The caller finds out that it exists.
            Some((name, MergedEntry::Upper(_))) => Ok(self.slot(&spot, &name.clone(), true)?),
            _ => Err(errno(Errno::EXIST)),
        }
    }

    /// Completes or cancels a new entry.
    pub(super) fn made<W: LayerWriter>(&self, slot: &WriteSlot, is_made: bool, writer: &W) -> Result<(), W::Error> {
        match is_made {
            true => {
                let is_dir = stat_at(&slot.dir, &slot.name)?.is_some_and(|found| is_dir(&found));
                if is_dir {
                    let dir: OwnedFd =
                        openat(&slot.dir, &slot.name, DIRECTORY, Mode::empty()).map_err(io::Error::from)?;
                    if LayerMark::read(&dir, OsStr::new(ORIGIN))?.is_none() {
                        make_mark(&dir, OsStr::new(ORIGIN), &LayerMark::New, writer)?;
                    }
                }
                Ok(())
            }
            false if slot.was_deleted && stat_at(&slot.dir, &slot.name)?.is_none() => {
                make_mark(&slot.dir, &slot.name, &LayerMark::Deleted, writer)
            }
            false => Ok(()),
        }
    }

    /// The place of an entry in the upper layer whose times or permissions are about to be set.
    pub(crate) fn change<W: LayerWriter>(
        &self,
        at: GuestPath<'_>,
        writer: &W,
        label: &mut LabelId,
    ) -> Result<WriteSlot, W::Error> {
        let mut spot = self.seek(at, writer, label)?;
        self.learn(&spot, writer, label)?;
        self.raise(&mut spot, false, writer)?;
        let Some((name, found)) = spot.entry.clone() else {
            let dir = self.raise_dir(&mut spot.dirs, writer)?;
            return Ok(WriteSlot {
                dir: dir.try_clone()?,
                name: OsString::from("."),
                is_upper: true,
                natural: None,
                was_deleted: false,
            });
        };
        match found {
            MergedEntry::Nothing { .. } => Err(missing().into()),
            _ => Ok(self.slot(&spot, &name, true)?),
        }
    }

    /// The place of a file or link to delete. If it is in the upper layer, the caller deletes it there.
    pub(crate) fn unlink<W: LayerWriter>(
        &self,
        at: GuestPath<'_>,
        writer: &W,
        label: &mut LabelId,
    ) -> Result<WriteSlot, W::Error> {
        let (mut spot, name, found) = self.seek_entry(at, Errno::ISDIR, writer, label)?;
        if found.is_dir() {
            return Err(errno(Errno::ISDIR));
        }
        self.raise_dir(&mut spot.dirs, writer)?;
        let is_upper = matches!(found, MergedEntry::Upper(_));
        Ok(self.slot(&spot, &name, is_upper)?)
    }

    /// The place of an empty directory to delete. If it is in the upper layer, the caller deletes it there.
    pub(crate) fn remove_dir<W: LayerWriter>(
        &self,
        at: GuestPath<'_>,
        writer: &W,
        label: &mut LabelId,
    ) -> Result<WriteSlot, W::Error> {
        let (mut spot, name, found) = self.seek_entry(at, Errno::INVAL, writer, label)?;
        if !found.is_dir() {
            return Err(errno(Errno::NOTDIR));
        }
        self.empty(&spot.dirs, &name, (writer, label))?;
        self.raise_dir(&mut spot.dirs, writer)?;
        Ok(self.slot(&spot, &name, matches!(found, MergedEntry::Upper(_)))?)
    }

    /// The caller has deleted an entry, or it must be hidden now.
    pub(crate) fn removed<W: LayerWriter>(&self, slot: &WriteSlot, writer: &W) -> Result<(), W::Error> {
        if !slot.is_upper && matches!(UpperEntry::find(&slot.dir, &slot.name)?, UpperEntry::Marked(..)) {
            remove(&slot.dir, &slot.name, writer)?;
        }
        if let Some(natural) = &slot.natural
            && let Some(stat) = self.lower.stat(natural)?
        {
            self.remember(natural, Some(&stat))?;
            make_mark(&slot.dir, &slot.name, &LayerMark::Deleted, writer)?;
        }
        Ok(())
    }

    /// The names in a directory, with the kinds of the entries.
    pub(crate) fn names(&self, base: &Path) -> io::Result<BTreeMap<OsString, FileType>> {
        let spot = self.walk(base, OsStr::new("."), false, &mut SeenLabels::new(None))?;
        self.names_of(last(&spot.dirs)?)
    }

    /// Opens a directory, in the upper layer if it exists there.
    pub(crate) fn open_dir(&self, path: &Path) -> io::Result<OwnedFd> {
        let spot = self.walk(path, OsStr::new("."), false, &mut SeenLabels::new(None))?;
        Ok(self.read_slot(&spot, None, &mut LabelId::default())?.dir)
    }

    /// The label of the names in a directory.
    pub(crate) fn label_of_names(&self, base: &Path, labels: &FileLabels) -> io::Result<LabelId> {
        let spot = self.walk(base, OsStr::new("."), false, &mut SeenLabels::new(None))?;
        Ok(self.names_label(labels, last(&spot.dirs)?))
    }

    pub(super) fn names_of(&self, dir: &MergedDir) -> io::Result<BTreeMap<OsString, FileType>> {
        let mut names = BTreeMap::new();
        if let Some(lower) = &dir.lower {
            for entry in rustix::fs::Dir::read_from(self.lower.open_dir(lower)?)? {
                let entry = entry?;
                let name = OsStr::from_bytes(entry.file_name().to_bytes());
                if matches!(name.as_bytes(), b"." | b"..") || is_of_layer(name) {
                    continue;
                }
                let found = match entry.file_type() {
                    FileType::Unknown => self.lower.stat(&lower.join(name))?.map(|found| kind(&found)),
                    known => Some(known),
                };
                names.extend(found.map(|found| (name.to_owned(), found)));
            }
        }
        let Some(upper) = &dir.upper else { return Ok(names) };
        for entry in rustix::fs::Dir::read_from(upper)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if matches!(name.as_bytes(), b"." | b"..") || is_of_layer(name) {
                continue;
            }
            let known = match entry.file_type() {
                FileType::Symlink | FileType::Unknown => self.find(dir, name)?.stat().map(kind),
                known => Some(known),
            };
            match known {
                Some(known) => names.insert(name.to_owned(), known),
                None => names.remove(name),
            };
        }
        Ok(names)
    }

    pub(super) fn seek<W: LayerWriter>(
        &self,
        at: GuestPath<'_>,
        writer: &W,
        label: &mut LabelId,
    ) -> Result<Spot, W::Error> {
        if Path::new(at.path).iter().any(is_of_layer) {
            return Err(errno(Errno::PERM));
        }
        let mut seen = SeenLabels::new(writer.labels().map(Arc::as_ref));
        let spot = self.walk(at.base, at.path, at.follows, &mut seen);
        *label = label.join(seen.label);
        Ok(spot?)
    }

    /// Finds an existing entry. `unnamed` is the error for a path that names none, such as `.`.
    fn seek_entry<W: LayerWriter>(
        &self,
        at: GuestPath<'_>,
        unnamed: Errno,
        writer: &W,
        label: &mut LabelId,
    ) -> Result<(Spot, OsString, MergedEntry), W::Error> {
        let spot = self.seek(at, writer, label)?;
        let Some((name, found)) = spot.entry.clone() else { return Err(errno(unnamed)) };
        self.learn(&spot, writer, label)?;
        if matches!(found, MergedEntry::Nothing { .. }) {
            return Err(missing().into());
        }
        Ok((spot, name, found))
    }

    /// Joins the label of a name: the guest learns what is there.
    pub(super) fn learn<W: LayerWriter>(&self, spot: &Spot, writer: &W, label: &mut LabelId) -> Result<(), W::Error> {
        if let (Some(labels), Some((name, _))) = (writer.labels(), &spot.entry) {
            *label = label.join(self.name_label(labels, last(&spot.dirs)?, name));
        }
        Ok(())
    }

    /// Fails unless a directory is empty; removes the layer's own entries from it.
    pub(super) fn empty<W: LayerWriter>(
        &self,
        dirs: &[MergedDir],
        name: &OsStr,
        (writer, label): (&W, &mut LabelId),
    ) -> Result<(), W::Error> {
        let dir = self.enter(dirs, name)?.ok_or_else(missing)?;
        if let Some(labels) = writer.labels() {
            *label = label.join(self.names_label(labels, &dir));
        }
        if !self.names_of(&dir)?.is_empty() {
            return Err(errno(Errno::NOTEMPTY));
        }
        let Some(upper) = &dir.upper else { return Ok(()) };
        let mut own = Vec::new();
        for entry in rustix::fs::Dir::read_from(upper).map_err(io::Error::from)? {
            let entry = entry.map_err(io::Error::from)?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if !matches!(name.as_bytes(), b"." | b"..") {
                own.push(name.to_owned());
            }
        }
        own.iter().try_for_each(|name| remove(upper, name, writer))
    }

    /// A free name in the upper layer.
    fn free_slot<W: LayerWriter>(&self, spot: &mut Spot, writer: &W) -> Result<WriteSlot, W::Error> {
        let Some((name, found)) = spot.entry.clone() else { return Err(errno(Errno::EXIST)) };
        let dir = self.raise_dir(&mut spot.dirs, writer)?;
        let is_marked = matches!(UpperEntry::find(&dir, &name)?, UpperEntry::Marked(..));
        let mut slot = self.slot(spot, &name, false)?;
        slot.was_deleted = is_marked && matches!(found, MergedEntry::Nothing { is_deleted: true });
        if slot.natural.is_none()
            && let Some(lower) = &last(&spot.dirs)?.lower
        {
            self.remember(&lower.join(&name), None)?;
        }
        // This comes last: after an error, the mark is still there.
        if is_marked {
            remove(&dir, &name, writer)?;
        }
        Ok(slot)
    }

    pub(super) fn slot(&self, spot: &Spot, name: &OsStr, is_upper: bool) -> io::Result<WriteSlot> {
        let dir = last(&spot.dirs)?;
        let natural = dir.lower.as_ref().map(|lower| lower.join(name));
        let natural = match natural {
            Some(path) if self.lower.stat(&path)?.is_some() => Some(path),
            _ => None,
        };
        Ok(WriteSlot { dir: upper(dir)?.try_clone()?, name: name.to_owned(), is_upper, natural, was_deleted: false })
    }
}

fn upper(dir: &MergedDir) -> io::Result<&OwnedFd> {
    dir.upper.as_deref().ok_or_else(|| io::ErrorKind::NotFound.into())
}

pub(super) fn errno<E: From<io::Error>>(errno: Errno) -> E {
    E::from(io::Error::from(errno))
}
