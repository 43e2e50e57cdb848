//! Moves and further names: an entry of the folder moves by a mark, whatever its size.

use super::Overlay;
use super::lower::{is_dir, kind, missing};
use super::mark::{LayerMark, ORIGIN, UpperEntry};
use super::operation::{GuestPath, WriteSlot, errno};
use super::raise::{LayerWriter, make_mark, remove, set_origin};
use super::walk::{MergedEntry, SeenLabels, Spot};
use crate::effect::label::LabelId;
use rustix::fs::FileType;
use rustix::io::Errno;
use std::ffi::OsStr;
use std::io;
use std::path::Path;

/// A move that is about to be made.
#[derive(Debug)]
pub(super) struct MoveSlots {
    pub(super) from: WriteSlot,
    pub(super) to: WriteSlot,
}

impl Overlay {
    /// The places of a move. `None` if both names belong to one file, so that there is nothing to do.
    pub(super) fn move_slots<W: LayerWriter>(
        &self,
        from: GuestPath<'_>,
        to: GuestPath<'_>,
        writer: &W,
        label: &mut LabelId,
    ) -> Result<Option<MoveSlots>, W::Error> {
        let source = self.seek(from, writer, label)?;
        let target = self.seek(to, writer, label)?;
        let (Some((old, found)), Some((new, replaced))) = (source.entry.clone(), target.entry.clone()) else {
            return Err(errno(Errno::BUSY));
        };
        let Some(stat) = found.stat() else {
            self.learn(&source, writer, label)?;
            return Err(missing().into());
        };
        if is_dir(stat) || replaced.is_dir() {
            self.learn(&target, writer, label)?;
        }
        if let Some(other) = replaced.stat() {
            let is_same = (stat.st_dev, stat.st_ino) == (other.st_dev, other.st_ino);
            match (is_dir(stat), is_dir(other)) {
                _ if is_same => return Ok(None),
                (true, false) => return Err(errno(Errno::NOTDIR)),
                (false, true) => return Err(errno(Errno::ISDIR)),
                _ => {}
            }
        }
        let is_dir = is_dir(stat);
        self.learn(&source, writer, label)?;
        // Under another name, the file would not be hidden any more.
        if let MergedEntry::Lower(entry) = &found
            && self.hides(&entry.path, is_dir, &source.path())
        {
            return Err(errno(Errno::ACCESS));
        }
        // A directory cannot be moved into itself.
        if is_dir && target.path().starts_with(source.path()) {
            return Err(errno(Errno::INVAL));
        }
        if is_dir && replaced.is_dir() {
            self.empty(&target.dirs, &new, (writer, label))?;
        }
        // The directories of one may be above the other, so the second is looked up again.
        let (source_path, target_path) = (source.path(), target.path());
        let mut source = self.walk(Path::new(""), source_path.as_os_str(), false, &mut SeenLabels::new(None))?;
        self.raise_for_move(&mut source, writer)?;
        let mut target = self.walk(Path::new(""), target_path.as_os_str(), false, &mut SeenLabels::new(None))?;
        let dir = self.raise_dir(&mut target.dirs, writer)?;
        // A directory does not take the place of a link.
        let is_marked = matches!(UpperEntry::find(&dir, &new)?, UpperEntry::Marked(LayerMark::Deleted));
        self.remember_hidden(&target)?;
        let (from, mut to) = (self.slot(&source, &old, true)?, self.slot(&target, &new, true)?);
        to.was_deleted = is_dir && is_marked;
        if to.was_deleted {
            remove(&dir, &new, writer)?;
        }
        Ok(Some(MoveSlots { from, to }))
    }

    /// Completes or cancels a move.
    pub(super) fn moved<W: LayerWriter>(&self, slots: &MoveSlots, is_moved: bool, writer: &W) -> Result<(), W::Error> {
        match is_moved {
            true => self.removed(&slots.from, writer),
            false => self.made(&slots.to, false, writer),
        }
    }

    /// The place of a file in the upper layer that is about to get another name.
    pub(crate) fn link_from<W: LayerWriter>(
        &self,
        from: GuestPath<'_>,
        writer: &W,
        label: &mut LabelId,
    ) -> Result<WriteSlot, W::Error> {
        let mut spot = self.seek(from, writer, label)?;
        self.learn(&spot, writer, label)?;
        let Some((name, found)) = spot.entry.clone() else { return Err(errno(Errno::PERM)) };
        match found {
            MergedEntry::Nothing { .. } => Err(missing().into()),
            found if found.is_dir() => Err(errno(Errno::PERM)),
            _ => {
                self.raise(&mut spot, false, writer)?;
                Ok(self.slot(&spot, &name, true)?)
            }
        }
    }

    /// Remembers what the folder has at a name that something else takes.
    fn remember_hidden(&self, target: &Spot) -> io::Result<()> {
        let (Some((name, found)), Some(dir)) = (&target.entry, target.dirs.last()) else { return Ok(()) };
        // An entry that was hidden before is remembered already.
        if matches!(found, MergedEntry::Upper(_) | MergedEntry::Nothing { is_deleted: true }) {
            return Ok(());
        }
        let Some(natural) = dir.lower.as_ref().map(|lower| lower.join(name)) else { return Ok(()) };
        let stat = self.lower.stat(&natural)?;
        self.remember(&natural, stat.as_ref())
    }

    /// Brings an entry that moves to the upper layer: a file as itself or as a mark that names the folder's file, a directory
    /// with its origin.
    fn raise_for_move<W: LayerWriter>(&self, spot: &mut Spot, writer: &W) -> Result<(), W::Error> {
        let Some((name, found)) = spot.entry.clone() else { return Ok(()) };
        if let MergedEntry::Lower(entry) = &found
            && !is_dir(&entry.stat)
        {
            let is_plain =
                matches!(kind(&entry.stat), FileType::RegularFile | FileType::Symlink) && entry.shared.is_none();
            return match LayerMark::from_path(&entry.path).filter(|_| is_plain) {
                Some(_) if entry.is_marked => Ok(()),
                Some(mark) => {
                    let dir = self.raise_dir(&mut spot.dirs, writer)?;
                    self.remember_state(&entry.path, Some(entry.original))?;
                    make_mark(&dir, &name, &mark, writer)
                }
                None => self.raise(spot, false, writer),
            };
        }
        if !found.is_dir() {
            return Ok(());
        }
        self.raise(spot, false, writer)?;
        let Some(dir) = self.enter(&spot.dirs, &name)? else { return Ok(()) };
        let Some(upper) = &dir.upper else { return Ok(()) };
        if LayerMark::read(upper, OsStr::new(ORIGIN))?.is_some() {
            return Ok(());
        }
        let origin = match &dir.lower {
            Some(path) => LayerMark::from_path(path),
            None => Some(LayerMark::New),
        };
        let Some(origin) = origin else { return Err(errno(Errno::NAMETOOLONG)) };
        set_origin(upper, &origin, writer)
    }
}
