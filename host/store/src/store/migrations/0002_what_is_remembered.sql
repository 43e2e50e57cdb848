-- What is remembered: tasks, facts, memory, the scratchpad, summaries, usage, secrets.

ALTER TABLE sessions ADD COLUMN title TEXT;
ALTER TABLE sessions ADD COLUMN summary TEXT;
-- The last message that the summary holds; 0 where there is no summary.
ALTER TABLE sessions ADD COLUMN summarized_to INTEGER NOT NULL DEFAULT 0 CHECK (summarized_to >= 0);

ALTER TABLE messages ADD COLUMN tags TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(tags)); -- JSON list
-- Messages that no run has taken yet.
CREATE INDEX messages_waiting ON messages (session, id) WHERE role = 'user' AND run IS NULL;

ALTER TABLE runs ADD COLUMN cancel_requested INTEGER NOT NULL DEFAULT 0 CHECK (cancel_requested IN (0, 1));
ALTER TABLE runs ADD COLUMN resumed INTEGER NOT NULL DEFAULT 0 CHECK (resumed >= 0);
CREATE INDEX runs_unfinished ON runs (num) WHERE status = 'running';

CREATE TABLE tasks (
    run INTEGER NOT NULL REFERENCES runs (num),
    id INTEGER NOT NULL, -- given by the run, never used twice in it
    position INTEGER NOT NULL, -- its place in the plan that was last in force for it
    kind TEXT NOT NULL CHECK (kind IN ('exec', 'skill', 'msg', 'act')),
    label TEXT NOT NULL,
    task TEXT NOT NULL CHECK (json_valid(task)),
    status TEXT NOT NULL CHECK (status IN ('planned', 'running', 'done', 'failed', 'interrupted', 'dropped')),
    started_ms INTEGER,
    ended_ms INTEGER,
    error TEXT,
    output TEXT,
    PRIMARY KEY (run, id),
    CHECK (ended_ms IS NULL OR status IN ('done', 'failed', 'interrupted', 'dropped'))
) STRICT;
CREATE INDEX tasks_in_order ON tasks (run, position, id);

CREATE TABLE facts (
    id INTEGER PRIMARY KEY,
    text TEXT NOT NULL UNIQUE COLLATE NOCASE,
    grams TEXT NOT NULL, -- pairs of characters of scripts without spaces, for the index
    source TEXT NOT NULL, -- "reviewer", "user", "summarizer" …
    session INTEGER REFERENCES sessions (id), -- where it was learned; none where several became one
    confidence INTEGER NOT NULL CHECK (confidence BETWEEN 0 AND 100), -- percent
    at_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX facts_by_confidence ON facts (confidence, at_ms, id);

CREATE TABLE memory_chunks (
    id INTEGER PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE, -- of the text without regard to space and case, so that nothing is kept twice
    source TEXT NOT NULL,
    session INTEGER REFERENCES sessions (id),
    at_ms INTEGER NOT NULL,
    text TEXT NOT NULL,
    grams TEXT NOT NULL -- as in facts
) STRICT;

-- The indexes over the words hold no text of their own; triggers keep them in step with their tables, whose texts never
-- change.
CREATE VIRTUAL TABLE facts_words USING fts5 (
    text, grams, content = 'facts', content_rowid = 'id', tokenize = 'unicode61 remove_diacritics 2', prefix = '2 3'
);
CREATE TRIGGER facts_added AFTER INSERT ON facts BEGIN
    INSERT INTO facts_words (rowid, text, grams) VALUES (new.id, new.text, new.grams);
END;
CREATE TRIGGER facts_removed AFTER DELETE ON facts BEGIN
    INSERT INTO facts_words (facts_words, rowid, text, grams) VALUES ('delete', old.id, old.text, old.grams);
END;
CREATE VIRTUAL TABLE memory_words USING fts5 (
    text, grams, content = 'memory_chunks', content_rowid = 'id', tokenize = 'unicode61 remove_diacritics 2', prefix = '2 3'
);
CREATE TRIGGER memory_added AFTER INSERT ON memory_chunks BEGIN
    INSERT INTO memory_words (rowid, text, grams) VALUES (new.id, new.text, new.grams);
END;
CREATE TRIGGER memory_removed AFTER DELETE ON memory_chunks BEGIN
    INSERT INTO memory_words (memory_words, rowid, text, grams) VALUES ('delete', old.id, old.text, old.grams);
END;
-- As the rest of the file: what is deleted leaves nothing behind, no words either.
INSERT INTO facts_words (facts_words, rank) VALUES ('secure-delete', 1);
INSERT INTO memory_words (memory_words, rank) VALUES ('secure-delete', 1);

CREATE TABLE core_memory (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    document TEXT NOT NULL CHECK (json_type(document) = 'object'),
    at_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE scratchpad (
    num INTEGER PRIMARY KEY, -- grows with every entry that is written
    session INTEGER NOT NULL REFERENCES sessions (id),
    key TEXT NOT NULL,
    named INTEGER NOT NULL CHECK (named IN (0, 1)), -- 1: saved on purpose; 0: put away by the host, and may make room
    bytes INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    head TEXT NOT NULL, -- the beginning, for listings
    text TEXT NOT NULL, -- last, so that a listing never reads it
    UNIQUE (session, key)
) STRICT;
-- What a session has is counted, and put in order, from this index alone.
CREATE INDEX scratchpad_in_order ON scratchpad (session, num, named, bytes);

CREATE TABLE usage (
    id INTEGER PRIMARY KEY,
    at_ms INTEGER NOT NULL,
    day INTEGER NOT NULL, -- days since 1970 (UTC)
    session INTEGER NOT NULL REFERENCES sessions (id),
    run INTEGER REFERENCES runs (num),
    role TEXT NOT NULL,
    model TEXT NOT NULL,
    input INTEGER NOT NULL CHECK (input >= 0),
    output INTEGER NOT NULL CHECK (output >= 0),
    cost_micros INTEGER NOT NULL CHECK (cost_micros >= 0) -- millionths of a US dollar
) STRICT;
CREATE INDEX usage_of_run ON usage (run, id);
-- Sums of the table above, so that a cap is checked by reading one row.
CREATE TABLE usage_totals (
    scope TEXT NOT NULL CHECK (scope IN ('run', 'session', 'day')),
    key INTEGER NOT NULL, -- the run's num, the session's id, the day
    calls INTEGER NOT NULL,
    input INTEGER NOT NULL,
    output INTEGER NOT NULL,
    cost_micros INTEGER NOT NULL,
    PRIMARY KEY (scope, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE secrets (
    session INTEGER NOT NULL REFERENCES sessions (id),
    name TEXT NOT NULL,
    sealed BLOB NOT NULL, -- nonce and ciphertext; the key is not in this file
    at_ms INTEGER NOT NULL,
    PRIMARY KEY (session, name)
) STRICT, WITHOUT ROWID;

-- Work that is due after a reply and must not be lost with the process.
CREATE TABLE background (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('title', 'summary', 'facts', 'memory')),
    session INTEGER NOT NULL REFERENCES sessions (id),
    run INTEGER REFERENCES runs (num), -- whose turn it is about; none where it is about the session
    attempts INTEGER NOT NULL DEFAULT 0,
    due_ms INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX background_once ON background (kind, session, coalesce(run, 0));
CREATE INDEX background_due ON background (due_ms, id);
