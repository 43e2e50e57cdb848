//! The reference monitor of files. It records whose words each file has: in its content, in its name, and in everything else
//! about it that a later reader can see.
//!
//! Both sandboxes, undo and the host itself pass each operation through here that changes or reads something of a workspace.
//! There are three kinds of labels. An **entry** of a directory has the label of all who decided which file has that name, or
//! that none has. An **inode** has one label for its bytes (or a link's target), and a second one for its times and the number of
//! its names; a directory's second label is that of the names that others have taken out of it. A path is as bad as the worst
//! entry and link that it goes [through](way).
//!
//! There are three rules. A label is recorded before the change can be seen: an [`EntryChange`] begins before the change and is
//! taken back if the change fails. A reader looks at labels after it has read, and [`FileLabels::since`] returns the labels that
//! were dropped meanwhile. A label is dropped only when nothing is left that it describes: when a file was emptied while nobody
//! below the user had it open, when a name is gone and was not there before, or when somebody replaced a file without having
//! looked at it.
//!
//! Only labels worse than that of a session's own data have a line. Each line is appended to `sessions/ID/labels` before its
//! change, so a process may be killed at any time. On another disk, as after a restore, the inodes differ. Then everything in the
//! workspace has the label of all files that had one, until it is rewritten.

mod change;
mod log;
mod way;

pub use self::change::EntryChange;
pub(crate) use self::change::{FileOpening, OpenMode};

use self::log::LabelLog;
use self::way::{DIRECTORY, End, EntryLabel, LabelKey, content_key, kind, other_key, stat_of};
use super::label::{LabelCell, LabelId, OpenToWrite};
use kiso_base::home::{Home, SessionName};
use kiso_base::system::path_of;
use rustix::fs::{FileType, Mode, OFlags, Stat, openat};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

/// The labels of one session's files.
#[derive(Debug)]
pub struct FileLabels {
    /// The session's directory.
    session: PathBuf,
    /// Whether any file has a label. If not, no lookup is needed.
    any: AtomicBool,
    /// The number of dropped labels.
    drops: AtomicU64,
    state: Mutex<State>,
    /// The labels of shared files. A session that reads them gets these labels, too.
    shared: OnceLock<Arc<FileLabels>>,
}

#[derive(Debug)]
struct State {
    log: LabelLog,
    /// Files that somebody below the user has open for writing, with the number of handles.
    tainted: HashMap<LabelKey, usize>,
    /// The join of all dropped labels.
    dropped: LabelId,
}

/// A moment. A reader that began then may have seen any data whose label was dropped since.
#[derive(Debug, Clone, Copy)]
pub struct Moment(u64);

/// A file that somebody below the user may still write to. While this exists, the file keeps its label.
#[derive(Debug)]
pub struct TaintedFile {
    labels: Arc<FileLabels>,
    key: LabelKey,
}

impl Drop for TaintedFile {
    fn drop(&mut self) {
        let mut state = self.labels.lock();
        if let Some(count) = state.tainted.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                state.tainted.remove(&self.key);
            }
        }
    }
}

/// A file that a process has open for writing.
#[derive(Debug)]
pub(crate) struct OpenLabelled {
    pub labels: Arc<FileLabels>,
    pub file: Weak<File>,
}

impl OpenToWrite for OpenLabelled {
    fn mark(&self, label: LabelId) -> bool {
        self.file.upgrade().is_some_and(|file| self.labels.writing_at_all(&file, label))
    }
}

/// Sessions whose labels are remembered.
const MAX_SESSIONS: usize = 1_000;

static SESSIONS: LazyLock<Mutex<HashMap<PathBuf, Arc<FileLabels>>>> = LazyLock::new(Mutex::default);

impl FileLabels {
    /// The labels of a session. Changes by another process are read first; the caller holds the session's lock, or only reads.
    pub fn of_session(home: &Home, session: &SessionName) -> Arc<Self> {
        Self::of_dir(&home.session_dir(session))
    }

    /// The same, by the session's directory.
    pub fn of_dir(session: &Path) -> Arc<Self> {
        let path = session.join("labels");
        let found = {
            let mut sessions = SESSIONS.lock().unwrap_or_else(PoisonError::into_inner);
            if sessions.len() > MAX_SESSIONS {
                sessions.retain(|_, labels| Arc::strong_count(labels) > 1);
            }
            let make = || Arc::new(Self::new(session));
            sessions.entry(path.clone()).or_insert_with(make).clone()
        };
        found.refresh();
        found
    }

    fn new(session: &Path) -> Self {
        let log = LabelLog::new(session.join("labels"), session.join("work"));
        let state = State { log, tainted: HashMap::new(), dropped: LabelId::default() };
        let session = session.to_owned();
        let (any, drops) = (AtomicBool::new(false), AtomicU64::new(0));
        Self { session, any, drops, state: Mutex::new(state), shared: OnceLock::new() }
    }

    /// Adds the labels of shared files to later lookups.
    pub(super) fn set_shared(&self, shared: &Arc<FileLabels>) {
        self.shared.get_or_init(|| shared.clone());
    }

    fn shared(&self) -> Option<&Arc<FileLabels>> {
        self.shared.get().filter(|shared| shared.any.load(SeqCst))
    }

    /// Reads the labels that another process has given to shared files since. A reader at this moment may have seen data with any
    /// of them.
    pub(crate) fn refresh_shared(&self) {
        let Some(shared) = self.shared.get() else { return };
        let mut state = shared.lock();
        let before = state.log.all();
        if state.log.refresh() {
            state.dropped = state.dropped.join(before).join(state.log.all());
            shared.any.store(state.log.has_any(), SeqCst);
            shared.drops.fetch_add(1, SeqCst);
        }
    }

    /// The label of files that are on another disk than when they got their labels.
    pub(super) fn of_others(&self) -> LabelId {
        self.lock().log.others()
    }

    /// Whether a directory belongs to the session.
    fn has(&self, dir: impl AsFd) -> bool {
        path_of(dir).is_ok_and(|path| path.starts_with(&self.session))
    }

    fn refresh(&self) {
        let mut state = self.lock();
        state.log.refresh();
        self.any.store(state.log.has_any(), SeqCst);
    }

    /// Whether nothing has a label.
    pub fn is_empty(&self) -> bool {
        !self.any.load(SeqCst) && self.shared().is_none()
    }

    /// The present moment. Call it before a read.
    pub fn now(&self) -> Moment {
        let shared = self.shared.get().map_or(0, |shared| shared.drops.load(SeqCst));
        Moment(self.drops.load(SeqCst).wrapping_add(shared))
    }

    /// The labels that were dropped since then. Call it after the read.
    pub fn since(&self, moment: &mut Moment) -> LabelId {
        let before = std::mem::replace(moment, self.now());
        if before.0 == moment.0 {
            return LabelId::default();
        }
        let own = self.lock().dropped;
        self.shared.get().map_or(own, |shared| own.join(shared.lock().dropped))
    }

    /// The label of an open file's bytes.
    pub fn label_of(&self, file: impl AsFd) -> LabelId {
        if self.is_empty() {
            return LabelId::session();
        }
        let label = stat_of(file).map_or(LabelId::default(), |found| self.get(content_key(&found)));
        label.join(LabelId::session())
    }

    /// The label of everything that an open file's or directory's attributes show.
    pub fn of_attributes(&self, file: impl AsFd) -> LabelId {
        match self.is_empty() {
            true => LabelId::default(),
            false => stat_of(file).map_or(LabelId::default(), |found| self.attributes(&found)),
        }
    }

    /// A directory's size and the number of its names are hidden from guests, and its time does not show what others did in it.
    fn attributes(&self, found: &Stat) -> LabelId {
        let label = self.get(content_key(found));
        if kind(found) == FileType::Directory { label } else { label.join(self.get(other_key(found))) }
    }

    /// The label of the names in a directory: of everybody who added or removed one.
    pub fn of_names(&self, dir: impl AsFd) -> LabelId {
        if self.is_empty() {
            return LabelId::default();
        }
        let Ok(found) = stat_of(&dir) else { return LabelId::default() };
        let mut label = self.get(other_key(&found));
        for entry in rustix::fs::Dir::read_from(&dir).into_iter().flatten().flatten() {
            let name = entry.file_name().to_bytes();
            if !matches!(name, b"." | b"..") {
                label = label.join(self.of_slot(&dir, OsStr::from_bytes(name)));
            }
        }
        label
    }

    /// The label of a path: of each entry and link on the way, and of the last one.
    pub fn of_way(&self, dir: impl AsFd, path: &OsStr, follows: bool) -> LabelId {
        self.look(dir, path, follows).0
    }

    /// The label of a path and of the attributes of its entry.
    pub fn of_entry(&self, dir: impl AsFd, path: &OsStr, follows: bool) -> LabelId {
        let (label, found) = self.look(dir, path, follows);
        found.map_or(label, |found| label.join(self.attributes(&found)))
    }

    /// The label of a path whose entry is about to be replaced. It includes the last entry only if that is a directory, with the
    /// names in it.
    pub(crate) fn of_place(&self, dir: impl AsFd, path: &OsStr) -> LabelId {
        if self.is_empty() {
            return LabelId::default();
        }
        let way = self.walk(dir, path, false);
        let End::Entry(entry) = way.end else { return way.label };
        match openat(&entry.dir, &entry.name, DIRECTORY, Mode::empty()) {
            Ok(inside) => way.label.join(self.of_slot(&entry.dir, &entry.name)).join(self.of_names(inside)),
            Err(_) => way.label,
        }
    }

    fn look(&self, dir: impl AsFd, path: &OsStr, follows: bool) -> (LabelId, Option<Stat>) {
        if self.is_empty() {
            return (LabelId::default(), None);
        }
        let way = self.walk(dir, path, follows);
        match way.end {
            End::Entry(entry) => (way.label.join(self.of_slot(&entry.dir, &entry.name)), entry.found),
            End::Dir(dir) => (way.label, stat_of(&dir).ok()),
            End::Nowhere => (way.label, None),
        }
    }

    /// Returns the label of the content and the attributes of a file or link with these attributes.
    pub(super) fn of_stat(&self, found: &Stat) -> LabelId {
        self.attributes(found)
    }

    /// The label of a name in a directory.
    pub(super) fn of_slot(&self, dir: impl AsFd, name: &OsStr) -> LabelId {
        let found = stat_of(dir).ok();
        let own = {
            let state = self.lock();
            match found.and_then(|found| state.log.entry_key(content_key(&found), name, EntryLabel::Way)) {
                Some(key) => state.log.get(key),
                None => state.log.others(),
            }
        };
        let shared = self.shared().and_then(|shared| {
            let state = shared.lock();
            Some(state.log.known(state.log.entry_key(content_key(&found?), name, EntryLabel::Way)?))
        });
        own.join(shared.unwrap_or_default())
    }

    /// Records that data with this label is about to be written to an open file.
    pub fn writing(&self, file: impl AsFd, label: LabelId) -> io::Result<()> {
        if label.is_ordinary() {
            return Ok(());
        }
        self.join(content_key(&stat_of(file)?), label)
    }

    /// The same for the entry of a name.
    pub(super) fn writing_at(&self, dir: impl AsFd, name: &OsStr, label: LabelId) -> io::Result<()> {
        if label.is_ordinary() {
            return Ok(());
        }
        self.join(content_key(&rustix::fs::statat(dir, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW)?), label)
    }

    /// Records that somebody with this label has a file open for writing. Always returns true.
    pub(crate) fn writing_at_all(&self, file: &File, label: LabelId) -> bool {
        if let Err(error) = self.writing(file, label) {
            // A write to the file fails with the same error, so nothing is written.
            tracing::warn!(%error, "the label of a file that is open cannot be kept");
        }
        true
    }

    /// Records that somebody with this label is about to set times or permissions of an open file or directory.
    pub fn attributing(&self, file: impl AsFd, label: LabelId) -> io::Result<()> {
        if label.is_ordinary() {
            return Ok(());
        }
        self.attributing_of(&stat_of(file)?, label)
    }

    /// The same for the entry of a path.
    pub fn attributing_at(&self, dir: impl AsFd, path: &OsStr, follows: bool, label: LabelId) -> io::Result<()> {
        if label.is_ordinary() {
            return Ok(());
        }
        let found = match self.walk(dir, path, follows).end {
            End::Entry(entry) => entry.found,
            End::Dir(dir) => stat_of(&dir).ok(),
            End::Nowhere => None,
        };
        found.map_or(Ok(()), |found| self.attributing_of(&found, label))
    }

    fn attributing_of(&self, found: &Stat, label: LabelId) -> io::Result<()> {
        let is_dir = kind(found) == FileType::Directory;
        self.join(if is_dir { content_key(found) } else { other_key(found) }, label)
    }

    /// Records that somebody below the user has the file open and is about to write to it.
    pub fn tainted(self: &Arc<Self>, file: impl AsFd) -> io::Result<TaintedFile> {
        let key = content_key(&stat_of(file)?);
        *self.lock().tainted.entry(key).or_default() += 1;
        Ok(TaintedFile { labels: self.clone(), key })
    }

    /// Records that somebody with this label has just made a file, directory or link. The label of the inode's earlier file is
    /// dropped.
    pub fn made(&self, file: impl AsFd, label: LabelId) -> io::Result<()> {
        if label.is_ordinary() && self.is_empty() {
            return Ok(());
        }
        self.made_of(&stat_of(file)?, label)
    }

    fn made_of(&self, found: &Stat, label: LabelId) -> io::Result<()> {
        let mut state = self.lock();
        self.set(&mut state, content_key(found), label, true)?;
        self.set(&mut state, other_key(found), LabelId::default(), true)
    }

    /// Records that somebody with this label has just emptied a file. Data that others have written since keeps its label.
    pub fn emptied(&self, file: impl AsFd, label: LabelId) -> io::Result<()> {
        if label.is_ordinary() && self.is_empty() {
            return Ok(());
        }
        let key = content_key(&stat_of(&file)?);
        let mut state = self.lock();
        let is_empty = stat_of(&file)?.st_size == 0;
        self.set(&mut state, key, label, is_empty)
    }

    /// Records that a file has the content of another one now: it gets that label and loses its own.
    pub fn copied(&self, from: impl AsFd, to: impl AsFd) -> io::Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let (from, to) = (stat_of(from)?, stat_of(to)?);
        let label = self.get(content_key(&from));
        self.set(&mut self.lock(), content_key(&to), label, true)
    }

    /// Records that the old content of a file was restored, which has this label.
    pub fn put_back(&self, file: impl AsFd, label: LabelId) -> io::Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let key = content_key(&stat_of(file)?);
        self.set(&mut self.lock(), key, label, true)
    }

    /// Records that the host has rewritten a file for somebody with this label, even if it replaced another file.
    pub fn wrote(self: &Arc<Self>, path: &Path, label: LabelId) -> io::Result<()> {
        if label.is_ordinary() && self.is_empty() {
            return Ok(());
        }
        let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).unwrap_or(0);
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        self.made(&file, label)?;
        let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
        self.replacing(&File::open(dir)?, name, label)?.done()
    }

    fn get(&self, key: LabelKey) -> LabelId {
        let own = self.lock().log.get(key);
        self.shared().map_or(own, |shared| own.join(shared.lock().log.known(key)))
    }

    fn join(&self, key: LabelKey, label: LabelId) -> io::Result<()> {
        let mut state = self.lock();
        let before = state.log.get(key);
        self.put(&mut state, key, before.join(label))
    }

    /// Sets a label. It replaces the present one if `is_gone`, that is, if nothing is left that the present one describes.
    fn set(&self, state: &mut State, key: LabelKey, label: LabelId, is_gone: bool) -> io::Result<()> {
        let label = if label.is_ordinary() { LabelId::default() } else { label };
        // A process may be writing to the file at this moment.
        let replaces = is_gone && !state.tainted.contains_key(&key);
        let label = if replaces { label } else { state.log.get(key).join(label) };
        self.put(state, key, label)
    }

    fn put(&self, state: &mut State, key: LabelKey, label: LabelId) -> io::Result<()> {
        let before = state.log.get(key);
        if before == label {
            return Ok(());
        }
        state.log.put(key, label)?;
        self.any.store(true, SeqCst);
        if before.join(label) != label {
            state.dropped = state.dropped.join(before);
            self.drops.fetch_add(1, SeqCst);
        }
        Ok(())
    }

    /// The number of lines, and the bytes of memory that they take.
    pub fn size(&self) -> (usize, usize) {
        let (lines, room) = self.lock().log.len();
        // A slot of the table takes a line and one more byte; at most seven of eight slots are in use.
        let slots = (room * 8).div_ceil(7).next_power_of_two();
        (lines, slots * (size_of::<(LabelKey, LabelId)>() + 1))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
