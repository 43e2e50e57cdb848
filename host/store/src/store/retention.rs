//! Deletes old data (`[retention]` in the configuration), a few rows in each transaction, so that no writer waits.
//!
//! | data | deleted | kept |
//! |---|---|---|
//! | prompts | the prompts of model calls | everything else |
//! | traces | the events and prompts of a run, the outputs of its tasks | the run, its tasks and outcome, the messages |
//! | sessions | messages with their jobs, runs, tasks, calls, scratchpad, pictures, values of skills, links, secrets | its name, its row in sums, its workspace; facts and memory |
//!
//! A run that has not ended, a waiting message, and their session are never touched. A job is deleted with its message: as long
//! as the message exists, a client's key for it is known. The row of a session stays, because facts, memory and schedules refer
//! to it; it is not listed until somebody writes to it again.
//!
//! Rows that refer to a run or a message must be handled here; a test compares this with the tables.

use rusqlite::OptionalExtension;

use super::{StoreError, Tx, View};

/// Approximate number of rows that one transaction deletes: some hundred kB, because prompts have some kB each and deletion
/// overwrites them.
const ROWS: usize = 50;

/// After this many runs in a row that stay, all further ones are assumed to be newer.
const LOOKED_AT: usize = 100;

/// Entries of a scratchpad, or pictures, that one transaction deletes; each may have some MiB.
const ENTRIES: u32 = 4;

/// Rows of a run that are deleted one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunRows {
    Prompts,
    Events,
}

impl View<'_> {
    /// Whether no run is active, no message is waiting, and the last message came before `since_ms`.
    pub fn is_at_rest(&self, since_ms: i64) -> Result<bool, StoreError> {
        let mut last =
            self.conn.prepare_cached("SELECT max(active_ms) FROM sessions WHERE (parent IS NOT NULL) = ?1")?;
        for subagents in [false, true] {
            let active: Option<i64> = last.query_row([subagents], |row| row.get(0))?;
            if active.is_some_and(|active| active >= since_ms) {
                return Ok(false);
            }
        }
        Ok(self.count_queued()? == 0 && self.unfinished_runs(None)?.is_empty())
    }

    /// Returns the first run after `num` that has such rows, and whether it ended before `before_ms`.
    fn next_of(&self, of: RunRows, num: i64, before_ms: i64) -> Result<Option<(i64, bool)>, StoreError> {
        let next = match of {
            RunRows::Prompts => "SELECT min(run) FROM prompts WHERE run > ?1",
            RunRows::Events => "SELECT min(run) FROM events WHERE run > ?1",
        };
        let next: Option<i64> = self.conn.prepare_cached(next)?.query_row([num], |row| row.get(0))?;
        let Some(next) = next else { return Ok(None) };
        let mut ended = self.conn.prepare_cached("SELECT coalesce(ended_ms < ?2, 0) FROM runs WHERE num = ?1")?;
        Ok(Some((next, ended.query_row((next, before_ms), |row| row.get(0))?)))
    }
}

impl Tx<'_> {
    /// Deletes prompts of runs that ended before `before_ms`. Returns their number; 0 if none is left.
    pub fn forget_prompts(&self, before_ms: i64) -> Result<usize, StoreError> {
        self.forget_of_runs(RunRows::Prompts, before_ms)
    }

    /// Deletes events of runs that ended before `before_ms`, with their prompts and the outputs of their tasks. Returns the
    /// number of rows; 0 if none is left.
    pub fn forget_traces(&self, before_ms: i64) -> Result<usize, StoreError> {
        match self.forget_of_runs(RunRows::Prompts, before_ms)? {
            0 => self.forget_of_runs(RunRows::Events, before_ms),
            prompts => Ok(prompts),
        }
    }

    fn forget_of_runs(&self, of: RunRows, before_ms: i64) -> Result<usize, StoreError> {
        let delete = match of {
            RunRows::Prompts => {
                "DELETE FROM prompts WHERE run = ?1 AND (seq, nth) IN
                     (SELECT seq, nth FROM prompts WHERE run = ?1 ORDER BY seq, nth LIMIT ?2)"
            }
            RunRows::Events => {
                "DELETE FROM events WHERE run = ?1 AND seq IN
                     (SELECT seq FROM events WHERE run = ?1 ORDER BY seq LIMIT ?2)"
            }
        };
        let mut delete = self.conn.prepare_cached(delete)?;
        let (mut rows, mut num, mut stay) = (0, 0, 0);
        // Runs are ordered by their beginning, so the old ones come first; if the clock was changed, approximately.
        while rows < ROWS && stay < LOOKED_AT {
            let Some((next, old)) = self.next_of(of, num, before_ms)? else { break };
            if !old {
                (num, stay) = (next, stay + 1);
                continue;
            }
            rows += delete.execute((next, (ROWS - rows) as i64))?;
            if of == RunRows::Events {
                let outputs = "UPDATE tasks SET output = NULL WHERE run = ?1 AND output IS NOT NULL";
                self.conn.prepare_cached(outputs)?.execute([next])?;
            }
        }
        Ok(rows)
    }

    /// Deletes some contents of a session that was last active before `before_ms` and is not pinned. Returns the number of rows;
    /// 0 if there is no such session left. Subagents come before others.
    pub fn forget_sessions(&self, before_ms: i64) -> Result<usize, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT s.id FROM sessions s WHERE (s.parent IS NOT NULL) = ?1 AND s.active_ms >= 0 AND s.active_ms < ?2 AND s.placement <> 'pinned'
             AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.session = s.id AND j.state = 'queued')
             AND NOT EXISTS (
                 SELECT 1 FROM schedules c WHERE c.name = substr(s.name, 10) AND substr(s.name, 1, 9) = 'schedule.')
             AND s.id NOT IN (SELECT r.session FROM runs r INDEXED BY runs_unfinished WHERE r.status = 'running')
             ORDER BY s.active_ms, s.id LIMIT 1",
        )?;
        for subagents in [true, false] {
            let old: Option<i64> = query.query_row((subagents, before_ms), |row| row.get(0)).optional()?;
            if let Some(session) = old {
                return self.forget_session(session);
            }
        }
        Ok(0)
    }

    fn forget_session(&self, session: i64) -> Result<usize, StoreError> {
        let mut first = self.conn.prepare_cached("SELECT min(id) FROM messages WHERE session = ?1")?;
        let mut rows = 0;
        while rows < ROWS {
            let message: Option<i64> = first.query_row([session], |row| row.get(0))?;
            match message {
                Some(message) => rows += self.forget_message(message)?,
                None if rows > 0 => break,
                None => return self.forget_rest(session),
            }
        }
        Ok(rows)
    }

    /// Deletes a message with the runs that began with it and the other messages that these took.
    fn forget_message(&self, message: i64) -> Result<usize, StoreError> {
        let mut runs = self.conn.prepare_cached("SELECT num FROM runs WHERE message = ?1")?;
        let runs = runs.query_map([message], |row| row.get(0))?.collect::<Result<Vec<i64>, _>>()?;
        let (mut rows, mut messages) = (0, vec![message]);
        for run in runs {
            for of_run in [
                "DELETE FROM prompts WHERE run = ?1",
                "DELETE FROM events WHERE run = ?1",
                "DELETE FROM tasks WHERE run = ?1",
                "DELETE FROM usage WHERE run = ?1",
                "DELETE FROM background WHERE run = ?1",
                "DELETE FROM usage_totals WHERE scope = 'run' AND key = ?1",
            ] {
                rows += self.conn.prepare_cached(of_run)?.execute([run])?;
            }
            let mut jobs = self.conn.prepare_cached("DELETE FROM jobs WHERE run = ?1 RETURNING message")?;
            let taken = jobs.query_map([run], |row| row.get(0))?.collect::<Result<Vec<i64>, _>>()?;
            rows += taken.len();
            messages.extend(taken);
            rows += self.conn.prepare_cached("DELETE FROM runs WHERE num = ?1")?.execute([run])?;
        }
        for message in messages {
            rows += self.conn.prepare_cached("DELETE FROM jobs WHERE message = ?1")?.execute([message])?;
            rows += self.conn.prepare_cached("DELETE FROM messages WHERE id = ?1")?.execute([message])?;
        }
        Ok(rows)
    }

    /// Deletes the rest of a session without messages, and finally its title, summary and model.
    fn forget_rest(&self, session: i64) -> Result<usize, StoreError> {
        for large in ["scratchpad", "pictures"] {
            let mut entries = self.conn.prepare_cached(&format!(
                "DELETE FROM {large} WHERE num IN (SELECT num FROM {large} WHERE session = ?1 ORDER BY num LIMIT ?2)",
            ))?;
            let entries = entries.execute((session, ENTRIES))?;
            if entries > 0 {
                return Ok(entries);
            }
        }
        let mut rows = 0;
        for of_session in [
            "DELETE FROM usage WHERE session = ?1",
            "DELETE FROM kv WHERE session = ?1",
            "DELETE FROM published WHERE session = ?1",
            "DELETE FROM summaries WHERE session = ?1",
            "DELETE FROM segments WHERE session = ?1",
            "DELETE FROM branches WHERE session = ?1",
            "DELETE FROM branch_summaries WHERE session = ?1",
            "DELETE FROM secrets WHERE session = ?1",
            "DELETE FROM background WHERE kind IN ('title', 'summary', 'facts', 'memory') AND session = ?1",
            "UPDATE sessions SET title = NULL, summary = NULL, summarized_to = 0, model = NULL, read_to = 0, branch = 0, active_ms = -1, placement = 'listed' WHERE id = ?1",
            "INSERT INTO feed (session, kind) VALUES (?1, 'session')",
        ] {
            rows += self.conn.prepare_cached(of_session)?.execute([session])?;
        }
        Ok(rows)
    }
}
