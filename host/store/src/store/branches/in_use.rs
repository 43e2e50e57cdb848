//! The branch of a session that is in use: marks the messages on the path to it, and exchanges the summaries.

use std::collections::{BTreeMap, HashMap};

use rusqlite::OptionalExtension;

use super::super::sessions::{message, session_name};
use super::super::{Message, StoreError, Summary, Tx, View};
use super::{Branch, BranchChange, KeptSummary, NotReplaced};
use kiso_base::home::SessionName;
use kiso_plan::label::Label;

/// The branches on the path to one, and the place where each is left.
struct Way(HashMap<i64, Option<Branch>>);

impl Way {
    fn new(branches: &BTreeMap<i64, Branch>, to: i64) -> Way {
        let (mut way, mut at, mut left) = (HashMap::new(), to, None);
        // A branch always leaves an older one, so this loop ends.
        while way.insert(at, left).is_none()
            && let Some(branch) = branches.get(&at)
        {
            (at, left) = (branch.parent, Some(*branch));
        }
        Way(way)
    }

    fn has(&self, branch: i64, message: i64, run: Option<i64>) -> bool {
        match self.0.get(&branch) {
            None => false,
            Some(None) => true,
            Some(Some(left)) => left.is_after(message, run),
        }
    }
}

impl View<'_> {
    /// Returns the last `count` messages up to this one, oldest first, on the path to its own branch, which need not be in use;
    /// empty if the message does not exist.
    pub fn messages_up_to(&self, last: i64, count: usize) -> Result<Vec<Message>, StoreError> {
        let Some((session, _)) = self.message(last)? else { return Ok(Vec::new()) };
        let Some(id) = self.session_id(&session)? else { return Ok(Vec::new()) };
        let way = Way::new(&self.branches_of(id)?, self.branch_of_message(last)?);
        let mut query = self.conn.prepare_cached(
            "SELECT m.id, m.role, m.text, m.at_ms, m.run, m.tags, m.branch, r.num FROM messages m
             LEFT JOIN runs r ON r.id = m.run AND r.session = m.session
             WHERE m.session = ?1 AND m.id <= ?2 ORDER BY m.id DESC",
        )?;
        let (mut rows, mut messages) = (query.query((id, last))?, Vec::new());
        while messages.len() < count
            && let Some(row) = rows.next()?
        {
            if way.has(row.get(6)?, row.get(0)?, row.get(7)?) {
                messages.push(message(row)?);
            }
        }
        messages.reverse();
        Ok(messages)
    }
}

impl Tx<'_> {
    /// Puts the branch with this message into use; of several, the one with the latest message.
    pub fn show_version(&self, message: i64) -> Result<Result<(SessionName, BranchChange), NotReplaced>, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT s.name, s.id, m.branch, m.replaced, r.num FROM messages m JOIN sessions s ON s.id = m.session
             LEFT JOIN runs r ON r.id = m.run AND r.session = m.session WHERE m.id = ?1",
        )?;
        let found = query
            .query_row([message], |row| Ok((session_name(row, 0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?)))
            .optional()?;
        let Some((session, id, branch, replaced, run)): Option<(_, i64, i64, bool, Option<i64>)> = found else {
            return Ok(Err(NotReplaced::Unknown));
        };
        if !replaced {
            return Ok(Ok((session, BranchChange::default())));
        }
        // A run or a waiting message stays in the branch in which it began.
        if self.has_open_run(&session)? || !self.queued_jobs(&session, 1)?.is_empty() {
            return Ok(Err(NotReplaced::AtWork(session)));
        }
        let branches = self.branches_of(id)?;
        // A branch is always newer than the one that it leaves.
        let mut having = vec![branch];
        for one in branches.values() {
            let leaves = one.parent == branch && one.is_after(message, run);
            if leaves || one.parent != branch && having.contains(&one.parent) {
                having.push(one.id);
            }
        }
        let (mut newest, mut latest) = (branch, 0);
        for one in having {
            let last = self.last_of_branch(id, one)?;
            if last > latest {
                (newest, latest) = (one, last);
            }
        }
        self.tell_session(&session)?;
        let change = self.use_branch(&session, newest)?;
        Ok(Ok((session, change)))
    }

    /// Marks the messages on the path to a branch as in use, and all others as replaced. A summary of messages that are not on
    /// both paths is kept until its branch is in use again.
    pub(super) fn use_branch(&self, session: &SessionName, branch: i64) -> Result<BranchChange, StoreError> {
        let Some(id) = self.session_id(session)? else { return Ok(BranchChange::default()) };
        let (branches, before) = (self.branches_of(id)?, self.branch_in_use(session)?);
        let way = Way::new(&branches, branch);
        let from = self.parting(id, &branches, before, branch)?;
        let mut query = self.conn.prepare_cached(
            "SELECT m.id, m.branch, m.replaced, r.num FROM messages m LEFT JOIN runs r ON r.id = m.run AND r.session = m.session
             WHERE m.session = ?1 AND m.id >= ?2 ORDER BY m.id",
        )?;
        let mut changed: Vec<(i64, bool)> = Vec::new();
        let mut rows = query.query((id, from))?;
        while let Some(row) = rows.next()? {
            let (message, replaced): (i64, bool) = (row.get(0)?, row.get(2)?);
            let is_replaced = !way.has(row.get(1)?, message, row.get(3)?);
            if is_replaced != replaced {
                changed.push((message, is_replaced));
            }
        }
        drop(rows);
        for (message, replaced) in &changed {
            let mut update = self.conn.prepare_cached("UPDATE messages SET replaced = ?2 WHERE id = ?1")?;
            update.execute((message, replaced))?;
        }
        let mut query = self.conn.prepare_cached("SELECT after, branch FROM segments WHERE session = ?1")?;
        let breaks =
            query.query_map([id], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<Vec<(i64, i64)>, _>>()?;
        for (after, of) in breaks {
            let mut update =
                self.conn.prepare_cached("UPDATE segments SET replaced = ?3 WHERE session = ?1 AND after = ?2")?;
            update.execute((id, after, !way.has(of, after, None)))?;
        }
        self.conn.prepare_cached("UPDATE sessions SET branch = ?2 WHERE id = ?1")?.execute((id, branch))?;
        let first = changed.first().map_or(i64::MAX, |(message, _)| *message);
        self.move_summaries(session, id, (before, branch), first)
    }

    /// Returns the first message that may be on only one of the paths to two branches.
    fn parting(&self, session: i64, branches: &BTreeMap<i64, Branch>, a: i64, b: i64) -> Result<i64, StoreError> {
        let (a, b) = (Way::new(branches, a), Way::new(branches, b));
        let of_one = |way: &Way, other: &Way| {
            let mut left = way.0.keys().filter(|id| !other.0.contains_key(id)).collect::<Vec<_>>();
            left.sort_unstable();
            left.first().and_then(|id| branches.get(id)).copied()
        };
        let parted: Vec<Branch> = [of_one(&a, &b), of_one(&b, &a)].into_iter().flatten().collect();
        let Some(run) = parted.iter().map(|branch| branch.run).min() else { return Ok(0) };
        // A message that waited long may have a smaller number than those of earlier runs.
        let mut query = self.conn.prepare_cached("SELECT min(message) FROM runs WHERE session = ?1 AND num >= ?2")?;
        let of_runs: Option<i64> = query.query_row((session, run), |row| row.get(0))?;
        Ok(parted.iter().map(|branch| branch.first).chain(of_runs).min().unwrap_or_default())
    }

    fn move_summaries(
        &self,
        session: &SessionName,
        id: i64,
        (before, branch): (i64, i64),
        first: i64,
    ) -> Result<BranchChange, StoreError> {
        let mut change = BranchChange::default();
        let label = kiso_base::json::text(&self.summary_label(session)?);
        let mut query = self.conn.prepare_cached(
            "INSERT OR REPLACE INTO branch_summaries (session, branch, segment, text, up_to, sources, label)
             SELECT session, ?2, segment, text, up_to, sources, ?3 FROM summaries WHERE session = ?1 AND up_to >= ?4",
        )?;
        query.execute((id, before, &label, first))?;
        let mut delete =
            self.conn.prepare_cached("DELETE FROM summaries WHERE session = ?1 AND up_to >= ?2 RETURNING text")?;
        let dropped = delete.query_map((id, first), |row| row.get(0))?.collect::<Result<Vec<String>, _>>()?;
        change.dropped = dropped;
        let mut query = self.conn.prepare_cached(
            "DELETE FROM branch_summaries WHERE session = ?1 AND branch = ?2 RETURNING segment, text, up_to, sources, label",
        )?;
        let rows = query.query_map((id, branch), |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get::<_, String>(3)?, row.get::<_, String>(4)?))
        })?;
        let kept = rows.collect::<Result<Vec<(i64, String, i64, String, String)>, _>>()?;
        let broken = |error: serde_json::Error| StoreError::corrupt(format!("a summary that was kept: {error}"));
        let mut worst = self.summary_label(session)?;
        for (segment, text, to, sources, label) in kept {
            let sources = serde_json::from_str(&sources).map_err(broken)?;
            let label: Label = serde_json::from_str(&label).map_err(broken)?;
            if self.set_summary(session, segment, &Summary { text: text.clone(), to, sources })? {
                worst.join(&label);
                change.restored.push(KeptSummary { text, label });
            }
        }
        if !change.restored.is_empty() {
            self.set_summary_label(session, &worst)?;
        }
        Ok(change)
    }

    fn last_of_branch(&self, session: i64, branch: i64) -> Result<i64, StoreError> {
        let sql = match branch {
            0 => "SELECT id FROM messages WHERE session = ?1 AND branch = ?2 ORDER BY id DESC LIMIT 1",
            _ => {
                "SELECT id FROM messages INDEXED BY messages_of_branch WHERE branch = ?2 AND branch > 0 AND session = ?1
                  ORDER BY id DESC LIMIT 1"
            }
        };
        let mut query = self.conn.prepare_cached(sql)?;
        Ok(query.query_row((session, branch), |row| row.get(0)).optional()?.unwrap_or_default())
    }
}
