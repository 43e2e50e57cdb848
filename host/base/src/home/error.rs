use std::io;
use std::path::{Path, PathBuf};

use super::SessionName;

/// Why the home cannot be used. The text says what happened, where, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HomeError {
    #[error("there is no home directory (HOME is not set): choose one with --home or KISO_HOME")]
    Unknown,
    #[error("{} is not a directory: choose another home with --home or KISO_HOME", path.display())]
    NotADirectory { path: PathBuf },
    #[error(
        "{} is not a home of kiso: it already holds other things, such as {entry:?}; choose an empty or new directory with --home or KISO_HOME",
        path.display()
    )]
    NotAHome { path: PathBuf, entry: String },
    #[error(
        "the home {} belongs to the user with id {owner}, and kiso runs as {me}: run it as that user, or choose another home with --home or KISO_HOME",
        path.display()
    )]
    Foreign { path: PathBuf, owner: u32, me: u32 },
    #[error("the home {} cannot be written: its file system is read-only; choose another with --home or KISO_HOME", path.display())]
    ReadOnly { path: PathBuf },
    #[error(
        "the home {} cannot be used: permission denied; correct its owner and mode, or choose another with --home or KISO_HOME",
        path.display()
    )]
    Denied { path: PathBuf },
    #[error(
        "{} cannot be written: the disk is full; free some space, or choose a home on another disk with --home or KISO_HOME",
        path.display()
    )]
    DiskFull { path: PathBuf },
    #[error("the key {} can be read by others than you (mode {mode:03o}): run chmod 600 on it, as its owner", path.display())]
    KeyOpen { path: PathBuf, mode: u32 },
    #[error(
        "the key {} is damaged: it has {bytes} bytes, not 32; put the right one back (`kiso backup --with-key` wrote it to FILE.key), or move it away to get a new one: compiled code is then made again, and secrets and sealed messages in the store stay unreadable",
        path.display()
    )]
    KeyDamaged { path: PathBuf, bytes: u64 },
    #[error(
        "the home {} has its key in a systemd credential, kiso.key, and this process was given none: run it in the unit, or put the key back as {}/key",
        path.display(),
        path.display()
    )]
    KeyElsewhere { path: PathBuf },
    #[error(
        "{} and the credential {} are different keys: remove the one that this home was not made with",
        path.display(),
        credential.display()
    )]
    TwoKeys { path: PathBuf, credential: PathBuf },
    #[error("a session may not be named {session} here, because this file system takes it for {}", other.display())]
    SameName { session: SessionName, other: PathBuf },
    #[error("{what}{}: wait until it has finished, and try again", holder(*pid))]
    Busy {
        what: String,
        /// The process that holds the lock, if it has written its pid.
        pid: Option<u32>,
    },
    #[error("failed to {doing} {}: {error}", path.display())]
    Io { doing: &'static str, path: PathBuf, error: io::Error },
}

impl HomeError {
    pub(super) fn from_io(path: &Path, doing: &'static str, error: io::Error) -> HomeError {
        let path = path.to_path_buf();
        match error.kind() {
            io::ErrorKind::ReadOnlyFilesystem => HomeError::ReadOnly { path },
            io::ErrorKind::PermissionDenied => HomeError::Denied { path },
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => HomeError::DiskFull { path },
            io::ErrorKind::NotADirectory => HomeError::NotADirectory { path },
            _ => HomeError::Io { doing, path, error },
        }
    }
}

fn holder(pid: Option<u32>) -> String {
    pid.map(|pid| format!(" by process {pid}")).unwrap_or_default()
}
