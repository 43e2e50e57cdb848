-- Logins at MCP servers (OAuth), one for each.
CREATE TABLE mcp_logins (
    server TEXT PRIMARY KEY, -- its name in config.toml
    source TEXT NOT NULL, -- its URL at the login; at another one the login counts for nothing
    sealed BLOB NOT NULL, -- the tokens, as the vault sealed them for that server and URL
    at_ms INTEGER NOT NULL
) STRICT;
