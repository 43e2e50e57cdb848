-- Which hosts command lines may reach, by `kiso network` and by answers to cards.
CREATE TABLE network_rules (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session INTEGER REFERENCES sessions (id) ON DELETE CASCADE, -- of one session, or of all
    host TEXT NOT NULL, -- in lower case
    rule TEXT NOT NULL CHECK (json_valid(rule)),
    made_by TEXT NOT NULL, -- who made it
    created_ms INTEGER NOT NULL
) STRICT;

CREATE INDEX network_rules_of_session ON network_rules (session);
