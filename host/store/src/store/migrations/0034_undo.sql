-- What is kept to undo a session's runs, in bytes. It counts against the limit of the home, not of the session.
ALTER TABLE sessions ADD COLUMN undo_bytes INTEGER NOT NULL DEFAULT 0;

CREATE INDEX sessions_with_undo ON sessions (undo_bytes) WHERE undo_bytes > 0;

-- The start of the machine in which the run was last taken up, if what it changes is kept: what was not on disk when the machine
-- went down is gone, and a run that was cut off then is not begun again by itself.
ALTER TABLE runs ADD COLUMN boot TEXT;
