-- Providers of models that an administrator connected while kiso ran, beside those of config.toml.
CREATE TABLE connected_providers (
    name TEXT PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('openai', 'anthropic')),
    base_url TEXT NOT NULL,
    sealed BLOB, -- the key as the vault sealed it for this name and address; none for a server that wants none
    made_by TEXT NOT NULL, -- who connected it
    created_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE connected_models (
    id INTEGER PRIMARY KEY,
    provider TEXT NOT NULL REFERENCES connected_providers (name) ON DELETE CASCADE,
    model TEXT NOT NULL, -- as the provider calls it
    context_budget INTEGER, -- tokens of prompt and answer, as far as the provider says
    is_default INTEGER NOT NULL CHECK (is_default IN (0, 1)),
    UNIQUE (provider, model)
) STRICT;
