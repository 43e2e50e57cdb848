//! Subagents: sessions that were spawned by another one, or by the schedule. Each has a parent, and its messages are jobs with
//! the root of their tree and the session for their reply.

use std::collections::BTreeSet;

use rusqlite::OptionalExtension;

use super::sessions::session_name;
use super::{
    JobAdmission, JobPriority, JobState, LabelledRow, MessageRole, NewJob, RunId, RunStatus, StoreError, Tx, View,
};
use kiso_base::home::SessionName;
use kiso_plan::label::Label;
use kiso_plan::plan::CallerScope;

/// Maximum parents that are followed in a tree. Other limits keep trees much lower; an impossible cycle would end here.
const MAX_HEIGHT: u32 = 64;

/// A subagent to admit.
#[derive(Debug, Clone)]
pub struct Spawn {
    /// Its session, which must be new.
    pub session: SessionName,
    /// Its name for people.
    pub name: String,
    /// Its message, sealed.
    pub text: String,
    pub caller: CallerScope,
    pub parent: SessionName,
    /// The session that gets the reply.
    pub inject_into: Option<SessionName>,
    /// Replaces the configured default.
    pub model: Option<String>,
    /// Identifies the call that spawns it: a repeated call is admitted once.
    pub client_key: String,
    pub at_ms: i64,
    /// The label of the data that the decision was based on, including its message.
    pub label: Label,
}

/// Maximum numbers of subagents.
#[derive(Debug, Clone, Copy)]
pub struct SpawnLimits {
    /// Maximum depth of the tree; with 1, a subagent spawns none.
    pub depth: u64,
    /// Maximum unfinished ones in a tree.
    pub of_tree: u64,
    /// Maximum unfinished ones in total.
    pub all: u64,
}

/// Why a subagent was not admitted. Nothing of it was stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpawnRefused {
    #[error("a subagent would be {depth} levels deep, and at most {max} are allowed (subagents.max_depth)")]
    TooDeep { depth: u64, max: u64 },
    #[error(
        "{max} subagents of this conversation are not finished, and no more are allowed (subagents.max_unfinished)"
    )]
    TooManyHere { max: u64 },
    #[error("{max} subagents are not finished, and no more are allowed (subagents.max_unfinished_total)")]
    TooMany { max: u64 },
    #[error("a session named {session} already exists")]
    Taken { session: SessionName },
}

/// A subagent and its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subagent {
    pub session: SessionName,
    pub name: Option<String>,
    pub parent: SessionName,
    pub model: Option<String>,
    /// Its last message.
    pub message: i64,
    pub at_ms: i64,
    pub state: JobState,
    pub inject_into: Option<SessionName>,
    pub run: Option<RunId>,
    /// The status of its run.
    pub status: Option<RunStatus>,
    pub reply: Option<String>,
}

const COLUMNS: &str =
    "s.name, s.title, p.name, s.model, j.message, m.at_ms, j.state, j.inject_into, r.id, r.status, a.text
     FROM sessions s JOIN sessions p ON p.id = s.parent
     JOIN jobs j ON j.message = (SELECT max(message) FROM (
         SELECT x.message FROM messages y JOIN jobs x ON x.message = y.id
         WHERE y.session = s.id AND y.role = 'user' ORDER BY y.id DESC LIMIT 1))
     JOIN messages m ON m.id = j.message LEFT JOIN runs r ON r.num = j.run LEFT JOIN messages a ON a.id = j.reply";

impl View<'_> {
    /// Returns the direct subagents of a session, newest first, at most `limit`.
    pub fn subagents_of(&self, parent: &SessionName, limit: u32) -> Result<Vec<Subagent>, StoreError> {
        let mut query = self.conn.prepare_cached(&format!(
            "SELECT {COLUMNS} WHERE s.parent = (SELECT id FROM sessions WHERE name = ?1) ORDER BY s.id DESC LIMIT ?2"
        ))?;
        let rows = query.query_map((parent.as_str(), limit), subagent)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Returns the subagent with this session; `None` if the session is not a subagent.
    pub fn subagent(&self, session: &SessionName) -> Result<Option<Subagent>, StoreError> {
        let mut query = self.conn.prepare_cached(&format!("SELECT {COLUMNS} WHERE s.name = ?1"))?;
        Ok(query.query_row([session.as_str()], subagent).optional()?)
    }

    /// Returns the parent of a session; `None` if it has none.
    pub fn parent_of(&self, session: &SessionName) -> Result<Option<SessionName>, StoreError> {
        let mut query = self
            .conn
            .prepare_cached("SELECT p.name FROM sessions s JOIN sessions p ON p.id = s.parent WHERE s.name = ?1")?;
        Ok(query.query_row([session.as_str()], |row| session_name(row, 0)).optional()?)
    }

    /// Returns a session, its parent, and so on to the root of the tree.
    pub fn line_of(&self, session: &SessionName) -> Result<Vec<SessionName>, StoreError> {
        let mut line = vec![session.clone()];
        while line.len() < MAX_HEIGHT as usize
            && let Some(parent) = self.parent_of(&line[line.len() - 1])?
        {
            line.push(parent);
        }
        Ok(line)
    }

    /// Returns sessions with waiting spawned jobs, with the time and priority of each; oldest first, at most `limit`.
    pub fn spawned_queued(&self, limit: u32) -> Result<Vec<(SessionName, i64, JobPriority)>, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT s.name, m.at_ms, j.priority FROM jobs j INDEXED BY jobs_spawned
             JOIN sessions s ON s.id = j.session JOIN messages m ON m.id = j.message
             WHERE j.root IS NOT NULL AND j.state <> 'done' AND j.state = 'queued' LIMIT ?1",
        )?;
        let rows = query.query_map([limit], |row| Ok((session_name(row, 0)?, row.get(1)?, row.get(2)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Returns the priority that a run was begun with; that of a person if it has no job.
    pub fn priority_of_run(&self, run: &RunId) -> Result<JobPriority, StoreError> {
        let num = self.num(run)?;
        let mut query =
            self.conn.prepare_cached("SELECT priority FROM jobs WHERE run = ?1 AND state = 'running' LIMIT 1")?;
        Ok(query.query_row([num], |row| row.get(0)).optional()?.unwrap_or(JobPriority::Interactive))
    }
}

impl Tx<'_> {
    /// Admits a subagent in one transaction: its session, its message and its job.
    pub fn spawn(&self, new: &Spawn, limits: &SpawnLimits) -> Result<Result<JobAdmission, SpawnRefused>, StoreError> {
        if let Some(session) = self.session_id(&new.session)? {
            let mut query =
                self.conn.prepare_cached("SELECT message FROM jobs WHERE session = ?1 AND client_key = ?2")?;
            let before = query.query_row((session, &new.client_key), |row| row.get(0)).optional()?;
            return Ok(match before {
                Some(message) => Ok(JobAdmission::Before(message)),
                None => Err(SpawnRefused::Taken { session: new.session.clone() }),
            });
        }
        let line = self.line_of(&new.parent)?;
        let depth = line.len() as u64;
        if depth > limits.depth {
            return Ok(Err(SpawnRefused::TooDeep { depth, max: limits.depth }));
        }
        let root = self.ensure_session(&line[line.len() - 1], new.at_ms)?;
        if self.count_spawned(Some(root))? >= limits.of_tree {
            return Ok(Err(SpawnRefused::TooManyHere { max: limits.of_tree }));
        }
        if self.count_spawned(None)? >= limits.all {
            return Ok(Err(SpawnRefused::TooMany { max: limits.all }));
        }
        let parent = self.ensure_session(&new.parent, new.at_ms)?;
        let session = self.ensure_session(&new.session, new.at_ms)?;
        let mut update =
            self.conn.prepare_cached("UPDATE sessions SET parent = ?2, title = ?3, model = ?4 WHERE id = ?1")?;
        update.execute((session, parent, &new.name, &new.model))?;
        let job = NewJob {
            session: new.session.clone(),
            text: new.text.clone(),
            caller: new.caller,
            priority: JobPriority::Subagent,
            client_key: Some(new.client_key.clone()),
            at_ms: new.at_ms,
            label: new.label.clone(),
        };
        let admitted = self.admit(&job)?;
        self.job_is_spawned(admitted.message(), root, new.inject_into.as_ref())?;
        Ok(Ok(admitted))
    }

    /// Admits a message that no person of this home sent, in the session that works for it, which is a subagent of the session
    /// that gets the reply (`told`). Returns the message.
    pub(super) fn admit_unasked(
        &self,
        job: &NewJob,
        title: &str,
        told: Option<&SessionName>,
    ) -> Result<i64, StoreError> {
        let id = self.ensure_session(&job.session, job.at_ms)?;
        // A session that gets replies of this session's own reply cannot be its parent: parents must not form a cycle.
        let parent = match told {
            Some(told) if !self.line_of(told)?.contains(&job.session) => Some(self.ensure_session(told, job.at_ms)?),
            _ => None,
        };
        let mut update = self.conn.prepare_cached("UPDATE sessions SET parent = ?2, title = ?3 WHERE id = ?1")?;
        update.execute((id, parent, title))?;
        let message = self.admit(job)?.message();
        let line = self.line_of(&job.session)?;
        let root = self.ensure_session(&line[line.len() - 1], job.at_ms)?;
        self.job_is_spawned(message, root, told)?;
        Ok(message)
    }

    /// Marks a job as spawned in the tree below `root`; this session gets its reply.
    pub(super) fn job_is_spawned(
        &self,
        message: i64,
        root: i64,
        inject_into: Option<&SessionName>,
    ) -> Result<(), StoreError> {
        let mut update = self.conn.prepare_cached("UPDATE jobs SET root = ?2, inject_into = ?3 WHERE message = ?1")?;
        update.execute((message, root, inject_into.map(SessionName::as_str)))?;
        Ok(())
    }

    /// Adds the reply of a run to each session that gets it. Called before [`Tx::finish_jobs`] in the same transaction, so that
    /// the reply is added exactly once, even if the run ends again after a crash.
    pub fn inject_reply(&self, run: &RunId, text: &str, label: &Label, at_ms: i64) -> Result<(), StoreError> {
        self.inject(run, text, label, at_ms).map(drop)
    }

    /// Adds a text of a run to each session that gets its reply. Returns the messages.
    pub fn inject(&self, run: &RunId, text: &str, label: &Label, at_ms: i64) -> Result<Vec<i64>, StoreError> {
        let num = self.num(run)?;
        let mut query = self.conn.prepare_cached(
            "SELECT inject_into FROM jobs WHERE run = ?1 AND state = 'running' AND inject_into IS NOT NULL",
        )?;
        let rows = query.query_map([num], |row| session_name(row, 0))?;
        // One run may answer several messages of a session.
        let sessions = rows.collect::<Result<BTreeSet<_>, _>>()?;
        let message = |session: &SessionName| {
            let message = self.add_message(session, MessageRole::Assistant, text, at_ms, Some(run))?;
            self.set_label(LabelledRow::Message, message, label)?;
            Ok(message)
        };
        sessions.iter().map(message).collect()
    }

    /// Ends a session's waiting messages as a cancelled run: `outcome` is its JSON, `reply` its text. `None` if nothing is
    /// waiting.
    pub fn cancel_queued(
        &self,
        session: &SessionName,
        outcome: &str,
        reply: &str,
        at_ms: i64,
    ) -> Result<Option<RunId>, StoreError> {
        let Some(begun) = self.begin_queued(session, at_ms)? else { return Ok(None) };
        self.finish_run(&begun.run, RunStatus::Cancelled, at_ms, outcome)?;
        let answer = self.add_message(session, MessageRole::Assistant, reply, at_ms, Some(&begun.run))?;
        self.finish_jobs(&begun.run, answer)?;
        Ok(Some(begun.run))
    }

    /// Returns the number of unfinished spawned jobs, in one tree or in total.
    fn count_spawned(&self, root: Option<i64>) -> Result<u64, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT count(*) FROM jobs INDEXED BY jobs_spawned
             WHERE root IS NOT NULL AND state IN ('queued', 'running') AND state <> 'done' AND (?1 IS NULL OR root = ?1)",
        )?;
        let count: i64 = query.query_row([root], |row| row.get(0))?;
        Ok(count.unsigned_abs())
    }
}

fn subagent(row: &rusqlite::Row<'_>) -> rusqlite::Result<Subagent> {
    let inject_into: Option<String> = row.get(7)?;
    Ok(Subagent {
        session: session_name(row, 0)?,
        name: row.get(1)?,
        parent: session_name(row, 2)?,
        model: row.get(3)?,
        message: row.get(4)?,
        at_ms: row.get(5)?,
        state: row.get(6)?,
        inject_into: inject_into.and_then(|name| SessionName::parse(&name).ok()),
        run: row.get(8)?,
        status: row.get(9)?,
        reply: row.get(10)?,
    })
}
