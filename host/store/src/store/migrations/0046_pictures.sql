-- Pictures as models are shown them, by their SHA-256; the session's runs refer to them.
CREATE TABLE pictures (
    num INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES sessions (id),
    digest TEXT NOT NULL,
    content BLOB NOT NULL,
    described TEXT, -- in words, for a model that is not shown pictures
    UNIQUE (session, digest)
) STRICT;
CREATE INDEX pictures_in_order ON pictures (session, num);
