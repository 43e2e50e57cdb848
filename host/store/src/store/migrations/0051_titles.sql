-- Finds another session that has the same title.
CREATE INDEX sessions_by_title ON sessions (title) WHERE title IS NOT NULL;
