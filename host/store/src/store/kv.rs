//! Small values of skills, a space for each session and owner (`kv` in `wit/since_v0_1/skill.wit`, which defines the limits).

use rusqlite::OptionalExtension;

use super::{StoreError, Tx, View};
use kiso_base::home::{SessionName, SkillName};

/// The owner of the values: a skill's name and the source of its file. A skill of the same name from another publisher cannot
/// access them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KvOwner(String);

impl KvOwner {
    pub(super) fn name(&self) -> &str {
        &self.0
    }

    /// Without a source, as for bundled skills and those that an older kiso installed, only the name.
    pub fn new(skill: &SkillName, source: Option<&str>) -> Self {
        let Some(source) = source else { return Self(skill.to_string()) };
        let digest = ring::digest::digest(&ring::digest::SHA256, source.as_bytes());
        let source = data_encoding::HEXLOWER.encode(&digest.as_ref()[..16]);
        // Names of skills contain no @.
        Self(format!("{skill}@{source}"))
    }
}

pub const MAX_KEY_BYTES: usize = 256;
pub const MAX_VALUE_BYTES: u64 = 64 << 10;
/// Maximum keys in a space.
pub const MAX_KEYS: u64 = 1_000;
/// Maximum bytes of all keys and values of a space.
pub const MAX_SPACE_BYTES: u64 = 1 << 20;

impl View<'_> {
    /// Returns the value; `None` if the key does not exist.
    pub fn kv_get(&self, session: &SessionName, owner: &KvOwner, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        check_key(key)?;
        let Some(session) = self.session_id(session)? else { return Ok(None) };
        let mut query =
            self.conn.prepare_cached("SELECT value FROM kv WHERE session = ?1 AND skill = ?2 AND key = ?3")?;
        Ok(query.query_row((session, &owner.0, key.as_bytes()), |row| row.get(0)).optional()?)
    }

    /// Returns the keys that start with `prefix`, in byte order.
    pub fn kv_keys(&self, session: &SessionName, owner: &KvOwner, prefix: &str) -> Result<Vec<String>, StoreError> {
        let Some(session) = self.session_id(session)? else { return Ok(Vec::new()) };
        let mut query = self
            .conn
            .prepare_cached("SELECT key FROM kv WHERE session = ?1 AND skill = ?2 AND key >= ?3 ORDER BY key")?;
        let mut rows = query.query((session, &owner.0, prefix.as_bytes()))?;
        let mut keys = Vec::new();
        while let Some(row) = rows.next()? {
            let key = row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?;
            if !key.starts_with(prefix.as_bytes()) {
                break;
            }
            let key = std::str::from_utf8(key).map_err(|_| StoreError::corrupt("a key in kv is not UTF-8"))?;
            keys.push(key.to_owned());
        }
        Ok(keys)
    }
}

impl Tx<'_> {
    /// Sets a value, replacing an old one. The guest handles [`StoreError::BadKey`] and [`StoreError::Quota`].
    pub fn kv_set(&self, session: &SessionName, owner: &KvOwner, key: &str, value: &[u8]) -> Result<(), StoreError> {
        check_key(key)?;
        if value.len() as u64 > MAX_VALUE_BYTES {
            return Err(StoreError::Quota { what: "the value has too many bytes", max: MAX_VALUE_BYTES });
        }
        // A skill that is called by hand works in a session without messages.
        let now_ms = "SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER)";
        let now_ms = self.conn.prepare_cached(now_ms)?.query_row((), |row| row.get(0))?;
        let session = self.ensure_session(session, now_ms)?;
        // The size of the other values, so that a replaced value counts once. Reads only the lengths of at most 1,000 rows.
        let mut query = self.conn.prepare_cached(
            "SELECT count(*), coalesce(sum(length(key) + length(value)), 0) FROM kv
             WHERE session = ?1 AND skill = ?2 AND key <> ?3",
        )?;
        let (keys, bytes): (u32, u32) =
            query.query_row((session, &owner.0, key.as_bytes()), |row| Ok((row.get(0)?, row.get(1)?)))?;
        if u64::from(keys) >= MAX_KEYS {
            return Err(StoreError::Quota { what: "the skill has too many keys in this session", max: MAX_KEYS });
        }
        if u64::from(bytes) + (key.len() + value.len()) as u64 > MAX_SPACE_BYTES {
            let what = "the keys and values of the skill in this session have too many bytes";
            return Err(StoreError::Quota { what, max: MAX_SPACE_BYTES });
        }
        let mut upsert = self.conn.prepare_cached(
            "INSERT INTO kv (session, skill, key, value) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO UPDATE SET value = excluded.value",
        )?;
        upsert.execute((session, &owner.0, key.as_bytes(), value))?;
        Ok(())
    }

    /// Deletes a key. Returns whether it existed.
    pub fn kv_delete(&self, session: &SessionName, owner: &KvOwner, key: &str) -> Result<bool, StoreError> {
        check_key(key)?;
        let Some(session) = self.session_id(session)? else { return Ok(false) };
        let mut delete = self.conn.prepare_cached("DELETE FROM kv WHERE session = ?1 AND skill = ?2 AND key = ?3")?;
        Ok(delete.execute((session, &owner.0, key.as_bytes()))? > 0)
    }
}

fn check_key(key: &str) -> Result<(), StoreError> {
    match key.len() {
        1..=MAX_KEY_BYTES => Ok(()),
        bytes => Err(StoreError::BadKey { bytes, max: MAX_KEY_BYTES }),
    }
}
