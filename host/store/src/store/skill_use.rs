//! Usage of skill calls: a row for each skill, and one for each host, directory or secret.

use super::{StoreError, Tx, View};
use rusqlite::OptionalExtension;
use schemars::JsonSchema;
use serde::Serialize;

/// Maximum hosts, directories and secrets of one capability that are stored for a skill.
pub const MAX_USED_THINGS: u32 = 100;

/// Stands for further ones.
pub const MORE: &str = "more";

/// Usage of a skill's calls.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Use")]
pub struct SkillUse {
    /// SHA-256 of the component.
    #[serde(skip)]
    pub digest: String,
    pub calls: u64,
    /// Calls that ended with an error, or an exit code other than 0.
    pub failed: u64,
    pub first_ms: i64,
    pub last_ms: i64,
    /// Maximum memory of a call.
    pub memory_bytes: u64,
    /// Maximum time of a call.
    pub longest_ms: u64,
    /// Maximum bytes that a call wrote to files.
    pub written_bytes: u64,
    /// Total time of all calls.
    pub total_ms: u64,
    pub things: Vec<UsedThing>,
}

/// A host, directory or secret that calls used.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[schemars(rename = "UsedThing")]
pub struct UsedThing {
    /// As in the grant: "http", "secrets" or "workspace".
    pub capability: String,
    /// A method, "private" (at a private address), "read", "write", "received", or "more" (than are stored).
    pub how: String,
    pub name: String,
    /// Calls that did so.
    pub calls: u64,
}

impl UsedThing {
    /// Whether this entry represents further uses that were not stored.
    pub fn is_more(&self) -> bool {
        self.how == MORE
    }
}

impl View<'_> {
    /// Returns the usage of a skill's calls; `None` if none was recorded.
    pub fn skill_use(&self, skill: &str) -> Result<Option<SkillUse>, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT digest, calls, failed, first_ms, last_ms, memory_bytes, longest_ms, written_bytes, total_ms
             FROM skill_use WHERE skill = ?1",
        )?;
        let found = query.query_row((skill,), |row| {
            Ok(SkillUse {
                digest: row.get(0)?,
                calls: row.get::<_, i64>(1)?.unsigned_abs(),
                failed: row.get::<_, i64>(2)?.unsigned_abs(),
                first_ms: row.get(3)?,
                last_ms: row.get(4)?,
                memory_bytes: row.get::<_, i64>(5)?.unsigned_abs(),
                longest_ms: row.get::<_, i64>(6)?.unsigned_abs(),
                written_bytes: row.get::<_, i64>(7)?.unsigned_abs(),
                total_ms: row.get::<_, i64>(8)?.unsigned_abs(),
                things: Vec::new(),
            })
        });
        let Some(mut found) = found.optional()? else { return Ok(None) };
        let mut query = self.conn.prepare_cached(
            "SELECT capability, how, name, calls FROM skill_use_things WHERE skill = ?1 ORDER BY capability, how, name",
        )?;
        let rows = query.query_map((skill,), |row| {
            let calls = row.get::<_, i64>(3)?.unsigned_abs();
            Ok(UsedThing { capability: row.get(0)?, how: row.get(1)?, name: row.get(2)?, calls })
        })?;
        found.things = rows.collect::<Result<_, _>>()?;
        Ok(Some(found))
    }
}

impl Tx<'_> {
    /// Adds the usage of some calls. Usage of another component with this name is deleted first.
    pub fn add_skill_use(&self, skill: &str, used: &SkillUse) -> Result<(), StoreError> {
        let int = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let mut forget = self.conn.prepare_cached("DELETE FROM skill_use WHERE skill = ?1 AND digest <> ?2")?;
        forget.execute((skill, &used.digest))?;
        let mut add = self.conn.prepare_cached(
            "INSERT INTO skill_use VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
             ON CONFLICT DO UPDATE SET calls = calls + excluded.calls, failed = failed + excluded.failed,
                 last_ms = max(last_ms, excluded.last_ms), memory_bytes = max(memory_bytes, excluded.memory_bytes),
                 longest_ms = max(longest_ms, excluded.longest_ms),
                 written_bytes = max(written_bytes, excluded.written_bytes), total_ms = total_ms + excluded.total_ms",
        )?;
        let SkillUse { digest, first_ms, last_ms, .. } = used;
        let (calls, failed, total) = (int(used.calls), int(used.failed), int(used.total_ms));
        let most = (int(used.memory_bytes), int(used.longest_ms), int(used.written_bytes));
        add.execute((skill, digest, calls, failed, first_ms, last_ms, most.0, most.1, most.2, total))?;
        let mut count = self.conn.prepare_cached(
            "UPDATE skill_use_things SET calls = calls + ?5, last_ms = ?6
             WHERE skill = ?1 AND capability = ?2 AND how = ?3 AND name = ?4",
        )?;
        let mut insert = self.conn.prepare_cached(
            "INSERT OR IGNORE INTO skill_use_things (skill, capability, how, name, calls, last_ms)
             SELECT ?1, ?2, CASE WHEN full THEN ?8 ELSE ?3 END, CASE WHEN full THEN '' ELSE ?4 END, ?5, ?6
             FROM (SELECT count(*) >= ?7 AS full FROM skill_use_things WHERE skill = ?1 AND capability = ?2)",
        )?;
        for UsedThing { capability, how, name, calls } in &used.things {
            let calls = int(*calls);
            if count.execute((skill, capability, how, name, calls, last_ms))? == 0 {
                insert.execute((skill, capability, how, name, calls, last_ms, MAX_USED_THINGS, MORE))?;
            }
        }
        Ok(())
    }

    /// Deletes the usage of a skill's calls.
    pub fn forget_skill_use(&self, skill: &str) -> Result<(), StoreError> {
        self.conn.prepare_cached("DELETE FROM skill_use WHERE skill = ?1")?.execute((skill,))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    fn used(digest: &str, names: &[&str]) -> SkillUse {
        let thing = |name: &&str| UsedThing {
            capability: "http".to_owned(),
            how: "GET".to_owned(),
            name: (*name).to_owned(),
            calls: 1,
        };
        SkillUse {
            digest: digest.to_owned(),
            calls: 1,
            first_ms: 5,
            last_ms: 5,
            memory_bytes: 10,
            longest_ms: 3,
            total_ms: 3,
            things: names.iter().map(thing).collect(),
            ..SkillUse::default()
        }
    }

    #[test]
    fn it_is_added_up_for_one_component_and_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("store.db")).unwrap();
        let add = |used: SkillUse| store.write_blocking(move |tx| tx.add_skill_use("x", &used)).unwrap();
        let read = || store.read_blocking(|view| view.skill_use("x")).unwrap().unwrap();
        add(used("a", &["one"]));
        add(SkillUse { memory_bytes: 7, longest_ms: 9, last_ms: 8, failed: 1, ..used("a", &["one", "two"]) });
        let both = read();
        assert_eq!((both.calls, both.failed, both.memory_bytes, both.longest_ms, both.total_ms), (2, 1, 10, 9, 6));
        assert_eq!((both.first_ms, both.last_ms), (5, 8));
        let names: Vec<_> = both.things.iter().map(|thing| (thing.name.as_str(), thing.calls)).collect();
        assert_eq!(names, [("one", 2), ("two", 1)]);
        // However many there are, only the maximum is stored, and one that stands for the rest.
        for n in 0..2 * MAX_USED_THINGS {
            add(used("a", &[&n.to_string()]));
        }
        let many = read().things;
        assert_eq!(many.len(), MAX_USED_THINGS as usize + 1);
        assert!(many.iter().any(|thing| thing.how == MORE && thing.name.is_empty()), "{many:?}");
        // Another component starts without usage.
        add(used("b", &["three"]));
        assert_eq!((read().calls, read().things.len()), (1, 1));
        store.write_blocking(|tx| tx.forget_skill_use("x")).unwrap();
        assert_eq!(store.read_blocking(|view| view.skill_use("x")).unwrap(), None);
    }
}
