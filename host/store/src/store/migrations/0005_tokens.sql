-- Who may talk to the daemon over HTTP.
CREATE TABLE tokens (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    handle TEXT NOT NULL UNIQUE, -- the part of the token by which it is found; no secret
    hash BLOB NOT NULL CHECK (length(hash) = 32), -- SHA-256 of the whole token, which is random
    scope TEXT NOT NULL CHECK (scope IN ('chat', 'admin')),
    created_ms INTEGER NOT NULL
) STRICT;
