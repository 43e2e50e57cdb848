-- Whose words rows are, and who may read them: of those alone that are worse than what a session's own people write.
CREATE TABLE labels (
    kind TEXT NOT NULL CHECK (kind IN ('message', 'fact', 'passage', 'core', 'summary', 'ref', 'kv', 'schedule')),
    key TEXT NOT NULL, -- the row's number; of a ref and of kv, the session's number, a slash and the name
    label TEXT NOT NULL CHECK (json_valid(label)),
    PRIMARY KEY (kind, key)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER label_of_message AFTER DELETE ON messages BEGIN
    DELETE FROM labels WHERE kind = 'message' AND key = CAST(old.id AS TEXT);
END;
CREATE TRIGGER label_of_fact AFTER DELETE ON facts BEGIN
    DELETE FROM labels WHERE kind = 'fact' AND key = CAST(old.id AS TEXT);
END;
CREATE TRIGGER label_of_passage AFTER DELETE ON memory_chunks BEGIN
    DELETE FROM labels WHERE kind = 'passage' AND key = CAST(old.id AS TEXT);
END;
CREATE TRIGGER label_of_ref AFTER DELETE ON scratchpad BEGIN
    DELETE FROM labels WHERE kind = 'ref' AND key = old.session || '/' || old.key;
END;
CREATE TRIGGER label_of_schedule AFTER DELETE ON schedules BEGIN
    DELETE FROM labels WHERE kind = 'schedule' AND key = CAST(old.id AS TEXT);
END;
CREATE TRIGGER label_of_session AFTER DELETE ON sessions BEGIN
    DELETE FROM labels WHERE kind = 'summary' AND key = CAST(old.id AS TEXT);
    DELETE FROM labels WHERE kind = 'kv' AND key >= old.id || '/' AND key < old.id || '0';
END;
