//! Copies of the whole store: making one while others write, and replacing the store by one.
//!
//! ```text
//! backup:  a reader's snapshot ──VACUUM INTO──▶ FILE.part ──integrity_check, fsync──▶ FILE
//! restore: FILE ──copy──▶ .new-… ──integrity_check, migrations, fsync──▶ store.db
//!                                    the store that was there ──▶ store.db.before-restore-…
//! ```
//!
//! At every moment, the name of the store refers to a complete store, and the name of the backup to a complete backup or to
//! nothing.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags, OptionalExtension};
use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::io::Errno;

use super::migrations::{self, ALL};
use super::sessions::session_name;
use super::{Mark, Store, StoreError, View, connect};
use kiso_base::home::SessionName;

/// A copy that was made or restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreCopy {
    pub bytes: u64,
    /// The version of its tables.
    pub version: u32,
    /// The path of the previous store, if there was one.
    pub kept: Option<PathBuf>,
}

/// Why a backup was not made or restored. Nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    #[error("{} already exists: choose another name, or replace it with --force", path.display())]
    Exists { path: PathBuf },
    #[error("{} is the store itself: choose another name", path.display())]
    Itself { path: PathBuf },
    #[error("{} is not a backup of kiso: choose a file that `kiso backup` made", path.display())]
    NoBackup { path: PathBuf },
    #[error("{} is damaged ({detail}) and was not restored: choose an older backup", path.display())]
    Damaged { path: PathBuf, detail: String },
    #[error("{} is a store in use, with a log beside it, and no backup: make one of it with `kiso backup`", path.display())]
    Live { path: PathBuf },
    #[error("{} is in use by another kiso: end its runs and chats, and try again", path.display())]
    InUse { path: PathBuf },
    #[error("failed to {doing} {}: {error}", path.display())]
    Io { doing: &'static str, path: PathBuf, error: io::Error },
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn failed(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> BackupError {
    move |error| BackupError::Io { doing, path: path.to_path_buf(), error }
}

impl Store {
    /// Copies the current store to `to` (0600), compact and complete, while others continue to write. Replaces an existing file
    /// only with `force`, and only once the new one is complete.
    pub fn back_up(&self, to: &Path, force: bool, now_ms: i64) -> Result<StoreCopy, BackupError> {
        if same_file(to, self.path()) {
            return Err(BackupError::Itself { path: to.to_path_buf() });
        }
        if !force && to.symlink_metadata().is_ok() {
            return Err(BackupError::Exists { path: to.to_path_buf() });
        }
        remove_parts(to);
        let part = part_of(to);
        let copied = self.copy_to(&part).and_then(|copied| {
            place(&part, to, force)?;
            Ok(copied)
        });
        if copied.is_err() {
            let _ = fs::remove_file(&part);
        }
        let copied = copied?;
        self.write_blocking(move |tx| tx.mark(Mark::Backup, now_ms))?;
        Ok(copied)
    }

    fn copy_to(&self, part: &Path) -> Result<StoreCopy, BackupError> {
        let name = part.to_str().ok_or_else(|| failed("write", part)(io::Error::other("its name is not UTF-8")))?;
        // SQLite would make it readable for all; it accepts an existing empty file.
        let made = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(part);
        let file = made.map_err(failed("create", part))?;
        let of_store = |error: rusqlite::Error| StoreError::from(error).in_file(self.path());
        let conn = connect(self.path()).map_err(|error| error.in_file(self.path()))?;
        // For a store that is older than this setting.
        conn.pragma_update(None, "auto_vacuum", "INCREMENTAL").map_err(of_store)?;
        conn.execute("VACUUM INTO ?1", [name]).map_err(|error| match StoreError::from(error) {
            StoreError::DiskFull { .. } => failed("write", part)(io::ErrorKind::StorageFull.into()),
            other => other.in_file(self.path()).into(),
        })?;
        drop(conn);
        file.sync_all().map_err(failed("write", part))?;
        check(part)
    }
}

impl View<'_> {
    /// Returns a session with secrets, and a message with this beginning, which show whether a key is the right one. Reads
    /// messages until it finds one, so it is not for a working daemon.
    pub fn sealed_samples(&self, beginning: &str) -> Result<(Option<SessionName>, Option<String>), StoreError> {
        let mut secret =
            self.conn.prepare("SELECT s.name FROM sessions s JOIN secrets x ON x.session = s.id LIMIT 1")?;
        let secret = secret.query_row((), |row| session_name(row, 0)).optional()?;
        let mut text = self.conn.prepare("SELECT text FROM messages WHERE substr(text, 1, length(?1)) = ?1 LIMIT 1")?;
        Ok((secret, text.query_row([beginning], |row| row.get(0)).optional()?))
    }
}

/// Replaces the store at `store` by a backup; the old store is kept beside it. The caller makes sure that no daemon runs; this
/// function makes sure that nobody else has the store open. `temp` is an unused name on the same file system.
///
/// Refuses files that are not backups, damaged ones, and those of a newer kiso; migrates older ones.
pub fn restore(file: &Path, store: &Path, temp: &Path, now_ms: i64) -> Result<StoreCopy, BackupError> {
    if same_file(file, store) {
        return Err(BackupError::Itself { path: file.to_path_buf() });
    }
    if fs::metadata(beside(file, "-wal")).is_ok_and(|found| found.len() > 0) {
        return Err(BackupError::Live { path: file.to_path_buf() });
    }
    let restored =
        prepare(file, temp, now_ms).and_then(|copied| Ok(StoreCopy { kept: swap(temp, store, now_ms)?, ..copied }));
    if restored.is_err() {
        let _ = fs::remove_file(temp);
    }
    restored
}

/// Creates a complete and migrated store at `temp` from a backup.
fn prepare(file: &Path, temp: &Path, now_ms: i64) -> Result<StoreCopy, BackupError> {
    let found = fs::metadata(file).map_err(failed("read", file))?;
    if !found.is_file() {
        return Err(BackupError::NoBackup { path: file.to_path_buf() });
    }
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(temp);
    let mut out = made.map_err(failed("create", temp))?;
    let mut from = File::open(file).map_err(failed("read", file))?;
    io::copy(&mut from, &mut out).map_err(failed("copy", file))?;
    out.sync_all().map_err(failed("write", temp))?;
    drop(out);
    // An error of the copy is an error of the file.
    let of_file = |error: BackupError| match error {
        BackupError::NoBackup { .. } => BackupError::NoBackup { path: file.to_path_buf() },
        BackupError::Damaged { detail, .. } => BackupError::Damaged { path: file.to_path_buf(), detail },
        BackupError::Store(error) => BackupError::Store(error.in_file(file)),
        other => other,
    };
    let copied = check(temp).map_err(of_file)?;
    let store = Store::open(temp).map_err(|error| of_file(error.into()))?;
    store.write_blocking(move |tx| {
        // This must not log in a browser that has logged out since then.
        tx.log_everybody_out()?;
        tx.mark(Mark::Restore, now_ms)
    })?;
    store.close();
    let whole = File::open(temp).and_then(|file| file.sync_all());
    whole.map_err(failed("write", temp))?;
    Ok(copied)
}

/// Moves the store at `temp` to `store`. The previous store keeps its content and gets another name.
fn swap(temp: &Path, store: &Path, now_ms: i64) -> Result<Option<PathBuf>, BackupError> {
    let wal = beside(store, "-wal");
    let mut kept = None;
    if store.exists() {
        // Opening an intact store moves its log into the file, so that there is one file to move. A damaged store keeps its log,
        // under its new name.
        if check_version(store).is_ok()
            && let Ok(conn) = connect(store)
        {
            let _ = conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(()));
        }
        // Everybody who has it open holds a lock on it. With this lock, nobody can open it until the names are changed.
        let old = OpenOptions::new().read(true).write(true).open(store).map_err(failed("open", store))?;
        match fcntl_lock(&old, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::AGAIN | Errno::ACCESS) => return Err(BackupError::InUse { path: store.to_path_buf() }),
            Err(error) => return Err(failed("lock", store)(error.into())),
        }
        let aside = free_name(store, now_ms);
        // A link first: the name always refers to a store.
        fs::hard_link(store, &aside).map_err(failed("keep", store))?;
        if fs::metadata(&wal).is_ok_and(|found| found.len() > 0) {
            fs::hard_link(&wal, beside(&aside, "-wal")).map_err(failed("keep", &wal))?;
        }
        sync_dir(store)?;
        for gone in [&wal, &beside(store, "-shm")] {
            match fs::remove_file(gone) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed("remove", gone)(error)),
                _ => {}
            }
        }
        fs::rename(temp, store).map_err(failed("write", store))?;
        kept = Some(aside);
    } else {
        fs::rename(temp, store).map_err(failed("write", store))?;
    }
    sync_dir(store)?;
    Ok(kept)
}

/// Checks a backup without changing it.
fn check(path: &Path) -> Result<StoreCopy, BackupError> {
    let version = check_version(path)?;
    let damaged = |detail: String| BackupError::Damaged { path: path.to_path_buf(), detail };
    let conn = open_read_only(path).map_err(|error| damaged(error.to_string()))?;
    let found = View::new(&conn).integrity().map_err(|error| match error {
        StoreError::Corrupt { detail, .. } => damaged(detail),
        other => BackupError::Store(other.in_file(path)),
    })?;
    if !found.is_empty() {
        return Err(damaged(found.join("; ")));
    }
    let bytes = fs::metadata(path).map_err(failed("read", path))?.len();
    Ok(StoreCopy { bytes, version, kept: None })
}

fn check_version(path: &Path) -> Result<u32, BackupError> {
    let none = || BackupError::NoBackup { path: path.to_path_buf() };
    let applied = open_read_only(path).map_err(StoreError::from).and_then(|conn| migrations::applied(&conn, ALL));
    match applied {
        Ok(0) | Err(StoreError::Foreign { .. }) => Err(none()),
        Ok(version) => Ok(u32::try_from(version).unwrap_or(u32::MAX)),
        Err(StoreError::Corrupt { detail, .. }) => Err(BackupError::Damaged { path: path.to_path_buf(), detail }),
        Err(error) => Err(BackupError::Store(error.in_file(path))),
    }
}

fn open_read_only(path: &Path) -> rusqlite::Result<Connection> {
    Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)
}

/// Returns the path for writing an incomplete file: beside its final path, to which [`place`] moves it.
pub fn part_of(to: &Path) -> PathBuf {
    beside(to, &format!(".{}.part", std::process::id()))
}

/// Removes incomplete files that killed processes have left.
fn remove_parts(to: &Path) {
    let dir = to.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = to.file_name().unwrap_or_default().to_string_lossy().into_owned() + ".";
    let is_left = |entry: &str| {
        let maker = entry.strip_prefix(&name).and_then(|rest| rest.split_once(".part")?.0.parse().ok());
        maker.is_some_and(|maker| !kiso_base::system::is_running(maker))
    };
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(is_left) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Moves a complete file to its final path.
pub fn place(part: &Path, to: &Path, force: bool) -> Result<(), BackupError> {
    if force {
        fs::rename(part, to).map_err(failed("write", to))?;
    } else {
        // Unlike a rename, a hard link never replaces a file that somebody has put there meanwhile.
        match fs::hard_link(part, to) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(BackupError::Exists { path: to.to_path_buf() });
            }
            // A drive whose file system has no links.
            Err(error) if matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported) => {
                fs::rename(part, to).map_err(failed("write", to))?;
            }
            linked => {
                linked.map_err(failed("write", to))?;
                fs::remove_file(part).map_err(failed("remove", part))?;
            }
        }
    }
    sync_dir(to)
}

/// Returns `store.db.before-restore-20261122T113000`, with a number at the end if that exists.
fn free_name(store: &Path, now_ms: i64) -> PathBuf {
    let at = jiff::Timestamp::from_millisecond(now_ms).unwrap_or_default();
    let name = format!("{}{}", kiso_base::home::KEPT, at.strftime("%Y%m%dT%H%M%SZ"));
    let mut free = beside(store, &name);
    for n in 2.. {
        if free.symlink_metadata().is_err() {
            break;
        }
        free = beside(store, &format!("{name}-{n}"));
    }
    free
}

/// Returns the path with `ending` appended to its name.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

fn same_file(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

fn sync_dir(path: &Path) -> Result<(), BackupError> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(failed("write", dir))
}
