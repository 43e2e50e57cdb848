//! Deliveries of hooks: each becomes a message once, even if it is sent several times.

use rusqlite::OptionalExtension;

use super::{JobAdmission, NewJob, StoreError, Tx, View};
use kiso_base::home::SessionName;

/// How long a delivery is remembered, in milliseconds: senders stop retrying much earlier, and an attacker who recorded one must
/// wait as long.
const KEEP_MS: i64 = 90 * 24 * 60 * 60 * 1_000;

/// Old deliveries that one transaction deletes.
const TRIM: u32 = 100;

/// An event that becomes a message.
#[derive(Debug, Clone)]
pub struct HookDelivery {
    pub hook: String,
    /// Its ids: if one of them is known, the event was received before. Empty for an event that cannot be identified.
    pub keys: Vec<Vec<u8>>,
    /// Its message.
    pub job: NewJob,
    /// The session that gets the reply.
    pub told: Option<SessionName>,
    /// Maximum waiting messages of the hook.
    pub max_waiting: u64,
}

/// The result of a delivery. A refused one left nothing behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookAdmission {
    Taken(JobAdmission),
    /// The maximum number of messages is waiting.
    Full,
}

/// The state of a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookLine {
    pub hook: String,
    /// Number of waiting messages.
    pub waiting: u64,
    /// When the last event was received; `None` if there was none.
    pub last_ms: Option<i64>,
}

impl View<'_> {
    /// Returns the state of a hook that works in this session.
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
    /// Admits an event in one transaction: its message, its job and its ids.
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
