//! Deliveries of hooks: each becomes a message once, however often it is sent.

use rusqlite::OptionalExtension;

use super::{JobAdmission, NewJob, StoreError, Tx, View};
use kiso_base::home::SessionName;

/// Milliseconds for which a delivery is known: senders give up long before, and who recorded one has to wait as long.
const KEEP_MS: i64 = 90 * 24 * 60 * 60 * 1_000;

/// Old deliveries that one transaction forgets.
const TRIM: u32 = 100;

/// An event that becomes a message.
#[derive(Debug, Clone)]
pub struct HookDelivery {
    pub hook: String,
    /// What it is known by: one of them known means that it came before. None for one that cannot be told from another.
    pub keys: Vec<Vec<u8>>,
    /// Its message.
    pub job: NewJob,
    /// The session that is told the reply.
    pub told: Option<SessionName>,
    /// Messages of the hook that may wait.
    pub max_waiting: u64,
}

/// What became of a delivery. One that was refused left nothing behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookAdmission {
    Taken(JobAdmission),
    /// As many messages wait as may.
    Full,
}

/// What came through a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookLine {
    pub hook: String,
    /// Messages that wait.
    pub waiting: u64,
    /// When the last one came; none where none did.
    pub last_ms: Option<i64>,
}

impl View<'_> {
    /// How a hook stands, which works in this session.
    pub fn hook(&self, hook: &str, session: &SessionName) -> Result<HookLine, StoreError> {
        let mut last =
            self.conn.prepare_cached("SELECT max(at_ms) FROM messages WHERE role = 'user' AND session = ?1")?;
        let last_ms = match self.session_id(session)? {
            Some(id) => last.query_row([id], |row| row.get(0))?,
            None => None,
        };
        Ok(HookLine { hook: hook.to_owned(), waiting: self.count_waiting(session)?, last_ms })
    }

    fn count_waiting(&self, session: &SessionName) -> Result<u64, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT count(*) FROM jobs INDEXED BY jobs_queued
             WHERE session = (SELECT id FROM sessions WHERE name = ?1) AND state = 'queued'",
        )?;
        let count: i64 = query.query_row([session.as_str()], |row| row.get(0))?;
        Ok(count.unsigned_abs())
    }
}

impl Tx<'_> {
    /// Admits an event: its message, its job and what it is known by, or nothing.
    pub fn admit_delivery(&self, delivery: &HookDelivery) -> Result<HookAdmission, StoreError> {
        let HookDelivery { hook, keys, job, told, max_waiting } = delivery;
        let mut known = self.conn.prepare_cached("SELECT message FROM hook_deliveries WHERE hook = ?1 AND key = ?2")?;
        for key in keys {
            if let Some(message) = known.query_row((hook, key), |row| row.get(0)).optional()? {
                return Ok(HookAdmission::Taken(JobAdmission::Before(message)));
            }
        }
        if !self.has_session(&job.session)? {
            self.check_sessions()?;
        } else if self.count_waiting(&job.session)? >= *max_waiting {
            return Ok(HookAdmission::Full);
        }
        let message = self.admit_unasked(job, hook, told.as_ref())?;
        let mut insert = self
            .conn
            .prepare_cached("INSERT INTO hook_deliveries (hook, key, message, at_ms) VALUES (?1, ?2, ?3, ?4)")?;
        for key in keys {
            insert.execute((hook, key, message, job.at_ms))?;
        }
        let mut trim = self.conn.prepare_cached(
            "DELETE FROM hook_deliveries WHERE (hook, key) IN
                 (SELECT hook, key FROM hook_deliveries WHERE at_ms < ?1 ORDER BY at_ms LIMIT ?2)",
        )?;
        trim.execute((job.at_ms - KEEP_MS, TRIM))?;
        Ok(HookAdmission::Taken(JobAdmission::Now(message)))
    }
}
