//! Secrets of sessions, in the vault's sealed form. This file never handles a value.

use rusqlite::OptionalExtension;

use super::{StoreError, Tx, View};
use kiso_base::home::SessionName;

/// Maximum secrets of a session. A person gives a few; a model that "finds" hundreds is wrong.
pub const MAX_SECRETS: u64 = 100;

/// Maximum bytes of a sealed secret: 16 KiB, the maximum in a plan, and the overhead of sealing.
pub const MAX_SEALED_BYTES: u64 = (16 << 10) + 64;

impl View<'_> {
    /// Returns the sealed value.
    pub fn secret(&self, session: &SessionName, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let Some(session) = self.session_id(session)? else { return Ok(None) };
        let mut query = self.conn.prepare_cached("SELECT sealed FROM secrets WHERE session = ?1 AND name = ?2")?;
        Ok(query.query_row((session, name), |row| row.get(0)).optional()?)
    }

    /// Returns names and sealed values of a session, by name.
    pub fn secrets(&self, session: &SessionName) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
        let Some(session) = self.session_id(session)? else { return Ok(Vec::new()) };
        let mut query =
            self.conn.prepare_cached("SELECT name, sealed FROM secrets WHERE session = ?1 ORDER BY name")?;
        let rows = query.query_map([session], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Returns the names of a session's secrets, in order.
    pub fn secret_names(&self, session: &SessionName) -> Result<Vec<String>, StoreError> {
        let Some(session) = self.session_id(session)? else { return Ok(Vec::new()) };
        let mut query = self.conn.prepare_cached("SELECT name FROM secrets WHERE session = ?1 ORDER BY name")?;
        let rows = query.query_map([session], |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

impl Tx<'_> {
    /// Stores a sealed value, replacing one of the same name.
    pub fn put_secret(&self, session: &SessionName, name: &str, sealed: &[u8], at_ms: i64) -> Result<(), StoreError> {
        if sealed.len() as u64 > MAX_SEALED_BYTES {
            return Err(StoreError::Quota { what: "the secret has too many bytes", max: MAX_SEALED_BYTES });
        }
        let session = self.ensure_session(session, at_ms)?;
        let mut upsert = self.conn.prepare_cached(
            "INSERT INTO secrets (session, name, sealed, at_ms) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO UPDATE SET sealed = excluded.sealed, at_ms = excluded.at_ms",
        )?;
        upsert.execute((session, name, sealed, at_ms))?;
        // So that retention does not consider the session unused.
        let mut used = self.conn.prepare_cached("UPDATE sessions SET active_ms = max(active_ms, ?2) WHERE id = ?1")?;
        used.execute((session, at_ms))?;
        let mut query = self.conn.prepare_cached("SELECT count(*) FROM secrets WHERE session = ?1")?;
        let count: i64 = query.query_row([session], |row| row.get(0))?;
        if count.unsigned_abs() > MAX_SECRETS {
            return Err(StoreError::Quota { what: "the session has too many secrets", max: MAX_SECRETS });
        }
        Ok(())
    }

    /// Deletes a secret. Returns whether there was one.
    pub fn delete_secret(&self, session: &SessionName, name: &str) -> Result<bool, StoreError> {
        let Some(session) = self.session_id(session)? else { return Ok(false) };
        let mut delete = self.conn.prepare_cached("DELETE FROM secrets WHERE session = ?1 AND name = ?2")?;
        Ok(delete.execute((session, name))? > 0)
    }
}
