-- Browsers that are logged in to the page.
CREATE TABLE logins (
    hash BLOB PRIMARY KEY CHECK (length(hash) = 32), -- SHA-256 of the cookie's value, which is random
    token TEXT REFERENCES tokens (handle) ON DELETE CASCADE, -- it was made with, and goes with; NULL: by a link of the owner
    scope TEXT NOT NULL CHECK (scope IN ('chat', 'admin')),
    created_ms INTEGER NOT NULL,
    used_ms INTEGER NOT NULL -- to the hour
) STRICT, WITHOUT ROWID;
CREATE INDEX logins_by_use ON logins (used_ms);
CREATE INDEX logins_of_token ON logins (token, used_ms);

-- Links of the owner, each of which logs one browser in.
CREATE TABLE login_codes (
    hash BLOB PRIMARY KEY CHECK (length(hash) = 32), -- SHA-256 of the code, which is random
    scope TEXT NOT NULL CHECK (scope IN ('chat', 'admin')),
    created_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX login_codes_by_age ON login_codes (created_ms);
