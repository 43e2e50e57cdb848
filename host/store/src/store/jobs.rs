//! Jobs: messages that were admitted and must be answered. A job is written with its message, begun with its run and done
//! with the reply, each in one transaction, so that no crash leaves a message that nobody answers, or answers twice.

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

/// Characters of a client's name for its message.
pub const MAX_CLIENT_KEY: usize = 128;

/// Messages that one run takes up together.
pub const MAX_JOINED: u32 = 50;

/// Bytes of these, as they are kept: the message with which they have as many is the last. The others have a run after it.
const MAX_JOINED_BYTES: usize = 1 << 20;

/// What waits for a model first.
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
    /// As it is kept: sealed until a model has looked for secrets.
    pub text: String,
    pub caller: CallerScope,
    pub priority: JobPriority,
    /// The client's name for the message, at most [`MAX_CLIENT_KEY`] characters: sent twice, it is admitted once.
    pub client_key: Option<String>,
    pub at_ms: i64,
    /// Whose words it is.
    pub label: Label,
}

/// A message of the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// The message's id, which is the job's too.
    pub message: i64,
    pub session: SessionName,
    pub state: JobState,
    pub caller: CallerScope,
    pub priority: JobPriority,
    pub at_ms: i64,
    pub run: Option<RunId>,
    /// The message that answers it.
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
    /// Its run waits for a person to say that it is to be tried again.
    Held,
    Done,
    /// Its run has failed.
    Failed,
    /// Its run was cancelled.
    Cancelled,
}

impl JobState {
    /// Whether its reply is still to come.
    pub fn is_open(self) -> bool {
        matches!(self, JobState::Queued | JobState::Running | JobState::Waiting | JobState::Held)
    }
}

/// A run that was begun for messages that waited.
#[derive(Debug, Clone)]
pub struct BegunRun {
    pub run: RunId,
    /// As they are kept, oldest first.
    pub texts: Vec<String>,
    pub caller: CallerScope,
    pub priority: JobPriority,
    /// The worst of those of its messages.
    pub label: Label,
}

/// Whether a message was admitted now, or before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobAdmission {
    Now(i64),
    /// A message with the same key was; its id.
    Before(i64),
}

impl JobAdmission {
    pub fn message(self) -> i64 {
        let (JobAdmission::Now(id) | JobAdmission::Before(id)) = self;
        id
    }
}

/// How a job ended is what its run says: one place for it, so that the two cannot differ.
const COLUMNS: &str = "j.message, s.name, CASE
         WHEN j.state = 'done' AND r.status IN ('failed', 'cancelled') THEN r.status
         WHEN j.state = 'running' AND r.held_ms IS NOT NULL THEN 'held'
         WHEN j.state = 'running' AND r.waiting IS NOT NULL THEN 'waiting' ELSE j.state END, j.caller, j.priority, m.at_ms, r.id, j.reply FROM jobs j
     JOIN sessions s ON s.id = j.session JOIN messages m ON m.id = j.message LEFT JOIN runs r ON r.num = j.run";

impl View<'_> {
    /// The job of a message.
    pub fn job(&self, message: i64) -> Result<Option<Job>, StoreError> {
        let mut query = self.conn.prepare_cached(&format!("SELECT {COLUMNS} WHERE j.message = ?1"))?;
        Ok(query.query_row([message], job).optional()?)
    }

    /// Those of a session's messages that no person sent.
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

    /// The jobs of a session that wait, oldest first, at most `limit`.
    pub fn queued_jobs(&self, session: &SessionName, limit: u32) -> Result<Vec<Job>, StoreError> {
        // There is an index over all jobs of a session, too.
        let columns = COLUMNS.replace("FROM jobs j", "FROM jobs j INDEXED BY jobs_queued");
        let mut query = self.conn.prepare_cached(&format!(
            "SELECT {columns} WHERE j.session = (SELECT id FROM sessions WHERE name = ?1) AND j.state = 'queued'
             ORDER BY j.message LIMIT ?2"
        ))?;
        let rows = query.query_map((session.as_str(), limit), job)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The jobs that make up the last version of a turn that waits, oldest first.
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

    /// The sessions in which jobs wait, with the time and priority of each one's last message, in the order of their
    /// first.
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

    /// The messages that a reply answers, oldest first; none for what is not a reply, or not the last one of its run.
    pub fn answered_by(&self, run: &RunId, reply: i64) -> Result<Vec<i64>, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT j.message FROM runs r JOIN jobs j ON j.run = r.num WHERE r.id = ?1 AND j.reply = ?2 ORDER BY j.message",
        )?;
        let rows = query.query_map((run, reply), |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// How many messages of persons a run that is under way has taken.
    pub fn count_jobs_of(&self, run: &RunId) -> Result<u64, StoreError> {
        let num = self.num(run)?;
        let mut query = self
            .conn
            .prepare_cached("SELECT count(*) FROM jobs WHERE run = ?1 AND state = 'running' AND root IS NULL")?;
        let count: i64 = query.query_row([num], |row| row.get(0))?;
        Ok(count.unsigned_abs())
    }

    /// How many messages of persons wait, all sessions together. What was spawned has limits of its own.
    pub fn count_queued(&self) -> Result<u64, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT count(*) FROM jobs INDEXED BY jobs_queued WHERE state = 'queued' AND root IS NULL",
        )?;
        let count: i64 = query.query_row((), |row| row.get(0))?;
        Ok(count.unsigned_abs())
    }
}

impl Tx<'_> {
    /// Admits a message: the message and its job, or nothing.
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

    /// The message of the session with this key.
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

    /// Begins a run for the messages of a session that wait: as many of the first ones as came from the same kind of
    /// caller with the same priority, or one that nobody typed. `None` where none waits.
    pub fn begin_queued(&self, session: &SessionName, at_ms: i64) -> Result<Option<BegunRun>, StoreError> {
        self.begin_queued_apart(session, at_ms, &|_| false)
    }

    /// Begins a run for a message that did not wait, with the text as it is kept.
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

    /// [`Tx::begin_queued`], where a message whose text, as it is stored, `is_apart` is a turn of its own.
    pub fn begin_queued_apart(
        &self,
        session: &SessionName,
        at_ms: i64,
        is_apart: &dyn Fn(&str) -> bool,
    ) -> Result<Option<BegunRun>, StoreError> {
        // The version of a turn is answered before what was said after it.
        let mut jobs = self.queued_versions(session)?;
        if jobs.is_empty() {
            jobs = self.queued_jobs(session, MAX_JOINED)?;
        }
        let Some(first) = jobs.first().cloned() else { return Ok(None) };
        let alike = match first.priority {
            JobPriority::Interactive => {
                jobs.iter().take_while(|job| (job.caller, job.priority) == (first.caller, first.priority)).count()
            }
            // What nobody typed is no conversation: each is a turn of its own, as those that arrive during one are.
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

    /// A message that waited belongs to a run now.
    pub(super) fn job_runs(&self, message: i64, run: i64) -> Result<(), StoreError> {
        let mut update = self
            .conn
            .prepare_cached("UPDATE jobs SET state = 'running', run = ?2 WHERE message = ?1 AND state = 'queued'")?;
        update.execute((message, run))?;
        Ok(())
    }

    /// The jobs of a run that has ended are done: `reply` answers them.
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

/// Reads a caller out of a row.
pub(super) fn caller(row: &rusqlite::Row<'_>, index: usize) -> rusqlite::Result<CallerScope> {
    Ok(match row.get_ref(index)?.as_str()? {
        "admin" => CallerScope::Admin,
        _ => CallerScope::User,
    })
}
