-- The terms of the word indexes, to look words up without reading the rows that they stand in.
CREATE VIRTUAL TABLE facts_terms USING fts5vocab ('facts_words', 'instance');
CREATE VIRTUAL TABLE memory_terms USING fts5vocab ('memory_words', 'instance');

-- What passages mean. Vectors of two models cannot be compared, so each vector knows whose it is.
CREATE TABLE embedders (
    num INTEGER PRIMARY KEY CHECK (num > 0),
    model TEXT NOT NULL UNIQUE
) STRICT;
-- Whose vector the passage has; 0: none; below 0: this one refused it, and will again.
ALTER TABLE memory_chunks ADD COLUMN embedder INTEGER NOT NULL DEFAULT 0;
CREATE INDEX memory_chunks_by_embedder ON memory_chunks (embedder, id);

-- The signs of a vector's numbers, a bit each: small enough that all are looked through for the nearest.
CREATE TABLE memory_signs (
    chunk INTEGER PRIMARY KEY REFERENCES memory_chunks (id) ON DELETE CASCADE,
    embedder INTEGER NOT NULL,
    signs BLOB NOT NULL
) STRICT;
-- The vector itself, a signed byte for each number; read for the nearest alone.
CREATE TABLE memory_vectors (
    chunk INTEGER PRIMARY KEY REFERENCES memory_chunks (id) ON DELETE CASCADE,
    vector BLOB NOT NULL
) STRICT;
