-- What belongs to a session is found by it, so that a session can be deleted without reading whole tables: neither by the
-- statements that do so, nor by the checks of what refers to a row that goes. Some of this is there already.
CREATE INDEX IF NOT EXISTS sessions_of_parent ON sessions (parent, id) WHERE parent IS NOT NULL;
CREATE INDEX IF NOT EXISTS runs_of_message ON runs (message);
CREATE INDEX IF NOT EXISTS jobs_of_run ON jobs (run) WHERE run IS NOT NULL;
CREATE INDEX IF NOT EXISTS background_of_run ON background (run) WHERE run IS NOT NULL;
CREATE INDEX background_of_session ON background (session);
CREATE INDEX jobs_of_session ON jobs (session);
CREATE INDEX usage_of_session ON usage (session);
CREATE INDEX facts_of_session ON facts (session) WHERE session IS NOT NULL;
CREATE INDEX memory_of_session ON memory_chunks (session) WHERE session IS NOT NULL;
