-- Of a fleet: the last event before the last step that reached something outside of the sandbox. On one machine that stands in what is
-- kept to undo the step, which the next owner has not.
ALTER TABLE runs ADD COLUMN left_at_seq INTEGER NOT NULL DEFAULT -1;
