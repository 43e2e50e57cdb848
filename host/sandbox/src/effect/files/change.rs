//! Changes of entries: a name is added, removed, or given to another file.

use super::way::{End, EntryLabel, LabelKey, content_key, kind, number, other_key, stat_of};
use super::{FileLabels, LabelCell, Moment, State};
use crate::effect::label::LabelId;
use rustix::fs::{AtFlags, FileType, Stat, Timespec, Timestamps, UTIME_OMIT, statat, utimensat};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// An entry that is about to be changed. Its new label is recorded already. If this is dropped before it is
/// [done](EntryChange::done), the old label is restored. While it exists, nobody else changes entries of the session.
#[derive(Debug)]
#[must_use = "what is dropped is taken back"]
pub struct EntryChange {
    labels: Arc<FileLabels>,
    /// The earlier labels.
    before: Vec<(LabelKey, LabelId)>,
    /// Labels that replace them when the change is done.
    after: Vec<(LabelKey, LabelId)>,
    /// The time when each directory was last changed by somebody no worse than the user: that time does not show what others did.
    times: Vec<(OwnedFd, Timespec)>,
}

impl EntryChange {
    fn new(labels: &Arc<FileLabels>) -> Self {
        Self { labels: labels.clone(), before: Vec::new(), after: Vec::new(), times: Vec::new() }
    }

    /// Completes the change.
    pub fn done(mut self) -> io::Result<()> {
        self.before.clear();
        let mut state = self.labels.lock();
        for (key, label) in std::mem::take(&mut self.after) {
            self.labels.put(&mut state, key, label)?;
        }
        drop(state);
        for (dir, modified) in std::mem::take(&mut self.times) {
            let omitted = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT as _ };
            utimensat(&dir, ".", &Timestamps { last_access: omitted, last_modification: modified }, AtFlags::empty())?;
        }
        Ok(())
    }

    /// Combines two changes that happen at once.
    pub fn and(mut self, mut other: Self) -> Self {
        self.before.append(&mut other.before);
        self.after.append(&mut other.after);
        self.times.append(&mut other.times);
        self
    }

    fn join(&mut self, state: &mut State, key: LabelKey, label: LabelId) -> io::Result<()> {
        let before = state.log.get(key);
        let joined = before.join(label);
        if joined != before {
            self.before.push((key, before));
            self.labels.put(state, key, joined)?;
        }
        Ok(())
    }

    fn keep_time(&mut self, dir: impl AsFd, found: &Stat, label: LabelId) -> io::Result<()> {
        // A directory of the machine shows its changes; the permission to write there was checked.
        if !label.is_ordinary() && self.labels.has(&dir) {
            let modified = Timespec { tv_sec: found.st_mtime as _, tv_nsec: found.st_mtime_nsec as _ };
            self.times.push((dir.as_fd().try_clone_to_owned()?, modified));
        }
        Ok(())
    }
}

impl Drop for EntryChange {
    fn drop(&mut self) {
        let mut state = self.labels.lock();
        for (key, label) in self.before.drain(..).rev() {
            if let Err(error) = self.labels.put(&mut state, key, label) {
                tracing::warn!(%error, "the label of a name stays as bad as it was to be");
            }
        }
    }
}

/// The state of a name before it is given to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Naming {
    /// The name was free, and the process has learned this.
    New,
    /// The name may have been taken, and the process has not learned whether it was.
    Replaces,
}

/// The mode in which a file is opened.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenMode {
    /// Whether it is made if it is missing.
    pub makes: bool,
    /// Whether it must be missing.
    pub is_first: bool,
    pub empties: bool,
}

/// A file that is about to be opened, and made or emptied.
#[derive(Debug)]
pub(crate) struct FileOpening {
    change: EntryChange,
    /// The label of the entry. The process gets it if the file cannot be opened.
    entry: LabelId,
    /// The file that is to be replaced unseen, or none.
    blind: Option<Option<(u64, u64)>>,
    moment: Moment,
}

impl FileOpening {
    /// Records that it was opened, and whether it was made or emptied. Checks again, because somebody may have replaced it in
    /// between.
    pub(crate) fn opened(
        mut self,
        file: &File,
        (dir, path, follows): (impl AsFd, &OsStr, bool),
        (is_new, empties): (bool, bool),
        reader: &LabelCell,
    ) -> io::Result<()> {
        let labels = self.change.labels.clone();
        if labels.is_empty() && reader.get().is_ordinary() {
            return Ok(());
        }
        let id = stat_of(file).map(|found| number(&found)).ok();
        let is_meant = match self.blind {
            Some(replaced) => is_new || replaced == id,
            None => false,
        };
        if !is_meant {
            reader.join(labels.of_way(dir, path, follows));
        }
        reader.join(labels.since(&mut self.moment));
        match (is_new, empties) {
            (true, _) => labels.made(file, reader.get())?,
            (false, true) => labels.emptied(file, reader.get())?,
            (false, false) => {}
        }
        self.change.done()
    }

    /// Records that it was not opened.
    pub(crate) fn failed(self, reader: &LabelCell) {
        reader.join(self.entry);
    }
}

impl FileLabels {
    /// Records that a file is about to be opened at a path. The process gets the label of the path. It gets the label of the
    /// file's own name only if the earlier file matters: a process that creates a file in any case learns nothing about an
    /// earlier one.
    pub(crate) fn opening(
        self: &Arc<Self>,
        (dir, path, follows): (impl AsFd, &OsStr, bool),
        mode: OpenMode,
        reader: &LabelCell,
    ) -> io::Result<FileOpening> {
        let (change, moment) = (EntryChange::new(self), self.now());
        let mut opening = FileOpening { change, entry: LabelId::default(), blind: None, moment };
        if self.is_empty() && reader.get().is_ordinary() {
            return Ok(opening);
        }
        let way = self.walk(dir, path, follows);
        reader.join(way.label);
        let End::Entry(entry) = &way.end else { return Ok(opening) };
        opening.entry = self.of_slot(&entry.dir, &entry.name);
        if mode.makes && mode.empties && !mode.is_first && entry.is_replaceable() {
            opening.blind = Some(entry.found.as_ref().map(number));
            opening.change = self.replacing(&entry.dir, &entry.name, reader.get())?;
            return Ok(opening);
        }
        // The existence of the file is the session's information, as its bytes are.
        reader.join(opening.entry.join(LabelId::session()));
        if mode.makes && entry.found.is_none() {
            opening.change = self.naming(&entry.dir, &entry.name, reader.get())?;
        }
        Ok(opening)
    }

    /// Records that somebody with this label is about to use a free name.
    pub fn naming(self: &Arc<Self>, dir: impl AsFd, name: &OsStr, label: LabelId) -> io::Result<EntryChange> {
        self.name(dir, name, label, Naming::New)
    }

    /// Records that a name is about to get a file, whatever it has now.
    pub fn replacing(self: &Arc<Self>, dir: impl AsFd, name: &OsStr, label: LabelId) -> io::Result<EntryChange> {
        self.name(dir, name, label, Naming::Replaces)
    }

    fn name(self: &Arc<Self>, dir: impl AsFd, name: &OsStr, label: LabelId, how: Naming) -> io::Result<EntryChange> {
        let mut change = EntryChange::new(self);
        let label = if label.is_ordinary() { LabelId::default() } else { label };
        if label == LabelId::default() && self.is_empty() {
            return Ok(change);
        }
        let at = stat_of(&dir)?;
        change.keep_time(&dir, &at, label)?;
        let mut state = self.lock();
        let [way, displaced] = keys(&mut state, &at, name)?;
        let before = state.log.get(way);
        change.join(&mut state, way, label)?;
        if how == Naming::Replaces {
            let found = statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW).ok();
            if found.is_some() && before.join(label) != before {
                change.join(&mut state, displaced, label)?;
            } else if label == LabelId::default() {
                change.after.push((displaced, label));
            }
            change.after.push((way, label));
            drop(state);
            self.losing_name(&mut change, found.as_ref(), label)?;
        }
        Ok(change)
    }

    /// Records that somebody with this label, who has learned that the name exists, is about to remove it.
    pub fn unnaming(self: &Arc<Self>, dir: impl AsFd, name: &OsStr, label: LabelId) -> io::Result<EntryChange> {
        let mut change = EntryChange::new(self);
        let label = if label.is_ordinary() { LabelId::default() } else { label };
        if label == LabelId::default() && self.is_empty() {
            return Ok(change);
        }
        let at = stat_of(&dir)?;
        change.keep_time(&dir, &at, label)?;
        let mut state = self.lock();
        let [way, displaced] = keys(&mut state, &at, name)?;
        let before = state.log.get(way);
        let earlier = state.log.get(displaced);
        if before.join(label) == before && earlier == LabelId::default() {
            // Before those with this label came, the name was free.
            change.after.push((way, LabelId::default()));
        } else {
            change.join(&mut state, way, label)?;
            change.join(&mut state, displaced, label)?;
            change.join(&mut state, other_key(&at), label.join(earlier))?;
        }
        drop(state);
        let found = statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW).ok();
        self.losing_name(&mut change, found.as_ref(), label)?;
        Ok(change)
    }

    /// If a file has other names, their number shows that one was removed.
    fn losing_name(&self, change: &mut EntryChange, found: Option<&Stat>, label: LabelId) -> io::Result<()> {
        match found.filter(|found| kind(found) != FileType::Directory && found.st_nlink > 1) {
            Some(found) => change.join(&mut self.lock(), other_key(found), label),
            None => Ok(()),
        }
    }

    /// Labels the entry of this name, which somebody with this label has just made.
    pub fn made_at(&self, dir: impl AsFd, name: &OsStr, label: LabelId) -> io::Result<()> {
        if label.is_ordinary() && self.is_empty() {
            return Ok(());
        }
        self.made_of(&statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?, label)
    }

    /// Labels the file of this name, which is about to get a further name from somebody with this label.
    pub fn linking(&self, dir: impl AsFd, name: &OsStr, label: LabelId) -> io::Result<()> {
        if label.is_ordinary() {
            return Ok(());
        }
        self.join(other_key(&statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?), label)
    }

    /// The labels of an entry before a change that can be taken back: of the entry, and of those who replaced earlier ones.
    pub(crate) fn entry_labels(&self, dir: impl AsFd, name: &OsStr) -> [LabelId; 2] {
        if self.is_empty() {
            return Default::default();
        }
        let state = self.lock();
        let label = |of| {
            let key = stat_of(&dir).ok().and_then(|at| state.log.entry_key(content_key(&at), name, of));
            key.map_or(state.log.others(), |key| state.log.get(key))
        };
        [label(EntryLabel::Way), label(EntryLabel::Displaced)]
    }

    /// Records that an entry is restored, and restores its labels.
    pub(crate) fn put_back_entry(&self, dir: impl AsFd, name: &OsStr, labels: [LabelId; 2]) -> io::Result<()> {
        if self.is_empty() && labels == [LabelId::default(); 2] {
            return Ok(());
        }
        let at = stat_of(&dir)?;
        let is_there = statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW).is_ok();
        let mut state = self.lock();
        let keys = keys(&mut state, &at, name)?;
        keys.into_iter().zip(labels).try_for_each(|(key, label)| self.put(&mut state, key, label))?;
        drop(state);
        // A process that lists the directory learns that the entry is missing.
        if is_there { Ok(()) } else { self.join(other_key(&at), labels[0]) }
    }
}

fn keys(state: &mut State, dir: &Stat, name: &OsStr) -> io::Result<[LabelKey; 2]> {
    state.log.ready()?;
    let key =
        |of| state.log.entry_key(content_key(dir), name, of).ok_or_else(|| io::Error::other("an entry has no key"));
    Ok([key(EntryLabel::Way)?, key(EntryLabel::Displaced)?])
}
