-- Subagents: messages that a run or the schedule sent, and where their replies go.

ALTER TABLE jobs ADD COLUMN root INTEGER; -- the session at the top of the tree that it was spawned in; none for a person's
ALTER TABLE jobs ADD COLUMN inject_into TEXT; -- name of the session that is told the reply; it may not exist yet
-- What was spawned and is not done: the few rows that are counted, and looked at for work.
CREATE INDEX jobs_spawned ON jobs (state, root, message) WHERE root IS NOT NULL AND state <> 'done';
CREATE INDEX sessions_of_parent ON sessions (parent, id) WHERE parent IS NOT NULL;
