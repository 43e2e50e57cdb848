-- What the sections of the documentation mean, each by the digest of its text: they are the same in every home, and asked for
-- once for each version of kiso and each model.
CREATE TABLE doc_vectors (
    embedder INTEGER NOT NULL,
    section BLOB NOT NULL, -- SHA-256 of its text
    vector BLOB, -- as in memory_vectors; NULL: the embedder refused it, and will again
    PRIMARY KEY (embedder, section)
) STRICT, WITHOUT ROWID;
