//! Core memory: one JSON document for the whole home. `memory.rs` validates its content.

use rusqlite::OptionalExtension;

use super::{StoreError, Tx, View};

impl View<'_> {
    /// Returns the document, a JSON object; `None` if nothing was written yet.
    pub fn core_memory(&self) -> Result<Option<String>, StoreError> {
        let mut query = self.conn.prepare_cached("SELECT document FROM core_memory WHERE one = 1")?;
        Ok(query.query_row((), |row| row.get(0)).optional()?)
    }
}

impl Tx<'_> {
    /// Replaces the document. `document` must be a JSON object.
    pub fn set_core_memory(&self, document: &str, at_ms: i64) -> Result<(), StoreError> {
        let mut upsert = self.conn.prepare_cached(
            "INSERT INTO core_memory (one, document, at_ms) VALUES (1, ?1, ?2)
             ON CONFLICT DO UPDATE SET document = excluded.document, at_ms = excluded.at_ms",
        )?;
        upsert.execute((document, at_ms))?;
        Ok(())
    }
}
