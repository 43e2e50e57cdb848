-- Messages that come by themselves, and what came of each.

CREATE TABLE schedules (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    timing TEXT NOT NULL, -- as it was written: a cron expression, "@every 10m", "at 2027-01-01 08:00"
    zone TEXT NOT NULL, -- of the IANA database
    message TEXT NOT NULL, -- sealed, as a message that waits
    session TEXT, -- name of the session that is told the reply
    model TEXT,
    caller TEXT NOT NULL CHECK (caller IN ('user', 'admin')),
    paused INTEGER NOT NULL DEFAULT 0 CHECK (paused IN (0, 1)),
    next_ms INTEGER, -- none: it does not come again
    last_due_ms INTEGER, -- of the firing before
    created_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX schedules_due ON schedules (next_ms) WHERE paused = 0 AND next_ms IS NOT NULL;

CREATE TABLE receipts (
    id INTEGER PRIMARY KEY,
    schedule INTEGER NOT NULL REFERENCES schedules (id),
    due_ms INTEGER NOT NULL,
    fired_ms INTEGER NOT NULL,
    by_hand INTEGER NOT NULL CHECK (by_hand IN (0, 1)),
    message INTEGER -- its job's; none where it was skipped. No reference: receipts outlive messages
) STRICT;
CREATE INDEX receipts_of_schedule ON receipts (schedule, id);
