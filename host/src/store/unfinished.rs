//! Runs that have not ended: asked to stop, or to be taken up again after a crash.

use rusqlite::OptionalExtension;

use super::{RunId, StoreError, Tx, View};
use crate::home::SessionName;

impl View<'_> {
    /// Runs that have not ended, the oldest first: of one session or of all. Those that no process works on any more are
    /// among them; who holds the session's lock knows which.
    pub fn unfinished_runs(&self, session: Option<&SessionName>) -> Result<Vec<RunId>, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT id FROM runs INDEXED BY runs_unfinished WHERE status = 'running'
             AND (?1 IS NULL OR session = (SELECT id FROM sessions WHERE name = ?1)) ORDER BY num",
        )?;
        let rows = query.query_map([session.map(SessionName::as_str)], |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Whether somebody asked for the run to stop.
    pub fn cancel_requested(&self, run: &RunId) -> Result<bool, StoreError> {
        let mut query = self.conn.prepare_cached("SELECT cancel_requested FROM runs WHERE id = ?1")?;
        let requested = query.query_row([run], |row| row.get(0)).optional()?;
        requested.ok_or_else(|| StoreError::NoRun { text: run.to_string() })
    }
}

impl Tx<'_> {
    /// Asks for a run to stop. A run that has ended cannot be stopped ([`StoreError::Ended`]).
    pub fn request_cancel(&self, run: &RunId) -> Result<(), StoreError> {
        let num = self.num(run)?;
        let mut update =
            self.conn.prepare_cached("UPDATE runs SET cancel_requested = 1 WHERE num = ?1 AND status = 'running'")?;
        match update.execute([num])? {
            0 => Err(StoreError::Ended { run: run.clone() }),
            _ => Ok(()),
        }
    }

    /// Counts that a run is taken up again; returns how often that happened, this time included.
    pub fn count_resumed(&self, run: &RunId) -> Result<u32, StoreError> {
        let num = self.num(run)?;
        let mut update = self.conn.prepare_cached(
            "UPDATE runs SET resumed = resumed + 1 WHERE num = ?1 AND status = 'running' RETURNING resumed",
        )?;
        update.query_row([num], |row| row.get(0)).optional()?.ok_or_else(|| StoreError::Ended { run: run.clone() })
    }

    /// The run was left in good order: that it is taken up again says nothing about it.
    pub fn uncount_resumed(&self, run: &RunId) -> Result<(), StoreError> {
        let num = self.num(run)?;
        let mut update = self.conn.prepare_cached("UPDATE runs SET resumed = max(resumed - 1, 0) WHERE num = ?1")?;
        update.execute([num])?;
        Ok(())
    }
}
