-- What a run writes with each step stands in fewer pages.

-- The tasks of a run are few: they are put in order when they are read.
DROP INDEX tasks_in_order;

-- Rows in the order in which they come, and a narrow index beside them: in a tree by its key, a row of more than a quarter of a
-- page has a page of its own, most of which is empty.
CREATE TABLE events_anew (
    run INTEGER NOT NULL REFERENCES runs (num),
    seq INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL, -- JSON
    PRIMARY KEY (run, seq)
) STRICT;
INSERT INTO events_anew (run, seq, at_ms, kind, body) SELECT run, seq, at_ms, kind, body FROM events ORDER BY run, seq;
DROP TABLE events;
ALTER TABLE events_anew RENAME TO events;

-- What all workspaces hold is a sum over the few that hold much, and not over all sessions.
CREATE INDEX sessions_with_files ON sessions (workspace_bytes) WHERE workspace_bytes > 0;
