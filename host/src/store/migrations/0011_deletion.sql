-- What belongs to a session is found by it, so that a session can be deleted without reading whole tables: neither by the
-- statements that do so, nor by the checks of what refers to a row that goes.
CREATE INDEX sessions_of_parent ON sessions (parent);
CREATE INDEX runs_of_message ON runs (message);
CREATE INDEX jobs_of_run ON jobs (run);
CREATE INDEX jobs_of_session ON jobs (session);
CREATE INDEX usage_of_session ON usage (session);
CREATE INDEX facts_of_session ON facts (session);
CREATE INDEX memory_of_session ON memory_chunks (session);
CREATE INDEX background_of_session ON background (session);
CREATE INDEX background_of_run ON background (run);
