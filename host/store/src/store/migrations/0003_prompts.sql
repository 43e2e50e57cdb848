-- What models were asked; read on demand only.
CREATE TABLE prompts (
    run INTEGER NOT NULL REFERENCES runs (num),
    seq INTEGER NOT NULL, -- of the event that the answer led to
    nth INTEGER NOT NULL,
    role TEXT NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (run, seq, nth)
) STRICT, WITHOUT ROWID;
