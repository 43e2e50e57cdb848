//! Archival memory: chunks of text, found by their words.

use ring::digest::{SHA256, digest};
use rusqlite::{OptionalExtension, Row};
use schemars::JsonSchema;
use serde::Serialize;

use super::sessions::session_name;
use super::words::{Index, IndexQuery, Words, grams};
use super::{LabelledRow, RunId, StoreError, Tx, View};
use kiso_base::home::SessionName;
use kiso_plan::label::Label;

/// Maximum bytes of a chunk. Longer texts are split before, so that a search returns passages instead of documents.
pub const MAX_CHUNK_BYTES: usize = 4_000;

/// Maximum passages of all sessions: at most 400 MB with their index, and 230 MB more for vectors of 1,024 dimensions. A model
/// that saves something at every step does not fill the disk of a small machine.
pub const MAX_CHUNKS: u64 = 200_000;

/// A stored passage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Passage")]
pub struct Chunk {
    pub id: i64,
    pub text: String,
    /// Its source: "turn", "memory_save", "summary" …
    pub source: String,
    pub session: Option<SessionName>,
    /// Milliseconds since 1970 (UTC).
    pub at_ms: i64,
}

const INDEX: Index = Index { words: "memory_words", terms: "memory_terms", texts: "memory_chunks" };

const COLUMNS: &str = "c.id, c.text, c.source, s.name, c.at_ms
    FROM memory_words w JOIN memory_chunks c ON c.id = w.rowid LEFT JOIN sessions s ON s.id = c.session";

/// Excludes passages of turns that another version has replaced: each has the time of its turn's first message.
const IN_USE: &str = "NOT EXISTS (SELECT 1 FROM messages r INDEXED BY messages_replaced
    WHERE r.session = c.session AND r.at_ms = c.at_ms AND r.replaced = 1 AND c.source = 'turn')";

const LISTED: &str =
    "c.id, c.text, c.source, s.name, c.at_ms FROM memory_chunks c LEFT JOIN sessions s ON s.id = c.session";

impl View<'_> {
    /// Returns whether there are any facts, any memory chunks, or any runs other than `run`.
    pub fn has_past(&self, run: &RunId) -> Result<bool, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM facts) OR EXISTS (SELECT 1 FROM memory_chunks)
                 OR EXISTS (SELECT 1 FROM runs WHERE id <> ?1)",
        )?;
        Ok(query.query_row([run.as_str()], |row| row.get(0))?)
    }

    /// Returns the chunk with this id.
    pub fn chunk(&self, id: i64) -> Result<Option<Chunk>, StoreError> {
        let mut query = self.conn.prepare_cached(&format!("SELECT {LISTED} WHERE c.id = ?1"))?;
        Ok(query.query_row([id], chunk).optional()?)
    }

    /// Returns the chunks before the one with this id (`None`: the last ones), newest first, at most `limit`.
    pub fn chunks_before(&self, before: Option<i64>, limit: u32) -> Result<Vec<Chunk>, StoreError> {
        let sql = format!("SELECT {LISTED} WHERE c.id < ?1 ORDER BY c.id DESC LIMIT ?2");
        let mut query = self.conn.prepare_cached(&sql)?;
        let rows = query.query_map((before.unwrap_or(i64::MAX), limit), chunk)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Returns the chunks after the one with this id, oldest first, at most `limit`.
    pub fn chunks_after(&self, after: i64, limit: u32) -> Result<Vec<Chunk>, StoreError> {
        let sql = format!("SELECT {LISTED} WHERE c.id > ?1 ORDER BY c.id LIMIT ?2");
        let mut query = self.conn.prepare_cached(&sql)?;
        let rows = query.query_map((after, limit), chunk)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Whether a chunk has this text, ignoring case and white space.
    pub fn has_chunk(&self, text: &str) -> Result<bool, StoreError> {
        let mut query = self.conn.prepare_cached("SELECT EXISTS (SELECT 1 FROM memory_chunks WHERE digest = ?1)")?;
        Ok(query.query_row([digest_of(text)], |row| row.get(0))?)
    }

    /// Returns the number of chunks. Counts all of them, at most [`MAX_CHUNKS`].
    pub fn count_chunks(&self) -> Result<u64, StoreError> {
        let count: i64 = self.conn.query_row("SELECT count(*) FROM memory_chunks", (), |row| row.get(0))?;
        Ok(count.unsigned_abs())
    }

    /// Returns the best chunks for the query, at most `limit`: those with all of its words or, if there are none, those with some
    /// (bm25). Words in very many chunks do not affect the ranking. A query without words finds nothing.
    pub fn find_chunks(&self, question: &str, limit: u32) -> Result<Vec<Chunk>, StoreError> {
        let Some(words) = Words::parse(question) else { return Ok(Vec::new()) };
        let question = words.ask(self.conn, INDEX)?;
        if let Some(all) = question.all {
            let found = self.chunks_with(&all, limit)?;
            if !found.is_empty() {
                return Ok(found);
            }
        }
        self.chunks_with(&question.any, limit)
    }

    fn chunks_with(&self, asked: &IndexQuery, limit: u32) -> Result<Vec<Chunk>, StoreError> {
        let IndexQuery { query, order, after } = asked;
        let sql = format!(
            "SELECT {COLUMNS} WHERE w.memory_words MATCH ?1 AND w.rowid > ?2 AND {IN_USE} ORDER BY {order} LIMIT ?3"
        );
        let mut statement = self.conn.prepare_cached(&sql)?;
        let rows = statement.query_map((query, after, limit), chunk)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

impl Tx<'_> {
    /// Adds a chunk, up to [`MAX_CHUNKS`]. Returns false if the same text exists, ignoring case and white space. If the
    /// existing text is of a turn that another version has replaced, its chunk becomes this one.
    pub fn add_chunk(
        &self,
        text: &str,
        source: &str,
        session: Option<&SessionName>,
        at_ms: i64,
    ) -> Result<bool, StoreError> {
        if text.len() > MAX_CHUNK_BYTES {
            return Err(StoreError::Quota {
                what: "a chunk of memory has too many bytes",
                max: MAX_CHUNK_BYTES as u64,
            });
        }
        self.check_room()?;
        let session = session.map(|session| self.ensure_session(session, at_ms)).transpose()?;
        let mut insert = self.conn.prepare_cached(
            "INSERT INTO memory_chunks (digest, source, session, at_ms, text, grams) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT (digest) DO UPDATE SET source = excluded.source, session = excluded.session, at_ms = excluded.at_ms
                 WHERE source = 'turn' AND EXISTS (SELECT 1 FROM messages r INDEXED BY messages_replaced
                     WHERE r.session = memory_chunks.session AND r.at_ms = memory_chunks.at_ms AND r.replaced = 1)",
        )?;
        Ok(insert.execute((digest_of(text).as_slice(), source, session, at_ms, text, grams(text)))? > 0)
    }

    fn check_room(&self) -> Result<(), StoreError> {
        // An upper bound of their number, found without counting; deleted ones leave gaps.
        let mut span = self.conn.prepare_cached(
            "SELECT coalesce((SELECT max(id) FROM memory_chunks) - (SELECT min(id) FROM memory_chunks) + 1, 0)",
        )?;
        let span: i64 = span.query_row((), |row| row.get(0))?;
        if span.unsigned_abs() >= MAX_CHUNKS && self.count_chunks()? >= MAX_CHUNKS {
            return Err(StoreError::Quota { what: "the memory has too many passages", max: MAX_CHUNKS });
        }
        Ok(())
    }

    /// Sets the label of a chunk that was just added.
    pub fn set_chunk_label(&self, text: &str, label: &Label) -> Result<(), StoreError> {
        let mut query = self.conn.prepare_cached("SELECT id FROM memory_chunks WHERE digest = ?1")?;
        let id: Option<i64> = query.query_row([digest_of(text)], |row| row.get(0)).optional()?;
        id.map_or(Ok(()), |id| self.set_label(LabelledRow::Passage, id, label))
    }

    /// Deletes the chunk of a session with this text and source, if there is one.
    pub fn delete_chunk_of(&self, text: &str, source: &str, session: &SessionName) -> Result<(), StoreError> {
        let mut delete = self.conn.prepare_cached(
            "DELETE FROM memory_chunks WHERE digest = ?1 AND source = ?2
             AND session = (SELECT id FROM sessions WHERE name = ?3)",
        )?;
        delete.execute((digest_of(text), source, session.as_str()))?;
        Ok(())
    }

    /// Deletes a chunk. Returns whether there was one with this id.
    pub fn delete_chunk(&self, id: i64) -> Result<bool, StoreError> {
        Ok(self.conn.prepare_cached("DELETE FROM memory_chunks WHERE id = ?1")?.execute([id])? > 0)
    }
}

fn digest_of(text: &str) -> Vec<u8> {
    let plain = text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    digest(&SHA256, plain.as_bytes()).as_ref().to_vec()
}

fn chunk(row: &Row<'_>) -> rusqlite::Result<Chunk> {
    let session = match row.get_ref(3)? {
        rusqlite::types::ValueRef::Null => None,
        _ => Some(session_name(row, 3)?),
    };
    Ok(Chunk { id: row.get(0)?, text: row.get(1)?, source: row.get(2)?, session, at_ms: row.get(4)? })
}
