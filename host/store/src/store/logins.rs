//! Browsers that are logged in to the page, and the links with which the home's owner logs one in.
//!
//! Both are random texts that are not stored: the browser has its own in a cookie, the link its own in its fragment. The store
//! only has their hashes, by which they are found.

use ring::digest::{SHA256, digest};
use rusqlite::{OptionalExtension, Row};

use super::tokens::random;
use super::{StoreError, Token, TokenScope, Tx, View};

/// A login expires this many milliseconds after its last use.
pub const LOGIN_MS: i64 = 30 * 24 * 60 * 60_000;

/// A link is valid for this many milliseconds.
pub const CODE_MS: i64 = 5 * 60_000;

/// Maximum browsers that are logged in with one token, or by links of the owner, and maximum waiting links. A further one
/// replaces the least recently used one. A person has a few, and an unobserved list must not grow for years.
const MAX: i64 = 100;

/// Identifies a login. It cannot be used to log in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoginId([u8; 32]);

/// A browser that is logged in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    pub id: LoginId,
    /// The token that it was created with; `None` if it was created by a link of the owner.
    pub token: Option<Token>,
    /// Its scope, further limited by the token's scope.
    pub scope: TokenScope,
    pub created_ms: i64,
    /// When it was last used, according to [`Tx::touch_login`].
    pub used_ms: i64,
}

impl LoginId {
    /// Returns the id for the browser's value.
    pub fn from_value(value: &str) -> LoginId {
        LoginId(hash(value))
    }

    /// Returns the id as text. It is not secret, because it cannot be used to log in.
    pub(super) fn hex(&self) -> String {
        data_encoding::HEXLOWER.encode(&self.0)
    }
}

impl View<'_> {
    /// Returns the login, unless it has ended: logged out, not used for [`LOGIN_MS`], or its token was revoked.
    pub fn login(&self, id: LoginId, now_ms: i64) -> Result<Option<Login>, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT l.scope, l.created_ms, l.used_ms, t.name, t.handle, t.scope, t.created_ms
             FROM logins l LEFT JOIN tokens t ON t.handle = l.token WHERE l.hash = ?1 AND l.used_ms > ?2",
        )?;
        let found = query.query_row((id.0, now_ms - LOGIN_MS), |row| {
            let (scope, created_ms, used_ms) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok(Login { id, token: token(row)?, scope, created_ms, used_ms })
        });
        Ok(found.optional()?)
    }

    /// Whether a link with this code is waiting. Somebody else may open it before [`Tx::log_in_by_code`].
    pub fn has_login_code(&self, code: &str, now_ms: i64) -> Result<bool, StoreError> {
        let mut query = self.conn.prepare_cached("SELECT created_ms FROM login_codes WHERE hash = ?1")?;
        let created = query.query_row([hash(code)], |row| row.get(0)).optional()?;
        Ok(created.is_some_and(|created_ms| waits(created_ms, now_ms)))
    }
}

impl Tx<'_> {
    /// Logs a browser in with the token that has this handle. Returns the value for the browser, which is not stored; `None` if
    /// the token no longer exists.
    pub fn log_in_by_token(&self, handle: &str, at_ms: i64) -> Result<Option<String>, StoreError> {
        let mut query = self.conn.prepare_cached("SELECT scope FROM tokens WHERE handle = ?1")?;
        let scope: Option<TokenScope> = query.query_row([handle], |row| row.get(0)).optional()?;
        scope.map(|scope| self.log_in(Some(handle), scope, at_ms)).transpose()
    }

    /// Logs a browser in with the code of a link, and removes the code; `None` if no such link is waiting.
    pub fn log_in_by_code(&self, code: &str, at_ms: i64) -> Result<Option<String>, StoreError> {
        let mut delete =
            self.conn.prepare_cached("DELETE FROM login_codes WHERE hash = ?1 RETURNING scope, created_ms")?;
        let found = delete.query_row([hash(code)], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        match found {
            Some((scope, created_ms)) if waits(created_ms, at_ms) => Ok(Some(self.log_in(None, scope, at_ms)?)),
            _ => Ok(None),
        }
    }

    fn log_in(&self, token: Option<&str>, scope: TokenScope, at_ms: i64) -> Result<String, StoreError> {
        self.conn.prepare_cached("DELETE FROM logins WHERE used_ms <= ?1")?.execute([at_ms - LOGIN_MS])?;
        let mut make_room = self.conn.prepare_cached(
            "DELETE FROM logins WHERE hash IN
                 (SELECT hash FROM logins WHERE token IS ?2 ORDER BY used_ms DESC LIMIT -1 OFFSET ?1)",
        )?;
        make_room.execute((MAX - 1, token))?;
        let value = random::<32>()?;
        let mut insert = self.conn.prepare_cached(
            "INSERT INTO logins (hash, token, scope, created_ms, used_ms) VALUES (?1, ?2, ?3, ?4, ?4)",
        )?;
        insert.execute((hash(&value), token, scope, at_ms))?;
        Ok(value)
    }

    /// Records that it was used.
    pub fn touch_login(&self, id: LoginId, at_ms: i64) -> Result<(), StoreError> {
        self.conn.prepare_cached("UPDATE logins SET used_ms = ?2 WHERE hash = ?1")?.execute((id.0, at_ms))?;
        Ok(())
    }

    /// Ends a login immediately. Returns whether there was one.
    pub fn log_out(&self, id: LoginId) -> Result<bool, StoreError> {
        Ok(self.conn.prepare_cached("DELETE FROM logins WHERE hash = ?1")?.execute([id.0])? > 0)
    }

    /// Ends every login, and removes every waiting link. Returns how many browsers were logged in.
    pub fn log_everybody_out(&self) -> Result<usize, StoreError> {
        self.conn.prepare_cached("DELETE FROM login_codes")?.execute(())?;
        Ok(self.conn.prepare_cached("DELETE FROM logins")?.execute(())?)
    }

    /// Creates the code of a link that logs one browser in, within [`CODE_MS`]. The code is not stored.
    pub fn add_login_code(&self, scope: TokenScope, at_ms: i64) -> Result<String, StoreError> {
        let mut old = self.conn.prepare_cached("DELETE FROM login_codes WHERE created_ms <= ?1")?;
        old.execute([at_ms - CODE_MS])?;
        let mut make_room = self.conn.prepare_cached(
            "DELETE FROM login_codes
             WHERE hash IN (SELECT hash FROM login_codes ORDER BY created_ms DESC LIMIT -1 OFFSET ?1)",
        )?;
        make_room.execute([MAX - 1])?;
        let code = random::<32>()?;
        let mut insert =
            self.conn.prepare_cached("INSERT INTO login_codes (hash, scope, created_ms) VALUES (?1, ?2, ?3)")?;
        insert.execute((hash(&code), scope, at_ms))?;
        Ok(code)
    }
}

/// Whether a link has not expired. Links from the future are accepted for as long, because a clock may have been set back.
fn waits(created_ms: i64, now_ms: i64) -> bool {
    now_ms.abs_diff(created_ms) < CODE_MS.unsigned_abs()
}

fn token(row: &Row<'_>) -> rusqlite::Result<Option<Token>> {
    let Some(name) = row.get(3)? else { return Ok(None) };
    Ok(Some(Token { name, handle: row.get(4)?, scope: row.get(5)?, created_ms: row.get(6)? }))
}

fn hash(text: &str) -> [u8; 32] {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest(&SHA256, text.as_bytes()).as_ref());
    hash
}
