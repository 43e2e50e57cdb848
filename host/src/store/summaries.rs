//! What a session is about: its title, and the summary of its messages.

use rusqlite::OptionalExtension;

use super::sessions::message;
use super::{Message, StoreError, Tx, View};
use crate::home::SessionName;

/// A summary of the beginning of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    pub text: String,
    /// The last message that it holds.
    pub to: i64,
}

impl View<'_> {
    /// The session's summary.
    pub fn summary(&self, session: &SessionName) -> Result<Option<Summary>, StoreError> {
        let mut query = self
            .conn
            .prepare_cached("SELECT summary, summarized_to FROM sessions WHERE name = ?1 AND summary IS NOT NULL")?;
        let summary = query.query_row([session.as_str()], |row| Ok(Summary { text: row.get(0)?, to: row.get(1)? }));
        Ok(summary.optional()?)
    }

    /// The session's title.
    pub fn title(&self, session: &SessionName) -> Result<Option<String>, StoreError> {
        let mut query = self.conn.prepare_cached("SELECT title FROM sessions WHERE name = ?1")?;
        Ok(query.query_row([session.as_str()], |row| row.get(0)).optional()?.flatten())
    }

    /// How many messages the session has that no summary holds, counted up to `at_most`: reads no more rows than that.
    pub fn count_unsummarized(&self, session: &SessionName, at_most: u32) -> Result<u32, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT count(*) FROM (
                 SELECT 1 FROM messages WHERE session = (SELECT id FROM sessions WHERE name = ?1)
                 AND id > (SELECT summarized_to FROM sessions WHERE name = ?1) LIMIT ?2)",
        )?;
        Ok(query.query_row((session.as_str(), at_most), |row| row.get(0))?)
    }

    /// The messages to compress: the oldest that no summary holds, at most `limit`, without the last `keep` of the session.
    /// Oldest first.
    pub fn messages_to_summarize(
        &self,
        session: &SessionName,
        keep: u32,
        limit: u32,
    ) -> Result<Vec<Message>, StoreError> {
        // The first message that is kept; where there are fewer, all are.
        let mut query = self.conn.prepare_cached(
            "SELECT min(id) FROM (SELECT id FROM messages
             WHERE session = (SELECT id FROM sessions WHERE name = ?1) ORDER BY id DESC LIMIT ?2)",
        )?;
        let kept: Option<i64> = query.query_row((session.as_str(), keep), |row| row.get(0))?;
        let mut query = self.conn.prepare_cached(
            "SELECT id, role, text, at_ms, run, tags FROM messages
             WHERE session = (SELECT id FROM sessions WHERE name = ?1)
             AND id > (SELECT summarized_to FROM sessions WHERE name = ?1) AND id < ?2 ORDER BY id LIMIT ?3",
        )?;
        let rows = query.query_map((session.as_str(), kept.unwrap_or(i64::MAX), limit), message)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

impl Tx<'_> {
    /// Replaces the session's summary by one that holds the messages up to `to`. False, and nothing is changed, where the
    /// summary in force already reaches that far: another process was faster.
    pub fn set_summary(&self, session: &SessionName, text: &str, to: i64) -> Result<bool, StoreError> {
        let mut update = self.conn.prepare_cached(
            "UPDATE sessions SET summary = ?2, summarized_to = ?3 WHERE name = ?1 AND summarized_to < ?3",
        )?;
        Ok(update.execute((session.as_str(), text, to))? > 0)
    }

    /// Sets the title; `anew` replaces one that is there. True if the title is now this one.
    pub fn set_title(&self, session: &SessionName, title: &str, anew: bool) -> Result<bool, StoreError> {
        let mut update =
            self.conn.prepare_cached("UPDATE sessions SET title = ?2 WHERE name = ?1 AND (?3 OR title IS NULL)")?;
        let changed = update.execute((session.as_str(), title, anew))? > 0;
        if changed {
            self.tell_session(session)?;
        }
        Ok(changed)
    }
}
