-- Of a notice: who may be sent it and whose words it is, where that is worse than for a session's own data.
ALTER TABLE outbox ADD COLUMN label TEXT CHECK (json_valid(label));
