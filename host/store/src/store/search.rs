//! Finds messages by words and tags: an index (FTS5) of all messages in the clear, updated by triggers.
//!
//! The index does not contain sealed messages. Messages from before the index existed are added step by step by
//! [`Tx::index_messages`]. A caller with the home's key finds both kinds, too: messages outside of the index are searched one by
//! one.

use super::sessions::{message, session_name};
use super::words::{Index, IndexQuery, Words, indexed_grams};
use super::{Message, RunId, StoreError, Tx, View};
use kiso_base::home::SessionName;
use kiso_plan::tags::Tags;

/// Maximum messages that one call of [`View::messages_with`] searches in addition to those found by the index.
const LOOKED_THROUGH: u32 = 5_000;

/// Maximum rows of the index that one call of [`View::messages_with`] reads, including those of other sessions.
const HITS: u32 = 20_000;

/// Maximum bytes of messages that one step adds to the index.
const STEP_BYTES: usize = 256 << 10;

const INDEX: Index = Index { words: "message_words", terms: "message_terms", texts: "messages" };

/// A search for messages: words, all of which must match, including `#tags`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Search {
    words: Words,
    tags: Vec<String>,
}

/// A message that may match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub session: SessionName,
    pub message: Message,
    /// Whether the index has found the words in it; otherwise, the caller must check the text.
    indexed: bool,
}

impl Search {
    /// Parses the words and tags of a query; `None` if it contains neither letters nor digits.
    pub fn parse(question: &str) -> Option<Search> {
        Some(Search { words: Words::parse(question)?, tags: Tags::from_text(question).names })
    }

    /// Whether the message matches; `text` is its text in the clear.
    pub fn fits(&self, candidate: &Candidate, text: &str) -> bool {
        let tags = &candidate.message.tags;
        self.tags.iter().all(|tag| tags.contains(tag)) && (candidate.indexed || self.words.stand_in(text))
    }

    /// Returns the position of the first of the words in a text.
    pub fn first_in(&self, text: &str) -> Option<usize> {
        self.words.first_in(text)
    }

    fn tags(&self) -> String {
        serde_json::Value::from(self.tags.as_slice()).to_string()
    }
}

impl View<'_> {
    /// Passes messages that may match to the callback, newest first, until it returns false: those before the one with this id
    /// (`None`: all), of one session or of all. Returns the id of the last one if there may be more.
    pub fn messages_with(
        &self,
        search: &Search,
        session: Option<&SessionName>,
        before: Option<i64>,
        mut wants_more: impl FnMut(Candidate) -> bool,
    ) -> Result<Option<i64>, StoreError> {
        let before = before.unwrap_or(i64::MAX);
        let Some((of, first)) = self.ids_of(session)? else { return Ok(None) };
        let begins = self.index_begins()?;
        // For a small session among large ones, only the part of the index from its time is read.
        let mut hits = self.conn.prepare_cached(
            "SELECT w.rowid, ?3 IS NULL OR m.session = ?3 FROM message_words w JOIN messages m ON m.id = w.rowid
             WHERE w.message_words MATCH ?1 AND w.rowid < ?2 AND w.rowid >= ?4 ORDER BY w.rowid DESC LIMIT ?5",
        )?;
        let mut hits = hits.query((search.words.all(), before, of, first.max(begins), HITS))?;
        let mut others = self.conn.prepare_cached(
            "SELECT u.message, ?3 IS NULL OR m.session = ?3 FROM unindexed u JOIN messages m ON m.id = u.message
             WHERE u.message < ?1 AND u.message >= ?2 ORDER BY u.message DESC LIMIT ?4",
        )?;
        let mut others = others.query((before, begins, of, LOOKED_THROUGH))?;
        let (mut hit, mut other) = (next_id(&mut hits)?, next_id(&mut others)?);
        let (mut seen_hits, mut seen_others) = (0, 0);
        loop {
            let indexed = hit.is_some_and(|(id, _)| other.is_none_or(|(other, _)| id > other));
            let Some((id, wanted)) = (if indexed { hit } else { other }) else { break };
            if indexed {
                (hit, seen_hits) = (next_id(&mut hits)?, seen_hits + 1);
            } else {
                (other, seen_others) = (next_id(&mut others)?, seen_others + 1);
            }
            if wanted
                && let Some((session, message)) = self.message(id)?
                && !wants_more(Candidate { session, message, indexed })
            {
                return Ok(Some(id));
            }
            // One of the two lists was cut off: messages beyond its end are left for the next call.
            if seen_hits == HITS || seen_others == LOOKED_THROUGH {
                return Ok(Some(id));
            }
        }
        if first >= begins {
            return Ok(None);
        }
        self.look_back(session, before.min(begins), wants_more)
    }

    /// Passes all messages before this id to the callback, whatever their text is.
    fn look_back(
        &self,
        session: Option<&SessionName>,
        before: i64,
        mut wants_more: impl FnMut(Candidate) -> bool,
    ) -> Result<Option<i64>, StoreError> {
        // Two statements: a combined one could use neither index.
        let of = if session.is_some() { "m.session = (SELECT id FROM sessions WHERE name = ?3) AND" } else { "" };
        let mut query = self.conn.prepare_cached(&format!(
            "SELECT m.id, m.role, m.text, m.at_ms, m.run, m.tags, s.name FROM messages m JOIN sessions s ON s.id = m.session
             WHERE {of} m.id < ?1 ORDER BY m.id DESC LIMIT ?2"
        ))?;
        let mut rows = match session {
            Some(session) => query.query((before, LOOKED_THROUGH, session.as_str()))?,
            None => query.query((before, LOOKED_THROUGH))?,
        };
        let (mut shown, mut last) = (0, None);
        while let Some(row) = rows.next()? {
            let (session, message) = (session_name(row, 6)?, message(row)?);
            (shown, last) = (shown + 1, Some(message.id));
            if !wants_more(Candidate { session, message, indexed: false }) {
                return Ok(last);
            }
        }
        Ok(last.filter(|_| shown == LOOKED_THROUGH))
    }

    /// Returns the best messages of the index, at most `limit`: those with all of the words or, if there are none, those with
    /// some; in these sessions or in all, without those of one run, and without those of branches that are not in use.
    pub fn find_messages(
        &self,
        search: &Search,
        sessions: Option<&[SessionName]>,
        without: Option<&RunId>,
        limit: u32,
    ) -> Result<Vec<(SessionName, Message)>, StoreError> {
        let names = sessions.map(|names| serde_json::json!(names).to_string());
        let question = search.words.ask(self.conn, INDEX)?;
        for asked in question.all.iter().chain([&question.any]) {
            let IndexQuery { query, order, after } = asked;
            let mut statement = self.conn.prepare_cached(&format!(
                "SELECT m.id, m.role, m.text, m.at_ms, m.run, m.tags, s.name FROM message_words w
                 JOIN messages m ON m.id = w.rowid JOIN sessions s ON s.id = m.session
                 WHERE w.message_words MATCH ?1 AND w.rowid > ?2 AND m.replaced = 0
                 AND (?3 IS NULL OR s.name IN (SELECT value FROM json_each(?3))) AND (?4 IS NULL OR m.run IS NOT ?4)
                 AND NOT EXISTS (SELECT 1 FROM json_each(?5) t WHERE t.value NOT IN (SELECT value FROM json_each(m.tags)))
                 ORDER BY {order} LIMIT ?6"
            ))?;
            let rows = statement.query_map((query, after, &names, without, search.tags(), limit), |row| {
                Ok((session_name(row, 6)?, message(row)?))
            })?;
            let found = rows.collect::<Result<Vec<_>, _>>()?;
            if !found.is_empty() {
                return Ok(found);
            }
        }
        Ok(Vec::new())
    }

    /// Returns the row of the session, if one is given, and its first message; `None` if the session does not exist.
    fn ids_of(&self, session: Option<&SessionName>) -> Result<Option<(Option<i64>, i64)>, StoreError> {
        let Some(session) = session else { return Ok(Some((None, 0))) };
        let Some(id) = self.session_id(session)? else { return Ok(None) };
        let mut first = self.conn.prepare_cached("SELECT min(id) FROM messages WHERE session = ?1")?;
        let first: Option<i64> = first.query_row([id], |row| row.get(0))?;
        Ok(first.map(|first| (Some(id), first)))
    }

    /// Returns the id before which messages are not in the index yet; 0 if all are.
    fn index_begins(&self) -> Result<i64, StoreError> {
        let mut query = self.conn.prepare_cached("SELECT begins FROM message_index")?;
        Ok(query.query_row((), |row| row.get(0))?)
    }
}

impl Tx<'_> {
    /// Adds older messages to the index, at most `limit`, newest first. Returns how many; 0 if none is left.
    pub fn index_messages(&self, limit: u32) -> Result<u64, StoreError> {
        let begins = self.index_begins()?;
        if begins == 0 {
            return Ok(0);
        }
        let mut query =
            self.conn.prepare_cached("SELECT id, text FROM messages WHERE id < ?1 ORDER BY id DESC LIMIT ?2")?;
        let mut rows = query.query((begins, limit))?;
        let mut update = self.conn.prepare_cached("UPDATE messages SET grams = ?2 WHERE id = ?1")?;
        let (mut done, mut bytes, mut begins) = (0, 0, 0);
        while bytes < STEP_BYTES
            && let Some(row) = rows.next()?
        {
            let (id, text): (i64, String) = (row.get(0)?, row.get(1)?);
            update.execute((id, indexed_grams(&text)))?;
            (done, bytes, begins) = (done + 1, bytes + text.len(), id);
        }
        drop(rows);
        self.conn.prepare_cached("UPDATE message_index SET begins = ?1")?.execute([begins])?;
        Ok(done)
    }
}

fn next_id(rows: &mut rusqlite::Rows<'_>) -> Result<Option<(i64, bool)>, StoreError> {
    Ok(rows.next()?.map(|row| Ok::<_, rusqlite::Error>((row.get(0)?, row.get(1)?))).transpose()?)
}

#[cfg(test)]
mod tests;
