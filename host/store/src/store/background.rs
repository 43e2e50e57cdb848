//! Work after a reply was delivered: titles, summaries, facts, memory. It is recorded in the transaction of the reply, so that a
//! crash loses none of it.

use rusqlite::OptionalExtension;
use strum::{EnumString, IntoStaticStr};

use super::sessions::session_name;
use super::{RunId, StoreError, Tx, View};
use kiso_base::home::SessionName;

/// Maximum failures of a piece of work before it is given up, so that a model that never answers is not called forever.
pub const MAX_ATTEMPTS: u32 = 5;

/// A piece of work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    pub id: i64,
    pub kind: DueKind,
    pub session: SessionName,
    /// The run whose turn it is about.
    pub run: Option<RunId>,
    /// Number of failures so far.
    pub attempts: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EnumString, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum DueKind {
    /// Name the session.
    Title,
    /// Summarize its older messages.
    Summary,
    /// Consolidate the facts; if a run is given, drop facts that it has made outdated.
    Facts,
    /// Remember the turn of a run.
    Memory,
}

impl View<'_> {
    /// Whether any work is due at this time. Most of the time there is none, and claiming it would be a write.
    pub fn is_work_due(&self, now_ms: i64) -> Result<bool, StoreError> {
        let mut query = self.conn.prepare_cached("SELECT EXISTS (SELECT 1 FROM background WHERE due_ms <= ?1)")?;
        Ok(query.query_row([now_ms], |row| row.get(0))?)
    }
}

impl Tx<'_> {
    /// Adds a piece of work, unless the same work is already waiting.
    pub fn add_work(
        &self,
        kind: DueKind,
        session: &SessionName,
        run: Option<&RunId>,
        due_ms: i64,
    ) -> Result<(), StoreError> {
        let session = self.ensure_session(session, due_ms)?;
        let run = run.map(|run| self.num(run)).transpose()?;
        let mut insert = self.conn.prepare_cached(
            "INSERT INTO background (kind, session, run, due_ms) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
        )?;
        insert.execute((kind, session, run, due_ms))?;
        Ok(())
    }

    /// Claims the work that has been due longest at this time, optionally only of `session`. Nobody else can claim it until
    /// `until_ms`. If it was neither finished nor put off by then, its process has died, and it is due again.
    pub fn claim_work(
        &self,
        now_ms: i64,
        until_ms: i64,
        session: Option<&SessionName>,
    ) -> Result<Option<Due>, StoreError> {
        let mut claim = self.conn.prepare_cached(
            "UPDATE background SET due_ms = ?2 WHERE id =
                 (SELECT id FROM background
                  WHERE due_ms <= ?1 AND (?3 IS NULL OR session = (SELECT id FROM sessions WHERE name = ?3))
                  ORDER BY due_ms, id LIMIT 1)
             RETURNING id, kind, (SELECT name FROM sessions s WHERE s.id = session),
                 (SELECT r.id FROM runs r WHERE r.num = run), attempts",
        )?;
        let row = claim.query_row((now_ms, until_ms, session.map(SessionName::as_str)), |row| {
            Ok(Due {
                id: row.get(0)?,
                kind: row.get(1)?,
                session: session_name(row, 2)?,
                run: row.get(3)?,
                attempts: row.get(4)?,
            })
        });
        Ok(row.optional()?)
    }

    /// Postpones work that could not be tried to `due_ms`; the attempt does not count.
    pub fn put_off_work(&self, id: i64, due_ms: i64) -> Result<(), StoreError> {
        self.conn.prepare_cached("UPDATE background SET due_ms = ?2 WHERE id = ?1")?.execute((id, due_ms))?;
        Ok(())
    }

    /// Removes finished work.
    pub fn finish_work(&self, id: i64) -> Result<(), StoreError> {
        self.conn.prepare_cached("DELETE FROM background WHERE id = ?1")?.execute([id])?;
        Ok(())
    }

    /// Postpones failed work to `due_ms`. Returns false if this was the last of [`MAX_ATTEMPTS`]; then it is removed.
    pub fn retry_work(&self, id: i64, due_ms: i64) -> Result<bool, StoreError> {
        let mut update = self.conn.prepare_cached(
            "UPDATE background SET attempts = attempts + 1, due_ms = ?2 WHERE id = ?1 AND attempts + 1 < ?3",
        )?;
        if update.execute((id, due_ms, MAX_ATTEMPTS))? > 0 {
            return Ok(true);
        }
        self.finish_work(id)?;
        Ok(false)
    }
}
