//! Branches: a session is a tree. A turn (the messages that one run answered, and its replies) can have several versions, each
//! with its own following messages. The messages on the path to the branch in use are the session; all others are kept, and
//! marked as replaced.
//!
//! ```text
//!   branch 0    1 ── 3 ── 5        5 was asked again as 7: branch 7 leaves branch 0 before 5.
//!                    └── 7 ── 9    In use is branch 7: the messages 1, 3, 7 and 9.
//! ```

mod in_use;

use std::collections::BTreeMap;

use rusqlite::OptionalExtension;

use super::{JobAdmission, JobPriority, LabelledRow, Message, MessageRole, NewJob, RunId, StoreError, Tx, View};
use kiso_base::home::SessionName;
use kiso_plan::label::Label;
use kiso_plan::plan::CallerScope;

/// Maximum versions of one turn.
pub const MAX_VERSIONS: usize = 50;

/// Maximum branches of a session.
pub const MAX_BRANCHES: u32 = 1_000;

/// A turn of the branch in use, and the runs that leave the context when it is replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplacedTurn {
    pub session: SessionName,
    /// The user's messages: first those that its run began with, then those that it took later, each oldest first.
    pub asked: Vec<Message>,
    /// Its run and the following ones, oldest first.
    pub runs: Vec<RunId>,
    /// Whether a run of the session has not ended.
    pub is_at_work: bool,
}

/// A new version of a turn.
#[derive(Debug, Clone)]
pub struct NewVersion {
    /// A message of the turn.
    pub message: i64,
    /// A new text for this message, as stored; `None` repeats the old one.
    pub text: Option<String>,
    pub caller: CallerScope,
    /// As in [`NewJob`].
    pub client_key: Option<String>,
    pub at_ms: i64,
    /// Whether to cancel runs that have not ended. Otherwise, they prevent the new version.
    pub cancel: bool,
    /// Whether to undo the replaced runs' changes to files before the new version begins.
    pub undo: bool,
}

/// An admitted version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionAdmission {
    pub session: SessionName,
    /// The message to follow: the last one of the turn.
    pub message: i64,
    /// Number of additional waiting messages; 0 if a message with the same key was admitted before.
    pub added: u64,
    pub priority: JobPriority,
    pub change: BranchChange,
}

/// Why a turn was not replaced, or a branch not put into use. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotReplaced {
    #[error("no such message was sent")]
    Unknown,
    #[error("the message is a reply, whose text cannot be changed")]
    IsReply,
    #[error("no run has answered the message yet")]
    Unanswered,
    #[error("the message belongs to another version of this conversation; switch to it first")]
    Elsewhere,
    #[error("a run has not ended in the session {0}; wait for it, or cancel it")]
    AtWork(SessionName),
    #[error("a turn has at most {MAX_VERSIONS} versions, and a session {MAX_BRANCHES}")]
    TooMany,
}

/// Summaries of a session that changed when another branch was put into use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BranchChange {
    /// Texts of summaries that contain messages of the previous branch.
    pub dropped: Vec<String>,
    /// Summaries of the branch that is now in use.
    pub restored: Vec<KeptSummary>,
}

/// A summary with its label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptSummary {
    pub text: String,
    pub label: Label,
}

/// A branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OldBranch {
    /// Its first message.
    pub id: i64,
    /// The branch that it leaves; 0 for the first one.
    pub parent: i64,
    /// The first message of the turn that it replaces there.
    pub first: i64,
}

/// A row of `branches`.
#[derive(Debug, Clone, Copy)]
struct Branch {
    id: i64,
    parent: i64,
    first: i64,
    /// The number of the run of the replaced turn.
    run: i64,
}

impl Branch {
    /// Whether a message of the branch that this one leaves comes before the replaced turn. Their runs decide the order, because a
    /// reply can come after the message of the next turn.
    fn is_after(&self, message: i64, run: Option<i64>) -> bool {
        run.map_or(message < self.first, |run| run < self.run)
    }
}

impl View<'_> {
    /// Returns the branch of the session that is in use.
    pub fn branch_in_use(&self, session: &SessionName) -> Result<i64, StoreError> {
        let mut query = self.conn.prepare_cached("SELECT branch FROM sessions WHERE name = ?1")?;
        Ok(query.query_row([session.as_str()], |row| row.get(0)).optional()?.unwrap_or_default())
    }

    /// Returns the first messages of all versions of the turn that this message begins, oldest first; empty if there is only one.
    pub fn versions(&self, message: i64) -> Result<Vec<i64>, StoreError> {
        let mut query = self.conn.prepare_cached("SELECT first FROM branches WHERE id = ?1")?;
        let first = query.query_row([message], |row| row.get(0)).optional()?.unwrap_or(message);
        let mut query = self.conn.prepare_cached("SELECT id FROM branches WHERE first = ?1 ORDER BY id")?;
        let others = query.query_map([first], |row| row.get(0))?.collect::<Result<Vec<i64>, _>>()?;
        Ok(if others.is_empty() { others } else { std::iter::once(first).chain(others).collect() })
    }

    /// Whether a turn whose first message has this time was replaced.
    pub fn is_turn_replaced(&self, session: &SessionName, at_ms: i64) -> Result<bool, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM messages INDEXED BY messages_replaced
             WHERE session = (SELECT id FROM sessions WHERE name = ?1) AND at_ms = ?2 AND replaced = 1)",
        )?;
        Ok(query.query_row((session.as_str(), at_ms), |row| row.get(0))?)
    }

    /// Whether a message belongs to a branch that is not in use.
    pub fn is_replaced(&self, message: i64) -> Result<bool, StoreError> {
        let mut query = self.conn.prepare_cached("SELECT replaced FROM messages WHERE id = ?1")?;
        Ok(query.query_row([message], |row| row.get(0)).optional()?.unwrap_or_default())
    }

    /// Whether the run answers a message of a branch that is not in use.
    pub fn is_run_replaced(&self, run: &RunId) -> Result<bool, StoreError> {
        let mut query = self
            .conn
            .prepare_cached("SELECT m.replaced FROM runs r JOIN messages m ON m.id = r.message WHERE r.id = ?1")?;
        Ok(query.query_row([run], |row| row.get(0)).optional()?.unwrap_or_default())
    }

    /// Returns the turn of this message.
    pub fn turn(&self, message: i64) -> Result<Result<ReplacedTurn, NotReplaced>, StoreError> {
        let Some((session, found)) = self.message(message)? else { return Ok(Err(NotReplaced::Unknown)) };
        let Some(run) = found.run else { return Ok(Err(NotReplaced::Unanswered)) };
        // The report of a subagent belongs to a run of its own session.
        let Some(of_run) = self.run_line(&run)?.filter(|line| line.session == session) else {
            return Ok(Err(NotReplaced::IsReply));
        };
        if self.is_run_replaced(&of_run.id)? {
            return Ok(Err(NotReplaced::Elsewhere));
        }
        let mut asked = self.messages_of_run(&run)?;
        asked.retain(|message| message.role == MessageRole::User);
        let mut query = self.conn.prepare_cached("SELECT message FROM runs WHERE id = ?1")?;
        let begins: i64 = query.query_row([&run], |row| row.get(0))?;
        // A waiting message is older than the version whose run took it.
        asked.sort_by_key(|message| (message.id < begins, message.id));
        let mut query = self.conn.prepare_cached(
            "SELECT r.id FROM runs r JOIN messages m ON m.id = r.message
             WHERE r.session = (SELECT id FROM sessions WHERE name = ?1) AND r.num >= ?2 AND m.replaced = 0 ORDER BY r.num",
        )?;
        let runs = query.query_map((session.as_str(), self.num(&run)?), |row| row.get(0))?.collect::<Result<_, _>>()?;
        let is_at_work = self.has_open_run(&session)?;
        Ok(Ok(ReplacedTurn { session, asked, runs, is_at_work }))
    }

    /// Returns the user's last message in the branch in use that a run has taken.
    pub fn last_asked(&self, session: &SessionName) -> Result<Option<i64>, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT id FROM messages WHERE session = (SELECT id FROM sessions WHERE name = ?1) AND replaced = 0
             AND role = 'user' AND run IS NOT NULL ORDER BY id DESC LIMIT 1",
        )?;
        Ok(query.query_row([session.as_str()], |row| row.get(0)).optional()?)
    }

    /// Returns the branch of a session's next run, if the run begins one, and the runs whose changes to files must be undone
    /// first.
    pub fn undo_before(&self, session: &SessionName) -> Result<Option<(i64, Vec<RunId>)>, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT b.id, b.undo FROM jobs j INDEXED BY jobs_of_turns JOIN branches b ON b.id = j.turn
             WHERE j.session = (SELECT id FROM sessions WHERE name = ?1) AND j.state = 'queued' AND j.turn IS NOT NULL
             AND b.undo IS NOT NULL ORDER BY j.turn DESC LIMIT 1",
        )?;
        let found =
            query.query_row([session.as_str()], |row| Ok((row.get(0)?, row.get::<_, String>(1)?))).optional()?;
        let Some((branch, runs)) = found else { return Ok(None) };
        Ok(Some((branch, undo_runs(&runs)?)))
    }

    /// Returns the branches of the session, oldest first.
    pub fn branches(&self, session: &SessionName) -> Result<Vec<OldBranch>, StoreError> {
        let Some(id) = self.session_id(session)? else { return Ok(Vec::new()) };
        let rows = self.branches_of(id)?.into_values();
        Ok(rows.map(|Branch { id, parent, first, .. }| OldBranch { id, parent, first }).collect())
    }

    fn branches_of(&self, session: i64) -> Result<BTreeMap<i64, Branch>, StoreError> {
        let mut query = self.conn.prepare_cached("SELECT id, parent, first, run FROM branches WHERE session = ?1")?;
        let rows = query.query_map([session], |row| {
            Ok(Branch { id: row.get(0)?, parent: row.get(1)?, first: row.get(2)?, run: row.get(3)? })
        })?;
        Ok(rows.map(|row| row.map(|branch| (branch.id, branch))).collect::<Result<_, _>>()?)
    }

    fn branch_of_message(&self, message: i64) -> Result<i64, StoreError> {
        let mut query = self.conn.prepare_cached("SELECT branch FROM messages WHERE id = ?1")?;
        Ok(query.query_row([message], |row| row.get(0))?)
    }

    fn has_open_run(&self, session: &SessionName) -> Result<bool, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM runs INDEXED BY runs_unfinished
             WHERE status = 'running' AND session = (SELECT id FROM sessions WHERE name = ?1))",
        )?;
        Ok(query.query_row([session.as_str()], |row| row.get(0))?)
    }

    /// Returns the branch of a new message, and whether that is not in use: a reply is in the branch of the message that its run
    /// began with.
    pub(super) fn branch_for(&self, session: i64, run: Option<&RunId>) -> Result<(i64, bool), StoreError> {
        if let Some(run) = run {
            let mut query = self.conn.prepare_cached(
                "SELECT m.branch, m.replaced FROM runs r JOIN messages m ON m.id = r.message WHERE r.id = ?1 AND r.session = ?2",
            )?;
            if let Some(found) = query.query_row((run, session), |row| Ok((row.get(0)?, row.get(1)?))).optional()? {
                return Ok(found);
            }
        }
        let mut query = self.conn.prepare_cached("SELECT branch, 0 FROM sessions WHERE id = ?1")?;
        Ok(query.query_row([session], |row| Ok((row.get(0)?, row.get(1)?)))?)
    }
}

impl Tx<'_> {
    /// Replaces a turn, and everything after it, by a new version: its messages are admitted again, before those that are
    /// waiting. Their labels and their callers' rights stay.
    pub fn replace_turn(&self, new: &NewVersion) -> Result<Result<VersionAdmission, NotReplaced>, StoreError> {
        let Some((session, message)) = self.message(new.message)? else { return Ok(Err(NotReplaced::Unknown)) };
        if let Some(before) = self.admitted(&session, new.client_key.as_deref())? {
            let priority = JobPriority::Interactive;
            let change = BranchChange::default();
            return Ok(Ok(VersionAdmission { session, message: before, added: 0, priority, change }));
        }
        if new.text.is_some() && message.role == MessageRole::Assistant {
            return Ok(Err(NotReplaced::IsReply));
        }
        let turn = match self.turn(new.message)? {
            Ok(turn) => turn,
            Err(why) => return Ok(Err(why)),
        };
        if turn.is_at_work && !new.cancel {
            return Ok(Err(NotReplaced::AtWork(session)));
        }
        let (Some(id), Some(first)) = (self.session_id(&session)?, turn.asked.first()) else {
            return Ok(Err(NotReplaced::Unknown));
        };
        let (branches, run) = (self.branches_of(id)?, self.num(&turn.runs[0])?);
        let place = match branches.get(&first.id) {
            Some(version) => *version,
            None => Branch { id: 0, parent: self.branch_of_message(first.id)?, first: first.id, run },
        };
        if self.versions(first.id)?.len() >= MAX_VERSIONS || branches.len() >= MAX_BRANCHES as usize {
            return Ok(Err(NotReplaced::TooMany));
        }
        // Before its messages, so that clients that follow the session drop the old ones first.
        self.tell_session(&session)?;
        let pending = self.drop_pending_branches(id)?;
        let (mut added, mut priority) = (Vec::new(), JobPriority::Interactive);
        for asked in &turn.asked {
            let job = self.job(asked.id)?;
            let by_user = job.as_ref().is_some_and(|job| job.caller == CallerScope::User);
            priority = job.map_or(JobPriority::Interactive, |job| job.priority);
            let text = new.text.as_ref().filter(|_| asked.id == new.message).unwrap_or(&asked.text);
            let job = NewJob {
                session: session.clone(),
                text: text.clone(),
                caller: if by_user { CallerScope::User } else { new.caller },
                priority,
                client_key: new.client_key.clone().filter(|_| added.is_empty()),
                at_ms: new.at_ms,
                label: self.label(LabelledRow::Message, asked.id)?,
            };
            let JobAdmission::Now(admitted) = self.admit(&job)? else { continue };
            added.push(admitted);
        }
        let (Some(branch), Some(last)) = (added.first().copied(), added.last().copied()) else {
            return Ok(Err(NotReplaced::Unknown));
        };
        let mut undo = if new.undo { turn.runs.clone() } else { Vec::new() };
        undo.extend(pending);
        let undo = (!undo.is_empty()).then(|| serde_json::json!(undo).to_string());
        self.conn
            .prepare_cached(
                "INSERT INTO branches (id, session, parent, first, run, undo) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?
            .execute((branch, id, place.parent, place.first, place.run, undo))?;
        for message in &added {
            self.conn.prepare_cached("UPDATE jobs SET turn = ?2 WHERE message = ?1")?.execute((message, branch))?;
        }
        // All waiting messages come after the new version.
        self.conn
            .prepare_cached(
                "UPDATE messages INDEXED BY messages_waiting SET branch = ?2 WHERE session = ?1 AND role = 'user' AND run IS NULL",
            )?
            .execute((id, branch))?;
        if turn.is_at_work {
            let mut open = self.conn.prepare_cached(
                "SELECT id FROM runs INDEXED BY runs_unfinished WHERE status = 'running' AND session = ?1 ORDER BY num",
            )?;
            let open = open.query_map([id], |row| row.get(0))?.collect::<Result<Vec<RunId>, _>>()?;
            open.iter().try_for_each(|run| self.request_cancel(run))?;
        }
        let change = self.use_branch(&session, branch)?;
        Ok(Ok(VersionAdmission { session, message: last, added: added.len() as u64, priority, change }))
    }

    /// Turns versions that no run has begun into ordinary waiting messages, after the new version of an earlier turn. They are no
    /// longer branches. Returns the runs whose changes would have been undone before them.
    fn drop_pending_branches(&self, session: i64) -> Result<Vec<RunId>, StoreError> {
        let mut delete = self.conn.prepare_cached(
            "DELETE FROM branches WHERE id IN (
                 SELECT turn FROM jobs INDEXED BY jobs_of_turns WHERE session = ?1 AND state = 'queued' AND turn IS NOT NULL)
             AND (SELECT run FROM messages m WHERE m.id = branches.id) IS NULL RETURNING id, parent, undo",
        )?;
        let rows = delete.query_map([session], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        let dropped = rows.collect::<Result<Vec<(i64, i64, Option<String>)>, _>>()?;
        let mut undo = Vec::new();
        for (branch, parent, runs) in dropped {
            self.conn
                .prepare_cached("UPDATE sessions SET branch = ?3 WHERE id = ?1 AND branch = ?2")?
                .execute((session, branch, parent))?;
            if let Some(runs) = runs {
                undo.extend(undo_runs(&runs)?);
            }
        }
        self.conn
            .prepare_cached("UPDATE jobs SET turn = NULL WHERE session = ?1 AND state = 'queued' AND turn IS NOT NULL")?
            .execute([session])?;
        Ok(undo)
    }

    /// Records that the changes of the runs that a branch replaces were undone.
    pub fn set_undone(&self, branch: i64) -> Result<(), StoreError> {
        self.conn.prepare_cached("UPDATE branches SET undo = NULL WHERE id = ?1")?.execute([branch])?;
        Ok(())
    }

    /// Adds the branches of an export, whose messages and runs already exist, and selects the branch that was used last. `of`
    /// contains the branch of each message, and the branch of each break by the message before it.
    pub fn import_branches(
        &self,
        session: &SessionName,
        branches: &[OldBranch],
        of_messages: &[(i64, i64)],
        of_breaks: &[(i64, i64)],
        in_use: i64,
    ) -> Result<(), StoreError> {
        let Some(id) = self.session_id(session)? else { return Ok(()) };
        for OldBranch { id: branch, parent, first } in branches {
            let mut insert = self.conn.prepare_cached(
                "INSERT INTO branches (id, session, parent, first, run)
                 SELECT ?1, ?2, ?3, ?4, r.num FROM messages m JOIN runs r ON r.id = m.run WHERE m.id = ?4",
            )?;
            insert.execute((branch, id, parent, first))?;
        }
        for (message, branch) in of_messages {
            // Temporarily; the branch in use is determined afterwards, starting where it leaves the first one.
            self.conn
                .prepare_cached("UPDATE messages SET branch = ?2, replaced = ?2 > 0 WHERE id = ?1")?
                .execute((message, branch))?;
        }
        for (after, branch) in of_breaks {
            self.conn
                .prepare_cached("UPDATE segments SET branch = ?3 WHERE session = ?1 AND after = ?2")?
                .execute((id, after, branch))?;
        }
        self.use_branch(session, in_use).map(drop)
    }
}

/// Parses the runs of [`View::undo_before`].
fn undo_runs(json: &str) -> Result<Vec<RunId>, StoreError> {
    let runs: Vec<String> = serde_json::from_str(json).map_err(|error| StoreError::corrupt(error.to_string()))?;
    Ok(runs.iter().filter_map(|run| run.parse().ok()).collect())
}

#[cfg(test)]
mod tests;
