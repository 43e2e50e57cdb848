//! Of a fleet: where the files of sessions are kept for the other members.

use super::sessions::session_name;
use super::{StoreError, Tx, View};
use kiso_base::home::SessionName;

impl View<'_> {
    /// The sessions whose files are kept, each with the name of the list of its files.
    pub fn trees(&self) -> Result<Vec<(SessionName, Vec<u8>)>, StoreError> {
        let mut query =
            self.conn.prepare_cached("SELECT s.name, t.root FROM trees t JOIN sessions s ON s.id = t.session")?;
        let rows = query.query_map((), |row| Ok((session_name(row, 0)?, row.get(1)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The names of all sessions.
    pub fn session_names(&self) -> Result<Vec<SessionName>, StoreError> {
        let mut query = self.conn.prepare_cached("SELECT name FROM sessions ORDER BY id")?;
        let rows = query.query_map((), |row| session_name(row, 0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

impl Tx<'_> {
    /// The session's files are kept under this name now. A session that is not there has none.
    pub fn set_tree(&self, session: &SessionName, root: &[u8; 32]) -> Result<(), StoreError> {
        let mut insert = self.conn.prepare_cached(
            "INSERT INTO trees (session, root) SELECT id, ?2 FROM sessions WHERE name = ?1
             ON CONFLICT DO UPDATE SET root = excluded.root",
        )?;
        insert.execute((session.as_str(), root.as_slice()))?;
        Ok(())
    }
}
