-- Runs that wait for a person, models of single roles, and what webhooks are told while a run is under way.

-- A run that was cut off again and again: since when it waits for somebody to say that it is to be tried again.
ALTER TABLE runs ADD COLUMN held_ms INTEGER;
-- When somebody said so; until it is taken up.
ALTER TABLE runs ADD COLUMN retry_ms INTEGER;
CREATE INDEX runs_to_retry ON runs (num) WHERE retry_ms IS NOT NULL;

-- Models of single roles of the session, by the role's name.
ALTER TABLE sessions ADD COLUMN role_models TEXT NOT NULL DEFAULT '{}' CHECK (json_type(role_models) = 'object');

-- The outbox gets a third event, whose text stands in the run's log. A check cannot be changed, so the table is made anew.
CREATE TABLE outbox_anew (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE, -- the same in every attempt, so that the receiver can tell that it has it already
    webhook TEXT NOT NULL,
    event TEXT NOT NULL CHECK (event IN ('reply', 'run', 'notify')),
    message INTEGER REFERENCES messages (id) ON DELETE SET NULL, -- of a reply; its text is read when it is sent
    run INTEGER REFERENCES runs (num) ON DELETE SET NULL, -- of a run that ended, or that says something
    seq INTEGER, -- of the run's event that says it
    at_ms INTEGER NOT NULL,
    since_ms INTEGER NOT NULL, -- since when it waits
    state TEXT NOT NULL CHECK (state IN ('pending', 'delivered', 'failed')),
    attempts INTEGER NOT NULL DEFAULT 0,
    due_ms INTEGER NOT NULL, -- of the next attempt
    ended_ms INTEGER,
    error TEXT, -- of the last attempt that failed
    CHECK ((state = 'pending') = (ended_ms IS NULL)),
    CHECK ((event = 'notify') = (seq IS NOT NULL))
) STRICT;
INSERT INTO outbox_anew (id, key, webhook, event, message, run, at_ms, since_ms, state, attempts, due_ms, ended_ms, error)
    SELECT id, key, webhook, event, message, run, at_ms, since_ms, state, attempts, due_ms, ended_ms, error FROM outbox;
DROP TABLE outbox;
ALTER TABLE outbox_anew RENAME TO outbox;
-- Each is told once; and what is deleted is found here.
CREATE UNIQUE INDEX outbox_of_message ON outbox (message, webhook) WHERE message IS NOT NULL;
CREATE UNIQUE INDEX outbox_of_run ON outbox (run, webhook, seq) WHERE run IS NOT NULL;
CREATE UNIQUE INDEX outbox_of_run_end ON outbox (run, webhook) WHERE run IS NOT NULL AND seq IS NULL;
CREATE INDEX outbox_pending ON outbox (webhook, due_ms, id) WHERE state = 'pending';
CREATE INDEX outbox_ended ON outbox (state, ended_ms, id) WHERE ended_ms IS NOT NULL;
