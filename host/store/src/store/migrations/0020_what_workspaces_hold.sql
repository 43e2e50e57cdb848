-- Bytes in a session's workspace when it was last measured: what all of them hold is a sum, and no look at the disk.
ALTER TABLE sessions ADD COLUMN workspace_bytes INTEGER NOT NULL DEFAULT 0;
