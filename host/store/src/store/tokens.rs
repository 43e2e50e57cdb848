//! Tokens of the gateway: they have names, and only their hashes are stored.

use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};
use rusqlite::{OptionalExtension, Row};
use schemars::JsonSchema;
use serde::Serialize;
use strum::{EnumString, IntoStaticStr};
use subtle::ConstantTimeEq;

use super::{StoreError, Tx, View};

/// The prefix of every token, so that a token published by mistake can be found.
const PREFIX: &str = "kiso_";

/// Maximum tokens.
const MAX_TOKENS: i64 = 1_000;

/// Maximum characters of a token's name.
pub const MAX_TOKEN_NAME: usize = 64;

/// The permissions of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema, EnumString, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum TokenScope {
    /// Writing messages and reading their results.
    Chat,
    /// Everything.
    Admin,
}

/// A token without its secret part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    pub name: String,
    /// The part of the token by which it is found. It is not secret. Two successive tokens of the same name have different ones.
    pub handle: String,
    pub scope: TokenScope,
    pub created_ms: i64,
}

impl View<'_> {
    /// Returns the tokens, by name.
    pub fn tokens(&self) -> Result<Vec<Token>, StoreError> {
        let mut query = self.conn.prepare_cached("SELECT name, handle, scope, created_ms FROM tokens ORDER BY name")?;
        let rows = query.query_map((), token)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Whether the token with this handle exists, that is, was not revoked.
    pub fn has_token(&self, handle: &str) -> Result<bool, StoreError> {
        let mut query = self.conn.prepare_cached("SELECT EXISTS (SELECT 1 FROM tokens WHERE handle = ?1)")?;
        Ok(query.query_row([handle], |row| row.get(0))?)
    }

    /// Whether any token exists.
    pub fn has_tokens(&self) -> Result<bool, StoreError> {
        let mut query = self.conn.prepare_cached("SELECT EXISTS (SELECT 1 FROM tokens)")?;
        Ok(query.query_row((), |row| row.get(0))?)
    }

    /// Returns the token with this text, if it is valid. Takes the same time for all texts with the handle of an existing token.
    pub fn token_of(&self, text: &str) -> Result<Option<Token>, StoreError> {
        let Some((handle, _)) = text.strip_prefix(PREFIX).and_then(|rest| rest.split_once('_')) else {
            return Ok(None);
        };
        let mut query =
            self.conn.prepare_cached("SELECT name, handle, scope, created_ms, hash FROM tokens WHERE handle = ?1")?;
        let found = query.query_row([handle], |row| {
            let hash: Vec<u8> = row.get(4)?;
            Ok((token(row)?, hash))
        });
        let same = |hash: &[u8]| bool::from(hash.ct_eq(digest(&SHA256, text.as_bytes()).as_ref()));
        Ok(found.optional()?.filter(|(_, hash)| same(hash)).map(|(token, _)| token))
    }
}

impl Tx<'_> {
    /// Creates a token and returns its text, which is not stored; `None` if the name exists.
    pub fn add_token(&self, name: &str, scope: TokenScope, at_ms: i64) -> Result<Option<String>, StoreError> {
        if name.is_empty() || name.chars().count() > MAX_TOKEN_NAME || name.chars().any(char::is_control) {
            return Err(StoreError::Quota {
                what: "a token's name has too many characters, none, or odd ones",
                max: MAX_TOKEN_NAME as u64,
            });
        }
        let count: i64 = self.conn.query_row("SELECT count(*) FROM tokens", (), |row| row.get(0))?;
        if count >= MAX_TOKENS {
            return Err(StoreError::Quota { what: "there are too many tokens", max: MAX_TOKENS.unsigned_abs() });
        }
        let (handle, rest) = (random::<6>()?, random::<24>()?);
        let text = format!("{PREFIX}{handle}_{rest}");
        let hash = digest(&SHA256, text.as_bytes());
        let mut insert = self.conn.prepare_cached(
            "INSERT OR IGNORE INTO tokens (name, handle, hash, scope, created_ms) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?;
        let added = insert.execute((name, handle, hash.as_ref(), scope, at_ms))? > 0;
        Ok(added.then_some(text))
    }

    /// Revokes a token immediately. Returns whether there was one.
    pub fn remove_token(&self, name: &str) -> Result<bool, StoreError> {
        Ok(self.conn.prepare_cached("DELETE FROM tokens WHERE name = ?1")?.execute([name])? > 0)
    }
}

fn token(row: &Row<'_>) -> rusqlite::Result<Token> {
    Ok(Token { name: row.get(0)?, handle: row.get(1)?, scope: row.get(2)?, created_ms: row.get(3)? })
}

pub(super) fn random<const N: usize>() -> Result<String, StoreError> {
    let mut bytes = [0; N];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| StoreError::corrupt("the system provides no random numbers".to_owned()))?;
    Ok(data_encoding::HEXLOWER.encode(&bytes))
}
