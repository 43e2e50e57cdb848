//! The title of a session, and the summaries of its messages, one per segment.

use rusqlite::OptionalExtension;

use super::sessions::message;
use super::{Message, SEALED, StoreError, Tx, View};
use kiso_base::home::SessionName;

/// A summary of the beginning of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    pub text: String,
    /// The last message that it covers.
    pub to: i64,
    /// Scratchpad keys of these messages' full texts, oldest first.
    pub sources: Vec<String>,
}

impl View<'_> {
    /// Returns the summary of the session's current segment. Those of earlier segments are kept but not returned.
    pub fn summary(&self, session: &SessionName) -> Result<Option<Summary>, StoreError> {
        let segment = self.segment_start(session)?;
        let mut query = self.conn.prepare_cached(
            "SELECT text, up_to, sources FROM summaries
             WHERE session = (SELECT id FROM sessions WHERE name = ?1) AND segment = ?2",
        )?;
        let summary = query.query_row((session.as_str(), segment), |row| {
            Ok(Summary {
                text: row.get(0)?,
                to: row.get(1)?,
                sources: serde_json::from_str(row.get_ref(2)?.as_str()?).map_err(|error| {
                    rusqlite::Error::FromSqlConversionFailure(2, rusqlite::types::Type::Text, error.into())
                })?,
            })
        });
        Ok(summary.optional()?)
    }

    /// Returns the session's title.
    pub fn title(&self, session: &SessionName) -> Result<Option<String>, StoreError> {
        let mut query = self.conn.prepare_cached("SELECT title FROM sessions WHERE name = ?1")?;
        Ok(query.query_row([session.as_str()], |row| row.get(0)).optional()?.flatten())
    }

    /// Returns how many messages of the session's segment its summary does not cover, counted up to `at_most`; reads only that
    /// many rows.
    pub fn count_unsummarized(&self, session: &SessionName, at_most: u32) -> Result<u32, StoreError> {
        let (segment, to) = self.summarized(session)?;
        let mut query = self.conn.prepare_cached(
            "SELECT count(*) FROM (
                 SELECT 1 FROM messages m WHERE m.session = (SELECT id FROM sessions WHERE name = ?1) AND m.replaced = 0 AND m.id > ?2
                 AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.id = m.run AND r.message <= ?3) LIMIT ?4)",
        )?;
        Ok(query.query_row((session.as_str(), to, segment, at_most), |row| row.get(0))?)
    }

    /// Returns the id of the first of the last `keep` messages of the session's segment; an id above all others if `keep` is 0.
    pub fn first_of_last(&self, session: &SessionName, keep: u32) -> Result<i64, StoreError> {
        let segment = self.segment_start(session)?;
        let mut query = self.conn.prepare_cached(
            "SELECT min(id) FROM (SELECT id FROM messages
             WHERE session = (SELECT id FROM sessions WHERE name = ?1) AND replaced = 0 AND id > ?2 ORDER BY id DESC LIMIT ?3)",
        )?;
        let first: Option<i64> = query.query_row((session.as_str(), segment, keep), |row| row.get(0))?;
        Ok(first.unwrap_or(i64::MAX))
    }

    /// Returns the messages to summarize: the oldest of the session's segment that its summary does not cover, before the id
    /// `before`, oldest first, at most `limit`.
    pub fn messages_to_summarize(
        &self,
        session: &SessionName,
        before: i64,
        limit: u32,
    ) -> Result<Vec<Message>, StoreError> {
        let (segment, to) = self.summarized(session)?;
        // An answer to a message of an earlier segment belongs to that one, however late it came.
        let mut query = self.conn.prepare_cached(
            "SELECT m.id, m.role, m.text, m.at_ms, m.run, m.tags FROM messages m
             WHERE m.session = (SELECT id FROM sessions WHERE name = ?1) AND m.replaced = 0 AND m.id > ?2 AND m.id < ?3
             AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.id = m.run AND r.message <= ?4) ORDER BY m.id LIMIT ?5",
        )?;
        let rows = query.query_map((session.as_str(), to, before, segment, limit), message)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Returns the beginning of the session's segment, and the end of its summary.
    fn summarized(&self, session: &SessionName) -> Result<(i64, i64), StoreError> {
        let segment = self.segment_start(session)?;
        Ok((segment, self.summary(session)?.map_or(segment, |summary| summary.to)))
    }
}

impl Tx<'_> {
    /// Replaces the summary of the session's segment that begins after the message `segment`. Returns false and changes nothing
    /// if the current summary already covers as much: another process was faster.
    pub fn set_summary(&self, session: &SessionName, segment: i64, new: &Summary) -> Result<bool, StoreError> {
        let mut update = self.conn.prepare_cached(
            "INSERT INTO summaries (session, segment, text, up_to, sources)
             SELECT id, ?2, ?3, ?4, ?5 FROM sessions WHERE name = ?1
             ON CONFLICT DO UPDATE SET text = ?3, up_to = ?4, sources = ?5 WHERE up_to < ?4",
        )?;
        let sources = serde_json::json!(new.sources).to_string();
        Ok(update.execute((session.as_str(), segment, &new.text, new.to, sources))? > 0)
    }

    /// Sets the title; with `replace`, replaces an existing one. Returns whether the title was set. It is stored in the clear, so
    /// the caller must have removed secrets. A generated title that another session has is extended by the beginning of the first
    /// message, so that the two differ.
    pub fn set_title(&self, session: &SessionName, title: &str, replace: bool) -> Result<bool, StoreError> {
        let longer = if replace { None } else { self.longer_title(session, title)? };
        let title = longer.as_deref().unwrap_or(title);
        let mut update =
            self.conn.prepare_cached("UPDATE sessions SET title = ?2 WHERE name = ?1 AND (?3 OR title IS NULL)")?;
        let changed = update.execute((session.as_str(), title, replace))? > 0;
        if changed {
            self.tell_session(session)?;
        }
        Ok(changed)
    }

    /// Returns the title with the beginning of the session's first message, if another session has the same title.
    fn longer_title(&self, session: &SessionName, title: &str) -> Result<Option<String>, StoreError> {
        let mut others = self.conn.prepare_cached("SELECT 1 FROM sessions WHERE title = ?1 AND name <> ?2 LIMIT 1")?;
        if !others.exists((title, session.as_str()))? {
            return Ok(None);
        }
        let mut first = self.conn.prepare_cached(
            "SELECT text FROM messages WHERE session = (SELECT id FROM sessions WHERE name = ?1) AND replaced = 0
             AND role = 'user' ORDER BY id LIMIT 1",
        )?;
        let text: Option<String> = first.query_row([session.as_str()], |row| row.get(0)).optional()?;
        let Some(text) = text.filter(|text| !text.starts_with(SEALED)) else { return Ok(None) };
        let said = text.split("\n\nFiles: ").next().unwrap_or_default();
        let words: Vec<&str> = said.split_whitespace().take(TITLE_WORDS).collect();
        let beginning: String = words.join(" ").chars().filter(|c| !c.is_control()).take(MAX_BEGINNING).collect();
        let is_news = !beginning.is_empty() && !beginning.eq_ignore_ascii_case(title);
        Ok(is_news.then(|| format!("{title}: {beginning}")))
    }
}

/// Words of a first message in an extended title, and their maximum characters.
const TITLE_WORDS: usize = 10;
const MAX_BEGINNING: usize = 80;
