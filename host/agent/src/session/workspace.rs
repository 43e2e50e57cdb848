//! The files of a workspace for people: listing, reading, writing and deleting them, while tasks may be working in it.
//!
//! Guests write there, too, so links are never followed, operations never block, and the work is bounded however many entries
//! there are. Files and directories whose names begin with a dot are left out, as for planners.

use std::collections::VecDeque;
use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::UNIX_EPOCH;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, MetadataExt as _};
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use schemars::JsonSchema;
use serde::Deserialize;

use kiso_base::home::{GUIDANCE, Home, HomeError, SessionName, temp_name};
use kiso_plan::label::Label;
use kiso_sandbox::effect::files::{EntryChange, FileLabels};
use kiso_sandbox::effect::label::LabelId;
use kiso_sandbox::skill::LimitHit;
use kiso_sandbox::skill::{Charge, Quota};
use kiso_store::store::PublishedFile;

/// Maximum length of a path in bytes, and number of its parts.
const MAX_PATH: usize = 1_024;
const MAX_DEPTH: usize = 16;

/// Maximum length of a name in bytes, the limit of all file systems.
const MAX_NAME: usize = 255;

/// Maximum number of entries of any kind that a listing reads.
const MAX_ENTRIES: usize = 20_000;

/// Prefix of the names of incomplete files, which are beside the workspace.
const UPLOAD: &str = "upload-";

/// A path in a workspace or among the shared files: names joined by slashes, none of them hidden.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(!try_from, inline)]
pub struct FilePath(#[schemars(regex(pattern = PATH))] String);

/// The rule of [`FilePath::parse`].
const PATH: &str = r"^[^./\\\u0000-\u001f\u007f-\u009f][^/\\\u0000-\u001f\u007f-\u009f]*(/[^./\\\u0000-\u001f\u007f-\u009f][^/\\\u0000-\u001f\u007f-\u009f]*){0,15}$";

/// Why a file cannot be reached, or written. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("{path:?} cannot be the path of a file: {rule}")]
    BadPath { path: String, rule: &'static str },
    #[error("there is no file {path:?} in the workspace")]
    Missing { path: String },
    /// An entry exists that must not be replaced, or cannot be.
    #[error("{path:?} already exists")]
    Taken { path: String },
    #[error("{path:?} is a directory")]
    Directory { path: String },
    #[error("{path:?} is not a directory, so nothing can stand below it")]
    NoDirectory { path: String },
    #[error("the file does not fit: {0}")]
    Full(LimitHit),
    #[error(transparent)]
    Home(#[from] HomeError),
    #[error("the workspace cannot be used: {0}")]
    Io(#[from] io::Error),
}

/// A file of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileLine {
    pub path: String,
    pub bytes: u64,
    /// Milliseconds since 1970.
    pub modified_ms: i64,
}

impl TryFrom<String> for FilePath {
    type Error = FileError;

    fn try_from(path: String) -> Result<FilePath, FileError> {
        FilePath::parse(&path)
    }
}

impl From<FilePath> for String {
    fn from(path: FilePath) -> String {
        path.0
    }
}

impl FilePath {
    pub fn parse(path: &str) -> Result<FilePath, FileError> {
        let names = || path.split('/');
        let rule = if path.len() > MAX_PATH || names().count() > MAX_DEPTH || names().any(|name| name.len() > MAX_NAME)
        {
            "it has at most 1,024 bytes, and 16 names of at most 255 bytes"
        } else if names().any(str::is_empty) {
            "it is names joined by single slashes, and begins with a name"
        } else if names().any(|name| name.starts_with('.')) {
            "no name in it begins with a dot"
        } else if path.chars().any(|c| c.is_control() || c == '\\') {
            "it has no control characters and no backslash"
        } else {
            return Ok(FilePath(path.to_owned()));
        };
        Err(FileError::BadPath { path: path.chars().take(80).collect(), rule })
    }

    /// Returns the path of a file that is copied to the top of the workspace under its own name, hidden or not.
    pub(super) fn of_name(name: &str) -> FilePath {
        FilePath(name.to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the directory, empty or names joined by slashes, and the name in it.
    fn split(&self) -> (&str, &str) {
        self.0.rsplit_once('/').unwrap_or(("", &self.0))
    }

    fn missing(&self) -> FileError {
        FileError::Missing { path: self.0.clone() }
    }
}

/// Returns the files of a workspace, by path, and whether the list is complete: there may be too many entries. Empty if the
/// session was never used.
pub fn list(home: &Home, session: &SessionName) -> Result<(Vec<FileLine>, bool), FileError> {
    let work = match home.open_work(session) {
        Ok(work) => work,
        Err(_) if !home.work_dir(session).exists() => return Ok((Vec::new(), true)),
        Err(error) => return Err(error.into()),
    };
    list_in(&work)
}

/// [`list`] for any directory.
pub fn list_in(top: &Dir) -> Result<(Vec<FileLine>, bool), FileError> {
    let (mut files, mut left, mut whole) = (Vec::new(), MAX_ENTRIES, true);
    // Level by level, so that a deep or crowded directory does not hide the levels above it.
    let mut queue = VecDeque::from([(String::new(), 1)]);
    while let Some((prefix, depth)) = queue.pop_front() {
        // An entry that was replaced since the listing is no longer a directory.
        let Ok(dir) = directory(top, prefix.trim_end_matches('/')) else { continue };
        for entry in dir.entries()? {
            if left == 0 {
                whole = false;
                break;
            }
            left -= 1;
            // A directory that cannot be read further may repeat its error forever.
            let Ok(entry) = entry else { break };
            let Ok(name) = entry.file_name().into_string() else { continue };
            if FilePath::parse(&name).is_err() {
                continue;
            }
            let Ok(meta) = dir.symlink_metadata(&name) else { continue };
            let path = format!("{prefix}{name}");
            if meta.is_dir() && depth < MAX_DEPTH {
                queue.push_back((path + "/", depth + 1));
            } else if meta.is_file() && path.len() <= MAX_PATH {
                let modified = meta.modified().ok().map(cap_std::time::SystemTime::into_std);
                let since = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
                let modified_ms = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
                files.push(FileLine { path, bytes: meta.len(), modified_ms });
            }
        }
    }
    files.sort_unstable_by(|one, other| one.path.cmp(&other.path));
    Ok((files, whole))
}

/// Opens a file for reading.
pub fn open(home: &Home, session: &SessionName, path: &FilePath) -> Result<(File, Metadata), FileError> {
    open_in(&home.open_work(session).map_err(|_| path.missing())?, path)
}

/// [`open`] below any directory.
pub fn open_in(top: &Dir, path: &FilePath) -> Result<(File, Metadata), FileError> {
    let (parent, name) = path.split();
    let dir = directory(top, parent).map_err(|_| path.missing())?;
    // If it is a pipe by now, opening it must not block.
    let file: File = enter(&dir, name, OFlags::NONBLOCK).map_err(|_| path.missing())?;
    let meta = file.metadata()?;
    if meta.is_file() { Ok((file, meta)) } else { Err(path.missing()) }
}

/// Opens a published file, by its path in the store. A link in its path, or in its place, is not followed: it would lead to a
/// file that nobody published.
pub fn open_published(home: &Home, session: &SessionName, path: &str) -> Option<(File, Metadata)> {
    let work = home.open_work(session).ok()?;
    let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
    let file: File = enter(&directory(&work, parent).ok()?, name, OFlags::NONBLOCK).ok()?;
    let meta = file.metadata().ok()?;
    meta.is_file().then_some((file, meta))
}

/// Why a published file is not served.
pub const CHANGED_SINCE: &str = "the file was changed by text from outside since it was published";

/// Returns whether a published file may still be served: text from outside has not changed it or its name since it was published.
/// Called after it was opened.
pub fn is_as_published(home: &Home, file: &PublishedFile) -> bool {
    let labels = FileLabels::of_session(home, &file.session);
    if labels.is_empty() {
        return true;
    }
    let was = LabelId::from_label(&file.label).join(LabelId::session());
    let now = home.open_work(&file.session).map(|work| labels.of_entry(&work, file.path.as_ref(), false));
    now.is_ok_and(|now| was.join(now) == was)
}

/// Returns the label of a file that the user attaches under this path. Guidance files get the user's own label, because they are
/// meant as instructions.
pub fn attached_label(path: &FilePath) -> LabelId {
    let is_heeded = GUIDANCE.contains(&path.as_str());
    if is_heeded { LabelId::default() } else { LabelId::from_label(&Label::attached()) }
}

/// Gives a file, its content and its name, the user's label from now on.
pub fn trust(home: &Home, session: &SessionName, path: &FilePath, quota: &Quota) -> Result<(), FileError> {
    let (dir, name) = existing(home, session, path)?;
    let (file, _) = open(home, session, path)?;
    if let Some(labels) = quota.labels() {
        labels.put_back(&file, LabelId::default())?;
        labels.replacing(&dir, name.as_ref(), LabelId::default())?.done()?;
    }
    Ok(())
}

/// Deletes a file, or a link in its place. Directories stay.
pub fn remove(home: &Home, session: &SessionName, path: &FilePath, quota: &Quota) -> Result<(), FileError> {
    let (dir, name) = existing(home, session, path)?;
    quota.settle();
    let there = dir.symlink_metadata(name).map_err(|_| path.missing())?;
    let unnamed = quota.labels().map(|labels| labels.unnaming(&dir, name.as_ref(), LabelId::default())).transpose()?;
    match rustix::fs::unlinkat(&dir, name, AtFlags::empty()) {
        Ok(()) => {
            unnamed.map_or(Ok(()), EntryChange::done)?;
            quota.credit_entry(if there.nlink() == 1 { there.len() } else { 0 });
            Ok(())
        }
        Err(Errno::NOENT) => Err(path.missing()),
        // Linux returns the first, other systems the second.
        Err(Errno::ISDIR | Errno::PERM) => Err(FileError::Directory { path: path.0.clone() }),
        Err(error) => Err(io::Error::from(error).into()),
    }
}

/// A file that is received in pieces. It is written beside the workspace and moved there when it is complete, so that no task
/// sees half of it; if it is dropped before that, it is deleted.
#[derive(Debug)]
pub struct Incoming {
    session: Dir,
    /// Path of that directory, which may be deleted during the upload.
    place: PathBuf,
    work: Dir,
    name: String,
    file: File,
    bytes: u64,
    quota: Arc<Quota>,
    /// The charged space, until the file is in the workspace.
    charge: Option<Charge>,
}

impl Incoming {
    /// Starts a file for this session, whose directories are created if necessary. The added space is charged to `quota`.
    pub fn begin(home: &Home, session: &SessionName, quota: Arc<Quota>) -> Result<Incoming, FileError> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let own = format!("{UPLOAD}{}-", std::process::id());
        let name = format!("{own}{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let incoming = Incoming::open(home, session, quota, name)?;
        sweep(&incoming.session, &own);
        Ok(incoming)
    }

    /// The same for a process that holds the session's lock and is not the daemon: remains are removed with the next lock.
    pub fn begin_locked(home: &Home, session: &SessionName, quota: Arc<Quota>) -> Result<Incoming, FileError> {
        Incoming::open(home, session, quota, temp_name())
    }

    fn open(home: &Home, session: &SessionName, quota: Arc<Quota>, name: String) -> Result<Incoming, FileError> {
        home.create_session(session)?;
        let work = home.open_work(session)?;
        let place = home.session_dir(session);
        let dir = Dir::open_ambient_dir(&place, ambient_authority())?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let charge = quota.entry().map_err(FileError::Full)?;
        let file = match rustix::fs::openat(&dir, &name, flags, Mode::RUSR | Mode::WUSR) {
            Ok(file) => file,
            Err(error) => {
                charge.give_back();
                return Err(io::Error::from(error).into());
            }
        };
        Ok(Incoming { session: dir, place, work, name, file: file.into(), bytes: 0, quota, charge: Some(charge) })
    }

    pub fn write(&mut self, piece: &[u8]) -> Result<(), FileError> {
        let charge = self.quota.write(piece.len() as u64).map_err(FileError::Full)?;
        match &mut self.charge {
            Some(all) => all.join(charge),
            all => *all = Some(charge),
        }
        self.bytes += piece.len() as u64;
        Ok(self.file.write_all(piece)?)
    }

    /// Moves the file to its place, and creates missing directories; returns its length. An existing file is replaced only with
    /// `replace`, and a directory never. The file has the label of its sender from the beginning.
    pub fn finish(mut self, path: &FilePath, replace: bool, label: LabelId) -> Result<u64, FileError> {
        self.file.sync_all()?;
        // The session may have been deleted in the meantime.
        let (was, is) = (self.session.dir_metadata()?, std::fs::metadata(&self.place));
        if !is.is_ok_and(|is| (is.dev(), is.ino()) == (was.dev(), was.ino())) {
            return Err(path.missing());
        }
        let (parent, name) = path.split();
        let labels = self.quota.labels().cloned();
        let mut dir = self.work.try_clone()?;
        for part in parent.split('/').filter(|part| !part.is_empty()) {
            let charge = self.quota.entry().map_err(FileError::Full)?;
            let named = labels.as_ref().map(|labels| labels.naming(&dir, part.as_ref(), label)).transpose()?;
            match dir.create_dir(part) {
                Ok(()) => {
                    drop(charge);
                    labels.as_ref().map_or(Ok(()), |labels| labels.made_at(&dir, part.as_ref(), label))?;
                    named.map_or(Ok(()), EntryChange::done)?;
                }
                Err(error) => {
                    charge.give_back();
                    if error.kind() != io::ErrorKind::AlreadyExists {
                        return Err(error.into());
                    }
                }
            }
            let opened = enter(&dir, part, OFlags::DIRECTORY);
            dir = opened.map_err(|_| FileError::NoDirectory { path: parent.to_owned() })?;
        }
        let old = dir.symlink_metadata(name).ok().filter(|meta| meta.is_file());
        // A file with other names still exists.
        let old = old.map(|meta| if meta.nlink() == 1 { meta.len() } else { 0 });
        // The sender is the author, whatever had this name before.
        let named = match &labels {
            Some(labels) => {
                labels.made(&self.file, label)?;
                Some(labels.replacing(&dir, name.as_ref(), label)?)
            }
            None => None,
        };
        let flags = if replace { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
        let moved = match rustix::fs::renameat_with(&self.session, &self.name, &dir, name, flags) {
            // Some file systems cannot check this atomically; then two concurrent uploads may both find the name free.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) if !replace => match dir.symlink_metadata(name) {
                Ok(_) => Err(Errno::EXIST),
                Err(_) => rustix::fs::renameat(&self.session, &self.name, &dir, name),
            },
            moved => moved,
        };
        match moved {
            Ok(()) => {
                drop(self.charge.take());
                named.map_or(Ok(()), EntryChange::done)?;
                if let Some(old) = old {
                    self.quota.credit_entry(old);
                }
                Ok(self.bytes)
            }
            Err(Errno::ISDIR | Errno::NOTEMPTY) => Err(FileError::Directory { path: path.0.clone() }),
            Err(Errno::EXIST) => Err(FileError::Taken { path: path.0.clone() }),
            Err(error) => Err(io::Error::from(error).into()),
        }
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        let Some(charge) = self.charge.take() else { return };
        let _ = self.session.remove_file(&self.name);
        charge.give_back();
        // Removes the directories of a session that was never used; non-empty ones stay.
        if !self.session.exists("lock") {
            for made in ["work/pub", "work", ""] {
                let _ = std::fs::remove_dir(self.place.join(made));
            }
        }
    }
}

/// Removes the remains of uploads of killed processes beside the workspace.
fn sweep(session: &Dir, own: &str) {
    for entry in session.entries().into_iter().flatten().flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        if name.starts_with(UPLOAD) && !name.starts_with(own) {
            let _ = session.remove_file(&name);
        }
    }
}

/// Returns the directory of a file, and its name there.
fn existing<'a>(home: &Home, session: &SessionName, path: &'a FilePath) -> Result<(Dir, &'a str), FileError> {
    let work = home.open_work(session).map_err(|_| path.missing())?;
    let (parent, name) = path.split();
    Ok((directory(&work, parent).map_err(|_| path.missing())?, name))
}

/// Returns the directory at `path` below `work`, no part of which may be a link.
fn directory(work: &Dir, path: &str) -> io::Result<Dir> {
    let mut dir = work.try_clone()?;
    for part in path.split('/').filter(|part| !part.is_empty()) {
        dir = enter(&dir, part, OFlags::DIRECTORY)?;
    }
    Ok(dir)
}

/// Opens an entry without following a link. `name` is a plain name: it has no slash and is not `..`.
fn enter<T: From<std::os::fd::OwnedFd>>(dir: &Dir, name: &str, flags: OFlags) -> io::Result<T> {
    let flags = flags | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(T::from(rustix::fs::openat(dir, name, flags, Mode::empty())?))
}
