//! Tools of MCP servers that an administrator has allowed.

use super::{StoreError, Tx, View};

/// An allowed tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpToolRow {
    /// The server's name in `config.toml`.
    pub server: String,
    pub tool: String,
    /// The server's address or command at that time. Another one is a different server.
    pub source: String,
    /// The server's definition of the tool at that time, as JSON.
    pub definition: String,
    /// The server's later definition, as JSON, if it is different.
    pub seen: Option<String>,
    pub allowed_ms: i64,
}

impl View<'_> {
    /// Changes with every change of the allowed tools.
    pub fn mcp_revision(&self) -> Result<(i64, i64), StoreError> {
        let mut query = self.conn.prepare_cached("SELECT count(*), coalesce(max(id), 0) FROM mcp_tools")?;
        Ok(query.query_row((), |row| Ok((row.get(0)?, row.get(1)?)))?)
    }

    /// Returns every allowed tool, by server and name.
    pub fn mcp_tools(&self) -> Result<Vec<McpToolRow>, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT server, tool, source, definition, seen, allowed_ms FROM mcp_tools ORDER BY server, tool",
        )?;
        let rows = query.query_map((), |row| {
            Ok(McpToolRow {
                server: row.get(0)?,
                tool: row.get(1)?,
                source: row.get(2)?,
                definition: row.get(3)?,
                seen: row.get(4)?,
                allowed_ms: row.get(5)?,
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

impl Tx<'_> {
    /// Allows a tool with its current definition, replacing earlier ones.
    pub fn allow_mcp_tool(&self, row: &McpToolRow) -> Result<(), StoreError> {
        let mut insert = self.conn.prepare_cached(
            "INSERT OR REPLACE INTO mcp_tools (server, tool, source, definition, seen, allowed_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?;
        let McpToolRow { server, tool, source, definition, seen, allowed_ms } = row;
        insert.execute((server, tool, source, definition, seen, allowed_ms))?;
        Ok(())
    }

    /// Disables a tool whose definition has changed. Only if it is still allowed as `definition`, because an administrator may
    /// have allowed the new one meanwhile.
    pub fn mcp_tool_changed(&self, server: &str, tool: &str, definition: &str, seen: &str) -> Result<(), StoreError> {
        let mut replace = self.conn.prepare_cached(
            "INSERT OR REPLACE INTO mcp_tools (server, tool, source, definition, seen, allowed_ms)
             SELECT server, tool, source, definition, ?4, allowed_ms FROM mcp_tools
             WHERE server = ?1 AND tool = ?2 AND definition = ?3",
        )?;
        replace.execute((server, tool, definition, seen))?;
        Ok(())
    }
}
