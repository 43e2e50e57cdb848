-- The store's own life: when it was last copied, and what finding and deleting old things needs.

CREATE TABLE marks (
    name TEXT PRIMARY KEY NOT NULL CHECK (name IN ('backup', 'restore')),
    at_ms INTEGER NOT NULL -- when it was last done
) STRICT, WITHOUT ROWID;

-- Before a message or a run is deleted, SQLite looks for what refers to it. The index over the jobs of runs is written
-- once for each, where the one over those that are under way was written twice.
CREATE INDEX runs_of_message ON runs (message);
DROP INDEX jobs_running;
CREATE INDEX jobs_of_run ON jobs (run) WHERE run IS NOT NULL;
CREATE INDEX background_of_run ON background (run) WHERE run IS NOT NULL;

-- A listing must not walk over ten thousand subagents to find the ten sessions among them.
DROP INDEX sessions_by_activity;
CREATE INDEX sessions_by_activity ON sessions (parent IS NOT NULL, active_ms, id);
