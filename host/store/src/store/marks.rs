//! The times of maintenance operations.

use rusqlite::OptionalExtension;
use strum::{EnumString, IntoStaticStr};

use super::{StoreError, Tx, View};

/// An operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Mark {
    /// A copy was made.
    Backup,
    /// This store was restored from a backup.
    Restore,
    /// A consolidation of the facts was attempted.
    Consolidated,
}

impl View<'_> {
    /// Returns when it was last done, in milliseconds since 1970.
    pub fn marked(&self, mark: Mark) -> Result<Option<i64>, StoreError> {
        let mut query = self.conn.prepare_cached("SELECT at_ms FROM marks WHERE name = ?1")?;
        Ok(query.query_row([mark.as_str()], |row| row.get(0)).optional()?)
    }
}

impl Tx<'_> {
    /// Records that it was done.
    pub fn mark(&self, mark: Mark, at_ms: i64) -> Result<(), StoreError> {
        let mut upsert = self.conn.prepare_cached(
            "INSERT INTO marks (name, at_ms) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET at_ms = excluded.at_ms",
        )?;
        upsert.execute((mark.as_str(), at_ms))?;
        Ok(())
    }
}
