//! Imports a session from an export: its old rows, with new numbers. There are no notices about them, because old events must not
//! trigger anything again.

use super::words::indexed_grams;
use super::{MAX_TAGS, MessageRole, ModelChoice, Placement, RunId, RunStatus, StoreError, Tx, UsageLine};
use kiso_base::home::SessionName;

/// A message of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OldMessage {
    pub role: MessageRole,
    pub text: String,
    pub at_ms: i64,
    pub run: Option<RunId>,
    pub tags: Vec<String>,
}

/// An ended run of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OldRun {
    pub id: RunId,
    pub status: RunStatus,
    pub started_ms: i64,
    pub ended_ms: i64,
    /// JSON.
    pub outcome: Option<String>,
}

impl Tx<'_> {
    /// Creates the session, which must not exist.
    pub fn import_session(
        &self,
        session: &SessionName,
        title: Option<&str>,
        models: &ModelChoice,
        placement: Placement,
        (created_ms, active_ms): (i64, i64),
    ) -> Result<(), StoreError> {
        let id = self.ensure_session(session, created_ms)?;
        let roles = kiso_base::json::text(&models.roles);
        let mut update = self.conn.prepare_cached(
            "UPDATE sessions SET title = ?2, model = ?3, role_models = ?4, placement = ?5, active_ms = ?6 WHERE id = ?1",
        )?;
        update.execute((id, title, &models.all, roles, placement, active_ms))?;
        self.tell_session(session)
    }

    /// Adds a message, which counts as read. Returns its number.
    pub fn import_message(&self, session: &SessionName, old: &OldMessage) -> Result<i64, StoreError> {
        let id = self.ensure_session(session, old.at_ms)?;
        let mut insert = self.conn.prepare_cached(
            "INSERT INTO messages (session, role, text, at_ms, run, tags, grams) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?;
        let tags = serde_json::Value::from(&old.tags[..old.tags.len().min(MAX_TAGS)]).to_string();
        let grams = indexed_grams(&old.text);
        let message = insert.insert((id, old.role, &old.text, old.at_ms, &old.run, tags, grams))?;
        self.conn.prepare_cached("UPDATE sessions SET read_to = ?2 WHERE id = ?1")?.execute((id, message))?;
        Ok(message)
    }

    /// Adds a run that began with this message.
    pub fn import_run(&self, session: &SessionName, old: &OldRun, message: i64) -> Result<(), StoreError> {
        let session = self.ensure_session(session, old.started_ms)?;
        let mut insert = self.conn.prepare_cached(
            "INSERT INTO runs (id, session, message, status, started_ms, ended_ms, outcome) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?;
        insert.execute((&old.id, session, message, old.status, old.started_ms, old.ended_ms, &old.outcome))?;
        Ok(())
    }

    /// Adds a model call to a run and its session, but not to the sum of its day, because it was paid for elsewhere.
    pub fn import_usage(&self, session: &SessionName, run: &RunId, line: &UsageLine) -> Result<(), StoreError> {
        self.add_usage_between(session, Some(run), line, false)
    }

    /// Begins a segment after this message.
    pub fn import_segment(&self, session: &SessionName, after: i64, at_ms: i64) -> Result<(), StoreError> {
        let id = self.ensure_session(session, at_ms)?;
        let mut insert =
            self.conn.prepare_cached("INSERT OR IGNORE INTO segments (session, after, at_ms) VALUES (?1, ?2, ?3)")?;
        insert.execute((id, after, at_ms))?;
        Ok(())
    }

    /// Returns the id for an imported run: the id in the file, unless this store already has it.
    pub fn free_run_id(&self, id: &RunId, at_ms: i64) -> Result<RunId, StoreError> {
        match self.has_run(id)? {
            false => Ok(id.clone()),
            true => self.new_run_id(at_ms),
        }
    }
}

/// The last millisecond of the year 9999.
const LAST_MS: i64 = 253_402_300_799_999;

/// Whether a time is valid in a row.
pub fn is_time(at_ms: i64) -> bool {
    (0..=LAST_MS).contains(&at_ms)
}
