//! Facts: sentences that were learned, each once.

use rusqlite::{OptionalExtension, Row};
use schemars::JsonSchema;
use serde::Serialize;

use super::sessions::session_name;
use super::words::{Index, IndexQuery, Words, grams, shared_words};
use super::{Mark, StoreError, Tx, View};
use kiso_base::home::SessionName;

/// Longest fact. It is a sentence; a document belongs into the memory.
pub const MAX_FACT_BYTES: usize = 2_000;

/// Facts that are kept. Consolidation keeps them far below that (`knowledge_max_facts`); where it never succeeds, the
/// least certain and oldest make room, so that a model that learns something each second does not fill the disk.
pub const MAX_FACTS: u32 = 10_000;

/// Facts are consolidated again when this part of `knowledge_max_facts` is new: after an attempt that merged nothing, the next
/// one would cost a call and merge nothing either.
const NEW_PART: u32 = 10;

/// Facts that are compared with what a run did.
const MAX_COMPARED: u32 = 500;

/// Source of the facts that the user has stated.
pub const USER: &str = "user";

/// A fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Fact {
    pub id: i64,
    pub text: String,
    /// Who said so: "reviewer", "user", "summarizer" …
    pub source: String,
    /// Where it was learned; null where several became one.
    pub session: Option<SessionName>,
    /// Percent.
    #[schemars(range(max = 100))]
    pub confidence: u8,
    /// When it was last said, in milliseconds since 1970 (UTC).
    pub at_ms: i64,
}

/// A fact to be added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFact {
    pub text: String,
    pub source: String,
    pub session: Option<SessionName>,
    /// Percent; more counts as 100.
    pub confidence: u8,
}

const INDEX: Index = Index { words: "facts_words", terms: "facts_terms", texts: "facts" };

/// Drops facts of turns that another version has replaced: each has the time of its turn's first message.
const IN_USE: &str = "NOT EXISTS (SELECT 1 FROM messages r INDEXED BY messages_replaced
    WHERE r.session = f.session AND r.at_ms = f.at_ms AND r.replaced = 1)";

const COLUMNS: &str = "f.id, f.text, f.source, s.name, f.confidence, f.at_ms";

impl View<'_> {
    /// The facts that are most certain, of equally certain ones the newest first; at most `limit`.
    pub fn facts(&self, limit: u32) -> Result<Vec<Fact>, StoreError> {
        let mut query = self.conn.prepare_cached(&format!(
            "SELECT {COLUMNS} FROM facts f LEFT JOIN sessions s ON s.id = f.session
             ORDER BY f.confidence DESC, f.at_ms DESC, f.id DESC LIMIT ?1"
        ))?;
        let rows = query.query_map([limit], fact)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// [`View::facts`] that the owner of the home, or a model that had heard nobody else, has written.
    pub fn trusted_facts(&self, limit: u32) -> Result<Vec<Fact>, StoreError> {
        if !self.has_labels()? {
            let mut query = self.conn.prepare_cached(&format!(
                "SELECT {COLUMNS} FROM facts f LEFT JOIN sessions s ON s.id = f.session
                 WHERE {IN_USE} ORDER BY f.confidence DESC, f.at_ms DESC, f.id DESC LIMIT ?1"
            ))?;
            let rows = query.query_map([limit], fact)?;
            return Ok(rows.collect::<Result<_, _>>()?);
        }
        let mut query = self.conn.prepare_cached(&format!(
            "SELECT {COLUMNS} FROM facts f LEFT JOIN sessions s ON s.id = f.session
             WHERE NOT EXISTS (SELECT 1 FROM labels l WHERE l.kind = 'fact' AND l.key = CAST(f.id AS TEXT)) AND {IN_USE}
             ORDER BY f.confidence DESC, f.at_ms DESC, f.id DESC LIMIT ?1"
        ))?;
        let rows = query.query_map([limit], fact)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The facts that share words with the question, the best first; at most `limit`.
    pub fn find_facts(&self, question: &str, limit: u32) -> Result<Vec<Fact>, StoreError> {
        let Some(words) = Words::of(question) else { return Ok(Vec::new()) };
        let IndexQuery { query, order, .. } = words.ask(self.conn, INDEX)?.any;
        let mut statement = self.conn.prepare_cached(&format!(
            "SELECT {COLUMNS} FROM facts_words w JOIN facts f ON f.id = w.rowid LEFT JOIN sessions s ON s.id = f.session
             WHERE w.facts_words MATCH ?1 AND {IN_USE} ORDER BY {order} LIMIT ?2"
        ))?;
        let rows = statement.query_map((query, limit), fact)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The [trusted](View::trusted_facts) facts that models learned before `before_ms` and that speak of what a text says, the surest
    /// first: at least half of their words that say much stand in it.
    pub fn facts_about(&self, text: &str, before_ms: i64) -> Result<Vec<Fact>, StoreError> {
        let mut facts = self.trusted_facts(MAX_COMPARED)?;
        facts.retain(|fact| {
            let (shared, of) = shared_words(&fact.text, text);
            fact.source != USER && fact.at_ms < before_ms && shared >= 2 && 2 * shared >= of
        });
        Ok(facts)
    }

    /// The fact of that id.
    pub fn fact(&self, id: i64) -> Result<Option<Fact>, StoreError> {
        let mut query = self.conn.prepare_cached(&format!(
            "SELECT {COLUMNS} FROM facts f LEFT JOIN sessions s ON s.id = f.session WHERE f.id = ?1"
        ))?;
        Ok(query.query_row([id], fact).optional()?)
    }

    /// The facts before the one with this id (none: the last), newest first; at most `limit`.
    pub fn facts_before(&self, before: Option<i64>, limit: u32) -> Result<Vec<Fact>, StoreError> {
        let mut query = self.conn.prepare_cached(&format!(
            "SELECT {COLUMNS} FROM facts f LEFT JOIN sessions s ON s.id = f.session
             WHERE f.id < ?1 ORDER BY f.id DESC LIMIT ?2"
        ))?;
        let rows = query.query_map((before.unwrap_or(i64::MAX), limit), fact)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Whether this fact is known, but for case and space around it.
    pub fn has_fact(&self, text: &str) -> Result<bool, StoreError> {
        let mut query = self.conn.prepare_cached("SELECT EXISTS (SELECT 1 FROM facts WHERE text = ?1)")?;
        Ok(query.query_row([text.trim()], |row| row.get(0))?)
    }

    /// How many facts there are, counted up to `at_most`.
    pub fn count_facts(&self, at_most: u32) -> Result<u32, StoreError> {
        let mut query = self.conn.prepare_cached("SELECT count(*) FROM (SELECT 1 FROM facts LIMIT ?1)")?;
        Ok(query.query_row([at_most], |row| row.get(0))?)
    }

    /// Whether consolidating is worth a call: more than `max` facts can be merged, which are the [trusted](View::trusted_facts)
    /// ones, and enough of them were learned since that was last tried.
    pub fn may_consolidate_facts(&self, max: u32) -> Result<bool, StoreError> {
        // Most homes have few facts.
        if self.count_facts(max.saturating_add(1))? <= max {
            return Ok(false);
        }
        let facts = self.trusted_facts(u32::MAX)?;
        let since = self.marked(Mark::Consolidated)?.unwrap_or(i64::MIN);
        let new = facts.iter().filter(|fact| fact.at_ms > since).count();
        Ok(facts.len() > max as usize && new >= (max / NEW_PART).max(1) as usize)
    }
}

impl Tx<'_> {
    /// Adds a fact and returns its id. One that is known already, but for case and space around it, is not added again:
    /// it is as certain as the more certain of the two, and as new as this one.
    pub fn add_fact(&self, fact: &NewFact, at_ms: i64) -> Result<i64, StoreError> {
        let text = fact.text.trim();
        if text.is_empty() || text.len() > MAX_FACT_BYTES {
            return Err(StoreError::Quota {
                what: "a fact is empty or has too many bytes",
                max: MAX_FACT_BYTES as u64,
            });
        }
        let session = fact.session.as_ref().map(|session| self.ensure_session(session, at_ms)).transpose()?;
        let mut insert = self.conn.prepare_cached(
            "INSERT INTO facts (text, source, session, confidence, at_ms, grams) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT (text) DO UPDATE SET confidence = max(confidence, excluded.confidence), at_ms = excluded.at_ms
             RETURNING id",
        )?;
        let id = insert
            .query_row((text, &fact.source, session, fact.confidence.min(100), at_ms, grams(text)), |row| row.get(0))?;
        // Walks over the index up to the limit, which is what a full table costs; below it this finds nothing.
        let mut weakest = self.conn.prepare_cached(
            "DELETE FROM facts WHERE id IN
                 (SELECT id FROM facts WHERE id <> ?1 ORDER BY confidence DESC, at_ms DESC, id DESC LIMIT -1 OFFSET ?2)",
        )?;
        weakest.execute((id, MAX_FACTS - 1))?;
        Ok(id)
    }

    /// Puts consolidated facts in the place of those with these ids. One that is among both stays as it is; the others are as new
    /// as the newest that they replace. Facts that were learned meanwhile stay. Where one of the old facts is gone, they are not
    /// what was consolidated any more: nothing is changed, and false is returned.
    pub fn replace_facts(&self, old: &[i64], new: &[NewFact]) -> Result<bool, StoreError> {
        let mut replaced = Vec::new();
        for id in old {
            let Some(fact) = self.fact(*id)? else { return Ok(false) };
            if !new.iter().any(|kept| kept.text.trim() == fact.text) {
                replaced.push(fact);
            }
        }
        let at_ms = replaced.iter().map(|fact| fact.at_ms).max().unwrap_or_default();
        for fact in replaced {
            self.delete_fact(fact.id)?;
        }
        for fact in new {
            if !self.has_fact(&fact.text)? {
                self.add_fact(fact, at_ms)?;
            }
        }
        Ok(true)
    }

    /// Forgets a fact; true if there was one of that id.
    pub fn delete_fact(&self, id: i64) -> Result<bool, StoreError> {
        Ok(self.conn.prepare_cached("DELETE FROM facts WHERE id = ?1")?.execute([id])? > 0)
    }
}

fn fact(row: &Row<'_>) -> rusqlite::Result<Fact> {
    let session = match row.get_ref(3)? {
        rusqlite::types::ValueRef::Null => None,
        _ => Some(session_name(row, 3)?),
    };
    Ok(Fact {
        id: row.get(0)?,
        text: row.get(1)?,
        source: row.get(2)?,
        session,
        confidence: row.get(4)?,
        at_ms: row.get(5)?,
    })
}
