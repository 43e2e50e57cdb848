//! The size of the file, and releasing its free pages.
//!
//! A new store has `auto_vacuum = INCREMENTAL`: free pages can be removed from its end a few at a time, while a full `VACUUM`
//! would write the whole store twice and block every writer. A store without this setting keeps its free pages and reuses them;
//! `kiso backup` and `kiso restore` make a compact one of it.

use super::{Store, StoreError, Tx, View, connect};

/// The size of the file, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    pub bytes: u64,
    /// Bytes of these in free pages.
    pub free: u64,
}

impl View<'_> {
    /// Returns the size of the store, without data that is still in its log.
    pub fn space(&self) -> Result<Space, StoreError> {
        let number = |pragma: &str| -> Result<u64, StoreError> {
            let mut query = self.conn.prepare_cached(pragma)?;
            Ok(query.query_row((), |row| row.get::<_, i64>(0))?.unsigned_abs())
        };
        let page = number("PRAGMA page_size")?;
        Ok(Space { bytes: page * number("PRAGMA page_count")?, free: page * number("PRAGMA freelist_count")? })
    }
}

impl Tx<'_> {
    /// Removes up to this many free pages from the file. Returns their number; 0 if the store was created without that setting.
    pub fn give_back(&self, pages: u32) -> Result<u64, StoreError> {
        let before = self.space()?;
        let mut vacuum = self.conn.prepare(&format!("PRAGMA incremental_vacuum({pages})"))?;
        // Each row removes one page.
        let mut rows = vacuum.query(())?;
        while rows.next()?.is_some() {}
        let gone = before.bytes.saturating_sub(self.space()?.bytes);
        let page: i64 = self.conn.pragma_query_value(None, "page_size", |row| row.get(0))?;
        Ok(gone / page.unsigned_abs().max(1))
    }
}

impl Store {
    /// Moves the log into the file and empties it, if nobody is reading or writing now.
    pub fn checkpoint(&self) -> Result<(), StoreError> {
        let moved = || -> Result<(), StoreError> {
            let conn = connect(self.path())?;
            conn.busy_timeout(std::time::Duration::ZERO)?;
            Ok(conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(()))?)
        };
        moved().map_err(|error| error.in_file(self.path()))
    }
}
