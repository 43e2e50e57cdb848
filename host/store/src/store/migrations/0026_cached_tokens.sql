-- Of the tokens of a prompt, those that the provider had read before and kept.
ALTER TABLE usage ADD COLUMN cached INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_totals ADD COLUMN cached INTEGER NOT NULL DEFAULT 0;
