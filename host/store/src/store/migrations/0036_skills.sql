-- What the calls of each skill have used so far: of the component that is installed now, so that a row is as old as that.
CREATE TABLE skill_use (
    skill TEXT NOT NULL PRIMARY KEY,
    digest TEXT NOT NULL, -- of the component; what another one used is forgotten
    calls INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    first_ms INTEGER NOT NULL,
    last_ms INTEGER NOT NULL,
    memory_bytes INTEGER NOT NULL, -- the most of one call, as in the next two
    longest_ms INTEGER NOT NULL,
    written_bytes INTEGER NOT NULL,
    total_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Hosts, directories and secrets among it.
CREATE TABLE skill_use_things (
    skill TEXT NOT NULL REFERENCES skill_use ON DELETE CASCADE,
    capability TEXT NOT NULL,
    how TEXT NOT NULL, -- in the terms of the capability, such as "GET" or "write"
    name TEXT NOT NULL, -- such as a host, or a directory
    calls INTEGER NOT NULL,
    last_ms INTEGER NOT NULL,
    PRIMARY KEY (skill, capability, how, name)
) STRICT, WITHOUT ROWID;

-- The last version of each index of skills that was seen, by who signed it and what it is called: an older one is refused.
CREATE TABLE skill_indexes (
    signer TEXT NOT NULL, -- the key, a line of base64
    name TEXT NOT NULL,
    serial INTEGER NOT NULL,
    digest TEXT NOT NULL,
    seen_ms INTEGER NOT NULL,
    PRIMARY KEY (signer, name)
) STRICT, WITHOUT ROWID;
