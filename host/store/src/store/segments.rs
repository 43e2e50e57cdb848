//! Segments: the parts of a session between one `/new` and the next. The window and the summary only cover the last one; nothing
//! is ever deleted.

use super::sessions::message;
use super::{Message, StoreError, Tx, View};
use kiso_base::home::SessionName;

impl View<'_> {
    /// Returns the message after which the session's segment begins; 0 for the first one.
    pub fn segment_start(&self, session: &SessionName) -> Result<i64, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT coalesce(max(after), 0) FROM segments
             WHERE session = (SELECT id FROM sessions WHERE name = ?1) AND replaced = 0",
        )?;
        Ok(query.query_row([session.as_str()], |row| row.get(0))?)
    }

    /// Returns the breaks of the session's branch in use, oldest first: the message before each, and its time.
    pub fn segments(&self, session: &SessionName) -> Result<Vec<(i64, i64)>, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT after, at_ms FROM segments
             WHERE session = (SELECT id FROM sessions WHERE name = ?1) AND replaced = 0 ORDER BY after",
        )?;
        let rows = query.query_map([session.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Returns the breaks of all branches, each with its branch.
    pub fn segments_of_all_branches(&self, session: &SessionName) -> Result<Vec<(i64, i64, i64)>, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT after, at_ms, branch FROM segments WHERE session = (SELECT id FROM sessions WHERE name = ?1) ORDER BY after",
        )?;
        let rows = query.query_map([session.as_str()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Returns the last `count` messages of the session's segment, oldest first. An answer to a message of an earlier segment
    /// belongs to that one, however late it came. Reads about as many rows as it returns.
    pub fn last_of_segment(&self, session: &SessionName, count: u32) -> Result<Vec<Message>, StoreError> {
        let start = self.segment_start(session)?;
        let mut query = self.conn.prepare_cached(
            "SELECT m.id, m.role, m.text, m.at_ms, m.run, m.tags FROM messages m
             WHERE m.session = (SELECT id FROM sessions WHERE name = ?1) AND m.replaced = 0 AND m.id > ?2
             AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.id = m.run AND r.message <= ?2)
             ORDER BY m.id DESC LIMIT ?3",
        )?;
        let rows = query.query_map((session.as_str(), start, count), message)?;
        let mut messages = rows.collect::<Result<Vec<_>, _>>()?;
        messages.reverse();
        Ok(messages)
    }
}

impl Tx<'_> {
    /// Adds a break: later messages belong to a new segment. Returns the message before the break.
    pub fn break_session(&self, session: &SessionName, at_ms: i64) -> Result<i64, StoreError> {
        let id = self.ensure_session(session, at_ms)?;
        let mut last = self.conn.prepare_cached("SELECT coalesce(max(id), 0) FROM messages WHERE session = ?1")?;
        let after: i64 = last.query_row([id], |row| row.get(0))?;
        let mut insert = self.conn.prepare_cached(
            "INSERT INTO segments (session, after, at_ms, branch) SELECT id, ?2, ?3, branch FROM sessions WHERE id = ?1
                 ON CONFLICT DO UPDATE SET branch = excluded.branch, replaced = 0",
        )?;
        insert.execute((id, after, at_ms))?;
        Ok(after)
    }
}
