//! Logins at MCP servers, in the vault's sealed form. This file never handles a token.

use rusqlite::OptionalExtension;

use super::{StoreError, Tx, View};

/// A login at a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpLoginRow {
    /// The server's URL at the time of the login.
    pub source: String,
    pub sealed: Vec<u8>,
}

impl View<'_> {
    pub fn mcp_login(&self, server: &str) -> Result<Option<McpLoginRow>, StoreError> {
        let mut query = self.conn.prepare_cached("SELECT source, sealed FROM mcp_logins WHERE server = ?1")?;
        let row = query.query_row([server], |row| Ok(McpLoginRow { source: row.get(0)?, sealed: row.get(1)? }));
        Ok(row.optional()?)
    }
}

impl Tx<'_> {
    /// Stores a login, replacing the previous one.
    pub fn put_mcp_login(&self, server: &str, row: &McpLoginRow, at_ms: i64) -> Result<(), StoreError> {
        let mut upsert = self.conn.prepare_cached(
            "INSERT OR REPLACE INTO mcp_logins (server, source, sealed, at_ms) VALUES (?1, ?2, ?3, ?4)",
        )?;
        upsert.execute((server, &row.source, &row.sealed, at_ms))?;
        Ok(())
    }

    /// Deletes a login. Returns whether there was one.
    pub fn delete_mcp_login(&self, server: &str) -> Result<bool, StoreError> {
        let mut delete = self.conn.prepare_cached("DELETE FROM mcp_logins WHERE server = ?1")?;
        Ok(delete.execute([server])? > 0)
    }
}
