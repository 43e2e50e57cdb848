//! Facts: learned sentences, each stored once.

use rusqlite::{OptionalExtension, Row};
use schemars::JsonSchema;
use serde::Serialize;

use super::sessions::session_name;
use super::words::{Index, IndexQuery, Words, grams, shared_words};
use super::{Mark, StoreError, Tx, View};
use kiso_base::home::SessionName;

/// Maximum bytes of a fact. It is a sentence; longer texts belong into the memory.
pub const MAX_FACT_BYTES: usize = 2_000;

/// Maximum facts. Consolidation keeps their number far below (`knowledge_max_facts`). If it never succeeds, the least certain and
/// oldest facts are deleted, so that a model that learns something each second does not fill the disk.
pub const MAX_FACTS: u32 = 10_000;

/// Facts are consolidated again once this fraction of `knowledge_max_facts` is new: after an attempt that merged nothing, an
/// immediate second one would cost a call and merge nothing either.
const NEW_PART: u32 = 10;

/// Maximum facts that are compared with a run.
const MAX_COMPARED: u32 = 500;

/// The source of facts that the user has stated.
pub const USER: &str = "user";

/// A fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Fact {
    pub id: i64,
    pub text: String,
    /// Where it comes from: "reviewer", "user", "summarizer" …
    pub source: String,
    /// Where it was learned; null if several were merged.
    pub session: Option<SessionName>,
    /// In percent.
    #[schemars(range(max = 100))]
    pub confidence: u8,
    /// When it was last stated, in milliseconds since 1970 (UTC).
    pub at_ms: i64,
}

/// A new fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFact {
    pub text: String,
    pub source: String,
    pub session: Option<SessionName>,
    /// In percent, at most 100.
    pub confidence: u8,
}

const INDEX: Index = Index { words: "facts_words", terms: "facts_terms", texts: "facts" };

/// Excludes facts of turns that another version has replaced: each has the time of its turn's first message.
const IN_USE: &str = "NOT EXISTS (SELECT 1 FROM messages r INDEXED BY messages_replaced
    WHERE r.session = f.session AND r.at_ms = f.at_ms AND r.replaced = 1)";

const COLUMNS: &str = "f.id, f.text, f.source, s.name, f.confidence, f.at_ms";

impl View<'_> {
    /// Returns the most certain facts, at most `limit`; equally certain ones newest first.
    pub fn facts(&self, limit: u32) -> Result<Vec<Fact>, StoreError> {
        let mut query = self.conn.prepare_cached(&format!(
            "SELECT {COLUMNS} FROM facts f LEFT JOIN sessions s ON s.id = f.session
             ORDER BY f.confidence DESC, f.at_ms DESC, f.id DESC LIMIT ?1"
        ))?;
        let rows = query.query_map([limit], fact)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// [`View::facts`], restricted to those from the home's owner, or from a model that had seen no other people's text.
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

    /// Returns the facts that have words in common with the query, best first, at most `limit`.
    pub fn find_facts(&self, question: &str, limit: u32) -> Result<Vec<Fact>, StoreError> {
        let Some(words) = Words::parse(question) else { return Ok(Vec::new()) };
        let IndexQuery { query, order, .. } = words.ask(self.conn, INDEX)?.any;
        let mut statement = self.conn.prepare_cached(&format!(
            "SELECT {COLUMNS} FROM facts_words w JOIN facts f ON f.id = w.rowid LEFT JOIN sessions s ON s.id = f.session
             WHERE w.facts_words MATCH ?1 AND {IN_USE} ORDER BY {order} LIMIT ?2"
        ))?;
        let rows = statement.query_map((query, limit), fact)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Returns the [trusted](View::trusted_facts) facts that models learned before `before_ms` and that are about the text: it
    /// contains at least half of their significant words. The most certain ones come first.
    pub fn facts_about(&self, text: &str, before_ms: i64) -> Result<Vec<Fact>, StoreError> {
        let mut facts = self.trusted_facts(MAX_COMPARED)?;
        facts.retain(|fact| {
            let (shared, of) = shared_words(&fact.text, text);
            fact.source != USER && fact.at_ms < before_ms && shared >= 2 && 2 * shared >= of
        });
        Ok(facts)
    }

    /// Returns the fact with this id.
    pub fn fact(&self, id: i64) -> Result<Option<Fact>, StoreError> {
        let mut query = self.conn.prepare_cached(&format!(
            "SELECT {COLUMNS} FROM facts f LEFT JOIN sessions s ON s.id = f.session WHERE f.id = ?1"
        ))?;
        Ok(query.query_row([id], fact).optional()?)
    }

    /// Returns the facts before the one with this id (`None`: the last ones), newest first, at most `limit`.
    pub fn facts_before(&self, before: Option<i64>, limit: u32) -> Result<Vec<Fact>, StoreError> {
        let mut query = self.conn.prepare_cached(&format!(
            "SELECT {COLUMNS} FROM facts f LEFT JOIN sessions s ON s.id = f.session
             WHERE f.id < ?1 ORDER BY f.id DESC LIMIT ?2"
        ))?;
        let rows = query.query_map((before.unwrap_or(i64::MAX), limit), fact)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Whether this fact is known, ignoring case and surrounding white space.
    pub fn has_fact(&self, text: &str) -> Result<bool, StoreError> {
        let mut query = self.conn.prepare_cached("SELECT EXISTS (SELECT 1 FROM facts WHERE text = ?1)")?;
        Ok(query.query_row([text.trim()], |row| row.get(0))?)
    }

    /// Returns the number of facts, counted up to `at_most`.
    pub fn count_facts(&self, at_most: u32) -> Result<u32, StoreError> {
        let mut query = self.conn.prepare_cached("SELECT count(*) FROM (SELECT 1 FROM facts LIMIT ?1)")?;
        Ok(query.query_row([at_most], |row| row.get(0))?)
    }

    /// Whether consolidation is worth a call: more than `max` facts can be merged (the [trusted](View::trusted_facts) ones), and
    /// enough of them are newer than the last attempt.
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
    /// Adds a fact and returns its id. A known one, ignoring case and surrounding white space, is not added again: it gets the
    /// higher certainty of the two, and this time.
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
        // Walks the index up to the limit, which is only expensive for a full table; below the limit, it finds nothing.
        let mut weakest = self.conn.prepare_cached(
            "DELETE FROM facts WHERE id IN
                 (SELECT id FROM facts WHERE id <> ?1 ORDER BY confidence DESC, at_ms DESC, id DESC LIMIT -1 OFFSET ?2)",
        )?;
        weakest.execute((id, MAX_FACTS - 1))?;
        Ok(id)
    }

    /// Replaces the facts with these ids by consolidated ones. A fact in both lists stays unchanged; new ones get the latest time
    /// of those that they replace. Facts that were learned meanwhile stay. If one of the old facts no longer exists, the
    /// consolidation is outdated: changes nothing, and returns false.
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

    /// Deletes a fact. Returns whether there was one with this id.
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
