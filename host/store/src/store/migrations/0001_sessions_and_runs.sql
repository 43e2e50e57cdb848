-- Times are milliseconds since 1970 (UTC).

CREATE TABLE sessions (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    created_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE messages (
    id INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES sessions (id),
    role TEXT NOT NULL CHECK (role IN ('user', 'assistant')),
    text TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    run TEXT -- id of the run that the message began or came from
) STRICT;
CREATE INDEX messages_of_session ON messages (session, id);

CREATE TABLE runs (
    num INTEGER PRIMARY KEY, -- the order in which runs began, also when the clock jumped
    id TEXT NOT NULL UNIQUE,
    session INTEGER NOT NULL REFERENCES sessions (id),
    message INTEGER NOT NULL REFERENCES messages (id),
    status TEXT NOT NULL CHECK (status IN ('running', 'done', 'failed', 'cancelled')),
    started_ms INTEGER NOT NULL,
    ended_ms INTEGER,
    outcome TEXT, -- JSON
    CHECK ((status = 'running') = (ended_ms IS NULL))
) STRICT;
CREATE INDEX runs_of_session ON runs (session, num);

CREATE TABLE events (
    run INTEGER NOT NULL REFERENCES runs (num),
    seq INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL, -- JSON
    PRIMARY KEY (run, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE kv (
    session INTEGER NOT NULL REFERENCES sessions (id),
    skill TEXT NOT NULL,
    key BLOB NOT NULL, -- UTF-8; a blob, because SQLite's functions end a text at its first zero byte
    value BLOB NOT NULL,
    PRIMARY KEY (session, skill, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE published (
    id TEXT PRIMARY KEY NOT NULL,
    session INTEGER NOT NULL REFERENCES sessions (id),
    path TEXT NOT NULL,
    media_type TEXT NOT NULL,
    title TEXT,
    at_ms INTEGER NOT NULL,
    UNIQUE (session, path)
) STRICT;
