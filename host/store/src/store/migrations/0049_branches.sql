-- A session is a tree: a turn can have several versions, and each version has its own continuation. A session from before this
-- migration is one line, the branch 0.
ALTER TABLE sessions ADD COLUMN branch INTEGER NOT NULL DEFAULT 0; -- the branch in use
ALTER TABLE messages ADD COLUMN branch INTEGER NOT NULL DEFAULT 0;
ALTER TABLE messages ADD COLUMN replaced INTEGER NOT NULL DEFAULT 0 CHECK (replaced IN (0, 1)); -- 1: not on the way to the branch in use
ALTER TABLE segments ADD COLUMN branch INTEGER NOT NULL DEFAULT 0;
ALTER TABLE segments ADD COLUMN replaced INTEGER NOT NULL DEFAULT 0 CHECK (replaced IN (0, 1));
ALTER TABLE jobs ADD COLUMN turn INTEGER; -- the branch that the message begins: it goes before those that wait

CREATE TABLE branches (
    id INTEGER PRIMARY KEY, -- the message that it begins with
    session INTEGER NOT NULL REFERENCES sessions (id),
    parent INTEGER NOT NULL, -- the branch that it leaves, or 0
    first INTEGER NOT NULL, -- the first message of the turn there that it replaces: the first version
    run INTEGER NOT NULL, -- the number of that turn's run
    undo TEXT -- JSON: the runs whose changes to files are undone before it begins; NULL where none are
) STRICT;
CREATE INDEX branches_of_session ON branches (session);
CREATE INDEX branches_of_turn ON branches (first, id);

-- Summaries of branches that are not in use.
CREATE TABLE branch_summaries (
    session INTEGER NOT NULL REFERENCES sessions (id),
    branch INTEGER NOT NULL,
    segment INTEGER NOT NULL,
    text TEXT NOT NULL,
    up_to INTEGER NOT NULL,
    sources TEXT NOT NULL,
    label TEXT NOT NULL, -- JSON
    PRIMARY KEY (session, branch, segment)
) STRICT, WITHOUT ROWID;

CREATE INDEX messages_in_use ON messages (session, id) WHERE replaced = 0;
CREATE INDEX messages_replaced ON messages (session, at_ms) WHERE replaced = 1;
CREATE INDEX messages_of_branch ON messages (branch, id) WHERE branch > 0;
CREATE INDEX jobs_of_turns ON jobs (session, turn) WHERE state = 'queued' AND turn IS NOT NULL;
