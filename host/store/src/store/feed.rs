//! The feed: what happened in all sessions, in one order. It holds no texts, only where they stand.

use strum::{EnumString, IntoStaticStr};

use super::sessions::session_name;
use super::{RunId, StoreError, Tx, View};
use kiso_base::home::SessionName;

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// Grows with everything that happens, and is never used twice.
    pub id: i64,
    pub session: SessionName,
    pub kind: NoticeKind,
    pub run: Option<RunId>,
    /// Of the run's event.
    pub seq: Option<u32>,
    /// The message's id.
    pub message: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum NoticeKind {
    /// A message came, from a user or as a reply.
    Message,
    /// A run has got on.
    Event,
    /// A run has begun or ended.
    Run,
    /// The session has another title, model or placement.
    Session,
}

impl View<'_> {
    /// What happened after the notice `after`, oldest first, at most `limit`; of one session or of all.
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

    /// The number of the last notice; 0 where there is none yet.
    pub fn feed_end(&self) -> Result<i64, StoreError> {
        let mut query = self.conn.prepare_cached("SELECT coalesce(max(id), 0) FROM feed")?;
        Ok(query.query_row((), |row| row.get(0))?)
    }

    /// The number of the first notice that is still there: a client that has an older one has missed something.
    pub fn feed_start(&self) -> Result<i64, StoreError> {
        let mut query = self.conn.prepare_cached("SELECT coalesce(min(id), 0) FROM feed")?;
        Ok(query.query_row((), |row| row.get(0))?)
    }
}

impl Tx<'_> {
    /// A message was written: the session is active.
    pub(super) fn tell_message(&self, session: i64, message: i64, at_ms: i64) -> Result<(), StoreError> {
        let mut insert =
            self.conn.prepare_cached("INSERT INTO feed (session, kind, message) VALUES (?1, 'message', ?2)")?;
        insert.execute((session, message))?;
        let mut update =
            self.conn.prepare_cached("UPDATE sessions SET active_ms = max(active_ms, ?2) WHERE id = ?1")?;
        update.execute((session, at_ms))?;
        Ok(())
    }

    /// A run has got on.
    pub(super) fn tell_event(&self, run: i64, seq: u32) -> Result<(), StoreError> {
        let mut insert = self.conn.prepare_cached(
            "INSERT INTO feed (session, kind, run, seq) SELECT session, 'event', num, ?2 FROM runs WHERE num = ?1",
        )?;
        insert.execute((run, seq))?;
        Ok(())
    }

    /// A run has begun or ended.
    pub(super) fn tell_run(&self, run: i64) -> Result<(), StoreError> {
        let mut insert = self.conn.prepare_cached(
            "INSERT INTO feed (session, kind, run) SELECT session, 'run', num FROM runs WHERE num = ?1",
        )?;
        insert.execute([run])?;
        Ok(())
    }

    /// The session has another title or model.
    pub(super) fn tell_session(&self, session: &SessionName) -> Result<(), StoreError> {
        let mut insert = self
            .conn
            .prepare_cached("INSERT INTO feed (session, kind) SELECT id, 'session' FROM sessions WHERE name = ?1")?;
        insert.execute([session.as_str()])?;
        Ok(())
    }

    /// Forgets all but the last `keep` notices, at most `most` of them at once; returns how many went.
    pub fn trim_feed(&self, keep: u32, most: u32) -> Result<usize, StoreError> {
        let mut delete = self.conn.prepare_cached(
            "DELETE FROM feed WHERE id IN (
                 SELECT id FROM feed WHERE id <= (SELECT max(id) FROM feed) - ?1 ORDER BY id LIMIT ?2)",
        )?;
        Ok(delete.execute((keep, most))?)
    }
}
