//! The last seen versions of skill indexes.

use super::{StoreError, Tx};
use rusqlite::OptionalExtension;

/// A version of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexVersion {
    /// The key that signed it, a line of base64.
    pub signer: String,
    pub name: String,
    pub serial: u64,
    /// SHA-256 of the file.
    pub digest: String,
}

impl Tx<'_> {
    /// Stores a version, unless it is older than the last seen one, or differs from it with the same number. In these cases,
    /// returns the last seen one.
    pub fn see_index(&self, version: &IndexVersion, now_ms: i64) -> Result<Option<(u64, String)>, StoreError> {
        let IndexVersion { signer, name, serial, digest } = version;
        let mut query =
            self.conn.prepare_cached("SELECT serial, digest FROM skill_indexes WHERE signer = ?1 AND name = ?2")?;
        let last = query.query_row((signer, name), |row| Ok((row.get::<_, i64>(0)?.unsigned_abs(), row.get(1)?)));
        let last: Option<(u64, String)> = last.optional()?;
        if let Some((seen, known)) = last
            && (seen > *serial || (seen == *serial && known != *digest))
        {
            return Ok(Some((seen, known)));
        }
        let mut remember =
            self.conn.prepare_cached("INSERT OR REPLACE INTO skill_indexes VALUES (?1, ?2, ?3, ?4, ?5)")?;
        remember.execute((signer, name, i64::try_from(*serial).unwrap_or(i64::MAX), digest, now_ms))?;
        Ok(None)
    }
}
