-- Of a fleet: under which name a session's files are kept for the other members. It changes in the commit that follows from what
-- changed the files.
CREATE TABLE trees (
    session INTEGER PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE,
    root BLOB NOT NULL
) STRICT;
