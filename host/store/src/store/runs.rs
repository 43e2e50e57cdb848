//! Runs: one row each, from the message that began it to its outcome.

use rusqlite::{OptionalExtension, Row};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

use super::sessions::{message, session_name};
use super::{Message, MessageRole, RunId, SessionOwner, StoreError, Tx, View};
use kiso_base::home::SessionName;

/// A run in a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Run")]
pub struct RunLine {
    pub id: RunId,
    pub session: SessionName,
    /// The beginning of the message, at most 200 characters; empty until a model has searched it for secrets.
    pub message: String,
    pub status: RunStatus,
    /// Milliseconds since 1970 (UTC).
    pub started_ms: i64,
    /// `None` while it runs, and if its process was killed.
    pub ended_ms: Option<i64>,
}

/// A run with everything except its events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    pub id: RunId,
    pub session: SessionName,
    /// The user's message.
    pub message: String,
    pub status: RunStatus,
    pub started_ms: i64,
    /// `None` while it runs, and if its process was killed.
    pub ended_ms: Option<i64>,
    /// JSON, as given to [`Tx::finish_run`].
    pub outcome: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, EnumString, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum RunStatus {
    Running,
    /// It waits for a person's approval: docs/approvals.md.
    Waiting,
    /// It was interrupted repeatedly, and waits until a person allows another attempt.
    Held,
    Done,
    Failed,
    Cancelled,
}

/// The status of a run `r`: held and waiting runs have their own columns.
pub(super) const STATUS: &str = "CASE WHEN r.status <> 'running' THEN r.status WHEN r.held_ms IS NOT NULL THEN 'held'
     WHEN r.waiting IS NOT NULL THEN 'waiting' ELSE r.status END";

impl RunStatus {
    /// Whether it has not ended.
    pub fn is_open(self) -> bool {
        matches!(self, RunStatus::Running | RunStatus::Waiting | RunStatus::Held)
    }
}

/// Selects runs for a listing; the default selects all.
#[derive(Debug, Clone, Copy, Default)]
pub struct RunFilter<'a> {
    /// Only in sessions that this caller began.
    pub owner: Option<&'a SessionOwner>,
    pub session: Option<&'a SessionName>,
    pub status: Option<RunStatus>,
}

/// Maximum runs in a page of a listing.
const MAX_PAGE: u32 = 1_000;

impl View<'_> {
    /// Returns the run with this id.
    pub fn run(&self, id: &RunId) -> Result<Option<Run>, StoreError> {
        let mut query = self.conn.prepare_cached(&format!(
            "SELECT r.id, s.name, m.text, {STATUS}, r.started_ms, r.ended_ms, r.outcome FROM runs r
             JOIN sessions s ON s.id = r.session JOIN messages m ON m.id = r.message WHERE r.id = ?1"
        ))?;
        Ok(query.query_row([id], run).optional()?)
    }

    /// Returns the status of a run, and its outcome as JSON once it has ended.
    pub fn ending(&self, id: &RunId) -> Result<Option<(RunStatus, Option<String>)>, StoreError> {
        let mut query = self.conn.prepare_cached(&format!("SELECT {STATUS}, r.outcome FROM runs r WHERE r.id = ?1"))?;
        Ok(query.query_row([id], |row| Ok((row.get(0)?, row.get(1)?))).optional()?)
    }

    pub(super) fn has_run(&self, id: &RunId) -> Result<bool, StoreError> {
        Ok(self.conn.prepare_cached("SELECT 1 FROM runs WHERE id = ?1")?.exists([id])?)
    }

    /// Returns the run with this id, as in a listing.
    pub fn run_line(&self, id: &RunId) -> Result<Option<RunLine>, StoreError> {
        let mut query = self.conn.prepare_cached(&format!(
            "SELECT r.id, s.name, substr(m.text, 1, 200), {STATUS}, r.started_ms, r.ended_ms FROM runs r
             JOIN sessions s ON s.id = r.session JOIN messages m ON m.id = r.message WHERE r.id = ?1"
        ))?;
        Ok(query.query_row([id], line).optional()?)
    }

    /// Returns runs, latest first: of one session or of all, those that began before `before`, at most `limit` (and at most
    /// 1,000). The last one's id is the `before` of the next page.
    pub fn list_runs(
        &self,
        session: Option<&SessionName>,
        before: Option<&RunId>,
        limit: u32,
    ) -> Result<Vec<RunLine>, StoreError> {
        self.list_runs_of(RunFilter { session, ..RunFilter::default() }, before, limit)
    }

    /// The same for runs that pass a filter.
    pub fn list_runs_of(
        &self,
        filter: RunFilter<'_>,
        before: Option<&RunId>,
        limit: u32,
    ) -> Result<Vec<RunLine>, StoreError> {
        let before = match before {
            Some(id) => self.num(id)?,
            None => i64::MAX,
        };
        // Two statements, because with an "or" SQLite would read the runs of all other sessions.
        let RunFilter { owner, session, status } = filter;
        let of_session = if session.is_some() {
            "r.session = (SELECT id FROM sessions WHERE name = ?3) AND"
        } else {
            "?3 IS NULL AND"
        };
        let mut query = self.conn.prepare_cached(&format!(
            "SELECT r.id, s.name, substr(m.text, 1, 200), {STATUS}, r.started_ms, r.ended_ms FROM runs r
             JOIN sessions s ON s.id = r.session JOIN messages m ON m.id = r.message
             WHERE {of_session} r.num < ?1 AND (?4 IS NULL OR s.owner = ?4)
                 AND (?5 IS NULL OR {STATUS} = ?5) ORDER BY r.num DESC LIMIT ?2"
        ))?;
        let (session, owner) = (session.map(SessionName::as_str), owner.map(SessionOwner::as_str));
        let status: Option<&'static str> = status.map(Into::into);
        let rows = query.query_map((before, limit.min(MAX_PAGE), session, owner, status), line)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Returns the runs of a session after this one (`None`: from the first), oldest first, at most `limit`.
    pub fn runs_after(&self, session: &SessionName, after: Option<&RunId>, limit: u32) -> Result<Vec<Run>, StoreError> {
        let after = after.map_or(Ok(0), |id| self.num(id))?;
        let mut query = self.conn.prepare_cached(&format!(
            "SELECT r.id, s.name, m.text, {STATUS}, r.started_ms, r.ended_ms, r.outcome FROM runs r
             JOIN sessions s ON s.id = r.session JOIN messages m ON m.id = r.message
             WHERE r.session = (SELECT id FROM sessions WHERE name = ?1) AND r.num > ?2 ORDER BY r.num LIMIT ?3"
        ))?;
        let rows = query.query_map((session.as_str(), after, limit), run)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Returns the run that a person means: "last", an id, or a unique beginning of one.
    pub fn resolve_run(&self, text: &str) -> Result<RunId, StoreError> {
        const SHOWN: usize = 5;
        let none = || StoreError::NoRun { text: text.chars().take(80).collect() };
        if text == "last" {
            let mut query = self.conn.prepare_cached("SELECT id FROM runs ORDER BY num DESC LIMIT 1")?;
            return query.query_row((), |row| row.get(0)).optional()?.ok_or_else(none);
        }
        let prefix = text.to_ascii_lowercase();
        if prefix.is_empty() || !prefix.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(none());
        }
        // '{' is the character after 'z'.
        let mut query =
            self.conn.prepare_cached("SELECT id FROM runs WHERE id >= ?1 AND id < ?1 || '{' ORDER BY id LIMIT ?2")?;
        let rows = query.query_map((&prefix, SHOWN as u32 + 1), |row| row.get(0))?;
        let mut runs: Vec<RunId> = rows.collect::<Result<_, _>>()?;
        match runs.len() {
            0 => Err(none()),
            1 => Ok(runs.remove(0)),
            found => {
                runs.truncate(SHOWN);
                Err(StoreError::Ambiguous { text: text.to_owned(), runs, more: found > SHOWN })
            }
        }
    }

    /// Returns the messages of a run, oldest first: the user's messages that it took, and its answers. Reads only messages since
    /// the first of them: a waiting message can be older than the new version of a turn that is answered before it, and whose run
    /// may take it.
    pub fn messages_of_run(&self, id: &RunId) -> Result<Vec<Message>, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT m.id, m.role, m.text, m.at_ms, m.run, m.tags FROM runs r
             JOIN messages m ON m.session = r.session
                 AND m.id >= min(r.message, coalesce((SELECT min(j.message) FROM jobs j WHERE j.run = r.num), r.message))
             WHERE r.id = ?1 AND m.run = ?1 ORDER BY m.id",
        )?;
        let rows = query.query_map([id], message)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Returns the row number of a run.
    pub(super) fn num(&self, id: &RunId) -> Result<i64, StoreError> {
        let mut query = self.conn.prepare_cached("SELECT num FROM runs WHERE id = ?1")?;
        let num = query.query_row([id], |row| row.get(0)).optional()?;
        num.ok_or_else(|| StoreError::NoRun { text: id.to_string() })
    }
}

impl Tx<'_> {
    /// Returns an unused id.
    pub(super) fn new_run_id(&self, at_ms: i64) -> Result<RunId, StoreError> {
        loop {
            let id = RunId::new(at_ms)?;
            if !self.has_run(&id)? {
                return Ok(id);
            }
        }
    }

    /// Begins a run: creates its row, the user's message and, if necessary, the session.
    pub fn create_run(&self, session: &SessionName, message: &str, at_ms: i64) -> Result<RunId, StoreError> {
        let id = self.new_run_id(at_ms)?;
        let message = self.add_message(session, MessageRole::User, message, at_ms, Some(&id))?;
        let mut insert = self.conn.prepare_cached(
            "INSERT INTO runs (id, session, message, status, started_ms)
             VALUES (?1, (SELECT session FROM messages WHERE id = ?2), ?2, ?3, ?4)",
        )?;
        let num = insert.insert((&id, message, RunStatus::Running, at_ms))?;
        self.tell_run(num)?;
        Ok(id)
    }

    /// Replaces the text of a message, once it is known which parts of it are secret. The old bytes are overwritten
    /// (`secure_delete`).
    pub fn replace_message(&self, message: i64, text: &str) -> Result<(), StoreError> {
        let mut update = self.conn.prepare_cached("UPDATE messages SET text = ?2, grams = ?3 WHERE id = ?1")?;
        update.execute((message, text, super::words::indexed_grams(text)))?;
        Ok(())
    }

    /// Replaces the sealed body of an event by its text in the clear, for the same reason. The event itself does not change.
    pub fn replace_event(&self, id: &RunId, seq: u32, body: &str) -> Result<(), StoreError> {
        let num = self.num(id)?;
        let mut update = self.conn.prepare_cached("UPDATE events SET body = ?3 WHERE run = ?1 AND seq = ?2")?;
        update.execute((num, seq, body))?;
        Ok(())
    }

    /// Ends a running run. `outcome` is JSON; `status` must not be running.
    pub fn finish_run(&self, id: &RunId, status: RunStatus, at_ms: i64, outcome: &str) -> Result<(), StoreError> {
        let num = self.num(id)?;
        let mut update = self.conn.prepare_cached(
            "UPDATE runs SET status = ?2, ended_ms = ?3, outcome = ?4, held_ms = NULL, retry_ms = NULL,
                 waiting = NULL WHERE num = ?1 AND status = 'running'",
        )?;
        match update.execute((num, status, at_ms, outcome))? {
            0 => Err(StoreError::Ended { run: id.clone() }),
            _ => {
                self.withdraw_approvals(num, at_ms)?;
                self.tell_webhooks_of_run(num, at_ms)?;
                self.tell_run(num)
            }
        }
    }
}

/// Reads a run from the columns of a line and its outcome.
fn run(row: &Row<'_>) -> rusqlite::Result<Run> {
    let RunLine { id, session, message, status, started_ms, ended_ms } = line(row)?;
    Ok(Run { id, session, message, status, started_ms, ended_ms, outcome: row.get(6)? })
}

fn line(row: &Row<'_>) -> rusqlite::Result<RunLine> {
    Ok(RunLine {
        id: row.get(0)?,
        session: session_name(row, 1)?,
        message: row.get(2)?,
        status: row.get(3)?,
        started_ms: row.get(4)?,
        ended_ms: row.get(5)?,
    })
}
