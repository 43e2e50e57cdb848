//! Entries that are about to be made. If the operation ends in any other way, the mark of the deleted entry is restored.

use super::Overlay;
use super::moves::MoveSlots;
use super::operation::{FileAccess, GuestPath, OpenSlot, ReadSlot, WriteSlot};
use super::raise::LayerWriter;
use crate::effect::label::LabelId;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// A name in the upper layer that an entry is about to get.
#[derive(Debug)]
pub(crate) struct PendingEntry<W: LayerWriter> {
    overlay: Arc<Overlay>,
    writer: W,
    slot: WriteSlot,
    is_finished: bool,
}

impl<W: LayerWriter> PendingEntry<W> {
    pub(crate) fn name(&self) -> &OsStr {
        &self.slot.name
    }

    pub(crate) fn dir(&self) -> io::Result<OwnedFd> {
        self.slot.dir.try_clone()
    }

    /// Completes or cancels the entry.
    pub(crate) fn finish(mut self, is_made: bool) -> Result<(), W::Error> {
        self.is_finished = true;
        match self.slot.is_upper {
            // It existed before.
            true => Ok(()),
            false => self.overlay.made(&self.slot, is_made, &self.writer),
        }
    }
}

impl<W: LayerWriter> Drop for PendingEntry<W> {
    fn drop(&mut self) {
        if !self.is_finished && !self.slot.is_upper {
            let _ = self.overlay.made(&self.slot, false, &self.writer);
        }
    }
}

/// A move that is about to be made.
#[derive(Debug)]
pub(crate) struct PendingMove<W: LayerWriter> {
    overlay: Arc<Overlay>,
    writer: W,
    slots: MoveSlots,
    is_finished: bool,
}

impl<W: LayerWriter> PendingMove<W> {
    /// The directory of the old name, and that name.
    pub(crate) fn from(&self) -> io::Result<(OwnedFd, OsString)> {
        Ok((self.slots.from.dir.try_clone()?, self.slots.from.name.clone()))
    }

    /// The same of the new name.
    pub(crate) fn to(&self) -> io::Result<(OwnedFd, OsString)> {
        Ok((self.slots.to.dir.try_clone()?, self.slots.to.name.clone()))
    }

    /// Completes or cancels the move.
    pub(crate) fn finish(mut self, is_moved: bool) -> Result<(), W::Error> {
        self.is_finished = true;
        self.overlay.moved(&self.slots, is_moved, &self.writer)
    }
}

impl<W: LayerWriter> Drop for PendingMove<W> {
    fn drop(&mut self) {
        if !self.is_finished {
            let _ = self.overlay.moved(&self.slots, false, &self.writer);
        }
    }
}

/// The place where a file or directory is opened.
#[derive(Debug)]
pub(crate) enum PendingOpen<W: LayerWriter> {
    Read(ReadSlot),
    Write(PendingEntry<W>),
}

impl<W: LayerWriter> PendingOpen<W> {
    pub(crate) fn name(&self) -> &OsStr {
        match self {
            Self::Read(slot) => &slot.name,
            Self::Write(entry) => entry.name(),
        }
    }

    pub(crate) fn dir(&self) -> io::Result<File> {
        let dir = match self {
            Self::Read(slot) => slot.dir.try_clone(),
            Self::Write(entry) => entry.dir(),
        };
        Ok(File::from(dir?))
    }

    /// Completes or cancels the opening.
    pub(crate) fn finish(self, is_opened: bool) -> Result<(), W::Error> {
        match self {
            Self::Read(_) => Ok(()),
            Self::Write(entry) => entry.finish(is_opened),
        }
    }
}

impl Overlay {
    /// The place where a file or directory is opened. A file that is to be written is in the upper layer afterwards.
    pub(crate) fn open_entry<W: LayerWriter + Clone>(
        self: &Arc<Self>,
        at: GuestPath<'_>,
        access: FileAccess,
        writer: &W,
        label: &mut LabelId,
    ) -> Result<PendingOpen<W>, W::Error> {
        Ok(match self.open_slot(at, access, writer, label)? {
            OpenSlot::Read(slot) => PendingOpen::Read(slot),
            OpenSlot::Write(slot) => PendingOpen::Write(self.pending(slot, writer)),
        })
    }

    /// The place of a new directory, link or name.
    pub(crate) fn make<W: LayerWriter + Clone>(
        self: &Arc<Self>,
        at: GuestPath<'_>,
        writer: &W,
        label: &mut LabelId,
    ) -> Result<PendingEntry<W>, W::Error> {
        Ok(self.pending(self.make_slot(at, writer, label)?, writer))
    }

    /// The places of a move. `None` if both names belong to one file, so that there is nothing to do.
    pub(crate) fn move_to<W: LayerWriter + Clone>(
        self: &Arc<Self>,
        from: GuestPath<'_>,
        to: GuestPath<'_>,
        writer: &W,
        label: &mut LabelId,
    ) -> Result<Option<PendingMove<W>>, W::Error> {
        let slots = self.move_slots(from, to, writer, label)?;
        let pending = |slots| PendingMove { overlay: self.clone(), writer: writer.clone(), slots, is_finished: false };
        Ok(slots.map(pending))
    }

    fn pending<W: LayerWriter + Clone>(self: &Arc<Self>, slot: WriteSlot, writer: &W) -> PendingEntry<W> {
        PendingEntry { overlay: self.clone(), writer: writer.clone(), slot, is_finished: false }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Action, Stage, Unchecked, in_overlay};
    use super::*;
    use rustix::fs::{Mode, OFlags, mkdirat, openat, renameat};
    use std::fs;
    use std::path::Path;

    fn guest_path(path: &str) -> GuestPath<'_> {
        GuestPath { base: Path::new(""), path: OsStr::new(path), follows: true }
    }

    fn names(overlay: &Overlay) -> Vec<String> {
        overlay.names(Path::new("")).unwrap().into_keys().map(|name| name.into_string().unwrap()).collect()
    }

    #[test]
    fn a_deleted_entry_stays_deleted_unless_another_is_made() {
        let stage = Stage::new();
        let folder = stage.folder("project");
        fs::create_dir_all(folder.join("d")).unwrap();
        fs::create_dir_all(folder.join("e")).unwrap();
        fs::write(folder.join("a"), "a").unwrap();
        let overlay = Arc::new(stage.open("project"));
        for action in [Action::Unlink("a".to_owned()), Action::RemoveDir("d".to_owned())] {
            in_overlay(&overlay, &action).unwrap();
        }
        assert_eq!(names(&overlay), ["e"]);
        let access = FileAccess { writes: true, makes: true, is_first: false, empties: true };
        let label = &mut LabelId::default();

        // Dropped after an error, or because the guest was stopped.
        drop(overlay.open_entry(guest_path("a"), access, &Unchecked, label).unwrap());
        drop(overlay.make(guest_path("d"), &Unchecked, label).unwrap());
        drop(overlay.move_to(guest_path("e"), guest_path("d"), &Unchecked, label).unwrap().unwrap());
        assert_eq!(names(&overlay), ["e"]);
        assert_eq!(overlay.difference(&stage.labels()).unwrap().changes.len(), 2);

        let entry = overlay.open_entry(guest_path("a"), access, &Unchecked, label).unwrap();
        entry.finish(false).unwrap();
        assert_eq!(names(&overlay), ["e"]);

        let entry = overlay.open_entry(guest_path("a"), access, &Unchecked, label).unwrap();
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        drop(openat(entry.dir().unwrap(), entry.name(), flags, Mode::RUSR | Mode::WUSR).unwrap());
        entry.finish(true).unwrap();
        let entry = overlay.make(guest_path("d"), &Unchecked, label).unwrap();
        mkdirat(entry.dir().unwrap(), entry.name(), Mode::RWXU).unwrap();
        entry.finish(true).unwrap();
        assert_eq!(names(&overlay), ["a", "d", "e"]);
        let moved = overlay.move_to(guest_path("e"), guest_path("d"), &Unchecked, label).unwrap().unwrap();
        let ((from, old), (to, new)) = (moved.from().unwrap(), moved.to().unwrap());
        renameat(from, old, to, new).unwrap();
        moved.finish(true).unwrap();
        assert_eq!(names(&overlay), ["a", "d"]);
    }
}
