-- Cards: what a run asks a person before it goes on.
CREATE TABLE approvals (
    id INTEGER PRIMARY KEY AUTOINCREMENT, -- the card's number, never used twice
    run INTEGER NOT NULL REFERENCES runs (num) ON DELETE CASCADE,
    seq INTEGER NOT NULL, -- of the event that asks
    card TEXT NOT NULL, -- JSON, without secrets
    asked_ms INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL,
    state TEXT NOT NULL, -- pending, answered, expired or withdrawn
    answer TEXT, -- JSON
    ended_ms INTEGER,
    UNIQUE (run, seq)
) STRICT;

CREATE INDEX approvals_pending ON approvals (expires_ms) WHERE state = 'pending';

-- What need not be asked again.
CREATE TABLE approval_rules (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session INTEGER REFERENCES sessions (id) ON DELETE CASCADE, -- of one session, or of all
    access TEXT NOT NULL, -- JSON
    tool TEXT NOT NULL,
    made_ms INTEGER NOT NULL,
    until_ms INTEGER NOT NULL
) STRICT;

CREATE INDEX approval_rules_of_session ON approval_rules (session);

-- The card that the run waits for.
ALTER TABLE runs ADD COLUMN waiting INTEGER;
