-- Sessions that live on: segments, the queue, subagents, and what clients are told of.

ALTER TABLE sessions ADD COLUMN model TEXT; -- model string that stands in for the configured default
ALTER TABLE sessions ADD COLUMN active_ms INTEGER NOT NULL DEFAULT 0; -- when its last message came
ALTER TABLE sessions ADD COLUMN parent INTEGER REFERENCES sessions (id); -- of a subagent: who spawned it
UPDATE sessions SET active_ms = coalesce(
    (SELECT at_ms FROM messages WHERE session = sessions.id ORDER BY id DESC LIMIT 1), created_ms);
CREATE INDEX sessions_by_activity ON sessions (active_ms, id);

-- A break: the messages after this one are a new segment.
CREATE TABLE segments (
    session INTEGER NOT NULL REFERENCES sessions (id),
    after INTEGER NOT NULL, -- a message's id, or 0
    at_ms INTEGER NOT NULL,
    PRIMARY KEY (session, after)
) STRICT, WITHOUT ROWID;

-- A message that was admitted to the queue.
CREATE TABLE jobs (
    message INTEGER PRIMARY KEY REFERENCES messages (id),
    session INTEGER NOT NULL REFERENCES sessions (id),
    state TEXT NOT NULL CHECK (state IN ('queued', 'running', 'done')),
    caller TEXT NOT NULL CHECK (caller IN ('user', 'admin')),
    priority TEXT NOT NULL CHECK (priority IN ('interactive', 'subagent', 'background')),
    client_key TEXT, -- the client's name for the message: sent twice, it is admitted once
    run INTEGER REFERENCES runs (num),
    reply INTEGER, -- the last message of its run; no reference, which would look through all jobs for each new message
    CHECK ((state = 'queued') = (run IS NULL)),
    CHECK ((state = 'done') = (reply IS NOT NULL))
) STRICT;
CREATE UNIQUE INDEX jobs_once ON jobs (session, client_key) WHERE client_key IS NOT NULL;
CREATE INDEX jobs_queued ON jobs (session, message) WHERE state = 'queued';
CREATE INDEX jobs_running ON jobs (run) WHERE state = 'running';

-- What happened, in one order for all: a client that was away asks for what came after the last number it has.
CREATE TABLE feed (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('message', 'event', 'run', 'session')),
    run INTEGER,
    seq INTEGER, -- of an event
    message INTEGER
) STRICT;
