//! Prompts: what models were asked in a run.

use super::{RunId, StoreError, Tx, View};

/// What a model was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// Of the event that the answer led to.
    pub seq: u32,
    /// Its place among the prompts of that event, from 0.
    pub nth: u32,
    pub role: String,
    pub text: String,
}

impl View<'_> {
    /// All prompts of a run, in order.
    pub fn prompts(&self, run: &RunId) -> Result<Vec<Prompt>, StoreError> {
        self.prompts_between(run, 0, u32::MAX)
    }

    /// Those that belong to the events from `first` to `last`.
    pub fn prompts_between(&self, run: &RunId, first: u32, last: u32) -> Result<Vec<Prompt>, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT seq, nth, role, text FROM prompts WHERE run = ?1 AND seq BETWEEN ?2 AND ?3 ORDER BY seq, nth",
        )?;
        let rows = query.query_map((self.num(run)?, first, last), |row| {
            Ok(Prompt { seq: row.get(0)?, nth: row.get(1)?, role: row.get(2)?, text: row.get(3)? })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

impl Tx<'_> {
    /// Writes down a prompt; one that stands in its place is replaced.
    pub fn put_prompt(&self, run: &RunId, prompt: &Prompt) -> Result<(), StoreError> {
        let mut insert = self
            .conn
            .prepare_cached("INSERT OR REPLACE INTO prompts (run, seq, nth, role, text) VALUES (?1, ?2, ?3, ?4, ?5)")?;
        insert.execute((self.num(run)?, prompt.seq, prompt.nth, &prompt.role, &prompt.text))?;
        Ok(())
    }
}
