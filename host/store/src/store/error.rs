use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;
use rusqlite::ffi::SQLITE_IOERR_SHMSIZE;

use super::id::{NoRandomNumbers, RunId};

/// Why the store refused an operation. A failed write leaves nothing behind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    #[error("{} cannot be written: the disk is full; free some space and try again", path.display())]
    DiskFull { path: PathBuf },
    #[error("{} is locked: another process has kept it for more than 10 seconds; look for one that hangs", path.display())]
    Locked { path: PathBuf },
    #[error("{} cannot be written: the file or its directory is read-only", path.display())]
    ReadOnly { path: PathBuf },
    #[error("{} cannot be opened: {detail}", path.display())]
    CannotOpen { path: PathBuf, detail: String },
    #[error(
        "{} is damaged ({detail}): `kiso restore FILE` puts a backup in its place; without one, move it (with its -wal and -shm files) and the directory sessions away to start with an empty one",
        path.display()
    )]
    Corrupt { path: PathBuf, detail: String },
    #[error(
        "{} is missing or empty, and the files of {sessions} sessions are beside it: `kiso restore FILE` puts a backup in its place; without one, move the directory sessions away to start with an empty store",
        path.display()
    )]
    Lost { path: PathBuf, sessions: usize },
    #[error("{} is a database of another program: move it away", path.display())]
    Foreign { path: PathBuf },
    #[error(
        "{} is at version {found} and this kiso knows versions up to {known}: it was used by a newer kiso; run that one, or put an older copy back",
        path.display()
    )]
    Newer { path: PathBuf, found: u32, known: u32 },
    #[error(
        "{} was made with another text of migration {version} ({name}) than this kiso has: run the kiso that made it",
        path.display()
    )]
    Changed { path: PathBuf, version: u32, name: String },
    #[error("{} cannot keep a write-ahead log here (journal mode is {mode}): put the home on a local disk", path.display())]
    NoWal { path: PathBuf, mode: String },
    #[error("the store is closed")]
    Closed,
    /// If commits are stored elsewhere: another member of the fleet has taken over, or this member's commits cannot be stored.
    #[error("nothing is written here any more: {why}")]
    Fenced { why: String },
    #[error("a write to the store failed because of a bug in kiso: {message}")]
    Panicked { message: String },
    #[error("{} could not be read or written: {detail}", path.display())]
    Io { path: PathBuf, detail: String },
    #[error("{}: {detail}", path.display())]
    Other { path: PathBuf, detail: String },

    #[error("there is no run {text:?}: see kiso trace for the runs there are")]
    NoRun { text: String },
    #[error("{text:?} could be any of {}{}: write more of it", list(runs), if *more { " and more" } else { "" })]
    Ambiguous { text: String, runs: Vec<RunId>, more: bool },
    #[error("the run {run} has ended and cannot end again")]
    Ended { run: RunId },
    /// The event exists already: it was appended by another process, or before a crash.
    #[error("the run {run} already has an event {seq}")]
    Duplicate { run: RunId, seq: u32 },
    #[error("event {seq} of run {run} does not follow {}", last.map_or("an empty log, which starts with 0 or 1".to_owned(), |last| format!("event {last}")))]
    Gap { run: RunId, seq: u32, last: Option<u32> },

    #[error("a key must have 1 to {max} bytes, and this has {bytes}")]
    BadKey { bytes: usize, max: usize },
    #[error(
        "there are {max} sessions already, as many as limits.max_sessions in config.toml allows: delete some with `kiso session delete`, or raise it"
    )]
    Sessions { max: u64 },
    /// A limit that does not depend on the disk: a number or a size.
    #[error("{what}: at most {max} are allowed")]
    Quota { what: &'static str, max: u64 },
}

fn list(runs: &[RunId]) -> String {
    runs.iter().map(RunId::as_str).collect::<Vec<_>>().join(", ")
}

/// SQLite's messages about a file that is not an intact database.
const DAMAGED: [&str; 2] = ["disk image is malformed", "file is not a database"];

impl From<NoRandomNumbers> for StoreError {
    fn from(error: NoRandomNumbers) -> Self {
        Self::from_io(std::io::Error::other(error))
    }
}

impl StoreError {
    /// Whether the same operation may succeed a moment later: the cause is the machine, and not the data.
    pub fn may_pass(&self) -> bool {
        use StoreError::*;
        matches!(self, DiskFull { .. } | Locked { .. } | CannotOpen { .. } | Io { .. })
    }

    /// Adds the path to errors that are about the file.
    pub(super) fn in_file(mut self, file: &Path) -> StoreError {
        use StoreError::*;
        match &mut self {
            DiskFull { path }
            | Locked { path }
            | ReadOnly { path }
            | CannotOpen { path, .. }
            | Corrupt { path, .. }
            | Foreign { path }
            | Newer { path, .. }
            | Changed { path, .. }
            | NoWal { path, .. }
            | Io { path, .. }
            | Other { path, .. } => *path = file.to_path_buf(),
            _ => {}
        }
        self
    }

    pub(super) fn from_io(error: std::io::Error) -> StoreError {
        let path = PathBuf::new();
        match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => StoreError::DiskFull { path },
            std::io::ErrorKind::ReadOnlyFilesystem => StoreError::ReadOnly { path },
            _ => StoreError::CannotOpen { path, detail: error.to_string() },
        }
    }

    /// Returns SQLite's description if the error is damage to the file itself. An invalid row is not damage.
    pub(super) fn damage_of_file(&self) -> Option<&str> {
        match self {
            StoreError::Corrupt { detail, .. } if DAMAGED.iter().any(|words| detail.contains(words)) => Some(detail),
            _ => None,
        }
    }

    /// The error of database content that this program would not write.
    pub fn corrupt(detail: impl Into<String>) -> StoreError {
        StoreError::Corrupt { path: PathBuf::new(), detail: detail.into() }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> StoreError {
        let path = PathBuf::new();
        let detail = error.to_string();
        match error.sqlite_error() {
            Some(code) if code.extended_code == SQLITE_IOERR_SHMSIZE => StoreError::DiskFull { path },
            Some(code) => match code.code {
                ErrorCode::DiskFull => StoreError::DiskFull { path },
                ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => StoreError::Locked { path },
                ErrorCode::ReadOnly => StoreError::ReadOnly { path },
                ErrorCode::SystemIoFailure => StoreError::Io { path, detail },
                ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => StoreError::Corrupt { path, detail },
                ErrorCode::CannotOpen | ErrorCode::PermissionDenied => StoreError::CannotOpen { path, detail },
                _ => StoreError::Other { path, detail },
            },
            None => StoreError::Other { path, detail },
        }
    }
}
