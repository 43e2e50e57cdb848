//! Whether the file is whole.

use super::{StoreError, View};

impl View<'_> {
    /// What SQLite finds wrong with the file; nothing for one that is whole. Reads all of it.
    pub fn integrity(&self) -> Result<Vec<String>, StoreError> {
        let mut query = self.conn.prepare("PRAGMA integrity_check(10)")?;
        let found = query.query_map([], |row| row.get::<_, String>(0))?;
        let found = found.collect::<Result<Vec<_>, _>>()?;
        Ok(found.into_iter().filter(|line| line != "ok").collect())
    }
}
