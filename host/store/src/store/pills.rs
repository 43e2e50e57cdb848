//! Pills that people created.

use rusqlite::types::Type;

use super::jobs::caller;
use super::{StoreError, Tx, View};
use kiso_plan::effort::Effort;
use kiso_plan::pill::Pill;
use kiso_plan::plan::CallerScope;

/// Maximum pills of a home: a longer list would be hard to read.
pub const MAX_PILLS: usize = 100;

/// A pill, and the role of its creator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PillRow {
    pub pill: Pill,
    pub caller: CallerScope,
}

impl View<'_> {
    /// Returns all pills, by name.
    pub fn pills(&self) -> Result<Vec<PillRow>, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT name, template, categories, effort, description, caller FROM pills ORDER BY name",
        )?;
        let rows = query.query_map((), |row| {
            let wrong = |column, why: Box<dyn std::error::Error + Send + Sync>| {
                rusqlite::Error::FromSqlConversionFailure(column, Type::Text, why)
            };
            let categories = serde_json::from_str(row.get_ref(2)?.as_str()?).map_err(|error| wrong(2, error.into()))?;
            let effort = row.get_ref(3)?.as_str()?;
            let effort =
                Effort::parse(effort).ok_or_else(|| wrong(3, format!("{effort:?} is not an effort").into()))?;
            let pill = Pill { name: row.get(0)?, template: row.get(1)?, categories, effort, description: row.get(4)? };
            Ok(PillRow { pill, caller: caller(row, 5)? })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

impl Tx<'_> {
    /// Stores a pill, replacing one with its name.
    pub fn put_pill(&self, row: &PillRow, at_ms: i64) -> Result<(), StoreError> {
        let PillRow { pill, caller } = row;
        let mut upsert = self.conn.prepare_cached(
            "INSERT OR REPLACE INTO pills (name, template, categories, effort, description, caller, at_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?;
        let categories = serde_json::Value::from(pill.categories.as_slice()).to_string();
        let (effort, caller) = (pill.effort.name(), caller.name());
        upsert.execute((&pill.name, &pill.template, categories, effort, &pill.description, caller, at_ms))?;
        Ok(())
    }

    /// Deletes a pill. Returns whether there was one with this name.
    pub fn delete_pill(&self, name: &str) -> Result<bool, StoreError> {
        Ok(self.conn.prepare_cached("DELETE FROM pills WHERE name = ?1")?.execute([name])? > 0)
    }
}
