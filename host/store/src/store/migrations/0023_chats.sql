-- Conversations of programs that speak OpenAI's interface, and what was asked in each last.
CREATE TABLE chats (
    session INTEGER PRIMARY KEY REFERENCES sessions,
    owner TEXT NOT NULL, -- digest of the token and of the person that it speaks for
    asked BLOB NOT NULL, -- keyed digest of all that was said up to the last question, as the program says it
    message INTEGER, -- the question; NULL for a command, which is answered at once
    answer BLOB, -- of a command: the same of its answer
    instructions BLOB -- the same of what the program told the model about itself
) STRICT;
CREATE INDEX chats_by_asked ON chats (owner, asked);

-- Requests that can be sent again, by their key, or asked for, by their id.
CREATE TABLE chat_requests (
    num INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    token TEXT NOT NULL, -- handle of the token; empty for a program of the machine that needs none
    key TEXT,
    asked BLOB NOT NULL, -- digest of the request
    session INTEGER REFERENCES sessions, -- NULL for a command where no session is
    message INTEGER, -- NULL for a command
    answer TEXT, -- of a command
    model TEXT NOT NULL,
    previous TEXT,
    metadata TEXT NOT NULL,
    stored INTEGER NOT NULL, -- whether it can be asked for
    at_ms INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX chat_requests_by_key ON chat_requests (token, key) WHERE key IS NOT NULL;
CREATE INDEX chat_requests_of_session ON chat_requests (session);
