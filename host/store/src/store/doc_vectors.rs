//! Vectors of the documentation's sections, each under the digest of its text.

use std::collections::HashMap;

use super::{StoreError, Tx, Vector, View};

impl View<'_> {
    /// Returns this embedder's result for each section; `None` for one that it refused.
    pub fn doc_vectors(&self, embedder: i64) -> Result<HashMap<Vec<u8>, Option<Vector>>, StoreError> {
        let mut query = self.conn.prepare_cached("SELECT section, vector FROM doc_vectors WHERE embedder = ?1")?;
        let rows = query.query_map([embedder], |row| {
            let vector: Option<Vec<u8>> = row.get(1)?;
            Ok((row.get(0)?, vector.map(Vector::from_bytes)))
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

impl Tx<'_> {
    /// Stores the vectors of sections, and deletes those that are not in `current` (of another version of kiso), or of another
    /// embedder.
    pub fn set_doc_vectors(
        &self,
        embedder: i64,
        new: &[(Vec<u8>, Option<Vector>)],
        current: &[Vec<u8>],
    ) -> Result<(), StoreError> {
        let mut insert = self
            .conn
            .prepare_cached("INSERT OR REPLACE INTO doc_vectors (embedder, section, vector) VALUES (?1, ?2, ?3)")?;
        for (section, vector) in new {
            insert.execute((embedder, section, vector.as_ref().map(Vector::bytes)))?;
        }
        let known: Vec<Vec<u8>> = self.doc_vectors(embedder)?.into_keys().collect();
        let mut delete = self.conn.prepare_cached("DELETE FROM doc_vectors WHERE embedder = ?1 AND section = ?2")?;
        for section in known.iter().filter(|known| !current.contains(known)) {
            delete.execute((embedder, section))?;
        }
        self.conn.prepare_cached("DELETE FROM doc_vectors WHERE embedder <> ?1")?.execute([embedder])?;
        Ok(())
    }
}
