//! A person's folder as the tasks of a session see it. Nothing in it changes before the person has accepted the difference.
//!
//! ```text
//!                 ┌─ upper layer: sessions/ID/folders/KEY/upper ── files that were written, marks
//!  /project ◀─────┤
//!                 └─ the folder itself, opened for reading
//! ```
//!
//! The upper layer is a directory of the session like its workspace: labels, undo and quotas hold in it without knowing of the folder. A
//! directory of it extends the one of the same name in the folder, unless its [origin](mark) says otherwise. A [mark] in the place of a file
//! says that the folder's is deleted, or which one it is after a move. So a directory of any size is moved by one mark, and a file is copied
//! only when it is written to.
//!
//! In reading order: [`mark`] is what the upper layer has besides files, [`lower`] opens the folder, [`walk`] follows a path through both
//! layers, [`raise`] puts something into the upper layer, [`operation`] has a function for each operation of a guest, [`moves`] those for
//! moves, [`pending`] finishes them, [`compare`] finds the [`difference`] of both layers, and [`accept`] brings the difference into the folder.

mod accept;
mod base;
mod compare;
mod deliver;
mod difference;
mod hunks;
mod kept;
mod lower;
mod mark;
mod moves;
mod operation;
mod pending;
mod raise;
mod secret_file;
mod shared;
mod walk;

pub use self::accept::{AcceptError, Acceptance};
pub use self::deliver::FolderDelivery;
pub use self::difference::{
    ChangeGroup, EndingCount, EntryKind, EntryLook, FolderChange, FolderChangeKind, FolderDifference, FolderSelection,
    ListedChange, NewCommit, RepositoryChange,
};
pub use self::hunks::{HunkError, HunkLine, TextChange, TextHunk};
pub(crate) use self::kept::FolderDirs;
pub(crate) use self::operation::{FileAccess, GuestPath};
pub(crate) use self::pending::{PendingEntry, PendingOpen};
pub(crate) use self::raise::LayerWriter;
pub use self::shared::{ShareError, SharedChanges, SharedEdit, SharedEntry, SharedFiles, SharedHistory};

use self::base::{Bases, FileState};
use self::lower::Lower;
use self::shared::SharedLayer;
use crate::effect::label::LabelId;
use kiso_base::home::{Home, SHARED, SessionFolder, SessionName};
use kiso_base::system::path_of;
use kiso_plan::label::Label;
use rustix::fs::Stat;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// A folder with the changes that a session has made to it.
#[derive(Debug)]
pub struct Overlay {
    home: Home,
    /// Its path for tasks, such as `/project`.
    at: String,
    /// The session's directory of the folder.
    kept: PathBuf,
    lower: Lower,
    upper: Arc<OwnedFd>,
    /// The path without links, as the system names it.
    upper_path: PathBuf,
    bases: Mutex<Bases>,
    is_writable: bool,
    /// Whether files with credentials are shown like others.
    shows_secrets: bool,
    /// Files that were hidden and not reported to the task yet.
    refused: Mutex<Vec<PathBuf>>,
    /// The state of the shared files' overlay; `None` for other folders.
    shared: Option<SharedLayer>,
}

/// Names in a folder.
#[derive(Debug, Clone, Default)]
pub struct TopNames {
    pub shown: Vec<String>,
    /// The number of other names.
    pub more: usize,
    /// The most frequent extensions of files, with the number of files.
    pub endings: Vec<(String, usize)>,
}

/// Extensions that are counted for a model.
const MAX_ENDINGS: usize = 8;

/// A directory that a guest has open.
#[derive(Debug)]
pub(crate) struct OverlayDir {
    pub overlay: Arc<Overlay>,
    /// Its path in the merged tree.
    pub base: PathBuf,
    pub is_upper: bool,
    /// Whether the guest may change the folder's copy.
    pub is_writable: bool,
}

/// Hidden files that are remembered until they are reported, at most.
const MAX_REFUSED: usize = 20;

impl Overlay {
    /// Opens a folder of a session, with the changes that were made to it. The caller holds the session's lock.
    pub fn open(home: &Home, session: &SessionName, folder: &SessionFolder) -> io::Result<Self> {
        let kept = home.folder_dir(session, &folder.at);
        let upper_path = kept.join(UPPER);
        std::fs::create_dir_all(&upper_path)?;
        let upper = rustix::fs::open(&upper_path, lower::DIRECTORY, rustix::fs::Mode::empty())?;
        let upper_path = path_of(&upper)?;
        let shared = (folder.at == SHARED).then(|| SharedLayer::new(home, session));
        let overlay = Self {
            home: home.clone(),
            at: folder.at.clone(),
            lower: Lower::open(&folder.path)?,
            upper: Arc::new(upper),
            upper_path,
            bases: Mutex::new(Bases::open(&kept.join(BASES))?),
            kept,
            is_writable: folder.write,
            shows_secrets: folder.secrets,
            refused: Mutex::default(),
            shared,
        };
        overlay.recover()?;
        Ok(overlay)
    }

    pub fn mount_point(&self) -> &str {
        &self.at
    }

    /// The upper layer. It represents the folder where a directory of the session is needed.
    pub(crate) fn upper_path(&self) -> &Path {
        &self.upper_path
    }

    /// The label of everything in the folder: the user chose it, others may have written it.
    pub(crate) fn label(&self) -> LabelId {
        match &self.shared {
            Some(shared) => shared.label(),
            None => LabelId::from_label(&Label::attached()),
        }
    }

    /// Whether it has the files that all sessions share.
    pub(crate) fn is_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// Takes the paths that were hidden since the last call. A file is checked for credentials when it is opened.
    pub(crate) fn take_refused(&self) -> Vec<PathBuf> {
        std::mem::take(&mut self.refused.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether something in the folder may not be renamed, because its name is the reason why it is hidden.
    fn hides(&self, path: &Path, is_dir: bool, seen: &Path) -> bool {
        match is_dir {
            true => !self.shows_secrets && secret_file::is_secret_dir(path),
            false => self.is_refused(path, seen),
        }
    }

    /// Whether a file of the folder is hidden. `seen` is the requested path, for the report to the task.
    fn is_refused(&self, path: &Path, seen: &Path) -> bool {
        if self.shows_secrets || !secret_file::is_secret(path, || self.lower.open_file(path)) {
            return false;
        }
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.len() < MAX_REFUSED && !refused.iter().any(|known| known == seen) {
            refused.push(seen.to_owned());
        }
        true
    }

    /// The first names in the folder: directories, with a slash at the end, then files, then hidden ones.
    pub fn top_names(&self, most: usize) -> io::Result<TopNames> {
        let (mut names, mut endings) = (Vec::new(), BTreeMap::new());
        for (name, kind) in self.names(Path::new(""))? {
            let is_dir = kind == rustix::fs::FileType::Directory;
            let name = format!("{}{}", name.to_string_lossy(), if is_dir { "/" } else { "" });
            if let Some((_, ending)) = name.rsplit_once('.').filter(|(stem, _)| !is_dir && !stem.is_empty()) {
                *endings.entry(ending.to_ascii_lowercase()).or_insert(0) += 1;
            }
            names.push((name.starts_with('.'), !is_dir, name));
        }
        names.sort();
        let more = names.len().saturating_sub(most);
        names.truncate(most);
        let mut endings: Vec<(String, usize)> = endings.into_iter().collect();
        endings.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        endings.truncate(MAX_ENDINGS);
        Ok(TopNames { shown: names.into_iter().map(|(.., name)| name).collect(), more, endings })
    }

    /// Remembers the folder's state of a path before its first change.
    fn remember(&self, path: &Path, stat: Option<&Stat>) -> io::Result<()> {
        self.remember_state(path, stat.map(FileState::from_stat))
    }

    fn remember_state(&self, path: &Path, state: Option<FileState>) -> io::Result<()> {
        self.bases.lock().unwrap_or_else(PoisonError::into_inner).set(path, state)
    }

    /// The path of an open file in the merged tree. `None` if it is elsewhere.
    fn base_of(&self, path: &Path) -> Option<(PathBuf, bool)> {
        let upper = path.strip_prefix(&self.upper_path).map(|base| (base.to_owned(), true));
        upper.or_else(|_| path.strip_prefix(self.lower.path()).map(|base| (base.to_owned(), false))).ok()
    }
}

/// The overlays that a task sees.
#[derive(Debug, Clone, Default)]
pub struct Overlays {
    all: Arc<[Arc<Overlay>]>,
    is_read_only: bool,
}

impl Overlays {
    pub fn new(overlays: Vec<Arc<Overlay>>) -> Self {
        Self { all: overlays.into(), is_read_only: false }
    }

    /// The same for a guest without write access.
    pub(crate) fn read_only(&self) -> Self {
        Self { is_read_only: true, ..self.clone() }
    }

    /// Opens a directory by the path that tasks see, in either layer. `None` if it is not in a folder.
    pub(crate) fn open_dir(&self, path: &str) -> Option<OwnedFd> {
        let below = |overlay: &Overlay| {
            let rest = path.strip_prefix(overlay.mount_point())?;
            (rest.is_empty() || rest.starts_with('/')).then(|| PathBuf::from(rest.trim_start_matches('/')))
        };
        let (overlay, path) = self.all.iter().find_map(|overlay| Some((overlay, below(overlay)?)))?;
        overlay.open_dir(&path).ok()
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Arc<Overlay>> {
        self.all.iter()
    }

    /// The overlay that contains an open directory.
    pub(crate) fn find(&self, dir: impl AsFd) -> Option<OverlayDir> {
        if self.all.is_empty() {
            return None;
        }
        let path = path_of(dir).ok()?;
        self.all.iter().find_map(|overlay| {
            let (base, is_upper) = overlay.base_of(&path)?;
            let is_writable = overlay.is_writable && !self.is_read_only;
            Some(OverlayDir { overlay: overlay.clone(), base, is_upper, is_writable })
        })
    }
}

/// The upper layer, in the session's directory of the folder.
const UPPER: &str = "upper";

/// The states of the folder's files.
const BASES: &str = "bases";

#[cfg(test)]
mod tests;
