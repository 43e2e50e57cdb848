//! The feed: notices of all sessions in one order. They contain references instead of texts.

use strum::{EnumString, IntoStaticStr};

use super::sessions::session_name;
use super::{RunId, StoreError, Tx, View};
use kiso_base::home::SessionName;

/// A notice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// Always increases, and is never reused.
    pub id: i64,
    pub session: SessionName,
    pub kind: NoticeKind,
    pub run: Option<RunId>,
    /// The number of the run's event.
    pub seq: Option<u32>,
    /// The message's id.
    pub message: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum NoticeKind {
    /// A message was added, from a user or as a reply.
    Message,
    /// A run has a new event.
    Event,
    /// A run has begun or ended.
    Run,
    /// The session's title, model or placement has changed.
    Session,
}

impl View<'_> {
    /// Returns the notices after `after`, oldest first, at most `limit`; of one session or of all.
    pub fn feed(&self, session: Option<&SessionName>, after: i64, limit: u32) -> Result<Vec<Notice>, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT f.id, s.name, f.kind, r.id, f.seq, f.message FROM feed f
             JOIN sessions s ON s.id = f.session LEFT JOIN runs r ON r.num = f.run
             WHERE f.id > ?1 AND (?2 IS NULL OR s.name = ?2) ORDER BY f.id LIMIT ?3",
        )?;
        let rows = query.query_map((after, session.map(SessionName::as_str), limit), |row| {
            Ok(Notice {
                id: row.get(0)?,
                session: session_name(row, 1)?,
                kind: row.get(2)?,
                run: row.get(3)?,
                seq: row.get(4)?,
                message: row.get(5)?,
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Returns the number of the last notice; 0 if there is none.
    pub fn feed_end(&self) -> Result<i64, StoreError> {
        let mut query = self.conn.prepare_cached("SELECT coalesce(max(id), 0) FROM feed")?;
        Ok(query.query_row((), |row| row.get(0))?)
    }

    /// Returns the number of the oldest notice: a client whose last one is older has missed some.
    pub fn feed_start(&self) -> Result<i64, StoreError> {
        let mut query = self.conn.prepare_cached("SELECT coalesce(min(id), 0) FROM feed")?;
        Ok(query.query_row((), |row| row.get(0))?)
    }
}

impl Tx<'_> {
    /// Adds the notice of a message, and marks the session as active.
    pub(super) fn tell_message(&self, session: i64, message: i64, at_ms: i64) -> Result<(), StoreError> {
        let mut insert =
            self.conn.prepare_cached("INSERT INTO feed (session, kind, message) VALUES (?1, 'message', ?2)")?;
        insert.execute((session, message))?;
        let mut update =
            self.conn.prepare_cached("UPDATE sessions SET active_ms = max(active_ms, ?2) WHERE id = ?1")?;
        update.execute((session, at_ms))?;
        Ok(())
    }

    /// Adds the notice of a run's event.
    pub(super) fn tell_event(&self, run: i64, seq: u32) -> Result<(), StoreError> {
        let mut insert = self.conn.prepare_cached(
            "INSERT INTO feed (session, kind, run, seq) SELECT session, 'event', num, ?2 FROM runs WHERE num = ?1",
        )?;
        insert.execute((run, seq))?;
        Ok(())
    }

    /// Adds the notice of a run's beginning or end.
    pub(super) fn tell_run(&self, run: i64) -> Result<(), StoreError> {
        let mut insert = self.conn.prepare_cached(
            "INSERT INTO feed (session, kind, run) SELECT session, 'run', num FROM runs WHERE num = ?1",
        )?;
        insert.execute([run])?;
        Ok(())
    }

    /// Adds the notice of a changed title or model of a session.
    pub(super) fn tell_session(&self, session: &SessionName) -> Result<(), StoreError> {
        let mut insert = self
            .conn
            .prepare_cached("INSERT INTO feed (session, kind) SELECT id, 'session' FROM sessions WHERE name = ?1")?;
        insert.execute([session.as_str()])?;
        Ok(())
    }

    /// Deletes all but the last `keep` notices, at most `most` at once. Returns how many were deleted.
    pub fn trim_feed(&self, keep: u32, most: u32) -> Result<usize, StoreError> {
        let mut delete = self.conn.prepare_cached(
            "DELETE FROM feed WHERE id IN (
                 SELECT id FROM feed WHERE id <= (SELECT max(id) FROM feed) - ?1 ORDER BY id LIMIT ?2)",
        )?;
        Ok(delete.execute((keep, most))?)
    }
}
