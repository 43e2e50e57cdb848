-- The token or the login that began a session, if it may read only those that it began; NULL: somebody who may read all.
ALTER TABLE sessions ADD COLUMN owner TEXT;
CREATE INDEX sessions_of_owner ON sessions (owner, active_ms, id) WHERE owner IS NOT NULL;
