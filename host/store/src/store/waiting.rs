//! Messages by their position in a session: those after a message, and those that wait for a run.

use super::sessions::{message, page_of};
use super::{Message, RunId, StoreError, Tx, View};
use kiso_base::home::SessionName;

/// Maximum tags of a message. Messages with more do not use them as tags.
pub const MAX_TAGS: usize = 32;

impl View<'_> {
    /// Returns the messages of the branch in use after the one with this id (0: from the first), oldest first, at most `limit`;
    /// fewer if they exceed [`super::PAGE_BYTES`].
    pub fn messages_after(&self, session: &SessionName, id: i64, limit: u32) -> Result<Vec<Message>, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT id, role, text, at_ms, run, tags FROM messages
             WHERE session = (SELECT id FROM sessions WHERE name = ?1) AND replaced = 0 AND id > ?2 ORDER BY id LIMIT ?3",
        )?;
        page_of(query.query((session.as_str(), id, limit))?)
    }

    /// Returns the messages of all branches after the one with this id, each with its branch, like [`View::messages_after`].
    pub fn messages_of_all_branches(
        &self,
        session: &SessionName,
        id: i64,
        limit: u32,
    ) -> Result<Vec<(Message, i64)>, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT id, role, text, at_ms, run, tags, branch FROM messages
             WHERE session = (SELECT id FROM sessions WHERE name = ?1) AND id > ?2 ORDER BY id LIMIT ?3",
        )?;
        let mut rows = query.query((session.as_str(), id, limit))?;
        let (mut messages, mut bytes) = (Vec::new(), 0);
        while bytes < super::PAGE_BYTES
            && let Some(row) = rows.next()?
        {
            let one = message(row)?;
            bytes += one.text.len();
            messages.push((one, row.get(6)?));
        }
        Ok(messages)
    }

    /// Returns the user's messages that no run has taken, oldest first, at most `limit`: those that arrived during another run.
    pub fn waiting_messages(&self, session: &SessionName, limit: u32) -> Result<Vec<Message>, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT id, role, text, at_ms, run, tags FROM messages INDEXED BY messages_waiting
             WHERE session = (SELECT id FROM sessions WHERE name = ?1) AND role = 'user' AND run IS NULL
             ORDER BY id LIMIT ?2",
        )?;
        let rows = query.query_map((session.as_str(), limit), message)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

impl Tx<'_> {
    /// Sets the tags of a message.
    pub fn set_tags(&self, message: i64, tags: &[String]) -> Result<(), StoreError> {
        if tags.len() > MAX_TAGS {
            return Err(StoreError::Quota { what: "the message has too many tags", max: MAX_TAGS as u64 });
        }
        let list = serde_json::Value::from(tags).to_string();
        self.conn.prepare_cached("UPDATE messages SET tags = ?2 WHERE id = ?1")?.execute((message, list))?;
        Ok(())
    }

    /// Assigns a waiting message to a run. Returns false if another run has it, so that it is not answered twice, or if the run
    /// belongs to a branch that is not in use.
    pub fn take_message(&self, run: &RunId, message: i64) -> Result<bool, StoreError> {
        let mut update = self.conn.prepare_cached(
            "UPDATE messages SET run = ?1 WHERE id = ?2 AND run IS NULL
             AND session = (SELECT r.session FROM runs r JOIN messages m ON m.id = r.message WHERE r.id = ?1 AND m.replaced = 0)",
        )?;
        let taken = update.execute((run, message))? > 0;
        if taken {
            self.job_runs(message, self.num(run)?)?;
        }
        Ok(taken)
    }
}
