-- Webhooks: who is told of what, and what is still to be told.

-- Those of config.toml, so that whoever writes a reply knows in the same transaction whom to tell.
CREATE TABLE webhooks (
    name TEXT PRIMARY KEY NOT NULL,
    sessions TEXT NOT NULL CHECK (json_type(sessions) = 'array'), -- patterns with * and ?; an empty list means all
    events TEXT NOT NULL CHECK (json_type(events) = 'array'),
    delivered INTEGER NOT NULL DEFAULT 0, -- counted since the webhook is there
    failed INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

CREATE TABLE outbox (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE, -- the same in every attempt, so that the receiver can tell that it has it already
    webhook TEXT NOT NULL,
    event TEXT NOT NULL CHECK (event IN ('reply', 'run')),
    message INTEGER REFERENCES messages (id) ON DELETE SET NULL, -- of a reply; its text is read when it is sent
    run INTEGER REFERENCES runs (num) ON DELETE SET NULL, -- of a run that ended
    at_ms INTEGER NOT NULL,
    since_ms INTEGER NOT NULL, -- since when it waits
    state TEXT NOT NULL CHECK (state IN ('pending', 'delivered', 'failed')),
    attempts INTEGER NOT NULL DEFAULT 0,
    due_ms INTEGER NOT NULL, -- of the next attempt
    ended_ms INTEGER,
    error TEXT, -- of the last attempt that failed
    CHECK ((state = 'pending') = (ended_ms IS NULL))
) STRICT;
-- Each is told once; and what is deleted is found here.
CREATE UNIQUE INDEX outbox_of_message ON outbox (message, webhook) WHERE message IS NOT NULL;
CREATE UNIQUE INDEX outbox_of_run ON outbox (run, webhook) WHERE run IS NOT NULL;
CREATE INDEX outbox_pending ON outbox (webhook, due_ms, id) WHERE state = 'pending';
CREATE INDEX outbox_ended ON outbox (state, ended_ms, id) WHERE ended_ms IS NOT NULL;
