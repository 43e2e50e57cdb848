-- How far each channel has read, and what it has trouble with.
CREATE TABLE channels (
    name TEXT PRIMARY KEY,
    cursor TEXT, -- the component's own words
    trouble TEXT, -- null where the last poll went well
    at_ms INTEGER NOT NULL -- of the last change
) STRICT, WITHOUT ROWID;

-- Who wrote through a channel: those who may, and strangers who have a code that the owner has not confirmed.
CREATE TABLE channel_senders (
    number INTEGER PRIMARY KEY AUTOINCREMENT, -- in the name of the sender's session
    channel TEXT NOT NULL,
    sender TEXT NOT NULL, -- in the service's words
    name TEXT, -- which the sender chose
    standing TEXT NOT NULL CHECK (standing IN ('waiting', 'allowed', 'owner')),
    code BLOB, -- SHA-256 of the pairing code of one who waits
    at_ms INTEGER NOT NULL, -- when the code was made, or the sender was allowed
    UNIQUE (channel, sender)
) STRICT;

-- Messages that were dealt with, so that none is twice.
CREATE TABLE channel_received (
    channel TEXT NOT NULL,
    id BLOB NOT NULL, -- SHA-256 of the service's id
    at_ms INTEGER NOT NULL,
    PRIMARY KEY (channel, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX channel_received_by_age ON channel_received (at_ms);

-- What a channel says that is no reply of a run: answers of commands, codes, refusals. Each is sent until it arrives.
CREATE TABLE channel_notes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    channel TEXT NOT NULL,
    recipient TEXT NOT NULL,
    text TEXT NOT NULL, -- sealed
    due_ms INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX channel_notes_due ON channel_notes (channel, due_ms);
