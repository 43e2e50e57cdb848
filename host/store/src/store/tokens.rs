//! Tokens of the gateway: named, and known by their hash only.

use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};
use rusqlite::{OptionalExtension, Row};
use schemars::JsonSchema;
use serde::Serialize;
use strum::{EnumString, IntoStaticStr};
use subtle::ConstantTimeEq;

use super::{StoreError, Tx, View};

/// What begins every token, so that one that was published by mistake can be found.
const PREFIX: &str = "kiso_";

/// Tokens that there may be.
const MAX_TOKENS: i64 = 1_000;

/// Characters of a token's name.
pub const MAX_TOKEN_NAME: usize = 64;

/// What a token allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema, EnumString, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum TokenScope {
    /// To write messages and to read what came of them.
    Chat,
    /// Everything.
    Admin,
}

/// A token without what makes it one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    pub name: String,
    /// The part of the token by which it is found: of two tokens that had the same name one after the other, it is not the
    /// same. No secret.
    pub handle: String,
    pub scope: TokenScope,
    pub created_ms: i64,
}

impl View<'_> {
    /// The tokens, by name.
    pub fn tokens(&self) -> Result<Vec<Token>, StoreError> {
        let mut query = self.conn.prepare_cached("SELECT name, handle, scope, created_ms FROM tokens ORDER BY name")?;
        let rows = query.query_map((), token)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Whether the token with this handle has not been revoked.
    pub fn has_token(&self, handle: &str) -> Result<bool, StoreError> {
        let mut query = self.conn.prepare_cached("SELECT EXISTS (SELECT 1 FROM tokens WHERE handle = ?1)")?;
        Ok(query.query_row([handle], |row| row.get(0))?)
    }

    /// Whether there is any token.
    pub fn has_tokens(&self) -> Result<bool, StoreError> {
        let mut query = self.conn.prepare_cached("SELECT EXISTS (SELECT 1 FROM tokens)")?;
        Ok(query.query_row((), |row| row.get(0))?)
    }

    /// The token that this text is, if it is one. Takes the same time for every text with the handle of a token.
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
    /// Makes a token and returns its text, which is kept nowhere; `None` if there is one of that name.
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

    /// Takes a token away, at once; true if there was one.
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
