-- Pills that people made; those of config.toml are not here.
CREATE TABLE pills (
    name TEXT PRIMARY KEY NOT NULL,
    template TEXT NOT NULL,
    categories TEXT NOT NULL CHECK (json_type(categories) = 'array'),
    effort TEXT NOT NULL CHECK (effort IN ('low', 'medium', 'high')),
    description TEXT NOT NULL,
    caller TEXT NOT NULL CHECK (caller IN ('user', 'admin')), -- whose it is
    at_ms INTEGER NOT NULL -- when it was last written
) STRICT, WITHOUT ROWID;
