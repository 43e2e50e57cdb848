-- Prompts in pieces: most of what a model is asked stands in other prompts, too, and is kept once.
CREATE TABLE prompt_pieces (
    id INTEGER PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE, -- the first 16 bytes of the text's SHA-256
    text TEXT NOT NULL
) STRICT;
-- How many prompts have the piece. A table of its own, so that counting does not write the texts again.
CREATE TABLE piece_uses (
    piece INTEGER PRIMARY KEY REFERENCES prompt_pieces (id) ON DELETE CASCADE,
    uses INTEGER NOT NULL
) STRICT;
CREATE TABLE prompts_anew (
    run INTEGER NOT NULL REFERENCES runs (num),
    seq INTEGER NOT NULL, -- of the event that the answer led to
    nth INTEGER NOT NULL,
    role TEXT NOT NULL,
    text TEXT NOT NULL,
    -- A JSON list of pieces, by number, and of texts between them; NULL where `text` has it whole, sealed or from before.
    pieces TEXT CHECK (json_type(pieces) = 'array'),
    PRIMARY KEY (run, seq, nth)
) STRICT;
INSERT INTO prompts_anew (run, seq, nth, role, text) SELECT run, seq, nth, role, text FROM prompts ORDER BY run, seq, nth;
DROP TABLE prompts;
ALTER TABLE prompts_anew RENAME TO prompts;

-- A piece goes with the last prompt that has it, whoever deletes that.
CREATE TRIGGER prompt_added AFTER INSERT ON prompts WHEN new.pieces IS NOT NULL BEGIN
    INSERT INTO piece_uses (piece, uses)
        SELECT DISTINCT value, 1 FROM json_each(new.pieces) WHERE type = 'integer'
        ON CONFLICT DO UPDATE SET uses = uses + 1;
END;
CREATE TRIGGER prompt_removed AFTER DELETE ON prompts WHEN old.pieces IS NOT NULL BEGIN
    UPDATE piece_uses SET uses = uses - 1
        WHERE piece IN (SELECT value FROM json_each(old.pieces) WHERE type = 'integer');
    DELETE FROM prompt_pieces
        WHERE id IN (SELECT value FROM json_each(old.pieces) WHERE type = 'integer')
            AND (SELECT uses FROM piece_uses WHERE piece = id) <= 0;
END;
