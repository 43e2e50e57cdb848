//! For a fleet: where the files of sessions are stored for the other members.

use super::sessions::session_name;
use super::{StoreError, Tx, View};
use kiso_base::home::SessionName;

impl View<'_> {
    /// Returns the sessions with stored files, each with the name of its file list.
    pub fn trees(&self) -> Result<Vec<(SessionName, Vec<u8>)>, StoreError> {
        let mut query =
            self.conn.prepare_cached("SELECT s.name, t.root FROM trees t JOIN sessions s ON s.id = t.session")?;
        let rows = query.query_map((), |row| Ok((session_name(row, 0)?, row.get(1)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Returns the names of all sessions.
    pub fn session_names(&self) -> Result<Vec<SessionName>, StoreError> {
        let mut query = self.conn.prepare_cached("SELECT name FROM sessions ORDER BY id")?;
        let rows = query.query_map((), |row| session_name(row, 0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

impl Tx<'_> {
    /// Records the name under which the session's files are stored. Does nothing if the session does not exist.
    pub fn set_tree(&self, session: &SessionName, root: &[u8; 32]) -> Result<(), StoreError> {
        let mut insert = self.conn.prepare_cached(
            "INSERT INTO trees (session, root) SELECT id, ?2 FROM sessions WHERE name = ?1
             ON CONFLICT DO UPDATE SET root = excluded.root",
        )?;
        insert.execute((session.as_str(), root.as_slice()))?;
        Ok(())
    }
}
