-- Deliveries of hooks that were taken: by their id, and by what was signed, so that neither is taken twice.
CREATE TABLE hook_deliveries (
    hook TEXT NOT NULL,
    key BLOB NOT NULL, -- SHA-256 of the id, or of the signature
    message INTEGER NOT NULL, -- that it became, which may be gone
    at_ms INTEGER NOT NULL,
    PRIMARY KEY (hook, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX hook_deliveries_by_age ON hook_deliveries (at_ms);
