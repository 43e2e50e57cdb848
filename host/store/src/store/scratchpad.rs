//! Texts of a session that are stored under a key. The crate's `scratchpad.rs` creates and validates keys; here they are only
//! names.
//!
//! There are two kinds of entries: those that were saved on purpose (`named`), which stay, and those that the host archived
//! because they were too large for a prompt. The latter are deleted to make room: a session that continues for months can still
//! archive its next large result.

use rusqlite::{OptionalExtension, Row};

use super::{StoreError, Tx, View};
use kiso_base::home::SessionName;

/// Maximum bytes of an entry. A larger input or output would not fit into any model's context in parts either.
pub const MAX_ENTRY_BYTES: u64 = 4 << 20;

/// Maximum bytes of a session's entries. A search reads all of them, which takes some hundredths of a second for this size.
pub const MAX_SCRATCHPAD_BYTES: u64 = 32 << 20;

/// Maximum entries of a session.
pub const MAX_ENTRIES: u64 = 1_000;

/// Maximum named entries and bytes: the host must always have room for a text that no prompt can contain.
pub const MAX_NAMED_ENTRIES: u64 = MAX_ENTRIES - 100;
pub const MAX_NAMED_BYTES: u64 = MAX_SCRATCHPAD_BYTES - 2 * MAX_ENTRY_BYTES;

/// Characters of the beginning in a listing.
const HEAD: usize = 120;

/// An entry in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScratchpadEntry {
    pub key: String,
    /// Saved on purpose; other entries may be deleted to make room.
    pub named: bool,
    pub bytes: u64,
    pub at_ms: i64,
    /// The beginning, at most 120 characters.
    pub head: String,
}

impl View<'_> {
    /// Returns the text under a key.
    pub fn scratchpad_get(&self, session: &SessionName, key: &str) -> Result<Option<String>, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT text FROM scratchpad WHERE session = (SELECT id FROM sessions WHERE name = ?1) AND key = ?2",
        )?;
        Ok(query.query_row((session.as_str(), key), |row| row.get(0)).optional()?)
    }

    /// Whether a session has entries other than that of the key `but`.
    pub fn has_refs(&self, session: &SessionName, but: &str) -> Result<bool, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM scratchpad WHERE session = (SELECT id FROM sessions WHERE name = ?1) AND key <> ?2)",
        )?;
        Ok(query.query_row((session.as_str(), but), |row| row.get(0))?)
    }

    /// Returns the entries of a session, newest first, at most [`MAX_ENTRIES`]. Reads none of the texts.
    pub fn scratchpad_list(&self, session: &SessionName) -> Result<Vec<ScratchpadEntry>, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT key, named, bytes, at_ms, head FROM scratchpad
             WHERE session = (SELECT id FROM sessions WHERE name = ?1) ORDER BY num DESC LIMIT ?2",
        )?;
        let rows = query.query_map((session.as_str(), MAX_ENTRIES as u32), entry)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Calls `visit` with the key and text of each entry, newest first, until it returns false.
    pub fn scratchpad_each(
        &self,
        session: &SessionName,
        mut visit: impl FnMut(&str, &str) -> bool,
    ) -> Result<(), StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT key, text FROM scratchpad
             WHERE session = (SELECT id FROM sessions WHERE name = ?1) ORDER BY num DESC",
        )?;
        let mut rows = query.query([session.as_str()])?;
        while let Some(row) = rows.next()? {
            let (key, text) = (row.get_ref(0)?.as_str(), row.get_ref(1)?.as_str());
            if !visit(key.map_err(rusqlite::Error::from)?, text.map_err(rusqlite::Error::from)?) {
                break;
            }
        }
        Ok(())
    }

    /// Returns the highest number of the keys `STEM-1`, `STEM-2` …; 0 if there are none. Ignores keys whose number is not plain
    /// or has more than 15 digits, so that there is always a next number.
    pub fn scratchpad_last(&self, session: &SessionName, stem: &str) -> Result<u64, StoreError> {
        // From "stem-0" to before "stem-:" (':' is the character after '9'): a range of the index, of at most MAX_ENTRIES rows.
        let mut query = self.conn.prepare_cached(
            "SELECT max(CAST(substr(key, length(?2) + 2) AS INTEGER)) FROM scratchpad
             WHERE session = (SELECT id FROM sessions WHERE name = ?1) AND key >= ?2 || '-0' AND key < ?2 || '-:'
               AND length(key) <= length(?2) + 16 AND substr(key, length(?2) + 2) NOT GLOB '*[^0-9]*'",
        )?;
        let last: Option<i64> = query.query_row((session.as_str(), stem), |row| row.get(0))?;
        Ok(last.unwrap_or(0).max(0).unsigned_abs())
    }
}

impl Tx<'_> {
    /// Stores a text under a key, replacing an old one. If the session has no more room, deletes the oldest entries that are not
    /// `named`; if that is not enough, fails with [`StoreError::Quota`].
    pub fn scratchpad_put(
        &self,
        session: &SessionName,
        key: &str,
        text: &str,
        named: bool,
        at_ms: i64,
    ) -> Result<(), StoreError> {
        let bytes = text.len() as u64;
        if bytes > MAX_ENTRY_BYTES {
            return Err(StoreError::Quota {
                what: "the entry of the scratchpad has too many bytes",
                max: MAX_ENTRY_BYTES,
            });
        }
        let session = self.ensure_session(session, at_ms)?;
        self.conn.prepare_cached("DELETE FROM scratchpad WHERE session = ?1 AND key = ?2")?.execute((session, key))?;
        if named {
            self.check_named(session, bytes)?;
        }
        self.make_room(session, bytes)?;
        let head: String = text.chars().take(HEAD).map(|c| if c.is_control() { ' ' } else { c }).collect();
        let mut insert = self.conn.prepare_cached(
            "INSERT INTO scratchpad (session, key, named, bytes, at_ms, head, text)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?;
        insert.execute((session, key, named, bytes as i64, at_ms, head.trim(), text))?;
        Ok(())
    }

    /// Deletes an entry. Returns whether there was one.
    pub fn scratchpad_delete(&self, session: &SessionName, key: &str) -> Result<bool, StoreError> {
        let mut delete = self.conn.prepare_cached(
            "DELETE FROM scratchpad WHERE session = (SELECT id FROM sessions WHERE name = ?1) AND key = ?2",
        )?;
        Ok(delete.execute((session.as_str(), key))? > 0)
    }

    fn check_named(&self, session: i64, bytes: u64) -> Result<(), StoreError> {
        let mut sizes = self.conn.prepare_cached(
            "SELECT count(*), coalesce(sum(bytes), 0) FROM scratchpad WHERE session = ?1 AND named = 1",
        )?;
        let (entries, used): (i64, i64) = sizes.query_row([session], |row| Ok((row.get(0)?, row.get(1)?)))?;
        if entries.unsigned_abs() >= MAX_NAMED_ENTRIES {
            let what = "the scratchpad of the session has too many entries";
            return Err(StoreError::Quota { what, max: MAX_NAMED_ENTRIES });
        }
        if used.unsigned_abs() + bytes > MAX_NAMED_BYTES {
            let what = "the entries of the session's scratchpad have too many bytes together";
            return Err(StoreError::Quota { what, max: MAX_NAMED_BYTES });
        }
        Ok(())
    }

    fn make_room(&self, session: i64, bytes: u64) -> Result<(), StoreError> {
        let mut sizes =
            self.conn.prepare_cached("SELECT count(*), coalesce(sum(bytes), 0) FROM scratchpad WHERE session = ?1")?;
        let (entries, used): (i64, i64) = sizes.query_row([session], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let (mut entries, mut used) = (entries.unsigned_abs(), used.unsigned_abs());
        let full = |entries: u64, used: u64| {
            if entries >= MAX_ENTRIES {
                let what = "the scratchpad of the session has too many entries";
                return Some(StoreError::Quota { what, max: MAX_ENTRIES });
            }
            let what = "the entries of the session's scratchpad have too many bytes together";
            (used + bytes > MAX_SCRATCHPAD_BYTES).then_some(StoreError::Quota { what, max: MAX_SCRATCHPAD_BYTES })
        };
        if full(entries, used).is_none() {
            return Ok(());
        }
        let mut oldest = self
            .conn
            .prepare_cached("SELECT num, bytes FROM scratchpad WHERE session = ?1 AND named = 0 ORDER BY num")?;
        let oldest = oldest.query_map([session], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let oldest = oldest.collect::<Result<Vec<(i64, i64)>, _>>()?;
        let mut delete = self.conn.prepare_cached("DELETE FROM scratchpad WHERE num = ?1")?;
        for (num, bytes) in oldest {
            delete.execute([num])?;
            entries -= 1;
            used -= bytes.unsigned_abs();
            if full(entries, used).is_none() {
                return Ok(());
            }
        }
        // This error rolls back the transaction, so nothing was deleted for it.
        full(entries, used).map_or(Ok(()), Err)
    }
}

fn entry(row: &Row<'_>) -> rusqlite::Result<ScratchpadEntry> {
    Ok(ScratchpadEntry {
        key: row.get(0)?,
        named: row.get(1)?,
        bytes: row.get::<_, i64>(2)?.unsigned_abs(),
        at_ms: row.get(3)?,
        head: row.get(4)?,
    })
}
