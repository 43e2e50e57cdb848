//! Runs that have not ended: cancelling them, resuming them after a crash, and holding them until a person decides.

use rusqlite::OptionalExtension;

use super::sessions::session_name;
use super::{JobPriority, RunId, StoreError, Tx, View};
use kiso_base::home::SessionName;

/// The number of a run's last event.
const LAST_SEQ: &str = "coalesce((SELECT max(seq) FROM events WHERE run = runs.num), -1)";

/// How often a run was resumed since its last progress. Only a repeated step may be the cause of crashes: a run that progresses
/// is not, however often the power fails.
const RESUMED_IN_VAIN: &str =
    "CASE WHEN coalesce((SELECT max(seq) FROM events WHERE run = runs.num), -1) > resumed_at_seq
     AND resumed_at_seq >= 0 THEN 0 ELSE resumed END";

/// Whether a run is resumed for the first time since it has asked a person. Then it was not interrupted, but left in good order.
const WAS_ASKING: &str = "resumed_at_seq < coalesce((SELECT max(seq) FROM events WHERE run = runs.num), -1)
     AND EXISTS (SELECT 1 FROM approvals WHERE run = runs.num AND seq = (SELECT max(seq) FROM events WHERE run = runs.num))";

impl View<'_> {
    /// Returns the runs that have not ended, are not held and do not wait for a person, oldest first; of one session or of all.
    /// They include abandoned ones, which only the holder of the session's lock can recognize.
    pub fn unfinished_runs(&self, session: Option<&SessionName>) -> Result<Vec<RunId>, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT id FROM runs INDEXED BY runs_unfinished WHERE status = 'running' AND held_ms IS NULL AND waiting IS NULL
             AND (?1 IS NULL OR session = (SELECT id FROM sessions WHERE name = ?1)) ORDER BY num",
        )?;
        let rows = query.query_map([session.map(SessionName::as_str)], |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Returns the sessions of runs that will be tried again, with the priority of each, at most `limit`.
    pub fn runs_to_retry(&self, limit: u32) -> Result<Vec<(SessionName, JobPriority)>, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT s.name, r.id FROM runs r INDEXED BY runs_to_retry JOIN sessions s ON s.id = r.session
             WHERE r.retry_ms IS NOT NULL ORDER BY r.num LIMIT ?1",
        )?;
        let rows = query.query_map([limit], |row| Ok((session_name(row, 0)?, row.get(1)?)))?;
        let rows = rows.collect::<Result<Vec<(SessionName, RunId)>, _>>()?;
        rows.into_iter().map(|(session, run)| Ok((session, self.priority_of_run(&run)?))).collect()
    }

    /// Returns the held runs and how often each was interrupted at its step, oldest first, at most `limit`.
    pub fn held_runs(&self, limit: u32) -> Result<Vec<(RunId, u32)>, StoreError> {
        let mut query = self.conn.prepare_cached(&format!(
            "SELECT id, 1 + {RESUMED_IN_VAIN} FROM runs INDEXED BY runs_unfinished
             WHERE status = 'running' AND held_ms IS NOT NULL ORDER BY num LIMIT ?1"
        ))?;
        let rows = query.query_map([limit], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Returns how often a run was resumed after an interruption without any progress.
    pub fn times_resumed(&self, run: &RunId) -> Result<u32, StoreError> {
        let sql = format!("SELECT {RESUMED_IN_VAIN} FROM runs WHERE id = ?1");
        let mut query = self.conn.prepare_cached(&sql)?;
        query.query_row([run], |row| row.get(0)).optional()?.ok_or_else(|| StoreError::NoRun { text: run.to_string() })
    }

    /// Returns the machine's boot in which the run was last resumed; `None` if its changes are not recorded for undo.
    pub fn boot_of_run(&self, run: &RunId) -> Result<Option<String>, StoreError> {
        let mut query = self.conn.prepare_cached("SELECT boot FROM runs WHERE id = ?1")?;
        let boot = query.query_row([run], |row| row.get(0)).optional()?;
        boot.ok_or_else(|| StoreError::NoRun { text: run.to_string() })
    }

    /// Whether the run's step after this event, or a later one, is recorded as having reached something outside of the sandbox
    /// ([`Tx::set_left`]).
    pub fn has_left(&self, run: &RunId, seq: u32) -> Result<bool, StoreError> {
        let mut query = self.conn.prepare_cached("SELECT left_at_seq >= ?2 FROM runs WHERE id = ?1")?;
        let left = query.query_row((run, seq), |row| row.get(0)).optional()?;
        left.ok_or_else(|| StoreError::NoRun { text: run.to_string() })
    }

    /// Whether somebody asked to cancel the run.
    pub fn cancel_requested(&self, run: &RunId) -> Result<bool, StoreError> {
        let mut query = self.conn.prepare_cached("SELECT cancel_requested FROM runs WHERE id = ?1")?;
        let requested = query.query_row([run], |row| row.get(0)).optional()?;
        requested.ok_or_else(|| StoreError::NoRun { text: run.to_string() })
    }
}

impl Tx<'_> {
    /// Requests the cancellation of a run. Fails with [`StoreError::Ended`] if it has ended.
    pub fn request_cancel(&self, run: &RunId) -> Result<(), StoreError> {
        let num = self.num(run)?;
        let mut query = self.conn.prepare_cached("SELECT held_ms IS NOT NULL FROM runs WHERE num = ?1")?;
        let was_held: bool = query.query_row([num], |row| row.get(0))?;
        // No process drives a run that waits for a person or is held; the queue resumes it, and ends it because of this request.
        let mut update = self.conn.prepare_cached(
            "UPDATE runs SET cancel_requested = 1, waiting = NULL, held_ms = NULL,
                 retry_ms = CASE WHEN waiting IS NULL AND held_ms IS NULL THEN retry_ms ELSE started_ms END,
                 resumed = CASE WHEN held_ms IS NULL THEN resumed ELSE 0 END
             WHERE num = ?1 AND status = 'running'",
        )?;
        match update.execute([num])? {
            0 => Err(StoreError::Ended { run: run.clone() }),
            _ if was_held => self.tell_run(num),
            _ => Ok(()),
        }
    }

    /// Records the machine's boot in which the run is resumed.
    pub fn set_boot(&self, run: &RunId, boot: Option<&str>) -> Result<(), StoreError> {
        let num = self.num(run)?;
        self.conn.prepare_cached("UPDATE runs SET boot = ?2 WHERE num = ?1")?.execute((num, boot))?;
        Ok(())
    }

    /// Records that the step after this event is about to reach something outside of the sandbox.
    pub fn set_left(&self, run: &RunId, seq: u32) -> Result<(), StoreError> {
        let num = self.num(run)?;
        self.conn.prepare_cached("UPDATE runs SET left_at_seq = ?2 WHERE num = ?1")?.execute((num, seq))?;
        Ok(())
    }

    /// Counts a resumption. Returns how many there were since the last progress, including this one.
    pub fn count_resumed(&self, run: &RunId) -> Result<u32, StoreError> {
        let num = self.num(run)?;
        let sql = format!(
            "UPDATE runs SET resumed = CASE WHEN {WAS_ASKING} THEN 0 ELSE {RESUMED_IN_VAIN} + 1 END, resumed_at_seq = {LAST_SEQ}, held_ms = NULL, retry_ms = NULL
             WHERE num = ?1 AND status = 'running' RETURNING resumed"
        );
        let mut update = self.conn.prepare_cached(&sql)?;
        update.query_row([num], |row| row.get(0)).optional()?.ok_or_else(|| StoreError::Ended { run: run.clone() })
    }

    /// Holds a run until somebody allows another attempt. Its session continues without it.
    pub fn hold_run(&self, run: &RunId, at_ms: i64) -> Result<(), StoreError> {
        self.set_held(run, "held_ms = ?2, retry_ms = NULL", at_ms)
    }

    /// Allows another attempt of a held run, and resets its count of interruptions. The queue resumes it
    /// ([`View::runs_to_retry`]).
    pub fn retry_run(&self, run: &RunId, at_ms: i64) -> Result<(), StoreError> {
        self.set_held(run, "held_ms = NULL, retry_ms = ?2, resumed = 0", at_ms)
    }

    fn set_held(&self, run: &RunId, columns: &str, at_ms: i64) -> Result<(), StoreError> {
        let num = self.num(run)?;
        let mut update =
            self.conn.prepare_cached(&format!("UPDATE runs SET {columns} WHERE num = ?1 AND status = 'running'"))?;
        match update.execute((num, at_ms))? {
            0 => Err(StoreError::Ended { run: run.clone() }),
            _ => self.tell_run(num),
        }
    }

    /// Records that the run was left in good order, so that its next resumption does not count.
    pub fn uncount_resumed(&self, run: &RunId) -> Result<(), StoreError> {
        let num = self.num(run)?;
        let mut update = self.conn.prepare_cached("UPDATE runs SET resumed = max(resumed - 1, 0) WHERE num = ?1")?;
        update.execute([num])?;
        Ok(())
    }
}
