-- The last event that a run had when it was taken up again. One that has got further since was not brought down by the same
-- step, so its count begins anew.
ALTER TABLE runs ADD COLUMN resumed_at_seq INTEGER NOT NULL DEFAULT -1;
