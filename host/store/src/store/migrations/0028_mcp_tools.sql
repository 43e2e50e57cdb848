-- Tools of MCP servers as an administrator allowed them. Each change takes a new id, by which others notice it.
CREATE TABLE mcp_tools (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    server TEXT NOT NULL, -- its name in config.toml
    tool TEXT NOT NULL,
    source TEXT NOT NULL, -- where the server was when it was allowed
    definition TEXT NOT NULL, -- JSON: what the server said of it then
    seen TEXT, -- JSON: what it said of it later, where that is something else; the tool is off then
    allowed_ms INTEGER NOT NULL,
    UNIQUE (server, tool)
) STRICT;
