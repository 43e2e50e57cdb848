//! How large the file is, and giving back what is free in it.
//!
//! A new store is made with `auto_vacuum = INCREMENTAL`: free pages can be taken off its end a few at a time, while a full
//! `VACUUM` would write the whole store twice and keep every writer waiting. One that was made without it keeps its free
//! pages, and uses them again; `kiso backup` and `kiso restore` make a compact one of it.

use super::{Store, StoreError, Tx, View, connect};

/// The size of the file, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    pub bytes: u64,
    /// Of these, in pages that nothing stands in.
    pub free: u64,
}

impl View<'_> {
    /// How large the store is, without what still stands in its log.
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
    /// Takes up to so many free pages off the file; how many went. None where the store was made without that.
    pub fn give_back(&self, pages: u32) -> Result<u64, StoreError> {
        let before = self.space()?;
        let mut vacuum = self.conn.prepare(&format!("PRAGMA incremental_vacuum({pages})"))?;
        // One page with each row.
        let mut rows = vacuum.query(())?;
        while rows.next()?.is_some() {}
        let gone = before.bytes.saturating_sub(self.space()?.bytes);
        let page: i64 = self.conn.pragma_query_value(None, "page_size", |row| row.get(0))?;
        Ok(gone / page.unsigned_abs().max(1))
    }
}

impl Store {
    /// Moves the log into the file and empties it, if nobody is reading or writing just now.
    pub fn checkpoint(&self) -> Result<(), StoreError> {
        let moved = || -> Result<(), StoreError> {
            let conn = connect(self.path())?;
            conn.busy_timeout(std::time::Duration::ZERO)?;
            Ok(conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(()))?)
        };
        moved().map_err(|error| error.in_file(self.path()))
    }
}
