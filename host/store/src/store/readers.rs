//! Read-only connections. In WAL mode, they neither wait for the writer nor block it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::commit_log::Gate;
use super::file::{FileId, connect_file};
use super::{StoreError, View};

/// Maximum idle connections that are kept open. Further ones are opened when needed and closed afterwards, so that no reader
/// waits for a slow one.
const IDLE: usize = 4;

/// How long a reader waits for one of them: opening another one costs as much as a hundred typical reads.
const PATIENCE: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub(super) struct Readers {
    path: PathBuf,
    /// `None` if the store is closed.
    idle: Mutex<Option<Vec<FileConnection>>>,
    /// One for each of [`IDLE`].
    slots: Arc<Semaphore>,
    /// Closed while a commit is not stored elsewhere yet, if commits are shipped.
    gate: Option<Arc<Gate>>,
    /// The first damage that was found.
    damage: OnceLock<String>,
}

#[derive(Debug)]
struct FileConnection {
    conn: Connection,
    file: FileId,
}

impl Readers {
    pub(super) fn new(path: &Path, gate: Option<Arc<Gate>>) -> Readers {
        let (idle, slots) = (Mutex::new(Some(Vec::new())), Arc::new(Semaphore::new(IDLE)));
        Readers { path: path.to_path_buf(), idle, slots, gate, damage: OnceLock::new() }
    }

    /// Waits a short time for one of the open connections.
    pub(super) async fn slot(&self) -> Option<OwnedSemaphorePermit> {
        match self.slots.clone().try_acquire_owned().ok() {
            Some(slot) => Some(slot),
            None => timeout(PATIENCE, self.slots.clone().acquire_owned()).await.ok()?.ok(),
        }
    }

    /// The same without waiting.
    pub(super) fn free_place(&self) -> Option<OwnedSemaphorePermit> {
        if self.gate.as_ref().is_some_and(|gate| !gate.is_open()) {
            return None;
        }
        self.slots.clone().try_acquire_owned().ok()
    }

    pub(super) fn read<T>(&self, work: impl FnOnce(&View<'_>) -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.try_read(work).map_err(|error| self.noted(error))
    }

    /// Adds the path to the error of a read or a write. Damage of the file is remembered.
    pub(super) fn noted(&self, error: StoreError) -> StoreError {
        if let Some(detail) = error.damage_of_file() {
            let _ = self.damage.set(detail.to_owned());
        }
        error.in_file(&self.path)
    }

    /// Remembers the result of a check.
    pub(super) fn note_damage(&self, detail: &str) {
        let _ = self.damage.set(detail.to_owned());
    }

    pub(super) fn damage(&self) -> Option<&str> {
        self.damage.get().map(String::as_str)
    }

    fn try_read<T>(&self, work: impl FnOnce(&View<'_>) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let FileConnection { conn, file } = match self.idle()? {
            Some(idle) => idle,
            None => self.open()?,
        };
        // One transaction, so that several queries see the same state.
        self.begin(&conn)?;
        let result = work(&View::new(&conn));
        // SQLite may have ended it, because of a disk error.
        let ended = conn.is_autocommit() || conn.prepare_cached("ROLLBACK")?.execute(()).is_ok();
        if let Some(idle) = self.idle.lock().unwrap_or_else(PoisonError::into_inner).as_mut()
            && idle.len() < IDLE
            && ended
        {
            idle.push(FileConnection { conn, file });
        }
        result
    }

    /// Returns an idle connection to the current file. The file of a fleet's owner is never replaced.
    fn idle(&self) -> Result<Option<FileConnection>, StoreError> {
        let now = if self.gate.is_none() { FileId::from_path(&self.path) } else { None };
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let idle = idle.as_mut().ok_or(StoreError::Closed)?;
        if let Some(now) = now {
            idle.retain(|idle| idle.file == now);
        }
        Ok(idle.pop())
    }

    fn open(&self) -> Result<FileConnection, StoreError> {
        let (conn, file) = connect_file(&self.path)?;
        conn.pragma_update(None, "query_only", true)?;
        // In KiB: a read needs a window or a page of a listing. Without this limit, each connection grows to 2 MB.
        conn.pragma_update(None, "cache_size", -512)?;
        Ok(FileConnection { conn, file })
    }

    fn begin(&self, conn: &Connection) -> Result<(), StoreError> {
        let passed = self.gate.as_ref().map(|gate| gate.pass());
        conn.prepare_cached("BEGIN DEFERRED")?.execute(())?;
        if passed.is_some() {
            // The snapshot begins with the first read.
            conn.prepare_cached("SELECT 1 FROM sqlite_schema LIMIT 1")?.query_row((), |_| Ok(()))?;
        }
        Ok(())
    }

    pub(super) fn close(&self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}
