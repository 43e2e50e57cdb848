//! Jobs: admitted messages that must be answered. A job is created with its message, begun with its run and finished with the
//! reply, each in one transaction, so that a crash never leaves a message unanswered or answered twice.

use std::collections::BTreeSet;

use rusqlite::OptionalExtension;
use schemars::JsonSchema;
use serde::Serialize;
use strum::{EnumString, IntoStaticStr};

use super::sessions::session_name;
use super::{LabelledRow, Message, MessageRole, RunId, RunStatus, StoreError, Tx, View};
use kiso_base::home::SessionName;
use kiso_plan::label::Label;
use kiso_plan::plan::CallerScope;

/// Maximum characters of a client's key for its message.
pub const MAX_CLIENT_KEY: usize = 128;

/// Maximum messages that one run takes together.
pub const MAX_JOINED: u32 = 50;

/// Bytes of these messages, as stored: the message that reaches them is the last one. The others get another run.
const MAX_JOINED_BYTES: usize = 1 << 20;

/// Who waits for a reply, which decides who gets a model first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, EnumString, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum JobPriority {
    /// A person waits for it.
    Interactive,
    /// A run was spawned by another one, or by the schedule.
    Subagent,
    /// Nobody waits for it.
    Background,
}

/// A message to admit.
#[derive(Debug, Clone)]
pub struct NewJob {
    pub session: SessionName,
    /// As stored: sealed until a model has searched it for secrets.
    pub text: String,
    pub caller: CallerScope,
    pub priority: JobPriority,
    /// The client's key for the message, at most [`MAX_CLIENT_KEY`] characters: a message that is sent twice is admitted once.
    pub client_key: Option<String>,
    pub at_ms: i64,
    /// The label of its text.
    pub label: Label,
}

/// A message of the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// The message's id, which is also the job's.
    pub message: i64,
    pub session: SessionName,
    pub state: JobState,
    pub caller: CallerScope,
    pub priority: JobPriority,
    pub at_ms: i64,
    pub run: Option<RunId>,
    /// The reply to it.
    pub reply: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, EnumString, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum JobState {
    Queued,
    Running,
    /// Its run waits for a person's approval: docs/approvals.md.
    Waiting,
    /// Its run waits until a person allows another attempt.
    Held,
    Done,
    /// Its run has failed.
    Failed,
    /// Its run was cancelled.
    Cancelled,
}

impl JobState {
    /// Whether it has not been answered yet.
    pub fn is_open(self) -> bool {
        matches!(self, JobState::Queued | JobState::Running | JobState::Waiting | JobState::Held)
    }
}

/// A run that was begun for waiting messages.
#[derive(Debug, Clone)]
pub struct BegunRun {
    pub run: RunId,
    /// As stored, oldest first.
    pub texts: Vec<String>,
    pub caller: CallerScope,
    pub priority: JobPriority,
    /// The joined label of its messages.
    pub label: Label,
}

/// Whether a message was admitted now, or before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobAdmission {
    Now(i64),
    /// A message with the same key was admitted before; its id.
    Before(i64),
}

impl JobAdmission {
    pub fn message(self) -> i64 {
        let (JobAdmission::Now(id) | JobAdmission::Before(id)) = self;
        id
    }
}

/// The outcome of a job is that of its run, so that the two cannot differ.
const COLUMNS: &str = "j.message, s.name, CASE
         WHEN j.state = 'done' AND r.status IN ('failed', 'cancelled') THEN r.status
         WHEN j.state = 'running' AND r.held_ms IS NOT NULL THEN 'held'
         WHEN j.state = 'running' AND r.waiting IS NOT NULL THEN 'waiting' ELSE j.state END, j.caller, j.priority, m.at_ms, r.id, j.reply FROM jobs j
     JOIN sessions s ON s.id = j.session JOIN messages m ON m.id = j.message LEFT JOIN runs r ON r.num = j.run";

impl View<'_> {
    /// Returns the job of a message.
    pub fn job(&self, message: i64) -> Result<Option<Job>, StoreError> {
        let mut query = self.conn.prepare_cached(&format!("SELECT {COLUMNS} WHERE j.message = ?1"))?;
        Ok(query.query_row([message], job).optional()?)
    }

    /// Returns those of a session's messages that no person sent.
    pub fn untyped(&self, messages: &[Message]) -> Result<BTreeSet<i64>, StoreError> {
        let mut query = self.conn.prepare_cached("SELECT priority FROM jobs WHERE message = ?1")?;
        let mut found = BTreeSet::new();
        for message in messages.iter().filter(|message| message.role == MessageRole::User) {
            let priority: Option<JobPriority> = query.query_row([message.id], |row| row.get(0)).optional()?;
            if priority.is_some_and(|priority| priority != JobPriority::Interactive) {
                found.insert(message.id);
            }
        }
        Ok(found)
    }

    /// Returns the waiting jobs of a session, oldest first, at most `limit`.
    pub fn queued_jobs(&self, session: &SessionName, limit: u32) -> Result<Vec<Job>, StoreError> {
        // Otherwise, SQLite might choose the index over all jobs of a session.
        let columns = COLUMNS.replace("FROM jobs j", "FROM jobs j INDEXED BY jobs_queued");
        let mut query = self.conn.prepare_cached(&format!(
            "SELECT {columns} WHERE j.session = (SELECT id FROM sessions WHERE name = ?1) AND j.state = 'queued'
             ORDER BY j.message LIMIT ?2"
        ))?;
        let rows = query.query_map((session.as_str(), limit), job)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Returns the jobs of the last waiting version of a turn, oldest first.
    fn queued_versions(&self, session: &SessionName) -> Result<Vec<Job>, StoreError> {
        let columns = COLUMNS.replace("FROM jobs j", "FROM jobs j INDEXED BY jobs_of_turns");
        let mut query = self.conn.prepare_cached(&format!(
            "SELECT {columns} WHERE j.session = (SELECT id FROM sessions WHERE name = ?1) AND j.state = 'queued'
             AND j.turn = (SELECT max(turn) FROM jobs INDEXED BY jobs_of_turns
                 WHERE session = (SELECT id FROM sessions WHERE name = ?1) AND state = 'queued' AND turn IS NOT NULL)
             AND j.turn IS NOT NULL ORDER BY j.message LIMIT ?2"
        ))?;
        let rows = query.query_map((session.as_str(), MAX_JOINED), job)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Returns the sessions with waiting jobs, each with the time and priority of its last message, ordered by their first one.
    pub fn sessions_queued(&self) -> Result<Vec<(SessionName, i64, JobPriority)>, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT s.name, m.at_ms, j.priority FROM (
                 SELECT session, min(message) AS first, max(message) AS last FROM jobs INDEXED BY jobs_queued
                 WHERE state = 'queued' GROUP BY session) q
             JOIN sessions s ON s.id = q.session JOIN messages m ON m.id = q.last JOIN jobs j ON j.message = q.first
             ORDER BY q.first",
        )?;
        let rows = query.query_map((), |row| Ok((session_name(row, 0)?, row.get(1)?, row.get(2)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Returns the messages that a reply answers, oldest first; empty if it is not the last reply of its run.
    pub fn answered_by(&self, run: &RunId, reply: i64) -> Result<Vec<i64>, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT j.message FROM runs r JOIN jobs j ON j.run = r.num WHERE r.id = ?1 AND j.reply = ?2 ORDER BY j.message",
        )?;
        let rows = query.query_map((run, reply), |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Returns how many messages of persons a current run has taken.
    pub fn count_jobs_of(&self, run: &RunId) -> Result<u64, StoreError> {
        let num = self.num(run)?;
        let mut query = self
            .conn
            .prepare_cached("SELECT count(*) FROM jobs WHERE run = ?1 AND state = 'running' AND root IS NULL")?;
        let count: i64 = query.query_row([num], |row| row.get(0))?;
        Ok(count.unsigned_abs())
    }

    /// Returns how many messages of persons are waiting, in all sessions. Spawned jobs have their own limits.
    pub fn count_queued(&self) -> Result<u64, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT count(*) FROM jobs INDEXED BY jobs_queued WHERE state = 'queued' AND root IS NULL",
        )?;
        let count: i64 = query.query_row((), |row| row.get(0))?;
        Ok(count.unsigned_abs())
    }
}

impl Tx<'_> {
    /// Admits a message in one transaction: the message and its job.
    pub fn admit(&self, new: &NewJob) -> Result<JobAdmission, StoreError> {
        let session = self.ensure_session(&new.session, new.at_ms)?;
        if let Some(message) = self.admitted(&new.session, new.client_key.as_deref())? {
            return Ok(JobAdmission::Before(message));
        }
        let message = self.add_message(&new.session, MessageRole::User, &new.text, new.at_ms, None)?;
        let mut insert = self.conn.prepare_cached(
            "INSERT INTO jobs (message, session, state, caller, priority, client_key) VALUES (?1, ?2, 'queued', ?3, ?4, ?5)",
        )?;
        insert.execute((message, session, new.caller.name(), new.priority, &new.client_key))?;
        self.set_label(LabelledRow::Message, message, &new.label)?;
        Ok(JobAdmission::Now(message))
    }

    /// Returns the message of the session with this key.
    pub(super) fn admitted(&self, session: &SessionName, key: Option<&str>) -> Result<Option<i64>, StoreError> {
        let Some(key) = key else { return Ok(None) };
        if key.chars().count() > MAX_CLIENT_KEY {
            return Err(StoreError::Quota {
                what: "the message's key has too many characters",
                max: MAX_CLIENT_KEY as u64,
            });
        }
        let mut query = self.conn.prepare_cached(
            "SELECT message FROM jobs WHERE session = (SELECT id FROM sessions WHERE name = ?1) AND client_key = ?2",
        )?;
        Ok(query.query_row((session.as_str(), key), |row| row.get(0)).optional()?)
    }

    /// Begins a run for waiting messages of a session: the first ones with the same kind of caller and the same priority, or a
    /// single one that nobody typed. `None` if none is waiting.
    pub fn begin_queued(&self, session: &SessionName, at_ms: i64) -> Result<Option<BegunRun>, StoreError> {
        self.begin_queued_apart(session, at_ms, &|_| false)
    }

    /// Begins a run for a message that did not wait, with its text as stored.
    pub fn begin_run(
        &self,
        session: &SessionName,
        text: String,
        caller: CallerScope,
        at_ms: i64,
    ) -> Result<BegunRun, StoreError> {
        let run = self.create_run(session, &text, at_ms)?;
        let (priority, label) = (JobPriority::Interactive, Label::default());
        Ok(BegunRun { run, texts: vec![text], caller, priority, label })
    }

    /// Like [`Tx::begin_queued`]; a message whose stored text `is_apart` becomes a turn of its own.
    pub fn begin_queued_apart(
        &self,
        session: &SessionName,
        at_ms: i64,
        is_apart: &dyn Fn(&str) -> bool,
    ) -> Result<Option<BegunRun>, StoreError> {
        // The new version of a turn is answered before later messages.
        let mut jobs = self.queued_versions(session)?;
        if jobs.is_empty() {
            jobs = self.queued_jobs(session, MAX_JOINED)?;
        }
        let Some(first) = jobs.first().cloned() else { return Ok(None) };
        let alike = match first.priority {
            JobPriority::Interactive => {
                jobs.iter().take_while(|job| (job.caller, job.priority) == (first.caller, first.priority)).count()
            }
            // Messages that nobody typed are not a conversation: each is a turn of its own, like those that arrive during a run.
            JobPriority::Subagent | JobPriority::Background => 1,
        };
        jobs.truncate(alike);
        let run = self.new_run_id(at_ms)?;
        let mut insert = self.conn.prepare_cached(
            "INSERT INTO runs (id, session, message, status, started_ms)
             VALUES (?1, (SELECT session FROM messages WHERE id = ?2), ?2, ?3, ?4)",
        )?;
        let num = insert.insert((&run, first.message, RunStatus::Running, at_ms))?;
        self.tell_run(num)?;
        let (mut texts, mut bytes): (Vec<String>, usize) = (Vec::with_capacity(jobs.len()), 0);
        let mut label = Label::default();
        for job in &jobs {
            if bytes >= MAX_JOINED_BYTES {
                break;
            }
            if let Some(last) = texts.last() {
                let mut look = self.conn.prepare_cached("SELECT text FROM messages WHERE id = ?1")?;
                let next: String = look.query_row([job.message], |row| row.get(0))?;
                if is_apart(last) || is_apart(&next) {
                    break;
                }
            }
            let mut take = self.conn.prepare_cached("UPDATE messages SET run = ?1 WHERE id = ?2 RETURNING text")?;
            texts.push(take.query_row((&run, job.message), |row| row.get(0))?);
            bytes += texts.last().map_or(0, String::len);
            self.job_runs(job.message, num)?;
            label.join(&self.label(LabelledRow::Message, job.message)?);
        }
        Ok(Some(BegunRun { run, texts, caller: first.caller, priority: first.priority, label }))
    }

    /// Assigns a waiting message to a run.
    pub(super) fn job_runs(&self, message: i64, run: i64) -> Result<(), StoreError> {
        let mut update = self
            .conn
            .prepare_cached("UPDATE jobs SET state = 'running', run = ?2 WHERE message = ?1 AND state = 'queued'")?;
        update.execute((message, run))?;
        Ok(())
    }

    /// Finishes the jobs of an ended run: `reply` answers them.
    pub fn finish_jobs(&self, run: &RunId, reply: i64) -> Result<(), StoreError> {
        let num = self.num(run)?;
        let mut update = self
            .conn
            .prepare_cached("UPDATE jobs SET state = 'done', reply = ?2 WHERE run = ?1 AND state = 'running'")?;
        update.execute((num, reply))?;
        Ok(())
    }
}

fn job(row: &rusqlite::Row<'_>) -> rusqlite::Result<Job> {
    Ok(Job {
        message: row.get(0)?,
        session: session_name(row, 1)?,
        state: row.get(2)?,
        caller: caller(row, 3)?,
        priority: row.get(4)?,
        at_ms: row.get(5)?,
        run: row.get(6)?,
        reply: row.get(7)?,
    })
}

/// Reads a caller from a row.
pub(super) fn caller(row: &rusqlite::Row<'_>, index: usize) -> rusqlite::Result<CallerScope> {
    Ok(match row.get_ref(index)?.as_str()? {
        "admin" => CallerScope::Admin,
        _ => CallerScope::User,
    })
}
