//! Connections that only read. In WAL mode they neither wait for the writer nor keep it waiting.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rusqlite::{Connection, TransactionBehavior};

use super::{StoreError, View, connect};

/// Connections that are kept open while nobody reads. More than that are opened when needed and closed after it, so
/// that a reader never waits for another.
const IDLE: usize = 4;

#[derive(Debug)]
pub(super) struct Readers {
    path: PathBuf,
    /// `None` when the store is closed.
    idle: Mutex<Option<Vec<Connection>>>,
}

impl Readers {
    pub fn new(path: &Path) -> Readers {
        Readers { path: path.to_path_buf(), idle: Mutex::new(Some(Vec::new())) }
    }

    pub fn read<T>(&self, work: impl FnOnce(&View<'_>) -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.try_read(work).map_err(|error| error.in_file(&self.path))
    }

    fn try_read<T>(&self, work: impl FnOnce(&View<'_>) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).as_mut().ok_or(StoreError::Closed)?.pop();
        let mut conn = match idle {
            Some(conn) => conn,
            None => {
                let conn = connect(&self.path)?;
                conn.pragma_update(None, "query_only", true)?;
                // In KiB: a read takes a window or a page of a listing. Without this, each grows to 2 MB and stays there.
                conn.pragma_update(None, "cache_size", -512)?;
                conn
            }
        };
        // One transaction, so that several queries see the same state.
        let snapshot = conn.transaction_with_behavior(TransactionBehavior::Deferred)?;
        let result = work(&View::new(&snapshot));
        drop(snapshot);
        if let Some(idle) = self.idle.lock().unwrap_or_else(PoisonError::into_inner).as_mut()
            && idle.len() < IDLE
        {
            idle.push(conn);
        }
        result
    }

    pub fn close(&self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}
