//! The shared files as an overlay: a task's changes come to all sessions when the task ends, with their labels.
//!
//! Other folders belong to a person, and everything in them has one label. Here the lower layer is kiso's own: its names and files have the
//! labels of those who put them there. Nothing waits for a person: a file that another session has changed meanwhile is kept beside the
//! other's, under another name.

mod edit;
mod files;

pub use self::edit::SharedEdit;
pub use self::files::{SharedEntry, SharedFiles};

use super::Overlay;
use super::accept::AcceptError;
use super::difference::{FolderChange, FolderChangeKind, FolderDifference, FolderSelection};
use super::lower::{is_dir, stat_at};
use super::walk::{MergedDir, SeenLabels, last};
use crate::effect::files::FileLabels;
use crate::effect::label::LabelId;
use crate::effect::undo::{ChangeLine, SharedAcceptances, Transaction, Undo, UndoVerb};
use kiso_base::home::{Home, SHARED, SessionName};
use kiso_plan::label::Label;
use rustix::fs::{FileType, renameat};
use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The additional state of the shared files' overlay.
#[derive(Debug)]
pub(super) struct SharedLayer {
    labels: Arc<FileLabels>,
    /// The label of the author of the changes.
    author: Mutex<LabelId>,
    /// Held while the shared files change.
    lock: Mutex<Weak<File>>,
}

/// The result of bringing a task's changes to all sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SharedChanges {
    pub changes: usize,
    /// A sentence for each change that conflicted with one of another session.
    pub notes: Vec<String>,
    /// The label of the notes: tasks choose the paths in them.
    pub label: Label,
}

/// The reason why the changes of a task did not come to other sessions. They are dropped.
#[derive(Debug, thiserror::Error)]
pub enum ShareError {
    #[error("the shared files would have more than {limit_mib} MiB, which [engine] shared_mib in config.toml allows")]
    Full { limit_mib: u64 },
    #[error("{path}: {why}")]
    Path { path: String, why: &'static str },
    /// An entry at the path must not be replaced, or cannot be.
    #[error("{path}: {why}")]
    Taken { path: String, why: &'static str },
    #[error("{path} does not exist")]
    Missing { path: String },
    #[error(transparent)]
    Accept(#[from] AcceptError),
}

/// How often changes are compared again if another session changed the files meanwhile.
const ATTEMPTS: usize = 8;

impl SharedLayer {
    pub(super) fn new(home: &Home, session: &SessionName) -> Self {
        let labels = FileLabels::of_dir(&home.shared_dir());
        FileLabels::of_session(home, session).set_shared(&labels);
        Self { labels, author: Mutex::default(), lock: Mutex::default() }
    }

    pub(super) fn label(&self) -> LabelId {
        self.labels.of_others()
    }
}

impl Overlay {
    /// The shared files, as a session sees them.
    pub fn open_shared(home: &Home, session: &SessionName) -> io::Result<Self> {
        let folder = home.shared_folder().map_err(io::Error::other)?;
        Self::open(home, session, &folder)
    }

    /// The labels of the shared files, and the one that all changes get.
    pub(super) fn shared_labels(&self) -> Option<(&Arc<FileLabels>, LabelId)> {
        let shared = self.shared.as_ref()?;
        Some((&shared.labels, *shared.author.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Keeps other sessions from changing the shared files as long as the file is held. `None` for other folders.
    pub(super) fn lock_shared(&self) -> io::Result<Option<Arc<File>>> {
        let Some(shared) = &self.shared else { return Ok(None) };
        let mut held = shared.lock.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lock) = held.upgrade() {
            return Ok(Some(lock));
        }
        let dir = self.home.shared_dir();
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(dir.join("lock"))?;
        lock.lock()?;
        // Another process may have given labels since.
        FileLabels::of_dir(&dir);
        let lock = Arc::new(lock);
        *held = Arc::downgrade(&lock);
        Ok(Some(lock))
    }

    /// Brings a task's changes to all sessions. `author` is the label of their author, in addition to their own labels.
    pub fn share_changes(
        home: &Home,
        session: &SessionName,
        author: LabelId,
        work: Option<&Transaction>,
        limit_mib: u64,
    ) -> Result<SharedChanges, ShareError> {
        if !has_unshared(home, session) {
            return Ok(SharedChanges::default());
        }
        Self::open_shared(home, session).map_err(AcceptError::from)?.share_as(session, author, work, limit_mib)
    }

    fn share_as(
        &self,
        session: &SessionName,
        author: LabelId,
        work: Option<&Transaction>,
        limit_mib: u64,
    ) -> Result<SharedChanges, ShareError> {
        if let Some(shared) = &self.shared {
            *shared.author.lock().unwrap_or_else(PoisonError::into_inner) = author;
        }
        let shared = self.share_all(session, work, limit_mib);
        if shared.is_err() {
            self.empty_upper().map_err(AcceptError::from)?;
        }
        shared
    }

    /// The names of shared files and directories, these with a slash behind them, each with its label.
    pub fn shared_names(&self, session: &SessionName) -> io::Result<Vec<(String, Label)>> {
        let (labels, root) = (FileLabels::of_session(&self.home, session), self.root_dir());
        let name = |(name, kind): (OsString, FileType)| {
            let label = self.name_label(&labels, &root, &name).join(LabelId::session());
            let slash = if kind == FileType::Directory { "/" } else { "" };
            (format!("{}{slash}", name.to_string_lossy()), (*label.label()).clone())
        };
        Ok(self.names_of(&root)?.into_iter().map(name).collect())
    }

    /// Drops the changes of a task that was cut off.
    pub fn drop_unshared(home: &Home, session: &SessionName) -> io::Result<()> {
        match has_unshared(home, session) {
            true => Self::open_shared(home, session)?.empty_upper(),
            false => Ok(()),
        }
    }

    fn share_all(
        &self,
        session: &SessionName,
        work: Option<&Transaction>,
        limit_mib: u64,
    ) -> Result<SharedChanges, ShareError> {
        let _lock = self.lock_shared().map_err(AcceptError::from)?;
        let labels = FileLabels::of_session(&self.home, session);
        let mut shared = SharedChanges::default();
        for attempt in 0..ATTEMPTS {
            let difference = self.difference(&labels).map_err(AcceptError::from)?;
            let colliding: Vec<&FolderChange> =
                difference.changes.iter().filter(|change| change.collision.is_some()).collect();
            for change in &colliding {
                shared.label.join(&change.label);
                shared.notes.push(self.step_aside(session, change, &labels).map_err(AcceptError::from)?);
            }
            if !colliding.is_empty() {
                continue;
            }
            if difference.changes.is_empty() {
                self.empty_upper().map_err(AcceptError::from)?;
                break;
            }
            let added: u64 = difference.changes.iter().filter_map(written).sum();
            if added > 0 && self.bytes_after(&difference).map_err(AcceptError::from)? > limit_mib << 20 {
                return Err(ShareError::Full { limit_mib });
            }
            let lines: Vec<ChangeLine> = difference.changes.iter().flat_map(lines).collect();
            let accepted = self.accept_recorded(&difference, &FolderSelection::All, |number| match work {
                Some(work) => work.sharing(number, lines).map_err(io::Error::other),
                None => Ok(()),
            });
            match accepted {
                // A person has changed something by hand.
                Err(AcceptError::Io(_) | AcceptError::Collision(_)) if attempt + 1 < ATTEMPTS => {}
                accepted => {
                    shared.changes = accepted?.changes;
                    break;
                }
            }
        }
        if work.is_none() {
            self.sweep_acceptances(i64::MAX).map_err(AcceptError::from)?;
        }
        Ok(shared)
    }

    /// Renames a change that conflicts with another session's.
    fn step_aside(&self, session: &SessionName, change: &FolderChange, labels: &Arc<FileLabels>) -> io::Result<String> {
        let path = change.path.display().to_string();
        let spot = self.walk(Path::new(""), change.path.as_os_str(), false, &mut SeenLabels::new(None))?;
        let dir = last(&spot.dirs)?;
        let is_file = change.after.is_some_and(|after| !after.is_dir());
        let is_kept = is_file && matches!(change.kind, FolderChangeKind::Added | FolderChangeKind::Changed);
        let (Some(upper), true) = (&dir.upper, is_kept) else {
            self.drop_upper(&change.path)?;
            return Ok(format!("{SHARED}/{path}: another conversation changed it meanwhile, and its version stays"));
        };
        let name = change.path.file_name().unwrap_or_default();
        let free = self.free_name(dir, name, session)?;
        // Both sessions influenced this name.
        labels.naming(upper, &free, self.name_label(labels, dir, name))?.done()?;
        renameat(upper, name, upper, &free)?;
        let free = free.to_string_lossy();
        Ok(format!("{SHARED}/{path}: another conversation changed it meanwhile; this version is {free:?} beside it"))
    }

    /// A free name for another version of a file.
    fn free_name(&self, dir: &MergedDir, name: &OsStr, session: &SessionName) -> io::Result<OsString> {
        let path = Path::new(name);
        let stem = path.file_stem().unwrap_or(name).to_string_lossy().into_owned();
        let ending = path.extension().map(|ending| format!(".{}", ending.to_string_lossy())).unwrap_or_default();
        for number in 1.. {
            let again = if number > 1 { format!(" {number}") } else { String::new() };
            let free = OsString::from(format!("{stem} ({session}{again}){ending}"));
            let is_free = self.find(dir, &free)?.stat().is_none();
            let is_hidden = dir.upper.as_ref().is_some_and(|upper| !matches!(stat_at(upper, &free), Ok(None)));
            if is_free && !is_hidden {
                return Ok(free);
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// The size of all shared files with the changes.
    fn bytes_after(&self, difference: &FolderDifference) -> io::Result<u64> {
        let mut bytes = self.lower_bytes(Path::new(""))?;
        for change in &difference.changes {
            bytes += written(change).unwrap_or(0);
            let lost = match (&change.kind, change.before) {
                (FolderChangeKind::Deleted, Some(before)) if before.is_dir() => self.lower_bytes(&change.path)?,
                (FolderChangeKind::Deleted | FolderChangeKind::Changed, Some(before)) => before.bytes,
                _ => 0,
            };
            bytes = bytes.saturating_sub(lost);
        }
        Ok(bytes)
    }

    /// The size of the files in a directory.
    fn lower_bytes(&self, dir: &Path) -> io::Result<u64> {
        let (mut bytes, mut pending) = (0, vec![dir.to_owned()]);
        while let Some(path) = pending.pop() {
            for entry in rustix::fs::Dir::read_from(self.lower.open_dir(&path)?)? {
                let entry = entry?;
                let name = OsStr::from_bytes(entry.file_name().to_bytes());
                if matches!(name.as_bytes(), b"." | b"..") {
                    continue;
                }
                let at = path.join(name);
                match self.lower.stat(&at)? {
                    Some(found) if is_dir(&found) => pending.push(at),
                    Some(found) => bytes += u64::try_from(found.st_size).unwrap_or(0),
                    None => {}
                }
            }
        }
        Ok(bytes)
    }

    /// The label of an entry, or of its absence, in both layers.
    pub(super) fn name_label(&self, labels: &FileLabels, dir: &MergedDir, name: &OsStr) -> LabelId {
        let upper = dir.upper.as_ref().map_or(LabelId::default(), |upper| labels.of_slot(upper, name));
        upper.join(self.lower_label(labels, dir, |lower| labels.of_slot(lower, name)))
    }

    /// The label of the names in a directory, in both layers.
    pub(super) fn names_label(&self, labels: &FileLabels, dir: &MergedDir) -> LabelId {
        let upper = dir.upper.as_ref().map_or(LabelId::default(), |upper| labels.of_names(upper));
        upper.join(self.lower_label(labels, dir, |lower| labels.of_names(lower)))
    }

    fn lower_label(&self, labels: &FileLabels, dir: &MergedDir, look: impl FnOnce(&OwnedFd) -> LabelId) -> LabelId {
        let Some(lower) = dir.lower.as_ref().filter(|_| self.is_shared() && !labels.is_empty()) else {
            return LabelId::default();
        };
        self.lower.open_dir(lower).map_or(LabelId::default(), |lower| look(&lower))
    }
}

/// Whether a task of the session has changed shared files, and the changes have not come to other sessions.
fn has_unshared(home: &Home, session: &SessionName) -> bool {
    let upper = home.folder_dir(session, SHARED).join(super::UPPER);
    std::fs::read_dir(upper).is_ok_and(|mut entries| entries.next().is_some())
}

/// Bytes of the file that a change brings. `None` for a move, which brings none.
fn written(change: &FolderChange) -> Option<u64> {
    matches!(change.kind, FolderChangeKind::Added | FolderChangeKind::Changed).then_some(change.after?.bytes)
}

/// A change in the words of a plan that takes it back.
fn lines(change: &FolderChange) -> Vec<ChangeLine> {
    let line = |path: &Path, verb| ChangeLine { path: format!("{SHARED}/{}", path.display()), change: verb };
    match &change.kind {
        FolderChangeKind::Added => vec![line(&change.path, UndoVerb::Delete)],
        FolderChangeKind::Changed => vec![line(&change.path, UndoVerb::Restore)],
        FolderChangeKind::Deleted => vec![line(&change.path, UndoVerb::Create)],
        FolderChangeKind::Moved(from) => vec![line(from, UndoVerb::Create), line(&change.path, UndoVerb::Delete)],
    }
}

/// Takes changes to shared files back, for the undo of a session's runs.
#[derive(Debug, Clone, Copy)]
pub struct SharedHistory;

impl SharedHistory {
    /// Undo for the sessions of a home.
    pub fn undo(home: Home) -> Undo {
        Undo::new(home, Arc::new(Self))
    }
}

impl SharedAcceptances for SharedHistory {
    fn bring(
        &self,
        (home, session): (&Home, &SessionName),
        number: u64,
        accepted: bool,
        force: bool,
    ) -> io::Result<()> {
        let overlay = Overlay::open_shared(home, session)?;
        let all = overlay.acceptances()?;
        let done = match all.iter().find(|one| one.number == number) {
            Some(one) if one.is_undone == accepted => match accepted {
                true => overlay.redo_acceptance(number),
                false => overlay.undo_acceptance(number, force),
            },
            // The acceptance already has that state, or was never made.
            _ => return Ok(()),
        };
        done.map(drop).map_err(io::Error::other)
    }

    fn conflicts(
        &self,
        (home, session): (&Home, &SessionName),
        number: u64,
        accepted: bool,
    ) -> io::Result<Vec<String>> {
        let overlay = Overlay::open_shared(home, session)?;
        let conflicts = overlay.acceptance_conflicts(number, accepted)?;
        Ok(conflicts.into_iter().map(|line| format!("{SHARED}/{line}")).collect())
    }
}
